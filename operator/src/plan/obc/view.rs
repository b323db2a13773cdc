//! View of a pass over an ObjectBucketClaim: data from the caches, updated by the answers to its
//! own steps.
//!
//! An object is created or deleted only on the basis of a live read or of the answer to a write. An
//! update may be based on a cache, because it names the version that the cache showed; if it
//! conflicts, the object is read and the update is planned again.

use std::sync::Arc;

use crate::api::{BucketClass, Gateway, Obc, ServedBy};

use super::super::answer::Failure;
use super::super::step::Announcement;
use super::super::walk;
use super::halt::Halt;
use super::kinds::{Shadow, ShadowKind};
use super::step::{ObcAct, ObcAnswer, ObcLook, ObcStep};
use super::words::{Bucket, Told};

/// Settings that all ObjectBucketClaims share.
#[derive(Clone, Debug)]
pub struct ObcSetting {
    /// Name of this provisioner in storage classes.
    pub provisioner: String,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// Identity of this operator.
    pub operator: ServedBy,
}

impl ObcSetting {
    /// Returns the value of the label `bucket-provisioner`: at most 63 characters, without a slash.
    pub fn label(&self) -> String {
        provisioner_label(&self.provisioner)
    }
}

/// Returns the label value for a provisioner.
pub fn provisioner_label(provisioner: &str) -> String {
    let cut: String = provisioner.chars().take(63).collect();
    cut.replace('/', "-")
}

/// Knowledge about an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen<T> {
    /// Unknown. An object that the cache lacks may exist.
    Unknown,
    /// A live read found no object.
    Absent,
    /// Known from a cache.
    Cached(T),
    /// Known from a live read, or from the answer to a write.
    Live(T),
}

impl<T> Seen<T> {
    pub(super) fn present(&self) -> Option<&T> {
        match self {
            Self::Cached(it) | Self::Live(it) => Some(it),
            Self::Unknown | Self::Absent => None,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    fn cached(it: Option<T>) -> Self {
        it.map_or(Self::Unknown, Self::Cached)
    }

    fn live(it: Option<T>) -> Self {
        it.map_or(Self::Absent, Self::Live)
    }

    /// Marks everything before a late answer as outdated.
    fn age(&mut self) {
        *self = match std::mem::replace(self, Self::Unknown) {
            Self::Live(it) | Self::Cached(it) => Self::Cached(it),
            Self::Absent | Self::Unknown => Self::Unknown,
        };
    }
}

/// Cached objects around an ObjectBucketClaim.
#[derive(Clone, Debug, Default)]
pub struct ObcCached {
    /// Storage class of the claim.
    pub class: Option<BucketClass>,
    /// The ObjectBuckets of the names that the claim's ObjectBucket may have.
    pub buckets: Vec<Bucket>,
    /// The BucketClaim of the name that the claim's has.
    pub claim: Option<Shadow>,
    /// The BucketAccess of that name.
    pub access: Option<Shadow>,
    /// The ConfigMap of the claim's name.
    pub config_map: Option<Told>,
    /// Message that this process has reported last.
    pub told: Option<String>,
}

/// Everything that a pass over an ObjectBucketClaim knows so far.
#[derive(Clone, Debug)]
pub struct ObcView {
    pub(super) setting: Arc<ObcSetting>,
    pub(super) obc: Obc,
    /// The phase before the pass.
    pub(super) before: Option<String>,
    pub(super) told: Option<String>,
    /// True if this pass has read or written the claim.
    is_live: bool,
    /// True if an update of the claim conflicted, so that the known claim is outdated.
    is_old: bool,
    /// True if nothing was ever created for the claim.
    ///
    /// It has neither finalizer nor label, which are added before anything is created, in exactly
    /// that version. So no objects have to be searched for; a POST that finds a name taken
    /// disproves this.
    is_new: bool,
    pub(super) class: Seen<BucketClass>,
    pub(super) bucket: Seen<Bucket>,
    /// Available name for the ObjectBucket, according to live reads.
    pub(super) free: Option<String>,
    claim: Seen<Shadow>,
    access: Seen<Shadow>,
    pub(super) config_map: Seen<Told>,
    /// True if a POST found the ConfigMap's name taken although the cache lacks it, in this pass or
    /// an earlier one.
    pub(super) is_map_taken: bool,
    /// True if the namespace of the claim is not terminating, according to a live read.
    pub(super) stays: Option<bool>,
    /// Events about the effects of this pass.
    pub(super) events: Vec<Announcement>,
    pub(super) is_finalizer_removed: bool,
    pub(super) trouble: Option<Trouble>,
}

/// Reason that a pass over an ObjectBucketClaim is over, except for its status write.
pub(super) type Trouble = walk::Trouble<ObcStep>;

impl ObcView {
    /// Creates a view from the caches.
    pub fn new(setting: Arc<ObcSetting>, obc: Obc, cached: ObcCached) -> Self {
        let ObcCached { class, buckets, claim, access, config_map, told } = cached;
        let mut view = Self {
            setting,
            before: obc.phase.clone(),
            obc,
            is_map_taken: told.as_ref().is_some_and(|told| told.starts_with("NameTaken")),
            told,
            is_live: false,
            is_old: false,
            is_new: false,
            class: Seen::cached(class),
            bucket: Seen::Unknown,
            free: None,
            claim: Seen::cached(claim),
            access: Seen::cached(access),
            config_map: Seen::cached(config_map),
            stays: None,
            events: Vec::new(),
            is_finalizer_removed: false,
            trouble: None,
        };
        view.bucket = Seen::cached(buckets.into_iter().find(|bucket| view.is_own(bucket)));
        view.is_new = !view.is_marked() && view.bucket == Seen::Unknown && !view.has_shadow();
        view
    }

    /// Returns the ObjectBucketClaim.
    pub fn obc(&self) -> &Obc {
        &self.obc
    }

    /// Returns what is known about the BucketClaim or BucketAccess.
    pub(super) fn shadow(&self, kind: ShadowKind) -> &Seen<Shadow> {
        match kind {
            ShadowKind::Claim => &self.claim,
            ShadowKind::Access => &self.access,
        }
    }

    fn shadow_mut(&mut self, kind: ShadowKind) -> &mut Seen<Shadow> {
        match kind {
            ShadowKind::Claim => &mut self.claim,
            ShadowKind::Access => &mut self.access,
        }
    }

    /// Returns true if a BucketClaim or BucketAccess that this claim controls exists.
    fn has_shadow(&self) -> bool {
        ShadowKind::ALL.into_iter().any(|kind| self.shadow(kind).present().is_some_and(|it| it.is_of(self.obc.uid())))
    }

    /// Returns true if an ObjectBucket belongs to this claim and to this provisioner.
    fn is_own(&self, bucket: &Bucket) -> bool {
        bucket.claim.uid == self.obc.uid() && bucket.provisioner.as_deref() == Some(&self.setting.provisioner)
    }

    /// Returns true if this pass has read or written the claim.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns true if the claim has the finalizer or this provisioner's label.
    fn is_marked(&self) -> bool {
        self.obc.has_finalizer() || self.obc.label.as_ref() == Some(&self.setting.label())
    }

    /// Returns true if nothing was ever created for the claim.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Requires that the claim is read again after an update of it conflicted.
    pub(super) fn require_current(&self) -> Result<(), Halt> {
        if self.is_old { Err(ObcLook::Obc.into()) } else { Ok(()) }
    }

    /// Requires that this pass has read the claim. Checked before anything is created or deleted.
    pub(super) fn require_live(&self) -> Result<(), Halt> {
        if self.is_live { Ok(()) } else { Err(ObcLook::Obc.into()) }
    }

    /// Records an Event about an effect of this pass.
    fn tell(&mut self, reason: &str, note: String) {
        self.events.push(Announcement { warning: true, reason: reason.to_owned(), note });
    }

    /// Records a late answer. Everything read before is outdated.
    pub(super) fn take_late(&mut self, answer: ObcAnswer) {
        self.class.age();
        self.bucket.age();
        self.claim.age();
        self.access.age();
        self.config_map.age();
        (self.free, self.stays, self.is_new) = (None, None, false);
        self.take(answer);
        self.is_live = false;
    }

    /// Records the result of a step.
    pub(super) fn take(&mut self, answer: ObcAnswer) {
        match answer {
            ObcAnswer::Obc(Some(live)) if live.id.uid == self.obc.id.uid && !live.id.is_older_than(&self.obc.id) => {
                self.found(*live);
                self.is_new &= !self.is_marked();
            }
            // The next pass starts from the current state.
            ObcAnswer::Obc(_) => self.trouble = Some(Trouble::Stale),
            ObcAnswer::Namespace(stays) => self.stays = Some(stays),
            ObcAnswer::Class(class) => self.class = Seen::live(class),
            ObcAnswer::Buckets(found) => {
                self.free = found.iter().find(|(_, bucket)| bucket.is_none()).map(|(name, _)| name.clone());
                let own = found.into_iter().filter_map(|(_, bucket)| bucket).find(|bucket| self.is_own(bucket));
                if own.is_none() && matches!(self.bucket, Seen::Cached(_)) {
                    self.contradicted();
                } else {
                    self.bucket = Seen::live(own);
                }
            }
            ObcAnswer::Shadow(kind, None) if matches!(self.shadow(kind), Seen::Cached(_)) => self.contradicted(),
            ObcAnswer::Shadow(kind, shadow) | ObcAnswer::ShadowDeleted(kind, shadow) => {
                *self.shadow_mut(kind) = Seen::live(shadow.map(|it| *it));
            }
            ObcAnswer::ConfigMap(found) => self.config_map = Seen::live(found),
            ObcAnswer::ObcWritten(obc) => self.found(*obc),
            ObcAnswer::FinalizerRemoved => self.is_finalizer_removed = true,
            // The existing object is read. It must not be overwritten because its name is taken.
            ObcAnswer::BucketPosted(None) => (self.bucket, self.is_new) = (Seen::Unknown, false),
            ObcAnswer::ShadowPosted(kind, None) => {
                *self.shadow_mut(kind) = Seen::Unknown;
                self.is_new = false;
            }
            ObcAnswer::ConfigMapPosted(None) => (self.config_map, self.is_map_taken) = (Seen::Unknown, true),
            ObcAnswer::BucketPosted(Some(bucket)) => {
                if self.has_shadow() {
                    let note = format!("ObjectBucket {} was lost and is made again; the bucket is kept", bucket.name);
                    self.tell("ObjectBucketRemade", note);
                }
                self.bucket = Seen::Live(*bucket);
            }
            ObcAnswer::BucketWritten(bucket) if bucket.deleting && bucket.finalizers.is_empty() => {
                self.bucket = Seen::Absent;
            }
            ObcAnswer::BucketWritten(bucket) => {
                let before = self.bucket.present().and_then(|before| before.shadow_uid.as_ref());
                if before.is_some() && before != bucket.shadow_uid.as_ref() {
                    let remade = bucket.pins.as_ref().map(|pins| pins.work.kind().remade());
                    remade.into_iter().for_each(|(reason, note)| self.tell(reason, note.to_owned()));
                }
                self.bucket = Seen::Live(*bucket);
            }
            ObcAnswer::BucketDeleted(left) => self.bucket = Seen::live(left.map(|it| *it)),
            ObcAnswer::ShadowPosted(_, Some(shadow)) | ObcAnswer::ShadowWritten(shadow) => {
                let kind = shadow.kind();
                *self.shadow_mut(kind) = Seen::Live(*shadow);
                // From here on, values that the ObjectBucket lacks are read from this object.
                self.is_new = false;
            }
            ObcAnswer::ConfigMapPosted(Some(told)) | ObcAnswer::ConfigMapWritten(told) => {
                self.config_map = Seen::Live(told);
            }
            ObcAnswer::Failed(ObcStep::Act(act), Failure::Conflict) if self.went_by_cache(&act) => {}
            ObcAnswer::Failed(step, failure) => self.trouble = Some(Trouble::Failed(Box::new(step), failure)),
        }
    }

    /// Returns true if an update that conflicted was based on a cache. The cached state is dropped
    /// then.
    fn went_by_cache(&mut self, act: &ObcAct) -> bool {
        match act {
            ObcAct::PatchBucket(..) | ObcAct::WriteBucketPhase(..) => {
                let is_cached = matches!(self.bucket, Seen::Cached(_));
                if is_cached {
                    self.bucket = Seen::Unknown;
                }
                is_cached
            }
            ObcAct::AddFinalizer(_) | ObcAct::WriteNames(..) => {
                self.is_old = !self.is_live;
                self.is_old
            }
            ObcAct::RemoveFinalizer(_)
            | ObcAct::WritePhase(..)
            | ObcAct::CreateBucket(_)
            | ObcAct::DeleteBucket(..)
            | ObcAct::CreateShadow(_)
            | ObcAct::PatchShadow(..)
            | ObcAct::DeleteShadow(..)
            | ObcAct::CreateConfigMap(_)
            | ObcAct::PatchConfigMap(..) => false,
        }
    }

    /// Ends the pass because a live read missed an object that a cache shows. One of the two is
    /// outdated, and an existing object must not be taken for deleted. The next pass starts after a
    /// watch event, or a little later.
    fn contradicted(&mut self) {
        self.trouble = Some(Trouble::Stale);
    }

    /// Records the current claim. All decisions are made again on it.
    fn found(&mut self, obc: Obc) {
        if obc.spec.storage_class_name != self.obc.spec.storage_class_name {
            self.class = Seen::Unknown;
        }
        self.obc = obc;
        (self.is_live, self.is_old) = (true, false);
    }
}
