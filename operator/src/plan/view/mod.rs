//! View of a pass: data from the caches, updated by the answers to its own steps.
//!
//! No field is public. A view starts with cached data and with what earlier passes saw, and only
//! [`View::learn`] and its variants change it.

mod ask;
mod bucket;
mod fingerprint;
mod generations;
mod holder;
mod internal;
mod late;
mod learn;
mod records;
mod remembered;

mod setting;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{AnonymousBinding, BucketClaimStatus, BucketRecord, Claim, ClaimRef, RecordName, ServedBy};

use super::answer::{BackendSeen, Checked, Holder};
use super::asking::{Asking, ConsentSeen};
use super::held::Held;
use super::known::{Knowledge, Secrets};
use super::secret::Stored;
use super::step::{Look, Step};
use super::target::Target;
use super::walk;

use bucket::{BucketFacts, Drift};
use internal::Internal;

pub(super) use ask::wanted_bucket;
pub(super) use bucket::names_claim_uid;
pub(super) use internal::StoredRecord;
pub use remembered::{LetGo, Remembered};
pub use setting::Setting;

/// Cached data about a claim.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    /// Internal Secrets with the claim's UID.
    pub internal: Vec<Stored>,
    /// Secrets that the claim controls, or that have the name of its consumer Secret, in its
    /// namespace.
    pub consumers: Vec<Stored>,
    /// Queries for the Secrets of the claim that the watch has shown and an earlier live read
    /// missed. Either the watch lags behind, or that read was stale.
    pub recheck: Vec<Look>,
    /// Measurements by gateways of the buckets of the claim's records.
    pub held: BTreeMap<RecordName, Held>,
    /// Accesses that request the claim's bucket. `None` if they are not known yet or can't be
    /// known.
    pub asking: Option<Asking>,
}

/// Freshness of what is known about the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Freshness {
    /// From the cache, or from before a late answer.
    Cached,
    /// Read or written live in this pass.
    Live,
    /// Read live by the very last step. Nothing was done since.
    JustRead,
}

/// The claim, as the pass knows it.
#[derive(Clone, Debug)]
struct KnownClaim {
    claim: Claim,
    freshness: Freshness,
    /// True if this pass added the finalizer. Before that, the claim can't have had a record or a
    /// credential.
    newborn: bool,
    /// The status before the pass, to detect transitions.
    status_before: BucketClaimStatus,
}

/// Effects of this pass that the facts about Secrets and bucket do not show.
#[derive(Clone, Debug, Default)]
struct Deeds {
    /// The generation that this pass has written to a record as current. Nobody has created its key
    /// yet.
    aimed_by_this_pass: Option<u64>,
    /// True if the record was recreated after somebody deleted it.
    record_remade: bool,
    /// True if a consumer Secret was written.
    consumer_written: bool,
    /// Number of deleted objects.
    purged: u64,
    /// Records that were deleted. For a claim that is being deleted, this includes earlier passes.
    let_go: Vec<LetGo>,
    /// Number of deleted credentials, including those of earlier passes that did not report them.
    revoked: u32,
    /// No credential exists up to this generation. For a claim that is being deleted, this includes
    /// the results of earlier passes.
    absent_through: u64,
    /// True if the finalizer was removed.
    finalizer_removed: bool,
    /// True if the data for consent was read live.
    consent_settled: bool,
    /// True if a revocation was started.
    revocation_started: bool,
}

/// Reason that a pass over a claim is over, except for its status write.
pub(super) type Trouble = walk::Trouble<Step>;

/// Everything that a pass knows so far.
#[derive(Clone, Debug)]
pub struct View {
    setting: Arc<Setting>,
    claim: KnownClaim,
    /// Backends that the pass has looked up, by name.
    backends: BTreeMap<String, BackendSeen>,
    /// Internal Secrets with this claim's UID.
    internal: Internal,
    /// Secrets in the claim's namespace.
    consumers: Secrets,
    /// Holder of the bucket that the claim wants.
    holder: Option<(RecordName, Holder)>,
    /// Records of other claims and invalid records, as read by name.
    others: BTreeMap<String, Holder>,
    /// The other claim whose public access to a bucket of this name takes precedence, if there is
    /// one.
    public_rival: Option<(Target, Option<ClaimRef>)>,
    /// Credentials of other claims for a bucket, from a live list.
    others_credentials: Option<(Target, Vec<Stored>)>,
    bucket: BucketFacts,
    drift: Drift,
    /// Time left until an unanswered request that changes a bucket can no longer take effect.
    unanswered: Option<Duration>,
    /// Queries to answer before the pass reports its status.
    recheck: Vec<Look>,
    /// Measurements by gateways of the buckets of the claim's records.
    held: BTreeMap<RecordName, Held>,
    /// Accesses that request the claim's bucket, from the caches.
    asking: Option<Asking>,
    /// Live data for consent. Written once, then dropped.
    consent: Option<Box<ConsentSeen>>,
    /// Number of consecutive failed passes before this one.
    setbacks: u32,
    /// Time until fields that an older version left out may be written. `None` for now.
    complete_after: Option<Duration>,
    /// Time until the claim may be written again, if it is over its write limit.
    held_off: Option<Duration>,
    deeds: Deeds,
    trouble: Option<Trouble>,
    /// Number of answers so far. `Fact::since` refers to it.
    step: u32,
}

impl View {
    /// Creates a view from the caches. For a claim that is being deleted, the caches supply the
    /// versions in which its Secrets are written and deleted; a Secret that they do not show does
    /// not count as deleted (spec §3.4).
    pub fn new(setting: Arc<Setting>, claim: Claim, cached: Cached) -> Self {
        let Cached { internal, consumers, recheck, held, asking } = cached;
        let recheck = if claim.deleting { Vec::new() } else { recheck };
        let internal = internal.into_iter().filter(|secret| !generations::is_anothers(&claim.uid, secret));
        Self {
            internal: Internal::cached(internal),
            consumers: Secrets::cached(consumers),
            recheck,
            held,
            asking,
            consent: None,
            unanswered: None,
            setbacks: 0,
            drift: Drift { due: false, checked: Checked::No, missing_at: None },
            deeds: Deeds::default(),
            setting,
            claim: KnownClaim {
                status_before: claim.status.clone(),
                claim,
                freshness: Freshness::Cached,
                newborn: false,
            },
            backends: BTreeMap::new(),
            holder: None,
            others: BTreeMap::new(),
            public_rival: None,
            complete_after: None,
            held_off: None,
            others_credentials: None,
            bucket: BucketFacts::default(),
            trouble: None,
            step: 0,
        }
    }

    /// Returns the settings that all claims share.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// Returns the claim.
    pub fn claim(&self) -> &Claim {
        &self.claim.claim
    }

    /// Returns the other operator that the claim's annotation names.
    pub fn served_by_another(&self) -> Option<&ServedBy> {
        self.claim().served_by.as_ref().filter(|by| self.setting.is_anothers(Some(by)))
    }

    /// Returns the holder of the bucket that the claim wants, with the name of the record.
    pub fn holder(&self) -> Option<&(RecordName, Holder)> {
        self.holder.as_ref()
    }

    /// Returns the number of consecutive failed passes before this one.
    pub(super) fn setbacks(&self) -> u32 {
        self.setbacks
    }

    /// Returns the time until fields that an older version left out may be written. `None` for now.
    pub(super) fn completed_after(&self) -> Option<Duration> {
        self.complete_after
    }

    /// Returns the time until writes are allowed that do not end keys or consent.
    ///
    /// A pass that starts a revocation is not held off: there is at most one a minute, and the
    /// tenant has no key meanwhile.
    pub(super) fn held_off(&self) -> Option<Duration> {
        self.held_off.filter(|_| !self.deeds.revocation_started)
    }

    /// Returns true if the writes of this pass count towards the claim's write limit.
    pub fn is_paced(&self) -> bool {
        !self.claim().deleting && self.held_off.is_none()
    }

    /// Returns the measurement of the bucket of a record.
    pub(super) fn held(&self, record: &BucketRecord) -> Option<&Held> {
        self.held.get(&RecordName::of(&record.endpoint, &record.bucket))
    }

    /// Returns the accesses that request the claim's bucket, from the caches. `None` if they are
    /// not known.
    pub(super) fn asking(&self) -> Option<&Asking> {
        self.asking.as_ref()
    }

    /// Returns the live data for consent, until it is written.
    pub(super) fn consent_seen(&self) -> Option<&ConsentSeen> {
        self.consent.as_deref()
    }

    /// Returns true if the data for consent was read in this pass.
    pub(super) fn is_consent_settled(&self) -> bool {
        self.deeds.consent_settled
    }

    /// Returns true if this pass removed the finalizer.
    pub fn is_finalizer_removed(&self) -> bool {
        self.deeds.finalizer_removed
    }

    /// Returns the status before the pass.
    pub(super) fn status_before(&self) -> &BucketClaimStatus {
        &self.claim.status_before
    }

    /// Returns true if this pass added the finalizer. Before that, the claim can't have had a
    /// record or a credential.
    pub(super) fn is_newborn(&self) -> bool {
        self.claim.newborn
    }

    /// Returns the holder from the record of this name, if it is not this claim's.
    pub(super) fn anothers_record(&self, name: &RecordName) -> Option<&Holder> {
        self.others.get(name.as_str())
    }

    /// Returns true if a live read after this pass created a record found no internal Secret of
    /// this name.
    pub(super) fn is_absent_since_held(&self, name: &str) -> bool {
        self.internal.is_absent_since_held(name)
    }

    /// Returns the internal Secret of this name, possibly cached.
    pub(super) fn own(&self, name: &str) -> Option<&Stored> {
        self.internal.known().present(name)
    }

    /// Returns the claim's internal Secrets by name, possibly cached.
    pub fn all_own(&self) -> impl Iterator<Item = &Stored> {
        self.internal.known().all()
    }

    /// Returns true if no internal Secret of this claim has this name: a live read found none or
    /// another's, or this pass deleted it.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.internal.known().is_absent(name)
    }

    /// Returns true if a live read after the last deletion of a record found no internal Secret of
    /// this name.
    pub(super) fn is_absent_to_the_last(&self, name: &str) -> bool {
        self.internal.is_absent_to_the_last(name)
    }

    /// Returns the names of internal Secrets that must be read because the known state is outdated.
    pub(super) fn taken(&self) -> impl Iterator<Item = &str> {
        self.internal.known().all_taken()
    }

    /// Returns the claim's anonymous binding, possibly cached.
    pub(super) fn binding(&self) -> Option<&Stored> {
        self.own(&AnonymousBinding::name(&self.claim().uid))
    }

    /// Returns what is known about a Secret in the claim's namespace.
    pub(super) fn consumer(&self, name: &str) -> Knowledge<'_> {
        self.consumers.get(name)
    }

    /// Returns the known Secrets in the claim's namespace, by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Stored> {
        self.consumers.all()
    }

    /// Returns the known Secrets in the claim's namespace that the claim controls.
    pub(super) fn own_consumers(&self) -> impl Iterator<Item = &Stored> {
        self.consumers.all().filter(|secret| secret.is_controlled_by(&self.claim().uid))
    }

    /// Returns true if this pass wrote or live-read the Secret of this name in the claim's
    /// namespace.
    pub(super) fn is_consumer_live(&self, name: &str) -> bool {
        self.consumers.is_live(name)
    }

    /// Returns true if this pass wrote a consumer Secret.
    pub(super) fn is_consumer_written(&self) -> bool {
        self.deeds.consumer_written
    }

    /// Returns true if the record was recreated after somebody deleted it.
    pub(super) fn is_record_remade(&self) -> bool {
        self.deeds.record_remade
    }

    /// Returns the number of objects that this pass deleted.
    pub(super) fn purged(&self) -> u64 {
        self.deeds.purged
    }

    /// Returns the buckets that the claim has released.
    pub(super) fn let_go(&self) -> &[LetGo] {
        &self.deeds.let_go
    }

    /// Returns the number of deleted credentials that were not reported yet.
    pub(super) fn revoked(&self) -> u32 {
        self.deeds.revoked
    }

    /// Returns the generation up to which no credential exists.
    pub(super) fn absent_through(&self) -> u64 {
        self.deeds.absent_through
    }

    /// Returns the first query to answer before the pass reports its status.
    pub(super) fn first_recheck(&self) -> Option<&Look> {
        self.recheck.first()
    }

    /// Returns the reason that the pass is over, except for its status write.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }
}
