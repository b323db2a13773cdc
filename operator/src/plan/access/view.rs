//! View of a pass over an access: data from the caches, updated by the answers to its own steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Access, AccessReason, AccessRecord, BucketAccessStatus, ClaimRef, ServedBy};

use super::super::answer::{Failure, Posted};
use super::super::asking::Asker;
use super::super::credentials::KeyHolder;
use super::super::known::{Knowledge, Secrets};
use super::super::note::Note;
use super::super::patch::{Change, Trigger};
use super::super::secret::Stored;
use super::super::step::Then;
use super::super::view::Setting;
use super::super::walk;
use super::step::{AccessAct, AccessAnswer, AccessLook, AccessStep};
use super::words::{ClaimWord, EntrySeen, Lead};

/// Cached data about an access.
#[derive(Clone, Debug)]
pub struct AccessCached {
    /// Internal Secrets of the access.
    pub internal: Vec<Stored>,
    /// Secrets that the access controls, or that have the name of its consumer Secret, in its
    /// namespace.
    pub consumers: Vec<Stored>,
    /// Namespace of the access.
    pub namespace: Option<Asker>,
    /// Entries of the access, in their order.
    pub entries: Vec<EntrySeen>,
    /// Location of the operators that serve what the entries name.
    pub lead: Lead,
}

/// Everything that a pass over an access knows so far.
#[derive(Clone, Debug)]
pub struct AccessView {
    pub(super) setting: Arc<Setting>,
    pub(super) access: Access,
    /// The status before the pass.
    pub(super) before: BucketAccessStatus,
    /// True if this pass has read or written the access since it last created its record.
    pub(super) is_live: bool,
    pub(super) internal: Secrets,
    pub(super) consumers: Secrets,
    pub(super) namespace: Option<Asker>,
    /// Namespace of the access as read live.
    pub(super) namespace_live: Option<Option<Asker>>,
    pub(super) entries: Vec<EntrySeen>,
    pub(super) lead: Lead,
    /// Number of consecutive failed passes before this one.
    pub(super) setbacks: u32,
    /// Time until the access may be written again, if it is over its write limit.
    pub(super) held_off: Option<Duration>,
    /// True if this pass started a revocation.
    pub(super) revocation_started: bool,
    /// Results of live reads of claims.
    pub(super) words: BTreeMap<ClaimRef, ClaimWord>,
    /// Number of live lists since the last late answer, and true if the last of them is current.
    pub(super) lists: (u32, bool),
    pub(super) is_doubted: bool,
    /// The generation that this pass has written to the record as current.
    pub(super) aimed: Option<u64>,
    /// Highest generation of a record or key that this pass deleted.
    pub(super) highest_gone: u64,
    pub(super) is_consumer_written: bool,
    pub(super) is_finalizer_removed: bool,
    pub(super) trouble: Option<Trouble>,
    pub(super) step: u32,
}

/// Reason that a pass over an access is over, except for its status write.
pub(super) type Trouble = walk::Trouble<AccessStep>;

/// Reason that a walk halts, including the next step.
pub(super) type Halt = walk::Halt<AccessStep, Stop>;

/// End of a complete walk.
pub(super) type Outcome = walk::Outcome<Stop>;

/// Reason that an access is not Ready.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Stop {
    pub(super) reason: AccessReason,
    pub(super) message: String,
    pub(super) then: Then,
}

impl Stop {
    pub(super) fn new(reason: AccessReason, message: String) -> Self {
        Self { reason, message, then: Then::AwaitChange }
    }
}

impl walk::Stops for Stop {
    fn then(&self) -> &Then {
        &self.then
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Self::Stop(Box::new(stop))
    }
}

impl From<AccessLook> for Halt {
    fn from(look: AccessLook) -> Self {
        Self::Step(Box::new(look.into()))
    }
}

impl From<AccessAct> for Halt {
    fn from(act: AccessAct) -> Self {
        Self::Step(Box::new(act.into()))
    }
}

impl AccessView {
    /// Creates a view from the caches.
    pub fn new(setting: Arc<Setting>, access: Access, cached: AccessCached) -> Self {
        let AccessCached { internal, consumers, namespace, entries, lead } = cached;
        Self {
            setting,
            before: access.status.clone(),
            access,
            is_live: false,
            internal: Secrets::cached(internal),
            consumers: Secrets::cached(consumers),
            namespace,
            namespace_live: None,
            entries,
            lead,
            setbacks: 0,
            held_off: None,
            revocation_started: false,
            words: BTreeMap::new(),
            lists: (0, false),
            is_doubted: false,
            aimed: None,
            highest_gone: 0,
            is_consumer_written: false,
            is_finalizer_removed: false,
            trouble: None,
            step: 0,
        }
    }

    /// Sets the number of consecutive failed passes before this one.
    #[must_use]
    pub fn after_setbacks(self, setbacks: u32) -> Self {
        Self { setbacks, ..self }
    }

    /// Sets the time for which the access is over its write limit.
    #[must_use]
    pub fn held_off_for(self, held_off: Option<Duration>) -> Self {
        Self { held_off, ..self }
    }

    /// Returns the time until writes are allowed that do not end or narrow keys. Follows the rules
    /// for a claim.
    pub(super) fn held_off(&self) -> Option<Duration> {
        self.held_off.filter(|_| !self.revocation_started)
    }

    /// Returns true if the writes of this pass count towards the write limit of the access.
    pub fn is_paced(&self) -> bool {
        !self.access.deleting && self.held_off.is_none()
    }

    /// Returns the access.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Returns the other operator that the annotation names.
    pub fn served_by_another(&self) -> Option<&ServedBy> {
        self.access.served_by.as_ref().filter(|by| self.setting.is_anothers(Some(by)))
    }

    /// Returns the verdict about that annotation. A Secret that this pass deleted last still counts
    /// for the rest of the pass.
    pub(super) fn note(&self) -> Note {
        let owns = self.internal.all().next().is_some() || self.highest_gone > 0;
        let handed_over = self.lead == Lead::Elsewhere;
        self.served_by_another().map_or(Note::Ours, |operator| Note::anothers(operator, owns, handed_over))
    }

    /// Returns the namespace of the access, if it is known.
    pub fn namespace(&self) -> Option<&Asker> {
        self.namespace_live.as_ref().map_or(self.namespace.as_ref(), Option::as_ref)
    }

    /// Returns the record and the Secret that it was read from.
    pub(super) fn record(&self) -> Option<(AccessRecord, &Stored)> {
        let stored = self.internal.present(&AccessRecord::name(&self.access.uid))?;
        let record = AccessRecord::read(&stored.0).ok().filter(|record| record.uid == self.access.uid)?;
        Some((record, stored))
    }

    /// Requires a live list of the internal Secrets in this pass.
    pub(super) fn require_list(&self) -> Result<(), Halt> {
        if self.lists.0 > 0 { Ok(()) } else { Err(AccessLook::Own.into()) }
    }

    /// Requires a live list of the internal Secrets that nothing was deleted after.
    pub(super) fn require_current_list(&self) -> Result<(), Halt> {
        if self.lists.1 { Ok(()) } else { Err(AccessLook::Own.into()) }
    }

    /// Returns the namespace, read live.
    pub(super) fn require_namespace(&self) -> Result<&Asker, Halt> {
        match &self.namespace_live {
            None => Err(AccessLook::Namespace.into()),
            Some(None) => {
                let why = format!("namespace {} is on its way out", self.access.at.namespace);
                Err(Stop::new(AccessReason::ServerError, why).into())
            }
            Some(Some(namespace)) => Ok(namespace),
        }
    }

    /// Records a late answer. Earlier reads are outdated, and the access is read again. A
    /// generation whose bump came late must not get a key.
    pub(super) fn take_late(&mut self, answer: AccessAnswer) {
        self.internal.age(self.step);
        self.consumers.age(self.step);
        self.namespace_live = None;
        self.words.clear();
        self.lists = (0, false);
        self.take_slow(answer);
        self.is_live = false;
        self.aimed = None;
    }

    /// Records a slow answer. Another operator may have continued meanwhile.
    pub(super) fn take_slow(&mut self, answer: AccessAnswer) {
        self.internal.doubt(self.step);
        self.is_doubted = true;
        self.take(answer);
    }

    /// Records the result of a step.
    pub(super) fn take(&mut self, answer: AccessAnswer) {
        self.step += 1;
        let step = self.step;
        match answer {
            AccessAnswer::Access(live) => self.found_access(live),
            AccessAnswer::Namespace(namespace) => self.namespace_live = Some(namespace),
            AccessAnswer::Own(secrets) => {
                self.internal.forget_present();
                secrets.into_iter().for_each(|secret| self.internal.found(secret, step));
                self.lists = (self.lists.0 + 1, true);
            }
            AccessAnswer::Internal(_, Some(secret)) => self.internal.found(secret, step),
            AccessAnswer::Internal(name, None) => self.internal.missed(&name, step),
            AccessAnswer::Consumer(_, Some(secret)) => self.consumers.found(secret, step),
            AccessAnswer::Consumer(name, None) => self.consumers.missed(&name, step),
            AccessAnswer::Claim(claim, word) => drop(self.words.insert(claim, word)),
            AccessAnswer::FinalizerAdded(access) => {
                self.access = *access;
                self.is_live = true;
            }
            AccessAnswer::FinalizerRemoved => self.is_finalizer_removed = true,
            AccessAnswer::StatusWritten(access) => self.access = *access,
            AccessAnswer::RecordPosted(record, posted) => {
                // A late POST must not outlive its access, so the access is read again before a key
                // is created.
                self.is_live = false;
                self.aimed = matches!(posted, Posted::Stored(_)).then_some(record.generation);
                self.posted(AccessRecord::name(&record.uid), posted);
            }
            AccessAnswer::CredentialPosted(facts, posted) => {
                self.aimed = None;
                self.posted(facts.access_key_id().access_secret_name(), posted);
            }
            AccessAnswer::ConsumerPosted(_, Posted::Stored(secret)) => {
                self.consumers.found(secret, step);
                self.is_consumer_written = true;
            }
            AccessAnswer::ConsumerPosted(name, Posted::NameTaken) => {
                if self.consumers.get(&name) == Knowledge::Absent {
                    self.trouble = Some(Trouble::Stale);
                }
                self.consumers.taken(&name, step);
            }
            AccessAnswer::Patched(change, secret) => self.patched(change, secret),
            AccessAnswer::Deleted(_, Some(kept)) => self.internal.found(kept, step),
            AccessAnswer::Deleted(secret, None) if secret.namespace == self.setting.operator_namespace => {
                self.highest_gone = self.highest_gone.max(self.highest_generation());
                self.internal.deleted(&secret.name, step);
                self.lists.1 = false;
            }
            AccessAnswer::Deleted(secret, None) => self.consumers.deleted(&secret.name, step),
            AccessAnswer::Failed(failed, failure) => self.failed(failed, failure),
        }
    }

    fn found_access(&mut self, live: Option<Box<Access>>) {
        let known = &self.access;
        match live {
            Some(live)
                if live.uid == known.uid
                    && live.deleting == known.deleting
                    && live.entries == known.entries
                    && !live.id.is_older_than(&known.id) =>
            {
                self.access = *live;
                self.is_live = true;
            }
            // The next pass starts from the current state.
            Some(_) | None => self.trouble = Some(Trouble::Stale),
        }
    }

    fn patched(&mut self, change: Change, secret: Stored) {
        if secret.reference().namespace != self.setting.operator_namespace {
            self.is_consumer_written = true;
            return self.consumers.found(secret, self.step);
        }
        if let Change::RaiseGeneration(trigger) = change {
            self.revocation_started |= trigger == Trigger::Revocation;
            self.aimed = AccessRecord::read(&secret.0).ok().map(|record| record.generation);
        }
        self.internal.found(secret, self.step);
    }

    fn posted(&mut self, name: String, posted: Posted) {
        match posted {
            Posted::Stored(secret) => self.internal.found(secret, self.step),
            Posted::NameTaken => {
                if self.internal.is_absent(&name) {
                    self.trouble = Some(Trouble::Stale);
                }
                self.internal.taken(&name, self.step);
            }
        }
    }

    /// Records a failure. A delete that failed because of an outdated cache is planned again after
    /// a read.
    fn failed(&mut self, step: AccessStep, failure: Failure) {
        if let (AccessStep::Act(AccessAct::Delete(secret)), Failure::Conflict) = (&step, &failure)
            && self.internal.is_cached(&secret.name)
            && secret.namespace == self.setting.operator_namespace
        {
            return self.internal.taken(&secret.name, self.step);
        }
        self.trouble = Some(Trouble::Failed(Box::new(step), failure));
    }
}
