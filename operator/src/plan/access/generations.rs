//! Generations of an access's keys: which are known, and which are revoked (spec §3.3, §8).

use crate::api::{AccessKeyId, wire};

use super::super::secret::Stored;
use super::view::AccessView;

/// Depth to which the generation of a key is searched whose label somebody changed: more live at
/// once only if somebody made them.
const SEARCHED: usize = 1000;

impl AccessView {
    /// Its keys, each with the generation that its name follows from, lowest first. Where the label
    /// gives another, or none, it is one up to the highest that is known.
    pub(super) fn keys(&self) -> Vec<(u64, &Stored)> {
        let proved = |key: &Stored| self.labelled_generation(key).or_else(|| self.named_generation(key));
        let mut keys: Vec<_> = self.internal.all().filter_map(|key| Some((proved(key)?, key))).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        keys
    }

    /// The generation that a key's label gives, if its name is the one that follows from it.
    fn labelled_generation(&self, key: &Stored) -> Option<u64> {
        let number = key.label(wire::ROTATION_GENERATION)?.parse().ok()?;
        (self.key_name(number) == key.name()).then_some(number)
    }

    /// The generation of a key without that label, by its name. Not of a stranger's Secret that has
    /// the name of one, and neither role nor UID: it opens nothing, and is not ours to write to.
    fn named_generation(&self, key: &Stored) -> Option<u64> {
        let role = wire::Role::AccessCredential;
        let is_ours =
            key.label(wire::ROLE) == Some(role.as_str()) || key.text("access_uid") == Some(self.access.uid.as_str());
        if wire::Role::of_internal(key.name()) != Some(role) || !is_ours {
            return None;
        }
        (1..=self.highest()).rev().take(SEARCHED).find(|number| self.key_name(*number) == key.name())
    }

    /// Name of the key of a generation.
    pub(super) fn key_name(&self, generation: u64) -> String {
        AccessKeyId::of_access(&self.access.uid, generation).access_secret_name()
    }

    /// The highest generation that is known to have been used.
    pub(super) fn highest(&self) -> u64 {
        let told = self.access.status.rotation_generation.and_then(|it| u64::try_from(it).ok());
        let recorded = self.record().map(|(record, _)| record.generation);
        let keys = self.internal.all().filter_map(|key| self.labelled_generation(key));
        told.into_iter().chain(recorded).chain(keys).chain([self.highest_gone]).max().unwrap_or(0)
    }

    /// True where a revocation ended a generation.
    pub(super) fn is_revoked(&self, generation: u64) -> bool {
        self.record().is_some_and(|(record, _)| generation <= record.revoked_through)
    }
}
