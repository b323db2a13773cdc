//! What the operator does not do: anything at rest (E1), and things twice or in vain (E3).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::Promise;
use super::findings::Findings;
use super::state::{Hand, Place, Seen, State, Step};
use super::views::{End, Secret};

/// At rest a bucket is looked at, and a backend probed, once in ten minutes, give or take a tenth (spec §1, §5).
const BETWEEN_LOOKS: SignedDuration = SignedDuration::from_secs(9 * 60);

/// What is remembered of calls and objects.
#[derive(Debug, Default)]
pub(super) struct Rest<'a> {
    at_rest: bool,
    /// When each operation was last called on each bucket.
    calls: BTreeMap<(&'a str, &'a str, &'a str), Timestamp>,
    /// Secrets that the operator made, and has not been given a reason to make again.
    made: BTreeMap<Place<'a>, ()>,
    /// Buckets that the operator made.
    buckets: BTreeMap<(&'a str, &'a str), ()>,
}

impl<'a> Rest<'a> {
    /// Looks at a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &Step<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::AtRest => self.at_rest = true,
            Seen::Asked(asked) if self.at_rest && step.by_operator() => {
                let message = format!(
                    "at rest {} {} {}/{} is asked for",
                    asked.method, asked.plural, asked.namespace, asked.name
                );
                found.broken(Promise::E1, step, message);
            }
            Seen::Called(called) if step.by_operator() => {
                let bucket = called.bucket.as_deref().unwrap_or_default();
                let operation = called.operation.name();
                let last = self.calls.insert((called.host.as_str(), bucket, operation), step.at);
                let often = last.is_none_or(|last| step.at.duration_since(last) < BETWEEN_LOOKS);
                if self.at_rest && (!called.operation.is_read() || often) {
                    found.broken(Promise::E1, step, format!("at rest {operation} {bucket} is called"));
                }
                if operation == "CreateBucket" && called.before.is_none() && called.after.is_some() {
                    let again = self.buckets.insert((called.host.as_str(), bucket), ()).is_some();
                    if again && is_undeleted(state, bucket) {
                        found.broken(Promise::E3, step, format!("bucket {bucket} is made a second time"));
                    }
                }
            }
            Seen::Secret(place, new) => self.see_secret(state, step, *place, new.as_ref(), found),
            _ => {}
        }
    }

    fn see_secret(
        &mut self,
        state: &State<'a>,
        step: &Step<'a>,
        place: Place<'a>,
        new: Option<&Secret<'a>>,
        found: &mut Findings,
    ) {
        let (namespace, name) = place;
        let old = state.secrets.get(&place).map(|held| &held.secret);
        match (step.hand, old, new) {
            (Hand::Other, _, None) => {
                self.made.remove(&place);
            }
            (Hand::Operator(_), None, Some(_)) => {
                if self.made.insert(place, ()).is_some() {
                    found.broken(Promise::E3, step, format!("Secret {namespace}/{name} is made a second time"));
                }
            }
            (Hand::Operator(_), Some(old), None) => match may_go(state, step, place, old) {
                // What had a reason to go may have one to come back.
                true => {
                    self.made.remove(&place);
                }
                false => {
                    let message = format!("Secret {namespace}/{name} is deleted while its claim lives and needs it");
                    found.broken(Promise::E3, step, message);
                }
            },
            _ => {}
        }
    }
}

/// Whether a Secret has had its time: because its claim goes, or because the claim has moved on from it.
fn may_go(state: &State<'_>, step: &Step<'_>, (_, name): Place<'_>, secret: &Secret<'_>) -> bool {
    let Some(life) = secret.uid().and_then(|uid| state.lives.get(uid)) else { return true };
    if life.gone.is_some() || life.claim.is_deleting() || life.meddling.finalizer {
        return true;
    }
    match secret {
        Secret::Key(key) => matches!(key.end, End::At(end) if end <= step.at) || !key.counts,
        Secret::Binding(_) => !life.claim.wants_public_access(),
        Secret::Consumer(_) => life.claim.secret_name() != name,
        // After a move the record of the bucket that was left goes.
        Secret::Record(_) => {
            state.of(life.claim.uid).filter(|(_, held)| matches!(held.secret, Secret::Record(_))).count() > 1
        }
        Secret::Other => true,
    }
}

/// Whether nobody ever asked for a bucket to be deleted: no claim that held it went.
fn is_undeleted(state: &State<'_>, bucket: &str) -> bool {
    let holds = |uid: &str| {
        state.of(uid).any(|(_, held)| matches!(&held.secret, Secret::Record(record) if record.bucket == bucket))
    };
    let held_on = state.lives.values().filter(|life| holds(life.claim.uid));
    held_on.clone().count() == 1 && state.lives.len() == 1 && held_on.into_iter().all(|life| life.gone.is_none())
}
