//! The objects around an ObjectBucketClaim in memory, changed by the effects of passes.

use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::super::*;
use crate::api::{
    AddressingStyle, BucketAccess, BucketClaim, BucketClass, Endpoint, Gateway, Obc, ObjectBucket, ObjectBucketClaim,
    ObjectId, ServedBy,
};

pub(super) fn setting() -> Arc<ObcSetting> {
    let endpoint = Endpoint::parse("https://gateway.example").expect("a URL");
    Arc::new(ObcSetting {
        provisioner: "broker.stowage.io/bucket".to_owned(),
        gateway: Gateway { endpoint, region: "eu".to_owned(), addressing_style: AddressingStyle::Path, ca: None },
        operator: ServedBy::operator("stowage-system", "i"),
    })
}

/// The objects. `null` for an object that does not exist.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cluster {
    pub(super) obc: Value,
    pub(super) class: Value,
    pub(super) buckets: Vec<Value>,
    pub(super) shadow: Value,
    pub(super) access: Value,
    pub(super) config_map: Value,
    pub(super) version: u64,
    pub(super) acts: Vec<String>,
}

pub(super) fn class(policy: &str, parameters: Value) -> Value {
    json!({"provisioner": "broker.stowage.io/bucket", "reclaimPolicy": policy, "parameters": parameters})
}

impl Cluster {
    pub(super) fn new(spec: Value) -> Self {
        let metadata = json!({"name": "photos", "namespace": "team-a", "uid": "u-1", "resourceVersion": "1"});
        Self {
            obc: json!({"metadata": metadata, "spec": spec}),
            class: class("Delete", json!({"backend": "main"})),
            buckets: Vec::new(),
            shadow: Value::Null,
            access: Value::Null,
            config_map: Value::Null,
            version: 1,
            acts: Vec::new(),
        }
    }

    pub(super) fn asked() -> Self {
        Self::new(json!({"storageClassName": "buckets", "bucketName": "photos"}))
    }

    /// Makes the BucketClaim Ready and its Secret available.
    pub(super) fn works(&mut self) {
        self.shadow["status"] =
            json!({"observedGeneration": 1, "boundSecretName": "photos", "conditions": [ready("True", "Bound")]});
        self.shadow["metadata"]["generation"] = 1.into();
    }

    /// Gives the BucketAccess this status.
    pub(super) fn access_tells(&mut self, status: &str, reason: &str, stalled: bool) {
        let mut conditions = vec![ready(status, reason)];
        conditions.extend(stalled.then(|| condition("Stalled", "True", reason)));
        self.access["status"] = json!({"observedGeneration": 1, "boundSecretName": "photos", "conditions": conditions});
        self.access["metadata"]["generation"] = 1.into();
    }

    pub(super) fn obc(&self) -> Obc {
        Obc::parse(&serde_json::from_value::<ObjectBucketClaim>(self.obc.clone()).expect("it"))
    }

    pub(super) fn cached(&self) -> ObcCached {
        let class: Option<k8s_openapi::api::storage::v1::StorageClass> = read(&self.class);
        ObcCached {
            class: class.map(|raw| BucketClass::parse(&raw)),
            buckets: self.buckets.iter().filter_map(bucket).collect(),
            claim: shadow(&self.shadow),
            access: access(&self.access),
            config_map: told(&self.config_map),
            told: None,
        }
    }

    /// Runs a pass. Returns `None` if it is interrupted after this number of effects.
    pub(super) fn pass(&mut self, most: usize) -> Option<ObcRest> {
        let view = ObcView::new(setting(), self.obc(), self.cached());
        self.go_on(view, most)
    }

    pub(super) fn go_on(&mut self, mut view: ObcView, most: usize) -> Option<ObcRest> {
        let mut acts = 0;
        for _ in 0..MOST_STEPS {
            let step = match view.next(Timestamp::UNIX_EPOCH) {
                ControlFlow::Break(rest) => return Some(rest),
                ControlFlow::Continue(step) => step,
            };
            let answer = match &step {
                ObcStep::Look(look) => self.look(look),
                ObcStep::Act(act) => {
                    if acts == most {
                        return None;
                    }
                    acts += 1;
                    self.acts.push(step.to_string());
                    self.act(act)
                }
            };
            view.learn(answer, Arrival::Prompt);
        }
        panic!("it does not end: {:?}", self.acts);
    }

    pub(super) fn look(&self, look: &ObcLook) -> ObcAnswer {
        let cached = self.cached();
        match look {
            ObcLook::Obc => ObcAnswer::Obc((!self.obc.is_null()).then(|| Box::new(self.obc()))),
            ObcLook::Namespace => ObcAnswer::Namespace(true),
            ObcLook::Class(_) => ObcAnswer::Class(cached.class),
            ObcLook::Buckets => {
                let of = |name: &String| cached.buckets.iter().find(|it| it.name == *name).cloned();
                ObcAnswer::Buckets(bucket_names(&self.obc()).map(|name| (name.clone(), of(&name))).into())
            }
            ObcLook::Shadow(kind @ ShadowKind::Claim, _) => ObcAnswer::Shadow(*kind, cached.claim.map(Box::new)),
            ObcLook::Shadow(kind @ ShadowKind::Access, _) => ObcAnswer::Shadow(*kind, cached.access.map(Box::new)),
            ObcLook::ConfigMap => ObcAnswer::ConfigMap(cached.config_map),
        }
    }

    /// Returns a created object, with UID and resourceVersion.
    fn stamped(&mut self, mut object: Value, uid: &str) -> Value {
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object
    }

    pub(super) fn act(&mut self, act: &ObcAct) -> ObcAnswer {
        self.version += 1;
        match act {
            ObcAct::AddFinalizer(..)
            | ObcAct::RemoveFinalizer(..)
            | ObcAct::WriteNames(..)
            | ObcAct::WritePhase(..)
            | ObcAct::CreateBucket(..)
            | ObcAct::PatchBucket(..)
            | ObcAct::WriteBucketPhase(..)
            | ObcAct::DeleteBucket(..) => self.act_on_pair(act),
            ObcAct::CreateShadow(..) | ObcAct::PatchShadow(..) | ObcAct::DeleteShadow(..) => self.act_on_shadow(act),
            ObcAct::CreateConfigMap(content) => {
                if !self.config_map.is_null() {
                    return ObcAnswer::ConfigMapPosted(None);
                }
                self.config_map = self.stamped(serde_json::to_value(content).expect("JSON"), "cm-1");
                ObcAnswer::ConfigMapPosted(told(&self.config_map))
            }
            ObcAct::PatchConfigMap(id, operations) => {
                let change = |it: &mut Value| operations.iter().for_each(|operation| apply(it, operation));
                set(&mut self.config_map, self.version, id, &change);
                ObcAnswer::ConfigMapWritten(told(&self.config_map).expect("it"))
            }
        }
    }

    /// Carries out an effect on the BucketClaim or BucketAccess.
    fn act_on_shadow(&mut self, act: &ObcAct) -> ObcAnswer {
        let version = self.version;
        let kind = match act {
            ObcAct::CreateShadow(new) => new.spec.kind(),
            ObcAct::PatchShadow(_, _, spec) => spec.kind(),
            ObcAct::DeleteShadow(kind, ..) => *kind,
            other => panic!("{other:?} is done to others"),
        };
        match act {
            ObcAct::CreateShadow(new) if self.of(kind).is_null() => {
                let spec = spec_of(&new.spec);
                let made = json!({"metadata": new.metadata, "spec": spec});
                let uid = if kind == ShadowKind::Claim { "bc" } else { "ba" };
                *self.of(kind) = self.stamped(made, &format!("{uid}-{version}"));
                ObcAnswer::ShadowPosted(kind, self.seen(kind))
            }
            ObcAct::PatchShadow(_, id, spec) => {
                let spec = spec_of(spec);
                set(self.of(kind), version, id, &|it| it["spec"] = spec.clone());
                ObcAnswer::ShadowWritten(self.seen(kind).expect("it"))
            }
            ObcAct::DeleteShadow(_, _, id) => {
                assert_eq!(self.of(kind)["metadata"]["resourceVersion"], json!(id.resource_version));
                *self.of(kind) = Value::Null;
                ObcAnswer::ShadowDeleted(kind, None)
            }
            _ => ObcAnswer::ShadowPosted(kind, None),
        }
    }

    fn of(&mut self, kind: ShadowKind) -> &mut Value {
        match kind {
            ShadowKind::Claim => &mut self.shadow,
            ShadowKind::Access => &mut self.access,
        }
    }

    fn seen(&self, kind: ShadowKind) -> Option<Box<Shadow>> {
        let cached = self.cached();
        match kind {
            ShadowKind::Claim => cached.claim.map(Box::new),
            ShadowKind::Access => cached.access.map(Box::new),
        }
    }

    /// Carries out an effect on the ObjectBucketClaim or its ObjectBucket.
    fn act_on_pair(&mut self, act: &ObcAct) -> ObcAnswer {
        let version = self.version;
        let written = |cluster: &Self| ObcAnswer::ObcWritten(Box::new(cluster.obc()));
        let named = |buckets: &mut Vec<Value>, name: &str, id: &ObjectId, change: &dyn Fn(&mut Value)| {
            let it = buckets.iter_mut().find(|it| it["metadata"]["name"] == *name).expect("it is there");
            set(it, version, id, change);
            ObcAnswer::BucketWritten(Box::new(bucket(it).expect("it")))
        };
        match act {
            ObcAct::AddFinalizer(id) => {
                set(&mut self.obc, version, id, &|it| {
                    it["metadata"]["finalizers"] = json!(["objectbucket.io/finalizer"]);
                    it["metadata"]["labels"] = json!({"bucket-provisioner": setting().label()});
                });
                written(self)
            }
            ObcAct::RemoveFinalizer(id) => {
                set(&mut self.obc, version, id, &|it| it["metadata"]["finalizers"] = json!([]));
                ObcAnswer::FinalizerRemoved
            }
            ObcAct::WriteNames(id, names) => {
                let change = |it: &mut Value| names.iter().for_each(|(field, name)| it["spec"][field] = json!(name));
                set(&mut self.obc, version, id, &change);
                written(self)
            }
            ObcAct::WritePhase(id, phase) => {
                set(&mut self.obc, version, id, &|it| it["status"] = json!({"phase": phase}));
                written(self)
            }
            ObcAct::CreateBucket(content) => {
                let made = self.stamped(serde_json::to_value(content).expect("JSON"), "ob-1");
                self.buckets.push(made.clone());
                ObcAnswer::BucketPosted(bucket(&made).map(Box::new))
            }
            ObcAct::PatchBucket(name, id, operations, _) => {
                let change = |it: &mut Value| operations.iter().for_each(|operation| apply(it, operation));
                named(&mut self.buckets, name, id, &change)
            }
            ObcAct::WriteBucketPhase(name, id, phase) => {
                named(&mut self.buckets, name, id, &|it| it["status"] = json!({"phase": phase}))
            }
            ObcAct::DeleteBucket(name, _) => {
                self.buckets.retain(|it| it["metadata"]["name"] != **name);
                ObcAnswer::BucketDeleted(None)
            }
            other => panic!("{other:?} is done to others"),
        }
    }

    /// Runs passes until the claim is Bound.
    pub(super) fn bound() -> Self {
        let mut cluster = Self::asked();
        cluster.pass(99);
        cluster.works();
        cluster.pass(99);
        assert_eq!(cluster.obc["status"]["phase"], "Bound", "{:?}", cluster.acts);
        cluster.acts.clear();
        cluster
    }

    pub(super) fn delete(&mut self) {
        self.obc["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
}

/// Changes an object of this version and increments its version.
fn set(object: &mut Value, version: u64, id: &ObjectId, change: &dyn Fn(&mut Value)) {
    assert_eq!(object["metadata"]["resourceVersion"], json!(id.resource_version));
    change(object);
    object["metadata"]["resourceVersion"] = version.to_string().into();
}

fn read<K: k8s_openapi::serde::de::DeserializeOwned>(object: &Value) -> Option<K> {
    (!object.is_null()).then(|| serde_json::from_value(object.clone()).expect("it can be read"))
}

fn bucket(object: &Value) -> Option<Bucket> {
    read::<ObjectBucket>(object).map(|raw| Bucket::parse(&raw))
}

fn shadow(object: &Value) -> Option<Shadow> {
    read::<BucketClaim>(object).map(|raw| Shadow::of_claim(&raw))
}

fn access(object: &Value) -> Option<Shadow> {
    read::<BucketAccess>(object).map(|raw| Shadow::of_access(&raw))
}

fn spec_of(spec: &ShadowSpec) -> Value {
    match spec {
        ShadowSpec::Claim(spec) => serde_json::to_value(spec),
        ShadowSpec::Access(spec) => serde_json::to_value(spec),
    }
    .expect("JSON")
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "what it says",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn ready(status: &str, reason: &str) -> Value {
    condition("Ready", status, reason)
}

fn told(object: &Value) -> Option<Told> {
    read::<ConfigMap>(object).map(|raw| Told::parse(&raw))
}

/// Applies one operation of a JSON patch.
fn apply(object: &mut Value, operation: &Value) {
    let (parent, field) = operation["path"].as_str().and_then(|path| path.rsplit_once('/')).expect("a path");
    let parent = object.pointer_mut(parent).expect("the parent is there");
    match (operation["op"].as_str().expect("a word"), field.parse::<usize>()) {
        ("add", _) => parent[field] = operation["value"].clone(),
        ("test", Ok(place)) => assert_eq!(parent[place], operation["value"]),
        ("remove", Ok(place)) => drop(parent.as_array_mut().expect("a list").remove(place)),
        other => panic!("{other:?}"),
    }
}
