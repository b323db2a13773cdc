//! Revocations: they are requested (I6), come at once (L3), and are complete before the next key is
//! created (I7).

use jiff::{SignedDuration, Timestamp};
use stowage_operator::api::wire;

use super::Promise;
use super::findings::Findings;
use super::rest::reads_the_past;
use super::state::{HistoryStep, Life, State};
use super::views::{Key, Record, Secret};

/// Time after a revocation in which all requests count as one (spec §3.3).
const MINUTE: SignedDuration = SignedDuration::from_secs(60);

/// Judges a write of a record by the operator: the claim's user has requested every revocation that
/// it notes.
pub(super) fn noted(
    state: &State<'_>,
    step: &HistoryStep<'_>,
    old: Option<&Secret<'_>>,
    new: &Record,
    found: &mut Findings,
) {
    let Some(life) = state.lives.get(new.uid.as_str()) else { return };
    let handled = match old {
        Some(Secret::Record(old)) => old.handled_revoke.as_deref(),
        _ => None,
    };
    let receipt = new.handled_revoke.as_deref().filter(|receipt| handled != Some(*receipt));
    let was_asked = receipt.is_some_and(|receipt| life.revokes.iter().any(|asked| wire::receipt(asked) == *receipt));
    if new.revoked_through > life.revoked_through && !was_asked {
        let (claim, through) = (life.claim.full_name(), new.revoked_through);
        let message = format!("the keys of claim {claim} up to generation {through} are revoked, and nobody asked");
        found.broken(Promise::I6, step, message);
    }
}

/// Judges the creation of a key by the operator: all revoked keys are gone, or kept by a finalizer
/// and expired.
pub(super) fn is_over(state: &State<'_>, step: &HistoryStep<'_>, key: &Key<'_>, found: &mut Findings) {
    let Some(life) = state.lives.get(key.uid.as_str()).filter(|life| !life.meddling.any()) else { return };
    let lives =
        |secret: &Secret<'_>| matches!(secret, Secret::Key(other) if other.works(step.at) && life.has_revoked(other));
    let Some(((_, name), _)) = state.of(&key.uid).find(|(_, held)| lives(&held.secret)) else { return };
    let message = format!("key {} is made, and Secret {name}, which is revoked, is still there", key.id);
    if !state.alone || reads_the_past(state) {
        // It is deleted as soon as an operator finds it.
        found.limit(Promise::I7, step, message);
    } else {
        found.broken(Promise::I7, step, message);
    }
}

/// Returns the open request, and the time since when it has no excuse; `None` if there is no
/// request or no key, or if no unique record is found that would show it.
pub(super) fn due(state: &State<'_>, life: &Life<'_>) -> Option<(Timestamp, String)> {
    let request = life.claim.revoke_request()?;
    let receipt = wire::receipt(request);
    let of_claim = || state.of(life.claim.uid).map(|(_, held)| &held.secret);
    let mut records = of_claim().filter_map(|secret| match secret {
        Secret::Record(record) if !record.hidden => Some(record),
        _ => None,
    });
    let record = records.next().filter(|_| records.next().is_none())?;
    if record.handled_revoke.as_deref() == Some(receipt.as_str()) {
        return None;
    }
    let keys = of_claim().filter_map(|secret| match secret {
        Secret::Key(key) if key.counts && !life.has_revoked(key) => Some(key.made),
        _ => None,
    });
    let latest = keys.max()?;
    let over = latest.filter(|_| life.revoked_through > 0).and_then(|made| made.checked_add(MINUTE).ok());
    Some((over.unwrap_or(Timestamp::MIN), format!("though {request:?} revokes it")))
}
