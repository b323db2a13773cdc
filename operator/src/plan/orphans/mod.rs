//! Removal of internal Secrets whose claim or access no longer exists, because its finalizer was
//! removed by hand, a second operator wrote late, or a backup was restored (spec §3.4).
//!
//! A sweep is the reconciliation of one UID. A UID is never reused, so a fact that was proved once
//! stays true. Buckets are not touched: they are retained.

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

/// Number of generations below a record's to look up by name. More keys exist at once only if
/// somebody created them by hand.
const SEARCHED: u64 = 1000;

/// Maximum number of steps of a sweep, and of its reads by name.
const MOST_STEPS: usize = 10_000;

/// A step of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepStep<K: Kind = OfClaim> {
    /// GET the claim or access of this name, for its UID.
    Owner(K::At),
    /// LIST the claims or accesses of all namespaces, to find the UID.
    Owners,
    /// LIST the internal Secrets with the UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// PATCH a record: end every access to its bucket.
    End(SecretPatch),
    /// DELETE a Secret. The answer contains it if a finalizer of another party keeps it.
    Delete(SecretRef),
}

/// The end of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepEnd {
    /// No Secret of the UID is left.
    Done,
    /// The claim or access exists.
    Alive,
    /// The claim or access may be in a namespace that this operator does not serve, where its
    /// existence can't be checked.
    Elsewhere,
    /// Only the record is left. It stays while a request for its bucket may still take effect.
    Held,
    /// Something failed that may succeed on retry. Holds the reason.
    Retry(String),
}

/// Result of a step, together with the step.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepAnswer<K: Kind = OfClaim> {
    /// The UID of the claim or access of this name, or `None` if it does not exist.
    Owner(K::At, Option<K::Uid>),
    /// True if a claim or access has the UID.
    Owners(bool),
    /// The internal Secrets with the UID.
    Own(Vec<Stored>),
    /// The internal Secret of this name, or `None` if it does not exist.
    Internal(String, Option<Stored>),
    /// A record is patched. Contains the updated Secret.
    Ended(Stored),
    /// A Secret is deleted. `Some` if a finalizer of another party keeps it, with its current
    /// state.
    Deleted(SecretRef, Option<Stored>),
    /// An error, which never counts as absence. Contains the reason.
    Failed(SweepStep<K>, String),
}

/// Everything that a sweep knows so far.
#[derive(Clone, Debug)]
pub struct Sweep<K: Kind = OfClaim> {
    uid: K::Uid,
    /// Namespaces in which owners can be read.
    reach: Reach,
    /// True if a request that creates or empties the bucket may still take effect.
    call_pending: bool,
    /// Owners that Secrets of this UID name, with the number of reads of each.
    owners: BTreeMap<K::At, u8>,
    /// True if a record names the owner. Labels alone don't prove it.
    recorded: bool,
    /// Number of lists of all owners.
    owners_listed: u8,
    alive: bool,
    /// Names that follow from the UID. A Secret with such a name belongs to the UID.
    derived: BTreeSet<String>,
    /// Names to read, unless a list shows them.
    unread: BTreeSet<String>,
    own: BTreeMap<String, Stored>,
    listed: bool,
    /// True if no Secret was deleted since the list.
    current: bool,
    failure: Option<String>,
}

impl<K: Kind> Sweep<K> {
    /// Starts a sweep. `seen` are cached Secrets of the UID, `names` the names of other Secrets
    /// that may belong to it, and `reach` the namespaces in which owners can be read.
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

    /// Returns the UID of the claim or access.
    pub fn uid(&self) -> &K::Uid {
        &self.uid
    }

    /// Returns the next step. The owner is read, then its Secrets, then the owner once more. After
    /// that public access is removed, then the credentials, then the record.
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
            // Labels don't prove the namespace of the owner, and not every namespace can be read.
            return ControlFlow::Break(SweepEnd::Elsewhere);
        }
        // The first answer may be stale, from before the owner was created. The Secrets were
        // created after it.
        self.ask(2).map_or_else(|| self.remove(), ControlFlow::Continue)
    }

    /// Returns true if a Secret names an owner in a namespace that this operator does not serve.
    fn is_elsewhere(&self) -> bool {
        self.owners.keys().any(|owner| !self.reach.has(K::parts(owner).0))
    }

    /// Returns the query that is missing until each owner was read this number of times.
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
            // A pass in progress may have created a key meanwhile, so the Secrets are listed right
            // before the record is deleted.
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

    /// Records a Secret that was read live, if it belongs to this UID.
    fn found(&mut self, secret: Stored) {
        if self.derived.contains(secret.name()) || K::owner(&secret).as_ref() == Some(&self.uid) {
            self.take_hints(&secret);
            self.unread.remove(secret.name());
            self.own.insert(secret.name().to_owned(), secret);
        }
    }

    /// Records the owner and the other Secrets that a Secret of this UID refers to.
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

    /// Ignores how long an answer took, because proved facts stay true.
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
