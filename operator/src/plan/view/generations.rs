//! Generations of credentials: those in use, and the next one (spec §3.3).

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AnonymousBinding, ClaimUid};

use super::super::credentials::KeyHolder;
use super::super::secret::{Stored, is_credential};
use super::View;

/// Maximum distance by which the generation in a consumer Secret is trusted ahead of the operator's
/// own data. It allows for a few rotations whose traces somebody deleted. A tenant may write any
/// number there.
const AHEAD: u64 = 16;

/// Returns true if an internal Secret with this claim's label belongs to another claim: its data
/// has another UID, and its name is not derived from this claim's UID. Labels prove nothing (spec
/// §2).
pub(super) fn is_anothers(uid: &ClaimUid, secret: &Stored) -> bool {
    let is_numbered = secret.labelled_generation(|it| AccessKeyId::of(uid, it).secret_name()).is_some();
    let follows = is_numbered || secret.name() == AnonymousBinding::name(uid);
    secret.text("claim_uid").is_some_and(|owner| owner != uid.as_str()) && !follows
}

impl View {
    /// Returns the credentials among the claim's internal Secrets. A foreign Secret with such a
    /// name but without role and UID is none: it opens nothing, and must not be written.
    pub fn credentials(&self) -> impl Iterator<Item = &Stored> {
        let ours = |secret: &&Stored| {
            secret.label(wire::ROLE) == Some(Role::VirtualCredential.as_str())
                || secret.text("claim_uid") == Some(self.claim().uid.as_str())
        };
        self.all_own().filter(|secret| is_credential(secret.name())).filter(ours)
    }

    /// Returns the claim's credential of this generation.
    pub fn credential(&self, generation: u64) -> Option<&Stored> {
        self.key(generation)
    }

    /// Returns the generation of the credential in a consumer Secret. A tenant may edit the label,
    /// so it counts only if it matches the access key id.
    pub(in super::super) fn published_generation(&self, secret: &Stored) -> Option<u64> {
        let generation = secret.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        let id = AccessKeyId::of(&self.claim().uid, generation);
        (secret.published_key() == Some(id.as_str())).then_some(generation)
    }

    /// Returns the next generation for a record that is recreated.
    ///
    /// Consumer Secrets may know a higher generation than anything else does. They count only here;
    /// otherwise a tenant could cause a bump with every edit.
    pub(in super::super) fn remade_generation(&self) -> u64 {
        let known = self.highest_generation();
        let published = self.own_consumers().filter_map(|secret| self.published_generation(secret));
        let credible = published.filter(|published| *published <= known.saturating_add(AHEAD));
        credible.max().unwrap_or(0).max(known).saturating_add(1)
    }

    /// Returns the lowest generation whose credential may still exist, according to the claim's
    /// records.
    pub(in super::super) fn lowest_generation(&self) -> u64 {
        self.records().map(|(record, _)| record.lowest_generation()).min().unwrap_or(1)
    }

    /// Returns the first generation that may still have a credential and that this pass has not
    /// looked up by name.
    pub(in super::super) fn first_unread(&self) -> u64 {
        self.lowest_generation().max(self.absent_through().saturating_add(1))
    }

    /// Returns the first generation below this one whose name this pass has not read live.
    pub(in super::super) fn unread_below(&self, generation: u64) -> Option<(u64, String)> {
        let named = |generation| (generation, self.key_name(generation));
        let is_read = |name: &str| self.is_absent(name) || self.is_live(name);
        (self.first_unread()..generation).map(named).find(|(_, name)| !is_read(name))
    }
}
