//! What a pass knows so far: read from caches at its start, and from the answers to its own steps
//! since.
//!
//! Nothing of it is public: it begins with what the caches hold and what earlier passes saw, and
//! from then on only [`View::learn`] and its kin change it.

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

/// What the caches hold of a claim.
#[derive(Clone, Debug, Default)]
pub struct Cached {
    /// Internal Secrets that carry the claim's UID.
    pub internal: Vec<Stored>,
    /// Secrets in the claim's namespace that it controls, or that have the name of its own.
    pub consumers: Vec<Stored>,
    /// What asks once more for each Secret of the claim that the watch has shown and an earlier
    /// live read missed, whoever made it: either the watch lags behind, or that read was answered
    /// from the server's past.
    pub recheck: Vec<Look>,
    /// What gateways found in the buckets of the claim's records.
    pub held: BTreeMap<RecordName, Held>,
    /// Who asks for accesses; `None` = that is not known yet, or not to be known.
    pub asking: Option<Asking>,
}

/// How fresh what is known of the claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Freshness {
    /// From the cache, or from before an answer that came late.
    Cached,
    /// Read or written live in this pass.
    Live,
    /// Read live by the very last step: nothing was done since.
    JustRead,
}

/// The claim, as the pass knows it.
#[derive(Clone, Debug)]
struct KnownClaim {
    claim: Claim,
    freshness: Freshness,
    /// The finalizer was put on by this pass: before, this claim can have had no record and no
    /// credential.
    newborn: bool,
    /// The status when the pass began, to see transitions.
    status_before: BucketClaimStatus,
}

/// What this pass did, as far as what is known of Secrets and bucket doesn't tell.
#[derive(Clone, Debug, Default)]
struct Deeds {
    /// The generation that this pass's own write had a record aim at: so nobody minted it yet.
    aimed_by_this_pass: Option<u64>,
    /// The record was made again after somebody deleted it.
    record_remade: bool,
    /// A consumer Secret was written.
    consumer_written: bool,
    /// Objects that were deleted.
    purged: u64,
    /// Records that were removed, by earlier passes as well where the claim goes.
    let_go: Vec<LetGo>,
    /// Credentials that were deleted, by earlier passes as well where they did not come to tell of
    /// it.
    revoked: u32,
    /// Up to this generation no name of a credential is taken: of a claim that goes as earlier
    /// passes saw as well.
    absent_through: u64,
    /// The finalizer was taken off.
    finalizer_removed: bool,
    /// Who may have an access was read live.
    consent_settled: bool,
    /// A revocation was started.
    revocation_started: bool,
}

/// Why a pass over a claim is over but for what it tells.
pub(super) type Trouble = walk::Trouble<Step>;

/// What a pass knows so far.
#[derive(Clone, Debug)]
pub struct View {
    setting: Arc<Setting>,
    claim: KnownClaim,
    /// Backends that the pass has looked up, by name.
    backends: BTreeMap<String, BackendSeen>,
    /// Internal Secrets of this claim's UID.
    internal: Internal,
    /// Secrets in the claim's namespace.
    consumers: Secrets,
    /// Who holds the bucket that the claim wants.
    holder: Option<(RecordName, Holder)>,
    /// Records that other claims hold, or that can't be read, as they were read by name.
    others: BTreeMap<String, Holder>,
    /// Whose public access to a bucket of this name counts, if not this claim's.
    public_rival: Option<(Target, Option<ClaimRef>)>,
    /// Credentials of other claims on a bucket, from a live list; and which one.
    others_credentials: Option<(Target, Vec<Stored>)>,
    bucket: BucketFacts,
    drift: Drift,
    /// A call that changes a bucket got no answer, and may still happen for this long.
    unanswered: Option<Duration>,
    /// Questions that are asked before the pass tells what it knows.
    recheck: Vec<Look>,
    /// What gateways found in the buckets of the claim's records.
    held: BTreeMap<RecordName, Held>,
    /// Who asks for accesses, as the caches show.
    asking: Option<Asking>,
    /// What was read of who may have one; it is written from once.
    consent: Option<Box<ConsentSeen>>,
    /// Passes in a row that failed before this one.
    setbacks: u32,
    /// How long it is until what an older version left out is to be written; `None` = now.
    complete_after: Option<Duration>,
    /// Time until the claim may be written about again: it is over its pace.
    held_off: Option<Duration>,
    deeds: Deeds,
    trouble: Option<Trouble>,
    /// Number of answers so far: the clock for `Fact::since`.
    step: u32,
}

impl View {
    /// What the caches tell of a claim. For one that goes they tell in which version its Secrets
    /// are to be written and deleted, and nothing that they don't show is gone (spec §3.4).
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

    /// What is the same for every claim.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The claim.
    pub fn claim(&self) -> &Claim {
        &self.claim.claim
    }

    /// The other operator that the claim's annotation names.
    pub fn served_by_another(&self) -> Option<&ServedBy> {
        self.claim().served_by.as_ref().filter(|by| self.setting.is_anothers(Some(by)))
    }

    /// Who holds the bucket that the claim wants, and the name of the record.
    pub fn holder(&self) -> Option<&(RecordName, Holder)> {
        self.holder.as_ref()
    }

    /// Passes in a row that failed before this one.
    pub(super) fn setbacks(&self) -> u32 {
        self.setbacks
    }

    /// How long it is until what an older version left out is to be written; `None` = now.
    pub(super) fn completed_after(&self) -> Option<Duration> {
        self.complete_after
    }

    /// Time until more may be written than what ends keys and consent. A pass that starts
    /// a revocation is not held off: there is one a minute at most, and the tenant has no key.
    pub(super) fn held_off(&self) -> Option<Duration> {
        self.held_off.filter(|_| !self.deeds.revocation_started)
    }

    /// True where the writes of this pass count towards the claim's pace.
    pub fn is_paced(&self) -> bool {
        !self.claim().deleting && self.held_off.is_none()
    }

    /// What gateways found in the bucket of a record.
    pub(super) fn held(&self, record: &BucketRecord) -> Option<&Held> {
        self.held.get(&RecordName::of(&record.endpoint, &record.bucket))
    }

    /// Who asks for accesses, as the caches show; `None` = not known.
    pub(super) fn asking(&self) -> Option<&Asking> {
        self.asking.as_ref()
    }

    /// What was read live of who may have an access, until it is written.
    pub(super) fn consent_seen(&self) -> Option<&ConsentSeen> {
        self.consent.as_deref()
    }

    /// Whether that was read in this pass.
    pub(super) fn is_consent_settled(&self) -> bool {
        self.deeds.consent_settled
    }

    /// Whether this pass took the finalizer off.
    pub fn is_finalizer_removed(&self) -> bool {
        self.deeds.finalizer_removed
    }

    /// The status when the pass began.
    pub(super) fn status_before(&self) -> &BucketClaimStatus {
        &self.claim.status_before
    }

    /// Whether the finalizer was put on by this pass: before, this claim can have had no record and
    /// no credential.
    pub(super) fn is_newborn(&self) -> bool {
        self.claim.newborn
    }

    /// What a record that was read by this name says, if it is not this claim's.
    pub(super) fn anothers_record(&self, name: &RecordName) -> Option<&Holder> {
        self.others.get(name.as_str())
    }

    /// Whether a live read found no internal Secret of this name, since this pass made a record.
    pub(super) fn is_absent_since_held(&self, name: &str) -> bool {
        self.internal.is_absent_since_held(name)
    }

    /// The internal Secret of this name, be it from the cache.
    pub(super) fn own(&self, name: &str) -> Option<&Stored> {
        self.internal.known().present(name)
    }

    /// The claim's internal Secrets, by name, be it from the cache.
    pub fn all_own(&self) -> impl Iterator<Item = &Stored> {
        self.internal.known().all()
    }

    /// Whether there is no internal Secret of this claim at this name: a live read found none or
    /// one that tells of nobody, or this pass deleted it.
    pub(super) fn is_absent(&self, name: &str) -> bool {
        self.internal.known().is_absent(name)
    }

    /// Whether there is no internal Secret of this name, as a live read showed since the last
    /// record was deleted.
    pub(super) fn is_absent_to_the_last(&self, name: &str) -> bool {
        self.internal.is_absent_to_the_last(name)
    }

    /// Names of internal Secrets that are to be read because what was known of them is old.
    pub(super) fn taken(&self) -> impl Iterator<Item = &str> {
        self.internal.known().all_taken()
    }

    /// The claim's binding for public access, be it from the cache.
    pub(super) fn binding(&self) -> Option<&Stored> {
        self.own(&AnonymousBinding::name(&self.claim().uid))
    }

    /// What is known of a Secret in the claim's namespace.
    pub(super) fn consumer(&self, name: &str) -> Knowledge<'_> {
        self.consumers.get(name)
    }

    /// Secrets in the claim's namespace that are there, by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Stored> {
        self.consumers.all()
    }

    /// Those of them that the claim controls.
    pub(super) fn own_consumers(&self) -> impl Iterator<Item = &Stored> {
        self.consumers.all().filter(|secret| secret.is_controlled_by(&self.claim().uid))
    }

    /// Whether this pass wrote the Secret of this name in the claim's namespace, or read it live.
    pub(super) fn is_consumer_live(&self, name: &str) -> bool {
        self.consumers.is_live(name)
    }

    /// Whether a consumer Secret was written in this pass.
    pub(super) fn is_consumer_written(&self) -> bool {
        self.deeds.consumer_written
    }

    /// Whether the record was made again after somebody deleted it.
    pub(super) fn is_record_remade(&self) -> bool {
        self.deeds.record_remade
    }

    /// Objects that this pass deleted.
    pub(super) fn purged(&self) -> u64 {
        self.deeds.purged
    }

    /// Buckets that the claim has let go of.
    pub(super) fn let_go(&self) -> &[LetGo] {
        &self.deeds.let_go
    }

    /// Credentials that were deleted, and not told of.
    pub(super) fn revoked(&self) -> u32 {
        self.deeds.revoked
    }

    /// Up to this generation no name of a credential is taken.
    pub(super) fn absent_through(&self) -> u64 {
        self.deeds.absent_through
    }

    /// The first question that is to be asked before the pass tells what it knows.
    pub(super) fn first_recheck(&self) -> Option<&Look> {
        self.recheck.first()
    }

    /// Why the pass is over but for what it tells.
    pub(super) fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }
}
