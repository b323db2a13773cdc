//! What a pass knows so far: read from caches at its start, and from the answers to its own steps since.
//!
//! A cache is never proof of absence or of life (spec §3). So what a cache doesn't hold is *unknown* here, and
//! only the answer to a live question makes it absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AnonymousBinding, BucketClaimStatus, BucketRecord, Claim, Gateway, RecordName};

use super::answer::{
    BackendSeen, BucketSeen, Checked, CreateAnswer, DeleteAnswer, Failure, Holder, PurgeEnd, Stored, VersioningSeen,
};
use super::own::Own;
use super::step::{Look, Step, Target};

/// What is the same for every claim of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the internal Secrets are.
    pub operator_namespace: String,
    /// Namespaces besides the operator's that may hold admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// What tells our buckets from those of another cluster on the same store.
    pub installation: String,
    /// Most objects that one pass deletes from a bucket.
    pub purge_slice: u32,
}

impl Setting {
    /// Whether a namespace may hold admin and CA Secrets (spec §1).
    pub fn trusts(&self, namespace: &str) -> bool {
        namespace == self.operator_namespace || self.trusted_namespaces.contains(namespace)
    }
}

/// A bucket that a claim has let go of.
#[derive(Clone, Debug, PartialEq)]
pub struct LetGo {
    /// Its record.
    pub record: BucketRecord,
    /// It is gone, as the pass that removed the record saw or saw to.
    pub gone: bool,
}

/// What a pass knows so far.
#[derive(Clone, Debug)]
pub struct View {
    /// What is the same for every claim.
    pub setting: Arc<Setting>,
    /// The claim.
    pub claim: Claim,
    /// The status when the pass began, to see transitions.
    pub status_before: BucketClaimStatus,
    /// The claim was read or written live in this pass.
    pub fresh: bool,
    /// Nothing was done since the claim was last read live.
    pub confirmed: bool,
    /// An answer came so late that another operator may have been at what this pass knew of the claim's keys.
    pub late: bool,
    /// The finalizer was put on by this pass: before, this claim can have had no record and no credential.
    pub newborn: bool,
    /// Backends that the pass has looked up, by name.
    pub backends: BTreeMap<String, BackendSeen>,
    /// Internal Secrets of this claim's UID, by name.
    pub own: Own,
    /// Live lists of them made in this pass, since the last answer that showed those before to be of the past.
    pub own_lists: u32,
    /// Nothing of them was deleted since the last live list.
    pub own_current: bool,
    /// Names of internal Secrets that this pass wrote or read live, and that are there.
    pub live: BTreeSet<String>,
    /// Names at which there is no internal Secret of this claim: a live GET found none or one that tells of nobody, or this
    /// pass deleted it.
    pub absent: BTreeSet<String>,
    /// Who holds the bucket that the claim wants.
    pub holder: Option<(RecordName, Holder)>,
    /// The generation that this pass's own write made a record's target: so nobody minted it yet.
    pub own_target: Option<u64>,
    /// The record was made again after somebody deleted it.
    pub remade: bool,
    /// Credentials of other claims on a bucket, from a live list; and which one.
    pub rivals: Option<(Target, Vec<Stored>)>,
    /// The bucket that this pass asked about last: what follows, down to `versioning`, is about that one, and
    /// so are `purge` and `removed`.
    pub bucket_at: Option<Target>,
    /// The last look at it in this pass.
    pub bucket: Option<BucketSeen>,
    /// Whether it is empty.
    pub bucket_empty: Option<bool>,
    /// What CreateBucket answered in this pass.
    pub created: Option<CreateAnswer>,
    /// The ownership tags were put in this pass, or the store has none.
    pub tagged: bool,
    /// Its versioning, as this pass read or set it.
    pub versioning: Option<VersioningSeen>,
    /// A drift check of the claim's bucket is due.
    pub look_due: bool,
    /// What came of the look at the claim's bucket in this pass.
    pub checked: Checked,
    /// The claim's bucket was missing when it was last looked at, and that was here.
    pub missing_at: Option<Target>,
    /// A call that changes a bucket got no answer, and may still happen for this long.
    pub unanswered: Option<Duration>,
    /// Objects of the bucket that this pass deleted.
    pub purged: u64,
    /// How the last slice of emptying ended in this pass.
    pub purge: Option<PurgeEnd>,
    /// What DeleteBucket answered in this pass.
    pub removed: Option<DeleteAnswer>,
    /// Records that were removed by this pass, and by earlier ones of this process where the claim goes: it has let go of these
    /// buckets.
    pub let_go: Vec<LetGo>,
    /// Secrets in the claim's namespace by name; `None` = absent, seen live.
    pub consumers: BTreeMap<String, Option<Stored>>,
    /// A consumer Secret was written in this pass.
    pub consumer_written: bool,
    /// Names at which a POST found a Secret: it must be read live.
    pub taken: BTreeSet<String>,
    /// Names in `consumers` that were read live.
    pub met: BTreeSet<String>,
    /// What asks once more for each Secret of the claim that the watch has shown and an earlier live read missed, whoever made it:
    /// either the watch lags behind, or that read was answered from the server's past.
    pub doubted: Vec<Look>,
    /// Names of internal Secrets that this pass deleted.
    pub deleted: BTreeSet<String>,
    /// Credentials that were deleted by this pass, and by earlier ones of this process that did not come to tell of it.
    pub revoked: u32,
    /// Of a claim that goes: up to this generation no name of a credential is taken, as live reads by name showed, in this pass
    /// or in earlier ones of this process.
    pub revoked_through: u64,
    /// The finalizer was taken off in this pass.
    pub released: bool,
    /// What the pass goes by is old, or its answers contradict each other: it ends and another begins.
    pub outdated: bool,
    /// What went wrong last, and at which step.
    pub failure: Option<(Step, Failure)>,
}

impl View {
    /// What is known when a pass begins. `own` and `consumers` come from the caches.
    pub fn new(setting: Arc<Setting>, claim: Claim, own: Vec<Stored>, consumers: Vec<Stored>) -> Self {
        let by_name = |secret: Stored| (secret.name().to_owned(), secret);
        let mut view = Self {
            setting,
            status_before: claim.status.clone(),
            claim,
            fresh: false,
            confirmed: false,
            late: false,
            newborn: false,
            backends: BTreeMap::new(),
            own: Own::default(),
            own_lists: 0,
            own_current: false,
            live: BTreeSet::new(),
            absent: BTreeSet::new(),
            holder: None,
            own_target: None,
            remade: false,
            bucket_at: None,
            rivals: None,
            bucket: None,
            bucket_empty: None,
            created: None,
            tagged: false,
            versioning: None,
            look_due: false,
            checked: Checked::No,
            missing_at: None,
            unanswered: None,
            purged: 0,
            purge: None,
            removed: None,
            let_go: Vec::new(),
            consumers: consumers.into_iter().map(by_name).map(|(name, secret)| (name, Some(secret))).collect(),
            consumer_written: false,
            taken: BTreeSet::new(),
            met: BTreeSet::new(),
            doubted: Vec::new(),
            deleted: BTreeSet::new(),
            revoked: 0,
            revoked_through: 0,
            released: false,
            outdated: false,
            failure: None,
        };
        view.own = own.into_iter().filter(|secret| !view.is_anothers(secret)).collect();
        view
    }

    /// Whether an internal Secret that carries this claim's label is another's all the same: its data say so, and its name does
    /// not follow from this claim's UID. Labels prove nothing (spec §2).
    pub(super) fn is_anothers(&self, secret: &Stored) -> bool {
        let follows =
            secret.name() == AnonymousBinding::name(&self.claim.uid) || self.labelled_generation(secret).is_some();
        secret.text("claim_uid").is_some_and(|uid| uid != self.claim.uid.as_str()) && !follows
    }

    /// Credentials among the claim's internal Secrets. Not a stranger's Secret that has the name of one, and neither
    /// role nor UID: it opens nothing, and is not ours to write to.
    pub fn credentials(&self) -> impl Iterator<Item = &Stored> {
        let role = Role::VirtualCredential;
        let ours = move |secret: &&Stored| {
            secret.label(wire::ROLE) == Some(role.as_str()) || secret.text("claim_uid") == Some(self.claim.uid.as_str())
        };
        self.own.values().filter(move |secret| Role::of_internal(secret.name()) == Some(role)).filter(ours)
    }

    /// The claim's internal Secret of this generation.
    pub fn credential(&self, generation: u64) -> Option<&Stored> {
        self.own.get(&AccessKeyId::of(&self.claim.uid, generation).secret_name())
    }

    /// Whether the claim was bound once: a credential of this UID is known, be it from the cache, or a record says
    /// `settled` (spec §2).
    pub fn was_bound(&self) -> bool {
        self.credentials().next().is_some() || self.records().any(|(record, _)| record.settled)
    }
}
