//! Explains the state of a claim: what it waits for, since when, and what would change it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::{BucketClaimStatus, ClaimRef, ConditionType};

use super::claim;
use super::line::{Next, Object};
use super::seen::Seen;
use super::setup::{Means, Scope, Setup};

/// The change to wait for if the operator has something to do.
pub(super) const GOES_ON: &str =
    "the operator does what comes next: if it does not, it is not running, or has no right to";

/// The explanation of a claim's state.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The claim.
    pub claim: ClaimRef,
    /// Status of the claim.
    pub status: BucketClaimStatus,
    /// Time of the deletion, if the claim is being deleted.
    pub deleted: Option<Timestamp>,
    /// True if the spec was edited after the status was written.
    pub is_edited: bool,
    /// The next step.
    pub next: Next,
    /// A fact that could not be found out here.
    pub doubt: Option<String>,
    /// Events that would change the state of the claim; each completes "it goes on when …".
    pub changes: Vec<String>,
    /// The backend in the spec, if the spec can be read.
    pub backend: Option<BackendWord>,
    /// Answers of the claim's store to this command's calls.
    pub heard: Vec<String>,
    /// Values that were not given and were inferred from the cluster.
    pub assumed: Vec<String>,
}

/// State of a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendWord {
    /// Name of the backend.
    pub name: String,
    /// Endpoint of the backend, if the backend exists and its spec is valid.
    pub endpoint: Option<String>,
    /// Condition `Ready` of the backend.
    pub ready: Option<Condition>,
}

/// Explains one claim, with its backend and its bucket.
///
/// # Errors
/// An error message: the claim doesn't exist, or something could not be read.
pub async fn why(setup: &Setup, means: Means, at: &ClaimRef) -> Result<Why, String> {
    let seen = Seen::read(setup, means, &Scope::of(at.clone())).await?;
    of_claim(&seen, at).await
}

/// Explains one of the claims that were read.
pub(super) async fn of_claim(seen: &Seen, at: &ClaimRef) -> Result<Why, String> {
    let claim = seen.claims.get(at).ok_or_else(|| format!("there is no BucketClaim {at}"))?;
    let raw = claim.0.as_ref().map_err(|error| format!("BucketClaim {at} can't be decoded: {error}"))?;
    let found = claim::look_ahead(seen, 0, Object::Claim(at.clone()), claim, true).await;
    let status = raw.status.clone().unwrap_or_default();
    let changes = match (&found.obstacle, &found.line.next) {
        (Some(obstacle), _) => obstacle.remedies.clone(),
        (None, Next::Nothing(_)) => vec![
            "its spec, its annotations rotate and revoke, a Secret of it or its backend is edited".to_owned(),
            "its bucket is gone at the next look".to_owned(),
        ],
        (None, Next::Act(_)) => vec![GOES_ON.to_owned()],
        (None, Next::LeftAlone(_) | Next::Wait(..) | Next::Unknown(_)) => Vec::new(),
    };
    Ok(Why {
        claim: at.clone(),
        deleted: raw.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        is_edited: status.observed_generation != raw.metadata.generation,
        next: found.line.next,
        doubt: found.line.doubt,
        changes,
        backend: Some(backend(seen, raw.spec.backend_ref.name.clone())),
        heard: found.heard,
        status,
        assumed: seen.assumed.clone(),
    })
}

fn backend(seen: &Seen, name: String) -> BackendWord {
    let raw = seen.backends.get(&name).and_then(|backend| backend.0.as_ref().ok());
    let conditions = raw.and_then(|raw| raw.status.as_ref()).map(|status| status.conditions.as_slice());
    let ready = conditions.unwrap_or_default().iter().find(|it| it.type_ == ConditionType::Ready.as_str());
    let endpoint = seen.observer.backends.get(&name).and_then(Result::ok).map(|it| it.endpoint.to_string());
    BackendWord { name, endpoint, ready: ready.cloned() }
}

impl Why {
    /// Returns the explanation as JSON.
    pub fn json(&self) -> Value {
        let phase = self.status.phase.map(|phase| phase.as_str());
        json!({
            "kind": "BucketClaim",
            "namespace": self.claim.namespace,
            "name": self.claim.name,
            "phase": phase,
            "deleted": self.deleted.map(|time| time.to_string()),
            "edited": self.is_edited,
            "bucket": self.status.bucket_name,
            "conditions": self.status.conditions.iter().map(condition).collect::<Vec<_>>(),
            "next": self.next.word(),
            "words": self.next.to_string(),
            "step": self.next.step(),
            "until": self.next.until().map(|until| until.to_string()),
            "changes": self.changes,
            "backend": self.backend.as_ref().map(|it| json!({
                "name": it.name,
                "endpoint": it.endpoint,
                "ready": it.ready.as_ref().map(condition),
            })),
            "store": self.heard,
            "doubt": self.doubt,
            "assumed": self.assumed,
        })
    }
}

/// Converts a condition for JSON output.
pub(super) fn condition(condition: &Condition) -> Value {
    json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "since": condition.last_transition_time.0.to_string(),
    })
}
