//! Third parties: everything besides the operator that acts around the operator's calls, as
//! planned.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use explore::services;
use faults::Surroundings;
use http::header::AUTHORIZATION;
use http::request::Parts;
use kube_sim::{Author, Cluster, StoredObject};
use parking_lot::Mutex;
use s3_sim::{BucketSnapshot, Store};
use serde_json::{Value, json};
use stowage_operator::api::wire::{self, Role};
use stowage_operator::api::{AccessKeyId, ClaimUid};
use tokio::time::Instant;

use super::clocks::Clocks;
use super::installation::OPERATOR_NAMESPACE;
use super::transport::Stores;
use crate::effects::{Actor, Call, ClockFault, Edit, Fault, KubeFault, Plan, S3Call, S3Fault, StowageFault, Tampering};
use crate::gateway::Gateway;
use crate::history::{Arrived, Called, Chronicle, What};

const CLAIMS: &str = "bucketclaims";
const SECRETS: &str = "secrets";
/// Account of buckets that belong to no claim.
const STRANGER: &str = "stranger";
/// Pause of the cluster's controllers by a fault.
const REST: Duration = Duration::from_secs(60);

/// Time after which a third party removes its finalizer from a Secret.
const KEPT: Duration = Duration::from_secs(300);

/// Namespace and name.
type Name = (String, String);

/// People and programs besides the operator that change the cluster and the stores.
#[derive(Debug)]
pub struct ThirdParties {
    /// The cluster.
    pub cluster: Cluster,
    /// The stores.
    pub stores: Stores,
    /// Accounts that own the operator's buckets.
    pub accounts: Accounts,
    /// Pause of the cluster's own controllers.
    pub rest: ControllersRest,
    /// Wall clocks that faults can move.
    pub clocks: Clocks,
    /// The gateway.
    pub gateway: Gateway,
    /// Destination of events, if they are recorded.
    pub chronicle: Option<Chronicle>,
}

/// Accounts that own the operator's buckets.
#[derive(Debug)]
pub enum Accounts {
    /// One account per store, by host and port.
    Of(BTreeMap<String, String>),
    /// The same account at each store.
    Same(String),
}

impl Accounts {
    fn at(&self, host: &str) -> Option<&str> {
        match self {
            Self::Of(accounts) => accounts.get(host).map(String::as_str),
            Self::Same(account) => Some(account),
        }
    }
}

/// A pause of the cluster's own controllers. Clones share the same state.
#[derive(Clone, Debug, Default)]
pub struct ControllersRest(Arc<Mutex<Option<Instant>>>);

impl ControllersRest {
    fn begin(&self) {
        *self.0.lock() = Some(Instant::now() + REST);
    }

    /// Returns true during the pause.
    pub fn is_on(&self) -> bool {
        self.0.lock().is_some_and(|until| Instant::now() < until)
    }
}

impl Surroundings<StowageFault> for ThirdParties {
    fn expect(&self, plan: &Plan) {
        if plan.entries.iter().any(|entry| entry.fault == Fault::S3(S3Fault::StaleRead)) {
            self.stores.all().iter().for_each(|(_, store)| store.remember_past());
        }
        for entry in &plan.entries {
            if let Fault::Project(StowageFault::Skew { actor, seconds }) = entry.fault {
                self.step(actor, seconds);
            }
        }
    }

    fn befall(&self, fault: Fault, call: &Call, request: &mut Parts) {
        services::mark(fault, request);
        match (fault, call) {
            (Fault::Kube(KubeFault::GcLate), _) => self.rest.begin(),
            (Fault::Clock(ClockFault::Step { seconds }), _) => self.step(Actor::Operator, seconds),
            (Fault::Project(StowageFault::Lag { seconds }), _) => {
                self.gateway.fall_behind(Duration::from_secs(seconds.into()));
            }
            (Fault::Project(StowageFault::Recreate | StowageFault::Tamper(_) | StowageFault::Edit(_)), _) => {
                if let Some(claim) = self.claim_of(call) {
                    self.lay_hands_on(&claim, fault);
                }
            }
            (_, Call::S3(call)) => {
                let host = request.uri.authority().map(ToString::to_string).unwrap_or_default();
                self.change_bucket(fault, call, &host);
            }
            (_, Call::Kube(_)) => {}
        }
    }

    fn arrives(&self, effect: u64, call: &Call, request: &mut Parts) {
        request.extensions.insert(Author(effect));
        if let (Some(chronicle), Call::S3(call)) = (&self.chronicle, call) {
            let host = request.uri.authority().map(ToString::to_string).unwrap_or_default();
            chronicle.arrives(effect, Arrived { bucket: self.bucket(&host, call), key_id: signer(request) });
        }
    }

    fn carried_out(&self, effect: u64, call: &Call, host: &str, status: u16) {
        if let (Some(chronicle), Call::S3(call)) = (&self.chronicle, call) {
            let (operation, bucket, after) = (call.operation, call.bucket.clone(), self.bucket(host, call));
            let (host, before, key_id) = (host.to_owned(), None, None);
            chronicle.called(effect, Called { host, operation, bucket, key_id, before, after, status });
        }
    }
}

impl ThirdParties {
    /// Returns the claim that a call concerns: the claim that the call names, or the owner of the
    /// Secret or bucket that it names; otherwise the first claim.
    fn claim_of(&self, call: &Call) -> Option<Name> {
        let objects = self.cluster.objects();
        let named = match call {
            Call::Kube(call) => match (&call.namespace, &call.name) {
                (Some(namespace), Some(name)) => find(&objects, &call.resource, namespace, name),
                _ => None,
            },
            Call::S3(call) => {
                let bucket = call.bucket.as_deref().map(wire::label_value);
                objects.iter().find(|object| bucket.is_some() && label(object, wire::BUCKET) == bucket.as_deref())
            }
        };
        let first = objects.iter().find(|object| object.plural == CLAIMS);
        named.and_then(claim_named_by).or_else(|| claim_named_by(first?))
    }

    /// Moves an actor's wall clock.
    fn step(&self, actor: Actor, seconds: i32) {
        let ahead = self.clocks.step(actor, seconds);
        if let Some(chronicle) = &self.chronicle {
            chronicle.note(What::ClockOff { actor, ahead });
        }
    }

    /// Returns the current state of a call's bucket.
    fn bucket(&self, host: &str, call: &S3Call) -> Option<BucketSnapshot> {
        self.stores.get(host)?.bucket(call.bucket.as_deref()?)
    }

    fn lay_hands_on(&self, (namespace, name): &Name, fault: Fault) {
        match fault {
            Fault::Project(StowageFault::Recreate) => {
                self.cluster.recreate(CLAIMS, namespace, name);
            }
            Fault::Project(StowageFault::Edit(what)) => {
                self.cluster.change(CLAIMS, namespace, name, |claim| edit(claim, what));
            }
            Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers)) => {
                self.cluster.change(CLAIMS, namespace, name, |claim| claim["metadata"]["finalizers"] = Value::Null);
            }
            Fault::Project(StowageFault::Tamper(what)) => self.tamper(namespace, name, what),
            _ => {}
        }
    }

    /// Applies a change to each of the claim's Secrets that it is about.
    fn tamper(&self, namespace: &str, claim: &str, what: Tampering) {
        if what == Tampering::ForgeConsumer
            && let Some(claim) = self.cluster.object(CLAIMS, namespace, claim)
        {
            // An existing Secret stays, and is changed below.
            self.cluster.create(forged(&claim));
        }
        for object in self.cluster.objects() {
            let ours = object.plural == SECRETS
                && label(&object, wire::CLAIM_NAMESPACE) == Some(&wire::label_value(namespace))
                && label(&object, wire::CLAIM_NAME) == Some(&wire::label_value(claim));
            let Some(role) = label(&object, wire::ROLE).filter(|_| ours) else { continue };
            let deleted = match what {
                Tampering::DeleteConsumer => role == Role::ConsumerSecret.as_str(),
                Tampering::DeleteCredential => role == Role::VirtualCredential.as_str(),
                Tampering::DeleteRecord => role == Role::BucketRecord.as_str(),
                _ => false,
            };
            let internal = object.namespace == OPERATOR_NAMESPACE;
            let is_meant = internal == matches!(what, Tampering::RelabelInternal | Tampering::KeepInternal);
            if deleted {
                self.cluster.remove(SECRETS, &object.namespace, &object.name);
            } else if is_meant {
                self.cluster.change(SECRETS, &object.namespace, &object.name, |secret| spoil(secret, what));
            }
            if is_meant && what == Tampering::KeepInternal {
                tokio::spawn(free(self.cluster.clone(), object.namespace, object.name));
            }
        }
    }

    fn change_bucket(&self, fault: Fault, call: &S3Call, host: &str) {
        let (Some(store), Some(bucket)) = (self.stores.get(host), call.bucket.as_deref()) else { return };
        let account = self.accounts.at(host).unwrap_or(STRANGER);
        match fault {
            Fault::S3(fault) => services::change_bucket(fault, &store, bucket, account, STRANGER),
            Fault::Project(StowageFault::Usurp { empty }) => {
                usurp(&store, bucket, account);
                if !empty {
                    store.put_object(bucket, "theirs", "theirs");
                }
            }
            _ => {}
        }
    }
}

/// Returns the access key id in a request's signature: the credential without the last four parts,
/// which are its scope.
fn signer(request: &Parts) -> Option<String> {
    let authorization = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (_, scope) = authorization.split_once("Credential=")?;
    scope.split(',').next()?.rsplitn(5, '/').nth(4).map(str::to_owned)
}

fn find<'a>(objects: &'a [StoredObject], plural: &str, namespace: &str, name: &str) -> Option<&'a StoredObject> {
    objects.iter().find(|object| object.plural == plural && object.namespace == namespace && object.name == name)
}

fn label<'a>(object: &'a StoredObject, label: &str) -> Option<&'a str> {
    object.object["metadata"]["labels"][label].as_str()
}

/// Returns the claim that an object is, or that its labels name.
fn claim_named_by(object: &StoredObject) -> Option<Name> {
    if object.plural == CLAIMS {
        return Some((object.namespace.clone(), object.name.clone()));
    }
    Some((label(object, wire::CLAIM_NAMESPACE)?.to_owned(), label(object, wire::CLAIM_NAME)?.to_owned()))
}

/// Removes the finalizers from a Secret after five minutes.
async fn free(cluster: Cluster, namespace: String, name: String) {
    tokio::time::sleep(KEPT).await;
    cluster.change(SECRETS, &namespace, &name, |secret| secret["metadata"]["finalizers"] = Value::Null);
}

/// Applies a third party's change to a Secret.
fn spoil(secret: &mut Value, what: Tampering) {
    match what {
        Tampering::EditConsumer => secret["data"]["AWS_SECRET_ACCESS_KEY"] = json!("dGFtcGVyZWQ="),
        Tampering::ForgeConsumer => tell_of_the_last(secret),
        Tampering::EmptyConsumer => secret["data"] = Value::Null,
        Tampering::RelabelConsumer | Tampering::RelabelInternal => secret["metadata"]["labels"] = Value::Null,
        Tampering::DisownConsumer => secret["metadata"]["ownerReferences"] = Value::Null,
        Tampering::KeepInternal => secret["metadata"]["finalizers"] = json!(["example.com/backup"]),
        Tampering::DeleteConsumer
        | Tampering::DeleteCredential
        | Tampering::DeleteRecord
        | Tampering::StripFinalizers => {}
    }
}

/// Returns a consumer Secret like the operator's for a claim that has a key to its bucket. A tenant
/// knows everything in it.
fn forged(claim: &Value) -> Value {
    let (metadata, spec) = (&claim["metadata"], &claim["spec"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (namespace, name, uid) = (text(&metadata["namespace"]), text(&metadata["name"]), text(&metadata["uid"]));
    let bucket = spec["bucketName"].as_str().map_or_else(|| format!("{namespace}-{name}"), str::to_owned);
    let secret =
        spec["writeConnectionSecretToRef"]["name"].as_str().map_or_else(|| format!("{name}-s3"), str::to_owned);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "namespace": namespace, "name": secret,
            "labels": {
                wire::ROLE: Role::ConsumerSecret.as_str(), wire::BACKEND: spec["backendRef"]["name"],
                wire::BUCKET: wire::label_value(&bucket), wire::CLAIM_UID: uid,
                wire::CLAIM_NAMESPACE: wire::label_value(&namespace), wire::CLAIM_NAME: wire::label_value(&name),
            },
            "ownerReferences": [{
                "apiVersion": claim["apiVersion"], "kind": claim["kind"], "name": name, "uid": uid, "controller": true,
            }],
        },
        "data": {"BUCKET_NAME": BASE64_STANDARD.encode(&bucket)},
    })
}

/// Writes the highest possible generation into a consumer Secret, with the id that its tenant can
/// compute.
fn tell_of_the_last(secret: &mut Value) {
    let Some(uid) = secret["metadata"]["ownerReferences"][0]["uid"].as_str() else { return };
    let id = AccessKeyId::of(&ClaimUid::new(uid), u64::MAX);
    secret["data"]["AWS_ACCESS_KEY_ID"] = json!(BASE64_STANDARD.encode(id.as_str()));
    secret["metadata"]["labels"][wire::ROTATION_GENERATION] = json!(u64::MAX.to_string());
}

/// Applies a user's edit to a claim.
fn edit(claim: &mut Value, what: Edit) {
    let spec = |claim: &mut Value, policy: &str, force: bool| {
        claim["spec"]["deletionPolicy"] = json!(policy);
        claim["spec"]["forceDelete"] = json!(force);
    };
    match what {
        Edit::Retain => spec(claim, "Retain", false),
        Edit::Delete => claim["spec"]["deletionPolicy"] = json!("Delete"),
        Edit::Force => spec(claim, "Delete", true),
        Edit::NoForce => claim["spec"]["forceDelete"] = json!(false),
        Edit::Rotate => claim["metadata"]["annotations"][wire::ROTATE] = json!("by-edit"),
        Edit::Revoke => claim["metadata"]["annotations"][wire::REVOKE] = json!("by-edit"),
        Edit::Quota => claim["spec"]["quota"] = json!({"soft": "1Gi", "hard": "2Gi"}),
        Edit::Rename => claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "renamed-by-edit"}),
        Edit::Pause => claim["metadata"]["annotations"][wire::PAUSED] = json!("true"),
        Edit::Resume => {
            if let Some(annotations) = claim["metadata"]["annotations"].as_object_mut() {
                annotations.remove(wire::PAUSED);
            }
        }
    }
}

/// Creates a bucket of that name for another claim.
fn usurp(store: &Store, bucket: &str, account: &str) {
    let tags = [(wire::TAG_INSTALLATION, "elsewhere"), (wire::TAG_CLAIM, "another/claim"), (wire::TAG_CLAIM_UID, "u")];
    store.put_bucket(account, bucket);
    store.set_tags(bucket, Some(tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()));
}
