//! Keys as they are stored: I5 to I10, and the scope of I15.
//!
//! Keys of generations that a record notes as revoked are excused from I6 and I8.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use stowage_world::effects::{Call, KubeVerb, Line};

use super::findings::Findings;
use super::places::Stores;
use super::state::{Hand, HistoryStep, Life, Place, Seen, State, is_read_of};
use super::views::{Consumer, End, Key, Secret};
use super::{Promise, revocation, views};

/// Time for which the Secret of an expired key stays, so that a clock that steps forward doesn't
/// end the key early (spec §3.3).
const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// Maximum number of live keys of a claim.
const MOST_LIVE: usize = 2;

/// The oracle's memory of keys, by id.
#[derive(Debug, Default)]
pub(super) struct Keys<'a> {
    ids: BTreeMap<String, Past<'a>>,
    stores: Stores,
}

/// The memory of an id, kept after its Secret is gone.
#[derive(Debug, Default)]
struct Past<'a> {
    /// The secret key at its creation.
    secret: &'a str,
    /// UID of the claim that it was created for.
    uid: String,
    /// True if another actor changed or removed its Secret.
    meddled: bool,
    /// The actor that created its Secret last.
    made: Option<Hand>,
    /// Name of the key's Secret.
    name: &'a str,
    /// True if the key ever was in a consumer Secret.
    published: bool,
    /// Time at which the key was replaced in the last consumer Secret that had it.
    replaced: Option<Timestamp>,
}

impl<'a> Keys<'a> {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::Called(called) => self.stores.called(called),
            Seen::Secret(place, new) => {
                let old = state.secrets.get(place).map(|held| &held.secret);
                if let Some(Secret::Key(key)) = new {
                    self.stores.noted(state, step, (old, key), found);
                }
                if step.by_operator() {
                    self.judge(state, step, *place, (old, new.as_ref()), found);
                }
                self.remember(step, *place, (old, new.as_ref()));
            }
            Seen::Claim(stored, None) if step.by_operator() => {
                let old = stored.old.as_deref().and_then(views::Claim::read);
                old.into_iter().for_each(|claim| nothing_works_after(state, step, &claim, found));
            }
            _ => {}
        }
    }

    fn judge(
        &self,
        state: &State<'a>,
        step: &HistoryStep<'a>,
        place: Place<'a>,
        change: (Option<&Secret<'a>>, Option<&Secret<'a>>),
        found: &mut Findings,
    ) {
        match change {
            (None | Some(Secret::Other), Some(Secret::Key(key))) => self.minted(state, step, key, found),
            (Some(Secret::Key(old)), Some(Secret::Key(new))) => self.changed(state, step, old, new, found),
            (Some(Secret::Key(old)), _) => self.revoked(state, step, old, found),
            (old, Some(Secret::Consumer(new))) => self.published(state, step, place, (old, new), found),
            (Some(Secret::Consumer(old)), None) => withdrawn(state, step, place, old, found),
            (old, Some(Secret::Record(new))) => revocation::noted(state, step, old, new, found),
            _ => {}
        }
    }

    /// Judges the creation of a key.
    fn minted(&self, state: &State<'a>, step: &HistoryStep<'a>, key: &Key<'a>, found: &mut Findings) {
        let id = &key.id;
        if let Some(past) = self.ids.get(id).filter(|past| past.secret != key.secret) {
            let message = format!("key {id} is made a second time, with another secret");
            if was_made_meanwhile(state, step, past) {
                found.limit(Promise::I10, step, message);
            } else {
                found.broken(Promise::I10, step, message);
            }
        }
        if !key.scoped {
            found.broken(
                Promise::I15,
                step,
                format!("key {id} is made with a scope that is not bucket {}", key.bucket),
            );
        }
        let Some(life) = state.lives.get(key.uid.as_str()) else { return };
        if life.was_let_go() && state.alone {
            let claim = life.claim.full_name();
            found.broken(Promise::I7, step, format!("key {id} is made for claim {claim}, which is gone"));
        }
        revocation::is_over(state, step, key, found);
        let live = state.of(&key.uid).filter(|(_, held)| is_live(&held.secret, step.at)).count() + 1;
        if live > MOST_LIVE && state.alone && !life.meddling.any() {
            let claim = life.claim.full_name();
            found.broken(Promise::I5, step, format!("claim {claim} has {live} live keys, the latest {id}"));
        }
    }

    /// Judges a change of a key's Secret.
    fn changed(&self, state: &State<'a>, step: &HistoryStep<'a>, old: &Key<'a>, new: &Key<'a>, found: &mut Findings) {
        let id = &old.id;
        if (&old.id, old.secret) != (&new.id, new.secret) {
            found.broken(Promise::I10, step, format!("id or secret of key {id} is overwritten"));
        }
        if !new.scoped {
            found.broken(Promise::I15, step, format!("key {id} gets a scope that is not bucket {}", new.bucket));
        }
        if old.works(step.at) && !new.counts {
            found.broken(Promise::I6, step, format!("key {id} is changed so that the gateway refuses it"));
        }
        match (old.end, new.end) {
            // A revoked key ends at once, even if its Secret can't be deleted.
            _ if state.is_revoked(old) => {}
            (End::Open, End::At(end)) => self.stamped(state, step, new, end, found),
            (End::At(before), End::At(end)) if end < before => {
                found.broken(Promise::I8, step, format!("the end of key {id} moves from {before} to {end}"));
            }
            (End::At(before), End::Open) => {
                found.broken(Promise::I8, step, format!("the end of key {id}, {before}, vanishes"));
            }
            (before, after) if before != after && (before == End::Damaged || after == End::Damaged) => {
                found.broken(Promise::I8, step, format!("a damaged end of key {id} is written"));
            }
            _ => {}
        }
    }

    /// Judges the expiry that a key is given.
    fn stamped(&self, state: &State<'a>, step: &HistoryStep<'a>, key: &Key<'a>, end: Timestamp, found: &mut Findings) {
        let id = &key.id;
        let Some(life) = state.lives.get(key.uid.as_str()) else { return };
        let wanted = life.claim.secret_name();
        let holders = || {
            state.of(&key.uid).filter(|(_, held)| {
                matches!(&held.secret, Secret::Consumer(consumer) if consumer.id == *id) && held.hand != Hand::Other
            })
        };
        let holder = holders().find(|((_, name), _)| wanted == *name).or_else(|| holders().next());
        if let Some(((namespace, name), held)) = holder {
            let message = format!("key {id} is given an end while Secret {namespace}/{name} holds it");
            if is_behind_a_rename(state, step, life, name, held.hand) {
                found.limit(Promise::I6, step, message);
            } else {
                found.broken(Promise::I6, step, message);
            }
            return;
        }
        let Some(replaced) = self.ids.get(id).and_then(|past| past.replaced) else { return };
        let least = replaced.checked_add(SignedDuration::from_secs(life.least_overlap)).unwrap_or(Timestamp::MAX);
        if end >= least {
            return;
        }
        let overlap = life.least_overlap;
        let message = format!("key {id}, replaced at {replaced}, is to end at {end}: sooner than {overlap} s after");
        // The operator kept I8 by its own clock; no rule of the contract makes up for a clock that
        // is behind.
        if end >= least.checked_sub(state.clocks.most_behind(replaced)).unwrap_or(least) {
            found.limit(Promise::I8, step, message);
        } else {
            found.broken(Promise::I8, step, message);
        }
    }

    /// Judges the deletion of a key's Secret, or its change into something else.
    fn revoked(&self, state: &State<'a>, step: &HistoryStep<'a>, key: &Key<'a>, found: &mut Findings) {
        let may_go =
            state.lives.get(key.uid.as_str()).is_none_or(|life| life.gone.is_some() || life.claim.is_deleting());
        let expired = match key.end {
            End::At(end) => end.checked_add(GRACE).is_ok_and(|end| end <= state.clocks.latest_of_operator(step.at)),
            End::Open | End::Damaged => false,
        };
        let published = self.ids.get(&key.id).is_some_and(|past| past.published);
        if !published || !key.counts || may_go || state.is_revoked(key) {
            return;
        }
        if !expired {
            let end = match key.end {
                End::At(end) => format!("its end is {end}, and a minute of grace"),
                End::Open | End::Damaged => "it has no end".to_owned(),
            };
            found.broken(Promise::I6, step, format!("key {} is revoked while its claim lives: {end}", key.id));
        } else if key.works(state.clocks.of_gateway(step.at)) {
            // The grace period is a minute: clocks that are further apart end a key early (spec
            // §3.3).
            found.limit(Promise::I6, step, format!("key {} is revoked before the gateway's clock ends it", key.id));
        }
    }

    /// Judges a write of a consumer Secret.
    fn published(
        &self,
        state: &State<'a>,
        step: &HistoryStep<'a>,
        (namespace, name): Place<'a>,
        (old, new): (Option<&Secret<'a>>, &Consumer<'a>),
        found: &mut Findings,
    ) {
        let (id, place) = (&new.id, format!("{namespace}/{name}"));
        let Some(past) = self.ids.get(id) else {
            found.broken(Promise::I9, step, format!("Secret {place} is given key {id:?}, which was never made"));
            return;
        };
        if past.secret != new.secret {
            found.broken(Promise::I10, step, format!("Secret {place} holds key {id} with another secret than its own"));
        }
        let is_new = !matches!(old, Some(Secret::Consumer(old)) if old.id == *id);
        if is_new && new.owner.is_some_and(|owner| owner != past.uid) {
            found.broken(Promise::I13, step, format!("Secret {place} is given key {id}, which is another claim's"));
        }
        let doomed = new.owner.and_then(|uid| state.lives.get(uid)).is_none_or(|life| life.gone.is_some());
        if past.meddled || doomed || !is_new {
            return;
        }
        match key_of(state, id) {
            Some(key) if key.works(step.at) && key.end != End::Open => {
                let message = format!("Secret {place} is given key {id}, which is on its way out");
                let life = new.owner.and_then(|uid| state.lives.get(uid));
                let stamped = life.zip(last_hand(state, id));
                if stamped.is_some_and(|(life, hand)| is_behind_a_rename(state, step, life, name, hand)) {
                    found.limit(Promise::I6, step, message);
                } else {
                    found.broken(Promise::I6, step, message);
                }
            }
            Some(key) if key.works(step.at) && key.bucket == new.bucket => {}
            Some(key) if key.works(step.at) => {
                let message = format!(
                    "Secret {place} is given key {id} for bucket {}, whose bucket is {}",
                    new.bucket, key.bucket
                );
                found.broken(Promise::I9, step, message);
            }
            _ => {
                let message = format!("Secret {place} is given key {id}, which does not work");
                if state.stood_still(step.hand) || is_decided_on_the_past(state, step, past) {
                    // A POST carries no precondition on other objects; the claim that owns the
                    // Secret may be gone.
                    found.limit(Promise::I9, step, message);
                } else {
                    found.broken(Promise::I9, step, message);
                }
            }
        }
    }

    fn remember(
        &mut self,
        step: &HistoryStep<'a>,
        (_, name): Place<'a>,
        (old, new): (Option<&Secret<'a>>, Option<&Secret<'a>>),
    ) {
        for key in [old, new].into_iter().flatten() {
            if let Secret::Key(key) = key {
                let made = || Past { secret: key.secret, uid: key.uid.clone(), name, ..Past::default() };
                let past = self.ids.entry(key.id.clone()).or_insert_with(made);
                past.meddled |= !step.by_operator();
                if old.is_none() {
                    past.made = Some(step.hand);
                }
            }
        }
        let held = |secret: Option<&Secret<'a>>| match secret {
            Some(Secret::Consumer(consumer)) => consumer.id.clone(),
            _ => String::new(),
        };
        let (before, after) = (held(old), held(new));
        if before != after
            && let Some(past) = self.ids.get_mut(&before)
        {
            past.replaced = Some(step.at);
        }
        if let Some(past) = self.ids.get_mut(&after) {
            past.published = true;
        }
    }
}

/// Returns true if one of two operators was paused right before it created a key that the other one
/// created and deleted meanwhile, for a claim that is being deleted.
///
/// A POST carries no precondition on other objects. The key is deleted with the claim, or swept.
fn was_made_meanwhile(state: &State<'_>, step: &HistoryStep<'_>, past: &Past<'_>) -> bool {
    let later = match (step.hand, past.made) {
        (Hand::Operator(this), Some(made @ Hand::Operator(other))) => this < other && state.are_apart(step.hand, made),
        _ => false,
    };
    let goes = state.lives.get(past.uid.as_str()).is_none_or(|life| life.gone.is_some() || life.claim.is_deleting());
    later && goes && !past.meddled && !state.alone && state.stood_still(step.hand)
}

/// Returns true if one of two operators was paused after the call that showed it the key to
/// publish, and made no other call about the claim. The other operator could end that key
/// meanwhile.
///
/// No precondition ties the two Secrets together, and a process can be paused between any two
/// calls.
fn is_decided_on_the_past(state: &State<'_>, step: &HistoryStep<'_>, key: &Past<'_>) -> bool {
    let Some(life) = state.lives.get(key.uid.as_str()).filter(|_| !state.alone) else { return false };
    let is_own = |name: &str| name == key.name || state.of(&key.uid).any(|((_, own), _)| *own == name);
    let made = |line: &Line| key.made == Some(Hand::Operator(line.number));
    let is_about = |line: &Line| match &line.call {
        Call::Kube(call) if call.resource == "secrets" => {
            let at_claim = call.namespace.as_deref() == Some(life.claim.namespace);
            made(line) || call.name.as_deref().is_some_and(|name| at_claim || is_own(name))
        }
        _ => is_read_of(line, &life.claim),
    };
    let learns = |line: &Line| {
        made(line)
            || matches!(&line.call, Call::Kube(call) if call.verb == KubeVerb::Get && call.name.as_deref() == Some(key.name))
    };
    let last = match step.hand {
        Hand::Operator(number) => state.before(number).find(|line| is_about(line)),
        Hand::Other => None,
    };
    last.is_some_and(|last| learns(last) && state.stood_still_since(step.hand, |line| line.number == last.number))
}

/// Judges the deletion of a consumer Secret: it is allowed if the claim has another one, or is
/// being deleted.
fn withdrawn<'a>(
    state: &State<'a>,
    step: &HistoryStep<'a>,
    place: Place<'a>,
    old: &Consumer<'a>,
    found: &mut Findings,
) {
    let Some(life) = old.owner.and_then(|uid| state.lives.get(uid)) else { return };
    if life.gone.is_some() || life.claim.is_deleting() {
        return;
    }
    let another = state.of(life.claim.uid).any(|(other, held)| {
        let works = |consumer: &Consumer<'_>| key_of(state, &consumer.id).is_some_and(|key| key.works(step.at));
        *other != place && matches!(&held.secret, Secret::Consumer(consumer) if works(consumer))
    });
    if !another && !life.meddling.keys {
        let (namespace, name) = place;
        let message = format!("Secret {namespace}/{name} is deleted, and no other holds a key that works");
        found.broken(Promise::I6, step, message);
    }
}

/// Judges the end of a claim by the operator's own call: everything that opens its bucket is gone
/// by then. A claim whose finalizer was removed by hand ends with its deletion, so it is not
/// judged.
fn nothing_works_after(state: &State<'_>, step: &HistoryStep<'_>, claim: &views::Claim<'_>, found: &mut Findings) {
    if !state.alone || !claim.has_finalizer() {
        return;
    }
    for ((_, name), held) in state.of(claim.uid) {
        if matches!(held.secret, Secret::Key(_) | Secret::Binding(_)) {
            let message = format!("claim {} goes, and Secret {name} is still there", claim.full_name());
            if state.is_untold(claim.uid, held) {
                found.limit(Promise::I7, step, message);
            } else {
                found.broken(Promise::I7, step, message);
            }
        }
    }
}

/// Returns the key of an id, if its Secret exists.
pub(super) fn key_of<'s, 'a>(state: &'s State<'a>, id: &str) -> Option<&'s Key<'a>> {
    state.secrets.values().find_map(|held| match &held.secret {
        Secret::Key(key) if key.id == id => Some(key),
        _ => None,
    })
}

/// Returns true if two operators, one of which is behind, wrote a consumer Secret under a former
/// name: it is removed again.
fn is_behind_a_rename(state: &State<'_>, step: &HistoryStep<'_>, life: &Life<'_>, name: &str, other: Hand) -> bool {
    life.claim.secret_name() != name && !state.alone && state.are_apart(step.hand, other)
}

/// Returns the actor that last changed the key of an id.
fn last_hand(state: &State<'_>, id: &str) -> Option<Hand> {
    let held = state.secrets.values().find(|held| matches!(&held.secret, Secret::Key(key) if key.id == id));
    held.map(|held| held.hand)
}

fn is_live(secret: &Secret<'_>, now: Timestamp) -> bool {
    matches!(secret, Secret::Key(key) if !key.is_over(now))
}
