//! Preconditions of writes (I13): updates and deletes carry UID and resourceVersion, creates only
//! create, and a Secret that a claim does not control is not written.

use http::Method;
use kube_sim::Asked;
use serde::Deserialize;
use stowage_world::OPERATOR_NAMESPACE;

use super::Promise;
use super::findings::Findings;
use super::state::{HistoryStep, Place, Seen, State};
use super::views::Secret;

/// Judges a step.
pub(super) fn see(state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
    if !step.by_operator() {
        return;
    }
    match &step.seen {
        Seen::Asked(asked) => judge_request(step, asked, found),
        Seen::Secret(place, new) => judge_change(state, step, *place, new.as_ref(), found),
        _ => {}
    }
}

/// Judges a request. Events and Leases are exempt: Events are best effort, and merged as they come
/// (spec §3).
fn judge_request(step: &HistoryStep<'_>, asked: &Asked, found: &mut Findings) {
    if matches!(asked.plural.as_str(), "events" | "leases") {
        return;
    }
    let carries = match asked.method {
        Method::POST => true,
        Method::DELETE if asked.name.is_empty() => false,
        Method::DELETE => deletes_one_version(&asked.body),
        Method::PATCH if asked.content_type.starts_with("application/json-patch+json") => tests_version(&asked.body),
        // Server-side apply would also create.
        Method::PATCH if asked.content_type.starts_with("application/apply-patch") => false,
        _ => names_version(&asked.body),
    };
    if !carries {
        let part = asked.subresource.as_deref().map_or(String::new(), |part| format!("/{part}"));
        let place = format!("{}{part} {}/{}", asked.plural, asked.namespace, asked.name);
        let message = format!("{} {place} does not carry UID and resourceVersion", asked.method);
        found.broken(Promise::I13, step, message);
    }
}

#[derive(Deserialize)]
struct Operation<'a> {
    #[serde(borrow)]
    op: &'a str,
    #[serde(borrow)]
    path: std::borrow::Cow<'a, str>,
}

/// Returns true if a JSON patch tests the UID, and tests or replaces the resourceVersion.
fn tests_version(body: &[u8]) -> bool {
    let Ok(operations) = serde_json::from_slice::<Vec<Operation<'_>>>(body) else { return false };
    let has = |path: &str, words: &[&str]| operations.iter().any(|one| one.path == path && words.contains(&one.op));
    has("/metadata/uid", &["test"]) && has("/metadata/resourceVersion", &["test", "replace", "add"])
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Version {
    fn is_whole(&self) -> bool {
        self.uid.is_some() && self.resource_version.is_some()
    }
}

fn deletes_one_version(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Options {
        preconditions: Option<Version>,
    }
    let options = serde_json::from_slice::<Options>(body).ok();
    options.and_then(|options| options.preconditions).is_some_and(|version| version.is_whole())
}

fn names_version(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Object {
        metadata: Option<Version>,
    }
    let object = serde_json::from_slice::<Object>(body).ok();
    object.and_then(|object| object.metadata).is_some_and(|version| version.is_whole())
}

/// Judges that a Secret changed by the operator was ours before. In the operator's own namespace,
/// names derived from a UID may be deleted regardless of their content (spec §3.4).
fn judge_change(
    state: &State<'_>,
    step: &HistoryStep<'_>,
    (namespace, name): Place<'_>,
    new: Option<&Secret<'_>>,
    found: &mut Findings,
) {
    let old = state.secrets.get(&(namespace, name)).map(|held| &held.secret);
    let whose = |secret: &Secret<'_>| {
        matches!(secret, Secret::OfAccess) || secret.uid().is_some_and(|uid| state.lives.contains_key(uid))
    };
    let (strangers, left) = match (old, new) {
        (Some(old), Some(new)) => (!whose(old), old.uid().is_some() && old.uid() != new.uid()),
        (Some(old), None) => (namespace != OPERATOR_NAMESPACE && !whose(old), false),
        (None, Some(new)) => (!whose(new), false),
        (None, None) => (false, false),
    };
    if strangers {
        let message = format!("Secret {namespace}/{name} is written, which no claim controls");
        found.broken(Promise::I13, step, message);
    }
    if left {
        found.broken(Promise::I13, step, format!("Secret {namespace}/{name} is given to another claim"));
    }
}
