//! What the gateway knows: the Secrets that count, as the watches have told it so far.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;

use super::record::{AnonymousBinding, Credential, Malformed};

/// Everything that the watches have told.
#[derive(Default)]
pub(super) struct Registry {
    pub(super) credentials: Table<Credential>,
    pub(super) bindings: Table<AnonymousBinding>,
}

/// The records of one role by the name of their Secret.
pub(super) struct Table<T> {
    live: BTreeMap<String, T>,
    /// A list being received; it replaces `live` when it is whole.
    incoming: Option<BTreeMap<String, T>>,
    is_ready: bool,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { live: BTreeMap::new(), incoming: None, is_ready: false }
    }
}

impl Registry {
    /// The credential of an access key id.
    pub(super) fn credential(&self, access_key_id: &str) -> Option<&Credential> {
        let found = self.credentials.live.get(&Credential::secret_name(access_key_id));
        // The name has lost the case of the id.
        found.filter(|credential| credential.access_key_id == access_key_id)
    }

    /// The binding of a bucket; none where two backends offer a bucket of that name, for a
    /// request can't say which it means.
    pub(super) fn binding(&self, bucket: &str) -> Option<&AnonymousBinding> {
        let mut found = self.bindings.live.values().filter(|binding| binding.bucket == bucket);
        let first = found.next()?;
        found.all(|other| other.backend == first.backend).then_some(first)
    }

    /// Whether both watches have delivered their first list.
    pub(super) fn is_ready(&self) -> bool {
        self.credentials.is_ready && self.bindings.is_ready
    }
}

impl<T> Table<T>
where
    T: for<'a> TryFrom<&'a Secret, Error = Malformed>,
{
    /// Takes in what the watch tells. A Secret that does not count is as good as absent.
    pub(super) fn apply(&mut self, event: Event<Secret>) {
        match event {
            Event::Init => self.incoming = Some(BTreeMap::new()),
            Event::InitApply(secret) => put(self.incoming.get_or_insert_default(), &secret),
            Event::InitDone => {
                self.live = self.incoming.take().unwrap_or_default();
                self.is_ready = true;
            }
            Event::Apply(secret) => put(&mut self.live, &secret),
            Event::Delete(secret) => {
                self.live.remove(secret.metadata.name.as_deref().unwrap_or_default());
            }
        }
    }
}

fn put<T>(table: &mut BTreeMap<String, T>, secret: &Secret)
where
    T: for<'a> TryFrom<&'a Secret, Error = Malformed>,
{
    let name = secret.metadata.name.clone().unwrap_or_default();
    match T::try_from(secret) {
        Ok(record) => {
            table.insert(name, record);
        }
        Err(reason) => {
            tracing::warn!(secret = name, %reason, "a Secret does not count");
            table.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{binding_secret, credential_secret};
    use super::*;

    fn secret() -> Secret {
        credential_secret("AKIAONE", "photos", None)
    }

    #[test]
    fn ready_means_both_lists_are_in() {
        let mut registry = Registry::default();
        registry.credentials.apply(Event::Init);
        registry.credentials.apply(Event::InitDone);
        assert!(!registry.is_ready());
        registry.bindings.apply(Event::Init);
        registry.bindings.apply(Event::InitDone);
        assert!(registry.is_ready());
    }

    #[test]
    fn a_new_list_replaces_the_old_one_when_whole() {
        let mut registry = Registry::default();
        registry.credentials.apply(Event::Apply(secret()));
        registry.credentials.apply(Event::Init);
        assert!(registry.credential("AKIAONE").is_some());
        let other = credential_secret("AKIATWO", "photos", None);
        registry.credentials.apply(Event::InitApply(other));
        assert!(registry.credential("AKIATWO").is_none());
        registry.credentials.apply(Event::InitDone);
        assert!(registry.credential("AKIAONE").is_none());
        assert!(registry.credential("AKIATWO").is_some());
    }

    #[test]
    fn a_secret_that_gets_damaged_stops_counting() {
        let mut registry = Registry::default();
        registry.credentials.apply(Event::Apply(secret()));
        let mut damaged = secret();
        damaged.data = None;
        registry.credentials.apply(Event::Apply(damaged));
        assert!(registry.credential("AKIAONE").is_none());
        registry.credentials.apply(Event::Apply(secret()));
        registry.credentials.apply(Event::Delete(secret()));
        assert!(registry.credential("AKIAONE").is_none());
    }

    #[test]
    fn the_case_of_a_key_matters() {
        let mut registry = Registry::default();
        registry.credentials.apply(Event::Apply(secret()));
        assert!(registry.credential("akiaone").is_none());
    }

    #[test]
    fn a_name_on_two_backends_is_nobodys() {
        let mut registry = Registry::default();
        registry.bindings.apply(Event::Apply(binding_secret("photos")));
        assert!(registry.binding("photos").is_some());
        let mut other = binding_secret("photos");
        other.metadata.name = Some("other".to_owned());
        let data = other.data.get_or_insert_default();
        data.insert("backend".to_owned(), k8s_openapi::ByteString(b"elsewhere".to_vec()));
        registry.bindings.apply(Event::Apply(other));
        assert_eq!(registry.binding("photos"), None);
    }
}
