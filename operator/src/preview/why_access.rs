//! Explains the state of an access: what each entry waits for, and what would open it.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{AccessRef, BucketAccessStatus};
use crate::plan::access::EntryOutlook;

use super::access;
use super::line::{Next, Object};
use super::seen::Seen;
use super::setup::{Means, Scope, Setup};
use super::why::{GOES_ON, condition};

/// The explanation of an access's state.
#[derive(Clone, Debug, PartialEq)]
pub struct WhyAccess {
    /// The access.
    pub access: AccessRef,
    /// Status of the access.
    pub status: BucketAccessStatus,
    /// Time of the deletion, if the access is being deleted.
    pub deleted: Option<Timestamp>,
    /// True if the spec was edited after the status was written.
    pub is_edited: bool,
    /// The next step.
    pub next: Next,
    /// Events that would change the state of the access, besides those that open its entries; each
    /// completes "it goes on when …".
    pub changes: Vec<String>,
    /// Entries of the access and their current state; empty if another operator serves the access,
    /// or it is deleted.
    pub entries: Vec<EntryOutlook>,
    /// Values that were not given and were inferred from the cluster.
    pub assumed: Vec<String>,
}

/// Explains one access, with the claims and buckets that it names.
///
/// # Errors
/// An error message: the access doesn't exist, or something could not be read.
pub async fn why_access(setup: &Setup, means: Means, at: &AccessRef) -> Result<WhyAccess, String> {
    let seen = Seen::read(setup, means, &Scope::of_access(at.clone())).await?;
    of_access(&seen, at).await
}

/// Explains one of the accesses that were read.
pub(super) async fn of_access(seen: &Seen, at: &AccessRef) -> Result<WhyAccess, String> {
    let access = seen.accesses.get(at).ok_or_else(|| format!("there is no BucketAccess {at}"))?;
    let raw = access.0.as_ref().map_err(|error| format!("BucketAccess {at} can't be decoded: {error}"))?;
    let found = access::look_ahead(seen, Object::Access(at.clone()), access).await;
    let status = raw.status.clone().unwrap_or_default();
    let next = found.line.next;
    let (stands, entries) = match found.outlook {
        Some(outlook) => (outlook.remedies, outlook.entries),
        None => (Vec::new(), Vec::new()),
    };
    let is_closed = entries.iter().any(|entry| entry.why.is_some());
    let changes = match &next {
        Next::Act(_) => vec![GOES_ON.to_owned()],
        Next::Nothing(_) => {
            vec!["its spec, its annotations rotate and revoke, a Secret of it, or what it names is edited".to_owned()]
        }
        Next::Wait(..) if stands.is_empty() && is_closed => vec!["an entry opens: see below".to_owned()],
        Next::Wait(..) | Next::LeftAlone(_) | Next::Unknown(_) => stands,
    };
    Ok(WhyAccess {
        access: at.clone(),
        deleted: raw.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        is_edited: status.observed_generation != raw.metadata.generation,
        next,
        changes,
        entries,
        status,
        assumed: seen.assumed.clone(),
    })
}

impl WhyAccess {
    /// Returns the explanation as JSON.
    pub fn json(&self) -> Value {
        json!({
            "kind": "BucketAccess",
            "namespace": self.access.namespace,
            "name": self.access.name,
            "deleted": self.deleted.map(|time| time.to_string()),
            "edited": self.is_edited,
            "conditions": self.status.conditions.iter().map(condition).collect::<Vec<_>>(),
            "next": self.next.word(),
            "words": self.next.to_string(),
            "step": self.next.step(),
            "until": self.next.until().map(|until| until.to_string()),
            "changes": self.changes,
            "entries": self.entries.iter().map(entry).collect::<Vec<_>>(),
            "assumed": self.assumed,
        })
    }
}

fn entry(entry: &EntryOutlook) -> Value {
    let status = &entry.status;
    json!({
        "asks": entry.asks,
        "state": status.state,
        "reason": status.reason,
        "message": entry.why,
        "bucket": status.bucket,
        "backend": status.backend,
        "mode": status.mode,
        "changes": entry.remedies,
    })
}
