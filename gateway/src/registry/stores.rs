//! S3 stores as the gateway calls them: each S3Backend, joined with the Secrets that it references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Event;
use stowage_api::S3Backend;

use super::backend::{Backend, Failure, SecretName, Setting, Spec, Unusable, kept};
use super::table::{Listed, Table};

/// An S3Backend as its watch delivers it. The guard keeps one object that can't be decoded, for
/// example because a newer CRD allows new values, from breaking the watch of all.
pub type SeenBackend = DeserializeGuard<S3Backend>;

/// Cache of all stores, rebuilt from the events of the watches.
#[derive(Debug)]
pub(super) struct Stores {
    setting: Setting,
    specs: Listed<Specs>,
    secrets: BTreeMap<SecretName, Watched>,
    made: BTreeMap<String, Arc<Backend>>,
    /// The highest revision given to a store so far.
    revision: u64,
}

#[derive(Debug, Default)]
struct Specs(BTreeMap<String, Spec>);

/// A Secret referenced by a backend, as its watch has delivered it.
#[derive(Debug, Default)]
struct Watched {
    seen: Seen,
    /// The Secret in a list that is still being received.
    incoming: Option<Box<Secret>>,
}

#[derive(Debug, Default)]
enum Seen {
    #[default]
    NotYet,
    Failed(Failure),
    Absent,
    Present(Box<Secret>),
}

impl Table<SeenBackend> for Specs {
    fn put(&mut self, object: SeenBackend) {
        let name = object.name_any();
        let read = match &object.0 {
            Ok(backend) => Spec::read(backend).map_err(|error| error.to_string()),
            // Serde's message quotes values of the object, which don't belong in the log.
            Err(_) => Err("it can't be decoded".to_owned()),
        };
        match read {
            Ok(spec) => drop(self.0.insert(name, spec)),
            Err(reason) => {
                tracing::warn!(backend = name, reason, "an S3Backend does not count");
                self.0.remove(&name);
            }
        }
    }

    fn take(&mut self, object: &SeenBackend) {
        self.0.remove(&object.name_any());
    }

    fn succeed(&mut self, _: Self) {}
}

impl Stores {
    pub(super) fn new(setting: Setting) -> Self {
        Self { setting, specs: Listed::default(), secrets: BTreeMap::new(), made: BTreeMap::new(), revision: 0 }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<Backend>> {
        self.made.get(name)
    }

    /// Returns all stores, in the order of their names.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Backend>> {
        self.made.values()
    }

    /// Returns the names of the Secrets to watch.
    pub(super) fn secrets(&self) -> BTreeSet<SecretName> {
        self.secrets.keys().cloned().collect()
    }

    /// Returns true once the watches have delivered all S3Backends and the Secrets that they
    /// reference. A Secret whose watch fails is not waited for, as it affects one store only.
    pub(super) fn is_whole(&self) -> bool {
        self.specs.is_whole() && self.secrets.values().all(|watched| !matches!(watched.seen, Seen::NotYet))
    }

    /// Applies an event of the watch of S3Backends.
    pub(super) fn apply(&mut self, event: Event<SeenBackend>) {
        let told = match &event {
            Event::Init | Event::InitApply(_) => None,
            Event::InitDone => Some(None),
            Event::Apply(object) | Event::Delete(object) => Some(Some(object.name_any())),
        };
        self.specs.apply(event);
        match told {
            None => {}
            Some(None) => self.changed(|_| true),
            Some(Some(name)) => self.changed(|other| other == name),
        }
    }

    /// Applies an event of the watch of a Secret. Ignored if the Secret is no longer referenced.
    pub(super) fn apply_secret(&mut self, name: &SecretName, event: Event<Secret>) {
        let Some(watched) = self.secrets.get_mut(name) else { return };
        match event {
            Event::Init => {
                watched.incoming = None;
                return;
            }
            Event::InitApply(secret) => {
                watched.incoming = Some(Box::new(kept(secret)));
                return;
            }
            Event::InitDone => watched.seen = watched.incoming.take().map_or(Seen::Absent, Seen::Present),
            Event::Apply(secret) => watched.seen = Seen::Present(Box::new(kept(secret))),
            Event::Delete(_) => watched.seen = Seen::Absent,
        }
        self.secret_changed(name);
    }

    /// Records that the watch of a Secret fails. An earlier state of the Secret is kept.
    pub(super) fn secret_failed(&mut self, name: &SecretName, why: Failure) {
        let Some(watched) = self.secrets.get_mut(name) else { return };
        if matches!(watched.seen, Seen::NotYet | Seen::Failed(_)) {
            watched.seen = Seen::Failed(why);
            self.secret_changed(name);
        }
    }

    fn secret_changed(&mut self, name: &SecretName) {
        let users: BTreeSet<String> = self.users_of(name).cloned().collect();
        self.make(|other| users.contains(other));
    }

    fn users_of(&self, name: &SecretName) -> impl Iterator<Item = &String> {
        let uses = move |spec: &Spec| spec.secrets(&self.setting).any(|secret| secret == *name);
        self.specs.live().0.iter().filter(move |(_, spec)| uses(spec)).map(|(backend, _)| backend)
    }

    /// Updates the list of Secrets to watch, and rebuilds the stores that match `which`.
    fn changed(&mut self, which: impl Fn(&str) -> bool) {
        let specs = &self.specs.live().0;
        let wanted: BTreeSet<SecretName> = specs.values().flat_map(|spec| spec.secrets(&self.setting)).collect();
        self.secrets.retain(|secret, _| wanted.contains(secret));
        for secret in wanted {
            self.secrets.entry(secret).or_default();
        }
        self.make(which);
    }

    /// Rebuilds the stores that match `which`. A store keeps its revision if its client would be
    /// the same.
    fn make(&mut self, which: impl Fn(&str) -> bool) {
        let Self { setting, specs, secrets, made, revision } = self;
        made.retain(|name, _| specs.live().0.contains_key(name));
        for (name, spec) in specs.live().0.iter().filter(|(name, _)| which(name)) {
            let mut now = spec.backend(name, setting, |secret| find(secrets, secret));
            let before = made.get(name);
            now.revision = match before.filter(|before| before.is_made_as(&now)) {
                Some(before) => before.revision,
                None => {
                    *revision += 1;
                    *revision
                }
            };
            if before.is_none_or(|before| **before != now) {
                tell(&now);
                made.insert(name.clone(), Arc::new(now));
            }
        }
    }
}

fn find<'a>(secrets: &'a BTreeMap<SecretName, Watched>, name: &SecretName) -> Result<&'a Secret, Unusable> {
    match secrets.get(name).map(|watched| &watched.seen) {
        None | Some(Seen::NotYet) => Err(Unusable::NotSeen(name.clone())),
        Some(Seen::Failed(why)) => Err(Unusable::Unwatched(name.clone(), *why)),
        Some(Seen::Absent) => Err(Unusable::NoSecret(name.clone())),
        Some(Seen::Present(secret)) => Ok(secret),
    }
}

fn tell(backend: &Backend) {
    let Backend { name, revision, endpoint, access, .. } = backend;
    match access {
        Ok(access) => {
            let lack = access.key.lack.as_ref().map(ToString::to_string);
            tracing::info!(backend = name, revision, %endpoint, lack, "requests can be passed on");
        }
        // The Secret has yet to arrive, so there is nothing for an administrator to fix.
        Err(Unusable::NotSeen(_)) => {}
        Err(reason) => tracing::warn!(backend = name, revision, %endpoint, %reason, "nothing can be passed on"),
    }
}
