//! The claim's internal Secrets, as a pass knows them: the records among them, and the results of
//! lists.

use std::sync::{Arc, OnceLock};

use crate::api::BucketRecord;

use super::super::known::Secrets;
use super::super::secret::{Stored, is_record};

/// A record and the Secret that it was read from.
pub(in super::super) type StoredRecord = (BucketRecord, Stored);

/// The claim's internal Secrets. The records among them are parsed once, however often they are
/// used.
#[derive(Clone, Debug, Default)]
pub(super) struct Internal {
    secrets: Secrets,
    records: OnceLock<Arc<[StoredRecord]>>,
    lists: Lists,
    /// The step of the last deletion of a record.
    let_go: u32,
    /// The step that created a record.
    held: u32,
}

/// Live lists of the claim's internal Secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    /// Number of lists since the last answer that made earlier ones outdated.
    count: u32,
    /// The step of the last list.
    last: u32,
    /// The step of the last deletion of an internal Secret.
    deletion: u32,
    /// True if an answer took so long that another operator may have changed the claim's keys.
    doubted: bool,
}

impl Internal {
    /// Creates the state from the caches.
    pub(super) fn cached(secrets: impl IntoIterator<Item = Stored>) -> Self {
        Self { secrets: Secrets::cached(secrets), ..Self::default() }
    }

    /// Returns the known Secrets for reading.
    pub(super) fn known(&self) -> &Secrets {
        &self.secrets
    }

    /// Returns the known Secrets for a change, after which the records are parsed again.
    pub(super) fn learn(&mut self) -> &mut Secrets {
        self.records.take();
        &mut self.secrets
    }

    /// Returns the bucket records among them, of any claim, by name.
    pub(super) fn records(&self) -> &[StoredRecord] {
        self.records.get_or_init(|| {
            let read = |secret: &Stored| Some((BucketRecord::read(&secret.0).ok()?, secret.clone()));
            self.secrets.all().filter_map(read).collect()
        })
    }

    /// Records a live list.
    pub(super) fn listed(&mut self, secrets: impl IntoIterator<Item = Stored>, step: u32) {
        let known = self.learn();
        known.forget_present();
        secrets.into_iter().for_each(|secret| known.found(secret, step));
        self.lists.count += 1;
        self.lists.last = step;
    }

    /// Records that this pass deleted a Secret.
    pub(super) fn deleted(&mut self, name: &str, step: u32) {
        self.learn().deleted(name, step);
        self.lists.deletion = step;
        if is_record(name) {
            self.let_go = step;
        }
    }

    /// Returns the number of lists in this pass since the last answer that made earlier ones
    /// outdated.
    pub(super) fn lists(&self) -> u32 {
        self.lists.count
    }

    /// Returns true if no Secret was deleted since the last list.
    pub(super) fn is_list_current(&self) -> bool {
        self.lists.last > self.lists.deletion
    }

    /// Returns true if a live read after the last deletion of a record found no Secret of this
    /// name.
    pub(super) fn is_absent_to_the_last(&self, name: &str) -> bool {
        self.secrets.is_absent_since(name, self.let_go)
    }

    /// Records that this pass created a record.
    pub(super) fn held(&mut self, step: u32) {
        self.held = step;
    }

    /// Returns true if a live read after this pass created a record found no Secret of this name.
    pub(super) fn is_absent_since_held(&self, name: &str) -> bool {
        self.secrets.is_absent_since(name, self.held)
    }

    /// Returns the names for which a live read after this pass created a record found no Secret.
    pub(super) fn absent_since_held(&self) -> Vec<&str> {
        self.secrets.names().filter(|name| self.is_absent_since_held(name)).collect()
    }

    /// Marks the lists so far as outdated.
    pub(super) fn forget_lists(&mut self) {
        self.lists.count = 0;
    }

    /// Marks everything up to this step as in doubt: another operator may have changed the claim's
    /// keys since.
    pub(super) fn doubt(&mut self, step: u32) {
        self.secrets.doubt(step);
        self.lists.count = 0;
        self.lists.doubted = true;
    }

    /// Returns true if an answer took so long that another operator may have changed the claim's
    /// keys.
    pub(super) fn is_doubted(&self) -> bool {
        self.lists.doubted
    }

    /// Returns a compact summary of all that is known.
    pub(super) fn fingerprint(&self) -> String {
        let Lists { count, last: _, deletion: _, doubted } = self.lists;
        let last: Vec<&str> = self.secrets.names().filter(|name| self.is_absent_to_the_last(name)).collect();
        format!("{} {count} {} {doubted} {last:?}", self.secrets.fingerprint(), self.is_list_current())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::super::super::known::Knowledge;
    use super::*;

    fn secret(name: &str) -> Stored {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        Stored(Arc::new(secret))
    }

    #[test]
    fn what_a_list_does_not_show_is_unknown_and_what_it_shows_is_live() {
        let mut internal = Internal::cached([secret("a"), secret("b")]);
        internal.learn().missed("c", 1);
        internal.learn().taken("d", 1);
        internal.listed([secret("b")], 2);
        assert_eq!(internal.known().get("a"), Knowledge::Unknown);
        assert!(internal.known().is_live("b") && internal.known().is_absent("c"));
        assert_eq!(internal.known().get("d"), Knowledge::Taken);
    }

    #[test]
    fn a_list_is_current_until_something_is_deleted_and_counts_until_it_is_doubted() {
        let mut internal = Internal::cached([]);
        assert!(!internal.is_list_current(), "there is none");
        internal.listed([secret("a")], 1);
        assert_eq!((internal.lists(), internal.is_list_current()), (1, true));
        internal.deleted("a", 2);
        assert_eq!((internal.lists(), internal.is_list_current()), (1, false));
        internal.listed([], 3);
        assert_eq!((internal.lists(), internal.is_list_current(), internal.is_doubted()), (2, true, false));
        internal.doubt(3);
        assert_eq!((internal.lists(), internal.is_doubted()), (0, true));
        internal.listed([], 4);
        assert_eq!(internal.lists(), 1);
        internal.forget_lists();
        assert_eq!((internal.lists(), internal.is_doubted()), (0, true));
    }

    #[test]
    fn what_was_learnt_before_a_slow_answer_is_live_and_not_current() {
        let mut internal = Internal::cached([secret("c")]);
        internal.learn().found(secret("a"), 1);
        internal.doubt(1);
        internal.learn().found(secret("b"), 2);
        let known = internal.known();
        assert_eq!(
            ["a", "b", "c"].map(|name| (known.is_live(name), known.is_current(name))),
            [(true, false), (true, true), (false, false),]
        );
    }
}
