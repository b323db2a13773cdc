//! What a pass over an ObjectBucketClaim knows: what the caches hold, and the answers to its own
//! steps since. Nothing is made or taken away but by what a live read or the answer to a write
//! showed. What is changed may go by a cache, since each change is bound to the version that this
//! showed; one that comes too late has the object read and is made again.

use std::sync::Arc;

use crate::api::{BucketClass, Gateway, Obc, ServedBy};

use super::super::answer::Failure;
use super::super::step::Announcement;
use super::super::walk;
use super::halt::Halt;
use super::kinds::{Shadow, ShadowKind};
use super::step::{ObcAct, ObcAnswer, ObcLook, ObcStep};
use super::words::{Bucket, Told};

/// What is the same for every ObjectBucketClaim.
#[derive(Clone, Debug)]
pub struct ObcSetting {
    /// What storage classes call this provisioner.
    pub provisioner: String,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// Which operator this is.
    pub operator: ServedBy,
}

impl ObcSetting {
    /// Value of the label `bucket-provisioner`: at most 63 characters, without a slash.
    pub fn label(&self) -> String {
        provisioner_label(&self.provisioner)
    }
}

/// The same, of this provisioner.
pub fn provisioner_label(provisioner: &str) -> String {
    let cut: String = provisioner.chars().take(63).collect();
    cut.replace('/', "-")
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen<T> {
    /// Nothing: what a cache doesn't hold may be there.
    Unknown,
    /// A live read has shown that there is none.
    Absent,
    /// By a cache.
    Cached(T),
    /// By a live read, or by the answer to a write.
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

    /// What was read before an answer that came late is of the past.
    fn age(&mut self) {
        *self = match std::mem::replace(self, Self::Unknown) {
            Self::Live(it) | Self::Cached(it) => Self::Cached(it),
            Self::Absent | Self::Unknown => Self::Unknown,
        };
    }
}

/// What the caches hold of the objects around an ObjectBucketClaim.
#[derive(Clone, Debug, Default)]
pub struct ObcCached {
    /// Its storage class.
    pub class: Option<BucketClass>,
    /// The ObjectBuckets of the names that its own may have.
    pub buckets: Vec<Bucket>,
    /// The BucketClaim of the name that its own has.
    pub claim: Option<Shadow>,
    /// The BucketAccess of that name.
    pub access: Option<Shadow>,
    /// The ConfigMap of its name.
    pub config_map: Option<Told>,
    /// What this process last told of it.
    pub told: Option<String>,
}

/// What a pass over an ObjectBucketClaim knows so far.
#[derive(Clone, Debug)]
pub struct ObcView {
    pub(super) setting: Arc<ObcSetting>,
    pub(super) obc: Obc,
    /// Its phase when the pass began.
    pub(super) before: Option<String>,
    pub(super) told: Option<String>,
    /// It was read or written by this pass.
    is_live: bool,
    /// A change to it came too late, so what is known of it is old.
    is_old: bool,
    /// Nothing was ever made for it: it came without finalizer and label, which are put on before
    /// anything is made, and bound to that version. So there is nothing to look for, and a POST
    /// that meets a name that is taken tells otherwise.
    is_new: bool,
    pub(super) class: Seen<BucketClass>,
    pub(super) bucket: Seen<Bucket>,
    /// The name under which its ObjectBucket can be made, as live reads have shown.
    pub(super) free: Option<String>,
    claim: Seen<Shadow>,
    access: Seen<Shadow>,
    pub(super) config_map: Seen<Told>,
    /// What the cache doesn't hold has met one of its name, in this pass or before.
    pub(super) is_map_taken: bool,
    /// Whether its namespace is to stay, as a live read has shown.
    pub(super) stays: Option<bool>,
    /// What this pass did that people should know.
    pub(super) events: Vec<Announcement>,
    pub(super) is_finalizer_removed: bool,
    pub(super) trouble: Option<Trouble>,
}

/// Why a pass over an ObjectBucketClaim is over.
pub(super) type Trouble = walk::Trouble<ObcStep>;

impl ObcView {
    /// What the caches tell of an ObjectBucketClaim.
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

    /// The ObjectBucketClaim.
    pub fn obc(&self) -> &Obc {
        &self.obc
    }

    /// What is known of the object of this kind and the name that does the work.
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

    /// Whether there is an object of this claim that does its work already.
    fn has_shadow(&self) -> bool {
        ShadowKind::ALL.into_iter().any(|kind| self.shadow(kind).present().is_some_and(|it| it.is_of(self.obc.uid())))
    }

    /// Whether an ObjectBucket is this claim's, and of this provisioner.
    fn is_own(&self, bucket: &Bucket) -> bool {
        bucket.claim.uid == self.obc.uid() && bucket.provisioner.as_deref() == Some(&self.setting.provisioner)
    }

    /// Whether this UID was read or written by this pass.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether it bears finalizer or label of this provisioner.
    fn is_marked(&self) -> bool {
        self.obc.has_finalizer() || self.obc.label.as_ref() == Some(&self.setting.label())
    }

    /// Whether nothing was ever made for it.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// Where a change came too late: it is read before anything else.
    pub(super) fn require_current(&self) -> Result<(), Halt> {
        if self.is_old { Err(ObcLook::Obc.into()) } else { Ok(()) }
    }

    /// Before anything is made or taken away: this UID is there, read by this pass.
    pub(super) fn require_live(&self) -> Result<(), Halt> {
        if self.is_live { Ok(()) } else { Err(ObcLook::Obc.into()) }
    }

    /// Notes what people should know of what this pass does.
    fn tell(&mut self, reason: &str, note: String) {
        self.events.push(Announcement { warning: true, reason: reason.to_owned(), note });
    }

    /// Takes in an answer that came late: what was read before is of the past.
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

    /// Takes in what a step found out or did.
    pub(super) fn take(&mut self, answer: ObcAnswer) {
        match answer {
            ObcAnswer::Obc(Some(live)) if live.id.uid == self.obc.id.uid && !live.id.is_older_than(&self.obc.id) => {
                self.found(*live);
                self.is_new &= !self.is_marked();
            }
            // Its next pass goes by what there is.
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
            // What stands there is read: a name that is taken is no reason to write over it.
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
                // From here on what an ObjectBucket doesn't say is read of this.
                self.is_new = false;
            }
            ObcAnswer::ConfigMapPosted(Some(told)) | ObcAnswer::ConfigMapWritten(told) => {
                self.config_map = Seen::Live(told);
            }
            ObcAnswer::Failed(ObcStep::Act(act), Failure::Conflict) if self.went_by_cache(&act) => {}
            ObcAnswer::Failed(step, failure) => self.trouble = Some(Trouble::Failed(Box::new(step), failure)),
        }
    }

    /// Whether a change that came too late went by a cache. Then what that showed is forgotten.
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

    /// A live read missed what a cache shows: one of the two tells of the past, and what is there
    /// must not be taken for gone. The next pass comes once the watch has told, or a little later.
    fn contradicted(&mut self) {
        self.trouble = Some(Trouble::Stale);
    }

    /// The claim as it is: everything is decided anew on it.
    fn found(&mut self, obc: Obc) {
        if obc.spec.storage_class_name != self.obc.spec.storage_class_name {
            self.class = Seen::Unknown;
        }
        self.obc = obc;
        (self.is_live, self.is_old) = (true, false);
    }
}
