//! Internal Secrets whose claim or access is no more: finalizer stripped by hand, a late second
//! operator, a restored backup (spec §3.4).
//!
//! A sweep is a reconciliation about one UID, as a pass is about a claim. A UID that is gone never
//! comes back, so what was proved once stays true. Buckets are not spoken of: they are retained.

mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};

use k8s_openapi::jiff::Timestamp;

use crate::api::is_object_name;
use crate::api::wire::Role;

use super::cause::SecretCause;
use super::patch::SecretPatch;
use super::reach::Reach;
use super::reconciliation::{Arrival, Bound, Reconciliation};
use super::secret::{SecretRef, Stored};

pub use kinds::{Kind, OfAccess, OfClaim};

/// How far below a record's generation credentials are searched by name: more live at once only if
/// somebody made them.
const SEARCHED: u64 = 1000;

/// No sweep takes more steps, nor reads more Secrets by name.
const MOST_STEPS: usize = 10_000;

/// A step of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepStep<K: Kind = OfClaim> {
    /// GET the claim or access of this name: which UID does it have?
    Owner(K::At),
    /// LIST those of all namespaces: is the UID among them?
    Owners,
    /// LIST the internal Secrets that carry the UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// PATCH a record: every access to its bucket ends.
    End(SecretPatch),
    /// DELETE a Secret. One that somebody's finalizer keeps is the answer.
    Delete(SecretRef),
}

/// The end of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepEnd {
    /// Nothing of the UID is left.
    Done,
    /// The claim or access lives.
    Alive,
    /// It may be in a namespace that this operator doesn't serve: whether it lives can't be asked.
    Elsewhere,
    /// Nothing but the record is left, and it has to stay while a call at its bucket may still
    /// land.
    Held,
    /// Something failed that may succeed when tried again. Says what.
    Retry(String),
}

/// What a step found out or did, together with what was asked or done.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepAnswer<K: Kind = OfClaim> {
    /// The UID of the claim or access of this name; `None` = there is none.
    Owner(K::At, Option<K::Uid>),
    /// Whether any has the UID.
    Owners(bool),
    /// The internal Secrets that carry the UID.
    Own(Vec<Stored>),
    /// The internal Secret of this name as it is now; `None` = there is none.
    Internal(String, Option<Stored>),
    /// A record is patched, and is this by now.
    Ended(Stored),
    /// A Secret is deleted, or was gone; `Some` = somebody's finalizer keeps it, as it is by now.
    Deleted(SecretRef, Option<Stored>),
    /// An error, which is never absence. Says what.
    Failed(SweepStep<K>, String),
}

/// What a sweep knows so far.
#[derive(Clone, Debug)]
pub struct Sweep<K: Kind = OfClaim> {
    uid: K::Uid,
    /// The namespaces in which owners can be asked for.
    reach: Reach,
    /// A call at the bucket, to make or to empty it, may still land.
    call_pending: bool,
    /// What Secrets of this UID name as its owner, and how often each was asked for.
    owners: BTreeMap<K::At, u8>,
    /// A record says which it is. Labels alone don't prove it.
    recorded: bool,
    /// How often all were listed.
    owners_listed: u8,
    alive: bool,
    /// Names that follow from the UID: whatever bears them is its.
    derived: BTreeSet<String>,
    /// Names to be read, unless a list shows them.
    unread: BTreeSet<String>,
    own: BTreeMap<String, Stored>,
    listed: bool,
    /// No Secret was deleted since the list.
    current: bool,
    failure: Option<String>,
}

impl<K: Kind> Sweep<K> {
    /// Begins a sweep. `seen` are Secrets of the UID from the cache, `names` those of others that
    /// may be its. `reach` are the namespaces in which owners can be asked for.
    pub fn new(uid: K::Uid, seen: &[Stored], names: BTreeSet<String>, call_pending: bool, reach: Reach) -> Self {
        let mut sweep = Self {
            reach,
            call_pending,
            owners: BTreeMap::new(),
            recorded: false,
            owners_listed: 0,
            alive: false,
            derived: BTreeSet::new(),
            unread: names,
            own: BTreeMap::new(),
            listed: false,
            current: false,
            failure: None,
            uid,
        };
        sweep.derive(K::follows(&sweep.uid));
        for secret in seen {
            sweep.unread.insert(secret.name().to_owned());
            sweep.take_hints(secret);
        }
        sweep
    }

    /// The claim or access in question.
    pub fn uid(&self) -> &K::Uid {
        &self.uid
    }

    /// The owner is asked for, then its Secrets are read, then the owner is asked for once more,
    /// then public access goes, then credentials, then the record.
    fn step(&self) -> ControlFlow<SweepEnd, SweepStep<K>> {
        if let Some(why) = &self.failure {
            return ControlFlow::Break(SweepEnd::Retry(why.clone()));
        }
        if self.alive {
            return ControlFlow::Break(SweepEnd::Alive);
        }
        if self.is_elsewhere() {
            return ControlFlow::Break(SweepEnd::Elsewhere);
        }
        if let Some(step) = self.ask(1) {
            return ControlFlow::Continue(step);
        }
        if !self.listed {
            return ControlFlow::Continue(SweepStep::Own);
        }
        if let Some(name) = self.unread.first() {
            return ControlFlow::Continue(SweepStep::Internal(name.clone()));
        }
        if self.own.is_empty() {
            return ControlFlow::Break(SweepEnd::Done);
        }
        if !self.recorded && !self.reach.is_whole() {
            // Labels don't prove where it is, and not every namespace can be asked.
            return ControlFlow::Break(SweepEnd::Elsewhere);
        }
        // The first answer may be of the server's past, from before the owner was made. The Secrets
        // were made after it.
        self.ask(2).map_or_else(|| self.remove(), ControlFlow::Continue)
    }

    /// Whether anything names an owner in a namespace that is another's to judge.
    fn is_elsewhere(&self) -> bool {
        self.owners.keys().any(|owner| !self.reach.has(K::parts(owner).0))
    }

    /// What is to be asked so that the owner was asked for so many times.
    fn ask(&self, times: u8) -> Option<SweepStep<K>> {
        let unasked = self.owners.iter().find(|(_, asked)| **asked < times);
        let owner = unasked.map(|(owner, _)| SweepStep::Owner(owner.clone()));
        let can_be_listed = !self.recorded && self.reach.is_whole();
        owner.or_else(|| (can_be_listed && self.owners_listed < times).then_some(SweepStep::Owners))
    }

    fn remove(&self) -> ControlFlow<SweepEnd, SweepStep<K>> {
        let of = |role| self.own.values().filter(move |secret| Role::of_internal(secret.name()) == Some(role));
        if let Some(patch) = of(K::RECORD).find_map(K::end) {
            return ControlFlow::Continue(SweepStep::End(patch));
        }
        let mut open = K::KEYS.iter().flat_map(|role| of(*role));
        if let Some(secret) = open.find(|secret| secret.kept_by().is_none()) {
            return ControlFlow::Continue(SweepStep::Delete(secret.reference()));
        }
        if let Some((secret, finalizers)) = self.own.values().find_map(|secret| Some((secret, secret.kept_by()?))) {
            let cause = SecretCause::Kept { secret: secret.name().to_owned(), finalizers };
            return ControlFlow::Break(SweepEnd::Retry(cause.to_string()));
        }
        let Some(record) = of(K::RECORD).next() else { return ControlFlow::Break(SweepEnd::Done) };
        if !self.current {
            // Right before the record goes: a pass that was under way may have minted meanwhile.
            return ControlFlow::Continue(SweepStep::Own);
        }
        if self.call_pending && K::may_land(record) {
            return ControlFlow::Break(SweepEnd::Held);
        }
        ControlFlow::Continue(SweepStep::Delete(record.reference()))
    }

    fn take(&mut self, answer: SweepAnswer<K>) {
        match answer {
            SweepAnswer::Owner(owner, uid) => {
                self.alive |= uid.as_ref() == Some(&self.uid);
                *self.owners.entry(owner).or_default() += 1;
            }
            SweepAnswer::Owners(alive) => {
                self.alive |= alive;
                self.owners_listed += 1;
            }
            SweepAnswer::Own(secrets) => {
                secrets.into_iter().for_each(|secret| self.found(secret));
                self.listed = true;
                self.current = true;
            }
            SweepAnswer::Internal(name, secret) => {
                self.unread.remove(&name);
                secret.into_iter().for_each(|secret| self.found(secret));
            }
            SweepAnswer::Ended(record) => {
                self.own.insert(record.name().to_owned(), record);
            }
            SweepAnswer::Deleted(secret, Some(kept)) => {
                self.own.insert(secret.name, kept);
            }
            SweepAnswer::Deleted(secret, None) => {
                self.own.remove(&secret.name);
                self.current = false;
            }
            SweepAnswer::Failed(step, why) => self.failure = Some(format!("can't {step}: {why}")),
        }
    }

    /// A Secret read live: this UID's, or none of our business.
    fn found(&mut self, secret: Stored) {
        if self.derived.contains(secret.name()) || K::owner(&secret).as_ref() == Some(&self.uid) {
            self.take_hints(&secret);
            self.unread.remove(secret.name());
            self.own.insert(secret.name().to_owned(), secret);
        }
    }

    /// What a Secret of this UID says of its owner and of other Secrets.
    fn take_hints(&mut self, secret: &Stored) {
        let (recorded, generations) = K::recorded(secret, &self.uid).unzip();
        if let Some(owner) = recorded.filter(can_be_asked_for::<K>) {
            self.owners.entry(owner).or_default();
            self.recorded = true;
        }
        if let Some(owner) = K::named(secret).filter(can_be_asked_for::<K>) {
            self.owners.entry(owner).or_default();
        }
        let Some((lowest, highest)) = generations.map(RangeInclusive::into_inner) else { return };
        for generation in highest.saturating_sub(SEARCHED - 1).max(lowest)..=highest {
            self.derive(K::key(&self.uid, generation));
        }
    }

    fn derive(&mut self, name: String) {
        if self.derived.insert(name.clone()) && !self.own.contains_key(&name) {
            self.unread.insert(name);
        }
    }
}

fn can_be_asked_for<K: Kind>(owner: &K::At) -> bool {
    let (namespace, own) = K::parts(owner);
    is_object_name(namespace) && is_object_name(own)
}

impl<K: Kind> Reconciliation for Sweep<K> {
    type Step = SweepStep<K>;
    type Answer = SweepAnswer<K>;
    type End = SweepEnd;

    fn most(_: Bound) -> usize {
        MOST_STEPS
    }

    fn bound(step: &SweepStep<K>) -> Bound {
        if let SweepStep::Internal(_) = step { Bound::ReadsByName } else { Bound::Steps }
    }

    fn next(&self, _: Timestamp) -> ControlFlow<SweepEnd, SweepStep<K>> {
        self.step()
    }

    /// What was proved stays true, however long that is ago.
    fn learn(&mut self, answer: SweepAnswer<K>, _: Arrival) {
        self.take(answer);
    }

    fn cut_short(&self, _: Bound) -> SweepEnd {
        SweepEnd::Retry("the sweep does not come to an end".to_owned())
    }
}

impl<K: Kind> fmt::Display for SweepStep<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) => write!(f, "read {} {owner}", K::NOUN),
            Self::Owners => write!(f, "list each {} of all namespaces", K::NOUN),
            Self::Own => write!(f, "list the {}'s internal Secrets", K::NOUN),
            Self::Internal(name) => write!(f, "read internal Secret {name}"),
            Self::End(patch) => write!(f, "end every access by record {}", patch.target.name),
            Self::Delete(secret) => write!(f, "delete Secret {}", secret.name),
        }
    }
}

#[cfg(test)]
mod tests;
