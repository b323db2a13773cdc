//! Queries to a view. Each returns the answer, or the halt whose step finds it out.

use std::sync::Arc;

use crate::api::{Backend, BucketName, Claim, ClaimRef, Desired, RecordName};

use super::super::answer::{BackendSeen, BucketSeen, Holder, OwnerSeen};
use super::super::cause::{BackendCause, ClaimCause};
use super::super::halt::Halt;
use super::super::step::Look;
use super::super::stop::Stop;
use super::super::target::Target;
use super::{Freshness, View};

impl View {
    /// Returns the parsed spec, or a stop if it is invalid.
    pub(in super::super) fn desired(&self) -> Result<&Desired, Halt> {
        self.claim().desired.as_ref().map_err(|error| {
            // Every spec error has the reason of an invalid template (spec §1).
            Stop::new(ClaimCause::SpecInvalid { why: error.to_string() }).into()
        })
    }

    /// Requires that the last step has read the claim. Checked before anything is destroyed, so
    /// that an edit to `Retain` is not missed.
    pub(in super::super) fn require_claim_just_read(&self) -> Result<(), Halt> {
        if self.claim.freshness == Freshness::JustRead { Ok(()) } else { Err(Look::Claim.into()) }
    }

    /// Requires a live list of the claim's internal Secrets. Checked before a decision that an
    /// outdated cache must not make.
    pub(in super::super) fn require_list(&self) -> Result<(), Halt> {
        if self.internal.lists() == 0 { Err(Look::Own.into()) } else { Ok(()) }
    }

    /// Requires a second live list that nothing was deleted after. Checked right before the
    /// finalizer is removed.
    pub(in super::super) fn require_last_list(&self) -> Result<(), Halt> {
        let is_last = self.internal.lists() >= 2 && self.internal.is_list_current();
        if is_last { Ok(()) } else { Err(Look::Own.into()) }
    }

    /// Returns the backend of this name, from the cache.
    pub(in super::super) fn backend(&self, name: &str) -> Result<&BackendSeen, Halt> {
        self.backends.get(name).ok_or_else(|| Look::Backend(name.to_owned()).into())
    }

    /// Returns the backend of this name if it exists, admits the claim's namespace and is Ready.
    pub(in super::super) fn usable_backend(&self, name: &str) -> Result<Arc<Backend>, Halt> {
        let backend = name.to_owned();
        let cause = match self.backend(name)? {
            BackendSeen::Missing => BackendCause::Missing { backend },
            BackendSeen::Invalid(why) => BackendCause::Invalid { backend, why: why.clone() },
            BackendSeen::Present { backend: present, .. } if self.is_served_by_another(present) => {
                BackendCause::Anothers { backend, operator: present.served_by.clone() }
            }
            BackendSeen::Present { allowed: false, .. } => {
                BackendCause::NotAllowed { backend, namespace: self.claim().at.namespace.clone() }
            }
            // A backend without an operator's annotation is about to get one.
            BackendSeen::Present { backend: present, .. } if !present.ready || present.served_by.is_none() => {
                BackendCause::NotReady { backend }
            }
            BackendSeen::Present { backend: present, .. } => return Ok(present.clone()),
        };
        Err(Stop::new(cause).into())
    }

    /// Returns true if another operator serves a backend, according to its annotation.
    pub(in super::super) fn is_served_by_another(&self, backend: &Backend) -> bool {
        self.setting().is_anothers(backend.served_by.as_ref())
    }

    /// Returns the bucket that the spec requests, at a usable backend.
    pub(in super::super) fn wanted(&self, desired: &Desired) -> Result<Target, Halt> {
        let backend = self.usable_backend(&desired.backend)?;
        let bucket = wanted_bucket(self.claim(), desired, &backend)?;
        Ok(Target { backend: backend.name.clone(), endpoint: backend.endpoint.clone(), bucket })
    }

    /// Requires that the record of the wanted bucket is known, unless it can't be.
    ///
    /// Checked before the claim's current record bumps its generation: the record of a move in
    /// progress has a higher one, and if it lost its labels only its name finds it.
    pub(in super::super) fn require_wanted_record(&self, current: &RecordName) -> Result<(), Halt> {
        let Ok(desired) = &self.claim().desired else { return Ok(()) };
        let to = match self.wanted(desired) {
            Ok(to) => to.record(),
            // The move reports problems with the backend or the name.
            Err(Halt::Stop(_)) => return Ok(()),
            Err(halt) => return Err(halt),
        };
        let is_known = to == *current || self.own(to.as_str()).is_some() || self.is_absent(to.as_str());
        let is_anothers =
            |(name, holder): &(RecordName, Holder)| *name == to && !matches!(holder, Holder::Unknown | Holder::Suspect);
        if is_known || self.holder.as_ref().is_some_and(is_anothers) {
            return Ok(());
        }
        Err(Look::Internal(to.to_string()).into())
    }

    /// Returns the holder of this bucket.
    pub(in super::super) fn holder_of(&self, at: &Target) -> Result<&Holder, Halt> {
        let held = self.holder.as_ref().filter(|(name, _)| *name == at.record());
        held.map(|(_, holder)| holder).ok_or_else(|| Look::Holder(at.clone()).into())
    }

    /// Returns the claim whose public access takes precedence over this claim's.
    pub(in super::super) fn public_rival(&self, at: &Target) -> Result<Option<&ClaimRef>, Halt> {
        let known = self.public_rival.as_ref().filter(|(asked, _)| asked == at);
        known.map(|(_, rival)| rival.as_ref()).ok_or_else(|| Look::PublicRival(at.clone()).into())
    }

    /// Returns true if a live list shows credentials of other claims for this bucket.
    pub(in super::super) fn has_others_credentials(&self, at: &Target) -> Result<bool, Halt> {
        let listed = self.others_credentials.as_ref().filter(|(listed, _)| listed == at);
        listed.map(|(_, secrets)| !secrets.is_empty()).ok_or_else(|| Look::CredentialsFor(at.clone()).into())
    }

    /// Returns the result of this pass's last look at a bucket.
    pub(in super::super) fn look_at(&self, at: &Target) -> Result<&BucketSeen, Halt> {
        self.bucket_seen(at).ok_or_else(|| Look::Bucket(at.clone()).into())
    }

    /// Returns the account that owns the bucket that was looked at last.
    pub(in super::super) fn owner_of(&self, at: &Target) -> Result<OwnerSeen, Halt> {
        self.bucket_owner().ok_or_else(|| Look::Owner(at.clone()).into())
    }

    /// Returns true if the bucket that was looked at last is empty.
    pub(in super::super) fn is_empty(&self, at: &Target) -> Result<bool, Halt> {
        self.bucket_empty().ok_or_else(|| Look::Contents(at.clone()).into())
    }
}

/// Returns the name of the bucket according to spec and template.
pub(in super::super) fn wanted_bucket(claim: &Claim, desired: &Desired, backend: &Backend) -> Result<BucketName, Halt> {
    if let Some(bucket) = &desired.bucket {
        return Ok(bucket.clone());
    }
    backend.template.render(&claim.at.namespace, &claim.at.name).map_err(|error| {
        Stop::new(ClaimCause::NoBucketName { backend: backend.name.clone(), why: error.to_string() }).into()
    })
}
