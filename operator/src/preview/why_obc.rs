//! Explains the state of an ObjectBucketClaim, and of the object that does its work.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::{AccessRef, ClaimRef, Obc, controlling_obc};
use crate::plan::obc::{ObcOutlook, shadow_name};

use super::line::{Next, Object};
use super::obc;
use super::seen::Seen;
use super::setup::{Means, Scope, Setup};
use super::why::{self, GOES_ON, Why};
use super::why_access::{self, WhyAccess};

/// The explanation of an ObjectBucketClaim's state.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyObc {
    /// The ObjectBucketClaim.
    pub obc: ClaimRef,
    /// Phase of the claim.
    pub phase: Option<String>,
    /// Creation time of the claim. It has no time of the last phase change.
    pub made: Option<Timestamp>,
    /// Time of the deletion, if the claim is being deleted.
    pub deleted: Option<Timestamp>,
    /// Storage class of the claim.
    pub class: Option<String>,
    /// The next step.
    pub next: Next,
    /// Events that would change the state of the claim; each completes "it goes on when …".
    pub changes: Vec<String>,
    /// The object that does its work, if it exists.
    pub worker: Option<Worker>,
    /// Values that were not given and were inferred from the cluster.
    pub assumed: Vec<String>,
}

/// The object that does the work of an ObjectBucketClaim, with its explanation.
#[derive(Clone, Debug, PartialEq)]
pub enum Worker {
    /// A BucketClaim.
    Claim(Box<Why>),
    /// A BucketAccess.
    Access(Box<WhyAccess>),
}

impl Worker {
    /// Returns kind and name.
    fn name(&self) -> String {
        match self {
            Self::Claim(why) => format!("BucketClaim {}", why.claim.name),
            Self::Access(why) => format!("BucketAccess {}", why.access.name),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Claim(why) => why.json(),
            Self::Access(why) => why.json(),
        }
    }
}

/// Explains one ObjectBucketClaim, and the object that does its work.
///
/// # Errors
/// An error message: the ObjectBucketClaim doesn't exist, none are served, or something could not
/// be read.
pub async fn why_obc(setup: &Setup, means: Means, at: &ClaimRef) -> Result<WhyObc, String> {
    let seen = Seen::read(setup, means, &Scope::of_obc(at.clone())).await?;
    let none = || format!("there is no ObjectBucketClaim {at}");
    let obcs = seen.obcs.as_ref().ok_or_else(none)?;
    let object = obcs.all.get(at).ok_or_else(none)?;
    let raw = object.0.as_ref().map_err(|error| format!("ObjectBucketClaim {at} can't be decoded: {error}"))?;
    let parsed = Obc::parse(raw);
    let found = obc::look_ahead(&seen, obcs, Object::Obc(at.clone()), object).await;
    let worker = worker(&seen, &parsed).await?;
    let next = found.line.next;
    Ok(WhyObc {
        obc: at.clone(),
        phase: parsed.phase.clone(),
        made: raw.metadata.creation_timestamp.as_ref().map(|time| time.0),
        deleted: raw.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        class: parsed.spec.storage_class_name.clone(),
        changes: changes(&next, &found.outlook, &parsed, &obcs.setting.provisioner, worker.as_ref()),
        next,
        worker,
        assumed: seen.assumed.clone(),
    })
}

/// Returns the object that does its work, if the ObjectBucketClaim controls it.
async fn worker(seen: &Seen, obc: &Obc) -> Result<Option<Worker>, String> {
    let (namespace, name) = (obc.at.namespace.clone(), shadow_name(obc));
    let at = ClaimRef { namespace: namespace.clone(), name: name.clone() };
    if let Some(Ok(claim)) = seen.claims.get(&at).map(|claim| claim.0.as_ref())
        && is_of(claim, obc)
    {
        return Ok(Some(Worker::Claim(Box::new(why::of_claim(seen, &at).await?))));
    }
    let at = AccessRef { namespace, name };
    if let Some(Ok(access)) = seen.accesses.get(&at).map(|access| access.0.as_ref())
        && is_of(access, obc)
    {
        return Ok(Some(Worker::Access(Box::new(why_access::of_access(seen, &at).await?))));
    }
    Ok(None)
}

fn is_of(object: &impl ResourceExt, obc: &Obc) -> bool {
    controlling_obc(object.owner_references()).is_some_and(|(_, uid)| uid == obc.uid())
}

/// Returns the events that would change its state.
fn changes(next: &Next, stands: &ObcOutlook, obc: &Obc, provisioner: &str, worker: Option<&Worker>) -> Vec<String> {
    let class = obc.spec.storage_class_name.as_deref();
    match (next, stands) {
        (Next::Act(_), _) => vec![GOES_ON.to_owned()],
        (_, ObcOutlook::NotOurs(None)) => vec![match class {
            Some(class) => format!("storage class {class} is made, of provisioner {provisioner}"),
            None => format!("spec.storageClassName names a storage class of provisioner {provisioner}"),
        }],
        (_, ObcOutlook::Waits(Some((reason, _)))) => vec![remedy(reason, class, worker)],
        (_, ObcOutlook::Waits(None)) => vec![match worker {
            Some(worker) => format!("{} has done its work: see below", worker.name()),
            None => format!("{} is there, and has done its work", shadow_name(obc)),
        }],
        (Next::Nothing(_), ObcOutlook::Well) => {
            vec!["its spec, or an object that was made for it, is edited".to_owned()]
        }
        (_, ObcOutlook::NotOurs(Some(_)) | ObcOutlook::Busy | ObcOutlook::Well) => Vec::new(),
    }
}

/// Returns the remedy for an Event's reason. An unknown reason comes from the object that does its
/// work.
fn remedy(reason: &str, class: Option<&str>, worker: Option<&Worker>) -> String {
    let class = class.unwrap_or_default();
    match (reason, worker) {
        ("StorageClassMissing", _) => format!("storage class {class} is made again"),
        ("InvalidStorageClass", _) => {
            format!("storage class {class} is deleted and made anew, with parameters that are served")
        }
        ("UnsupportedConfig" | "InvalidConfig", _) => {
            "spec.additionalConfig asks for nothing that the message names".to_owned()
        }
        ("SpecChanged", _) => "the edit is undone".to_owned(),
        (_, Some(worker)) => format!("what {} waits for is done: see below", worker.name()),
        (_, None) => "what the message names is mended, or out of the way".to_owned(),
    }
}

impl WhyObc {
    /// Returns the explanation as JSON.
    pub fn json(&self) -> Value {
        json!({
            "kind": "ObjectBucketClaim",
            "namespace": self.obc.namespace,
            "name": self.obc.name,
            "phase": self.phase,
            "class": self.class,
            "made": self.made.map(|time| time.to_string()),
            "deleted": self.deleted.map(|time| time.to_string()),
            "next": self.next.word(),
            "words": self.next.to_string(),
            "step": self.next.step(),
            "until": self.next.until().map(|until| until.to_string()),
            "changes": self.changes,
            "worker": self.worker.as_ref().map(Worker::json),
            "assumed": self.assumed,
        })
    }
}
