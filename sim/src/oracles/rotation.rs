//! A rotation that is due has come (L3).

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stowage_operator::api::wire;

use crate::history::facts::Facts;
use crate::world::OPERATOR_NAMESPACE;

use super::findings::Findings;
use super::state::{Life, State};
use super::views::Secret;
use super::{Case, Promise};

/// No rotation starts sooner than this after the last (spec §3.3).
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// How much later than it is due one may begin: what it takes to be woken, and for two calls that are not answered.
const BOUND: SignedDuration = SignedDuration::from_secs(60);
/// For how long it counts that the operator's clock was behind.
const RECENT: SignedDuration = SignedDuration::from_hours(1);

/// Looks at the end of a run that came to rest.
pub(super) fn judge(case: &Case<'_>, state: &State<'_>, found: &mut Findings) {
    let recent = case.end.at.checked_sub(RECENT).unwrap_or(case.end.at);
    let late = BOUND + state.clocks.most_behind(recent);
    for life in state.lives.values().filter(|life| life.gone.is_none()) {
        for (due, why) in due(case, state, life).unwrap_or_default() {
            if case.end.at.duration_since(due) > late {
                let claim = life.claim.full_name();
                found.broken_in_the_end(Promise::L3, format!("the key of claim {claim} is not replaced, {why}"));
            }
        }
    }
}

/// When the current key of a claim was to be replaced, and why. Nothing where something keeps it: trouble, or a key before it
/// that is not yet gone.
fn due(case: &Case<'_>, state: &State<'_>, life: &Life<'_>) -> Option<Vec<(Timestamp, String)>> {
    let claim = life.claim;
    if !claim.is_ready() || claim.is_deleting() {
        return None;
    }
    let name = claim.secret_name();
    let Secret::Consumer(consumer) = &state.secrets.get(&(claim.namespace, &*name))?.secret else { return None };
    let other = |secret: &Secret<'_>| matches!(secret, Secret::Key(key) if key.id != consumer.id);
    if state.of(claim.uid).any(|(_, held)| other(&held.secret)) {
        return None;
    }
    let made = made(case.end, &format!("vc-{}", consumer.id.to_lowercase()))?;
    let earliest = made.checked_add(GRACE).ok()?;
    let request = claim.rotate_request().filter(|request| {
        claim.object["status"]["handledRotateRequest"].as_str() != Some(wire::rotate_receipt(request).as_str())
    });
    let asked = request.map(|request| (earliest, format!("as {request:?} asks for")));
    let days = claim.object["spec"]["rotationPolicy"]["intervalDays"].as_i64().filter(|_| claim.rotates_by_time());
    let aged = days.and_then(|days| {
        let due = made.checked_add(SignedDuration::from_hours(24 * days)).ok()?;
        Some((due.max(earliest), format!("and is older than {days} days")))
    });
    Some(asked.into_iter().chain(aged).collect())
}

/// When an internal Secret was made.
fn made(end: &Facts, name: &str) -> Option<Timestamp> {
    let place = ("secrets".to_owned(), OPERATOR_NAMESPACE.to_owned(), name.to_owned());
    let secret: &Value = end.objects.get(&place)?;
    secret["metadata"]["creationTimestamp"].as_str()?.parse().ok()
}
