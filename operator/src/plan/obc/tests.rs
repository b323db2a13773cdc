//! The conversation of an ObjectBucketClaim among objects in memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::{
    AddressingStyle, BucketClaim, BucketClass, Endpoint, Gateway, Obc, ObjectBucket, ObjectBucketClaim, ObjectId,
    ServedBy,
};
use crate::plan::{Failure, Then};

fn setting() -> Arc<ObcSetting> {
    let endpoint = Endpoint::parse("https://gateway.example").expect("a URL");
    Arc::new(ObcSetting {
        provisioner: "broker.stowage.io/bucket".to_owned(),
        gateway: Gateway { endpoint, region: "eu".to_owned(), addressing_style: AddressingStyle::Path, ca: None },
        operator: ServedBy::operator("stowage-system", "i"),
    })
}

/// The objects; null = there is none.
#[derive(Clone, Debug, PartialEq)]
struct Cluster {
    obc: Value,
    class: Value,
    buckets: Vec<Value>,
    shadow: Value,
    config_map: Value,
    version: u64,
    acts: Vec<String>,
}

fn class(policy: &str, parameters: Value) -> Value {
    json!({"provisioner": "broker.stowage.io/bucket", "reclaimPolicy": policy, "parameters": parameters})
}

impl Cluster {
    fn new(spec: Value) -> Self {
        let metadata = json!({"name": "photos", "namespace": "team-a", "uid": "u-1", "resourceVersion": "1"});
        Self {
            obc: json!({"metadata": metadata, "spec": spec}),
            class: class("Delete", json!({"backend": "main"})),
            buckets: Vec::new(),
            shadow: Value::Null,
            config_map: Value::Null,
            version: 1,
            acts: Vec::new(),
        }
    }

    fn asked() -> Self {
        Self::new(json!({"storageClassName": "buckets", "bucketName": "photos"}))
    }

    /// The claim that the operator has made works, and its Secret is there.
    fn works(&mut self) {
        let ready = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "Bound", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        self.shadow["status"] =
            json!({"observedGeneration": 1, "boundSecretName": "photos", "conditions": [ready("Ready", "True")]});
        self.shadow["metadata"]["generation"] = 1.into();
    }

    fn obc(&self) -> Obc {
        Obc::parse(&serde_json::from_value::<ObjectBucketClaim>(self.obc.clone()).expect("it"))
    }

    fn cached(&self) -> ObcCached {
        let class: Option<k8s_openapi::api::storage::v1::StorageClass> = read(&self.class);
        ObcCached {
            class: class.map(|raw| BucketClass::parse(&raw)),
            buckets: self.buckets.iter().filter_map(bucket).collect(),
            shadow: shadow(&self.shadow),
            config_map: told(&self.config_map),
            told: None,
        }
    }

    /// A pass; `None` where it is cut short after so many acts.
    fn pass(&mut self, most: usize) -> Option<ObcRest> {
        let view = ObcView::new(setting(), self.obc(), self.cached());
        self.go_on(view, most)
    }

    fn go_on(&mut self, mut view: ObcView, most: usize) -> Option<ObcRest> {
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

    fn look(&self, look: &ObcLook) -> ObcAnswer {
        let cached = self.cached();
        match look {
            ObcLook::Obc => ObcAnswer::Obc((!self.obc.is_null()).then(|| Box::new(self.obc()))),
            ObcLook::Namespace => ObcAnswer::Namespace(true),
            ObcLook::Class(_) => ObcAnswer::Class(cached.class),
            ObcLook::Buckets => {
                let of = |name: &String| cached.buckets.iter().find(|it| it.name == *name).cloned();
                ObcAnswer::Buckets(bucket_names(&self.obc()).map(|name| (name.clone(), of(&name))).into())
            }
            ObcLook::Shadow(_) => ObcAnswer::Shadow(cached.shadow.map(Box::new)),
            ObcLook::ConfigMap => ObcAnswer::ConfigMap(cached.config_map),
        }
    }

    /// An object as it is once it was made.
    fn stamped(&mut self, mut object: Value, uid: &str) -> Value {
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object
    }

    fn act(&mut self, act: &ObcAct) -> ObcAnswer {
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
            ObcAct::CreateShadow(content) => {
                if !self.shadow.is_null() {
                    return ObcAnswer::ShadowPosted(None);
                }
                let uid = format!("bc-{}", self.version);
                self.shadow = self.stamped(serde_json::to_value(content).expect("JSON"), &uid);
                ObcAnswer::ShadowPosted(shadow(&self.shadow).map(Box::new))
            }
            ObcAct::PatchShadow(_, id, spec) => {
                let spec = serde_json::to_value(spec).expect("JSON");
                set(&mut self.shadow, self.version, id, &|it| it["spec"] = spec.clone());
                ObcAnswer::ShadowWritten(Box::new(shadow(&self.shadow).expect("it")))
            }
            ObcAct::DeleteShadow(_, id) => {
                assert_eq!(self.shadow["metadata"]["resourceVersion"], json!(id.resource_version));
                self.shadow = Value::Null;
                ObcAnswer::ShadowDeleted(None)
            }
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

    /// The same of what is done to the ObjectBucketClaim and its ObjectBucket.
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

    /// Passes until it is Bound.
    fn bound() -> Self {
        let mut cluster = Self::asked();
        cluster.pass(99);
        cluster.works();
        cluster.pass(99);
        assert_eq!(cluster.obc["status"]["phase"], "Bound", "{:?}", cluster.acts);
        cluster.acts.clear();
        cluster
    }

    fn delete(&mut self) {
        self.obc["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
}

/// Changes an object of this version, and gives it the next one.
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
    read::<BucketClaim>(object).map(|raw| Shadow::parse(&raw))
}

fn told(object: &Value) -> Option<Told> {
    read::<ConfigMap>(object).map(|raw| Told::parse(&raw))
}

/// One operation of a JSON patch.
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

// covers: 9.bucket.first, 9.phase
#[test]
fn one_thing_is_made_after_the_other_and_then_there_is_nothing_to_do() {
    let mut cluster = Cluster::asked();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.then, rest.events.len()), (Then::AwaitChange, 0));
    let first = [
        "put the finalizer on",
        "make ObjectBucket obc-team-a-photos",
        "make BucketClaim obc-photos",
        "patch ObjectBucket obc-team-a-photos: note its BucketClaim",
        "write phase Pending",
    ];
    assert_eq!(cluster.acts, first);
    cluster.works();
    cluster.acts.clear();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["Bound"]);
    let then = [
        "make the ConfigMap",
        "write phase Bound of ObjectBucket obc-team-a-photos",
        "write the names of bucket and ObjectBucket",
        "write phase Bound",
    ];
    assert_eq!(cluster.acts, then);
    let before = cluster.clone();
    assert_eq!(cluster.pass(99).expect("it ends").events, []);
    assert_eq!(cluster, before);
}

// covers: 9.crash
#[test]
fn a_pass_that_is_cut_short_anywhere_is_begun_again_and_comes_to_the_same() {
    let whole = Cluster::bound();
    for most in 0..9 {
        let mut cluster = Cluster::asked();
        while cluster.pass(most.max(1)).is_none() {}
        cluster.works();
        while cluster.pass(1).is_none() {}
        for uid in
            [&mut cluster.shadow["metadata"]["uid"], &mut cluster.buckets[0]["spec"]["additionalState"]["shadowUID"]]
        {
            *uid = whole.shadow["metadata"]["uid"].clone();
        }
        let spec = |cluster: &Cluster| {
            (cluster.buckets[0]["spec"].clone(), cluster.shadow["spec"].clone(), cluster.config_map["data"].clone())
        };
        assert_eq!(spec(&cluster), spec(&whole));
        cluster.delete();
        while cluster.pass(1).is_none() {}
        assert_eq!((cluster.buckets.len(), cluster.shadow), (0, Value::Null));
        assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
    }
}

// covers: 9.pins, 9.deletion.policy, 9.shadow.meanwhile
#[rstest]
#[case(class("Delete", json!({"backend": "main"})), json!(["Delete", false]), json!(["Delete", false]))]
#[case(class("Delete", json!({"backend": "main", "emptyBucket": "true"})), json!(["Delete", false]), json!(["Delete", true]))]
#[case(class("Retain", json!({"backend": "main", "emptyBucket": "true"})), json!(["Retain", false]), json!(["Retain", false]))]
#[case(class("Recycle", json!({"backend": "main"})), json!(["Retain", false]), json!(["Retain", false]))]
fn the_policy_is_the_one_of_the_class_as_it_was(
    #[case] first: Value,
    #[case] meanwhile: Value,
    #[case] in_the_end: Value,
    #[values(json!(["Retain", false]), json!(["Delete", true]))] edited: Value,
) {
    let mut cluster = Cluster::asked();
    cluster.class = first;
    cluster.pass(99);
    let policy = |cluster: &Cluster| {
        json!([cluster.shadow["spec"]["deletionPolicy"], cluster.shadow["spec"]["forceDelete"].as_bool() == Some(true)])
    };
    assert_eq!(policy(&cluster), meanwhile);
    cluster.class = class("Retain", json!({"backend": "other"}));
    cluster.delete();
    cluster.shadow["spec"]["deletionPolicy"] = edited[0].clone();
    cluster.shadow["spec"]["forceDelete"] = edited[1].clone();
    // One act at a time, to see how it is when it goes.
    let mut last = policy(&cluster);
    while cluster.pass(1).is_none() && !cluster.shadow.is_null() {
        last = policy(&cluster);
    }
    assert_eq!((last, cluster.shadow), (in_the_end, Value::Null));
}

// covers: 9.deletion.policy
#[test]
fn what_is_lost_destroys_nothing() {
    let mut cluster = Cluster::bound();
    cluster.buckets.clear();
    cluster.class = Value::Null;
    cluster.delete();
    while cluster.pass(1).is_none() && cluster.shadow["spec"]["deletionPolicy"] != "Retain" {}
    assert_eq!(cluster.shadow["spec"]["deletionPolicy"], "Retain");
    cluster.pass(99);
    assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
}

// covers: 9.class
#[rstest]
#[case(json!({"provisioner": "another/bucket"}), json!({}))]
#[case(json!({"provisioner": "another/bucket"}), json!({"bucket-provisioner": "broker.stowage.io-bucket"}))]
#[case(Value::Null, json!({}))]
fn one_that_is_anothers_is_not_touched(
    #[case] class: Value,
    #[case] labels: Value,
    #[values(false, true)] deleting: bool,
) {
    let mut cluster = Cluster::asked();
    cluster.class = class;
    cluster.obc["metadata"]["labels"] = labels;
    cluster.obc["metadata"]["finalizers"] = json!(["objectbucket.io/finalizer"]);
    if deleting {
        cluster.delete();
    }
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((rest.events, rest.then), (Vec::new(), Then::AwaitChange));
    let is_marked = !cluster.obc["metadata"]["labels"]["bucket-provisioner"].is_null();
    let acts: &[&str] = if deleting && is_marked { &["take the finalizer off"] } else { &[] };
    assert_eq!(cluster.acts, acts);
}

// covers: 9.deletion
#[test]
fn a_class_that_is_another_provisioners_by_now_keeps_nothing_from_going() {
    for most in [1, 99] {
        let mut cluster = Cluster::bound();
        cluster.class = json!({"provisioner": "another/bucket"});
        cluster.delete();
        while cluster.pass(most).is_none() {}
        assert_eq!((cluster.buckets.len(), cluster.shadow), (0, Value::Null));
        assert_eq!(cluster.obc["metadata"]["finalizers"], json!([]));
    }
}

// covers: 9.shadow
#[rstest]
#[case(json!({"generateBucketName": "photos"}), Some("photos-u-1"))]
#[case(json!({"generateBucketName": "abcdefghijklmnopqrstuvwxyz0123"}), Some("abcdefghijklmnopqrstuvwxyz-u-1"))]
#[case(json!({"generateBucketName": "x", "bucketName": "given"}), Some("given"))]
#[case(json!({"bucketName": "No Bucket"}), None)]
#[case(json!({}), None)]
fn the_name_of_the_bucket_follows_from_the_claim(#[case] mut spec: Value, #[case] expected: Option<&str>) {
    spec["storageClassName"] = "buckets".into();
    let mut cluster = Cluster::new(spec);
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(cluster.shadow["spec"]["bucketName"].as_str(), expected);
    if expected.is_none() {
        assert_eq!(
            (cluster.obc["status"]["phase"].as_str(), rest.events[0].reason.as_str()),
            (Some("Failed"), "InvalidConfig")
        );
    }
}

// covers: 9.bucket.names
#[test]
fn names_of_any_length_come_to_names() {
    let mut cluster = Cluster::asked();
    let [usual, other] = bucket_names(&cluster.obc());
    assert_eq!((usual.as_str(), other.as_str()), ("obc-team-a-photos", "obc-team-a-photos-1"));
    cluster.obc["metadata"]["name"] = "n".repeat(253).into();
    cluster.obc["metadata"]["namespace"] = "n".repeat(63).into();
    assert!(bucket_names(&cluster.obc()).iter().all(|name| name == "obc-u-1"));
    assert!(shadow_name(&cluster.obc()).len() < 253);
}

// covers: 9.shadow.earlier
#[rstest]
#[case("photos", "BucketClaimLeaving")]
#[case("other", "NameTaken")]
fn a_bucket_claim_of_another_is_not_touched(#[case] owner: &str, #[case] reason: &str) {
    let mut cluster = Cluster::asked();
    cluster.pass(99);
    let reference = &mut cluster.shadow["metadata"]["ownerReferences"][0];
    (reference["uid"], reference["name"]) = ("u-0".into(), owner.into());
    cluster.shadow["spec"]["deletionPolicy"] = "Retain".into();
    let before = cluster.shadow.clone();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!((cluster.shadow.clone(), rest.events[0].reason.as_str()), (before.clone(), reason));
    cluster.delete();
    cluster.pass(99);
    assert_eq!(cluster.shadow, before);
}

// covers: 9.shadow.remade
#[test]
fn a_bucket_claim_that_somebody_deletes_is_told_to_keep_its_bucket() {
    let mut cluster = Cluster::bound();
    cluster.shadow["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(cluster.shadow["spec"]["deletionPolicy"], "Retain");
    assert_eq!(rest.events[0].reason, "BucketClaimLeaving");
    cluster.shadow = Value::Null;
    let rest = cluster.pass(99).expect("it ends");
    assert_eq!(rest.events[0].reason, "BucketClaimRemade");
    assert_eq!(cluster.buckets[0]["spec"]["additionalState"]["shadowUID"], cluster.shadow["metadata"]["uid"]);
}

#[test]
fn an_answer_that_comes_late_has_what_was_read_before_it_read_again() {
    let cluster = Cluster::asked();
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    for (expected, arrival) in [
        (ObcLook::Buckets, Arrival::Prompt),
        (ObcLook::Shadow("obc-photos".to_owned()), Arrival::Late),
        (ObcLook::Buckets, Arrival::Prompt),
    ] {
        let ControlFlow::Continue(ObcStep::Look(look)) = view.next(Timestamp::UNIX_EPOCH) else { panic!("it looks") };
        assert_eq!(look, expected);
        view.learn(cluster.look(&look), arrival);
    }
}

fn old_claim(look: &ObcLook, before: &Obc) -> Option<ObcAnswer> {
    (*look == ObcLook::Obc).then(|| ObcAnswer::Obc(Some(Box::new(before.clone()))))
}

fn no_bucket(look: &ObcLook, _: &Obc) -> Option<ObcAnswer> {
    (*look == ObcLook::Buckets).then(|| ObcAnswer::Buckets(Vec::new()))
}

fn no_shadow(look: &ObcLook, _: &Obc) -> Option<ObcAnswer> {
    matches!(look, ObcLook::Shadow(_)).then_some(ObcAnswer::Shadow(None))
}

/// A read may be answered from the server's past: what it misses is not gone, and what it shows is
/// not as it shows it.
// covers: 9.deletion.past
#[rstest]
#[case(old_claim)]
#[case(no_bucket)]
#[case(no_shadow)]
fn what_one_read_tells_of_the_past_takes_nothing_away(#[case] past: fn(&ObcLook, &Obc) -> Option<ObcAnswer>) {
    let mut cluster = Cluster::bound();
    let before = cluster.obc();
    cluster.delete();
    cluster.obc["metadata"]["resourceVersion"] = "900".into();
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    let rest = loop {
        match view.next(Timestamp::UNIX_EPOCH) {
            ControlFlow::Break(rest) => break rest,
            ControlFlow::Continue(ObcStep::Look(look)) => {
                let answer = past(&look, &before).unwrap_or_else(|| cluster.look(&look));
                view.learn(answer, Arrival::Prompt);
            }
            ControlFlow::Continue(ObcStep::Act(act)) => {
                assert!(matches!(act, ObcAct::WriteBucketPhase(..)), "{act:?}");
                let answer = cluster.act(&act);
                view.learn(answer, Arrival::Prompt);
            }
        }
    };
    assert!(matches!(rest.then, Then::Retry(_)), "{rest:?}");
}

#[test]
fn what_the_server_refuses_for_good_is_told() {
    let cluster = Cluster::asked();
    let mut view = ObcView::new(setting(), cluster.obc(), cluster.cached());
    let step = ObcStep::Look(ObcLook::Buckets);
    view.learn(ObcAnswer::Failed(step, Failure::Refused("no".to_owned())), Arrival::Prompt);
    view.learn(ObcAnswer::Obc(Some(Box::new(cluster.obc()))), Arrival::Prompt);
    let ControlFlow::Continue(step) = view.next(Timestamp::UNIX_EPOCH) else { panic!("there is a phase to write") };
    assert_eq!(step.to_string(), "write phase Failed");
}
