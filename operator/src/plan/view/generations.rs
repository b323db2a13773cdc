//! Numbers of credentials: which are in use, and which comes next (spec §3.3).

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AnonymousBinding, ClaimUid};

use super::super::credentials::KeyHolder;
use super::super::secret::{Stored, is_credential};
use super::View;

/// How far what a consumer Secret tells may be ahead of all that the operator keeps itself: a few
/// rotations whose traces somebody deleted. A tenant may write any number there.
const AHEAD: u64 = 16;

/// Whether an internal Secret that carries this claim's label is another's all the same: its data
/// say so, and its name does not follow from this claim's UID. Labels prove nothing (spec §2).
pub(super) fn is_anothers(uid: &ClaimUid, secret: &Stored) -> bool {
    let is_numbered = secret.labelled_generation(|it| AccessKeyId::of(uid, it).secret_name()).is_some();
    let follows = is_numbered || secret.name() == AnonymousBinding::name(uid);
    secret.text("claim_uid").is_some_and(|owner| owner != uid.as_str()) && !follows
}

impl View {
    /// Credentials among the claim's internal Secrets. Not a stranger's Secret that has the name of
    /// one, and neither role nor UID: it opens nothing, and is not ours to write to.
    pub fn credentials(&self) -> impl Iterator<Item = &Stored> {
        let ours = |secret: &&Stored| {
            secret.label(wire::ROLE) == Some(Role::VirtualCredential.as_str())
                || secret.text("claim_uid") == Some(self.claim().uid.as_str())
        };
        self.all_own().filter(|secret| is_credential(secret.name())).filter(ours)
    }

    /// The claim's internal Secret of this generation.
    pub fn credential(&self, generation: u64) -> Option<&Stored> {
        self.key(generation)
    }

    /// The generation of the credential in a consumer Secret. The label is a tenant's to change, so
    /// it counts only where the key id is the one that follows from it.
    pub(in super::super) fn published_generation(&self, secret: &Stored) -> Option<u64> {
        let generation = secret.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        let id = AccessKeyId::of(&self.claim().uid, generation);
        (secret.published_key() == Some(id.as_str())).then_some(generation)
    }

    /// The next generation for a record that is made again, of which consumer Secrets may tell more
    /// than anything else does. Nowhere else do they count: a tenant would have its generations
    /// raised as often as it writes there.
    pub(in super::super) fn remade_generation(&self) -> u64 {
        let known = self.highest_generation();
        let published = self.own_consumers().filter_map(|secret| self.published_generation(secret));
        let credible = published.filter(|published| *published <= known.saturating_add(AHEAD));
        credible.max().unwrap_or(0).max(known).saturating_add(1)
    }

    /// The lowest generation whose credential may still be there, going by the claim's records.
    pub(in super::super) fn lowest_generation(&self) -> u64 {
        self.records().map(|(record, _)| record.lowest_generation()).min().unwrap_or(1)
    }

    /// The first generation that may still have a credential which this pass has not looked for by
    /// its name.
    pub(in super::super) fn first_unread(&self) -> u64 {
        self.lowest_generation().max(self.absent_through().saturating_add(1))
    }

    /// The first generation below this one whose name no live read of this pass has shown.
    pub(in super::super) fn unread_below(&self, generation: u64) -> Option<(u64, String)> {
        let named = |generation| (generation, self.key_name(generation));
        let is_read = |name: &str| self.is_absent(name) || self.is_live(name);
        (self.first_unread()..generation).map(named).find(|(_, name)| !is_read(name))
    }
}
