//! A cluster: what whoever has one can do with it.

mod admin;
mod inventory;
mod kept;

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::Status;
use parking_lot::MutexGuard;
use serde_json::Value;

use super::admission::Admission;
use super::builtin;
use super::definition::ReadDefinition;
use super::definitions;
use super::furnish;
use super::gc;
use super::meta;
use super::namespace;
use super::observer::Observer;
use super::options::{Ownership, Part, WriteOptions};
use super::output::ApiBody;
use super::route::Route;
use super::service::{self, ApiService, Way};
use super::shared_store::SharedStore;
use super::status::Failure;
use super::store::{Place, Store, Tables, WallClock};
use super::write;

pub use inventory::StoredObject;

/// A simulated cluster's API server and its store. Clones share one state.
#[derive(Clone)]
pub struct Cluster {
    store: SharedStore,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("resource_version", &self.resource_version()).finish_non_exhaustive()
    }
}

impl Cluster {
    /// An empty cluster with the namespaces that every cluster has. UIDs and the ends of generated
    /// names follow from `seed`.
    pub fn new(clock: WallClock, seed: u64) -> Self {
        let mut state = Store::new(clock, seed);
        for kind in builtin::kinds() {
            state.serve(kind.clone());
        }
        namespace::create_initial(&mut state);
        Self { store: SharedStore::new(state) }
    }

    /// A cluster of its own that stands as this one does, by another clock: nobody watches or
    /// observes it yet.
    pub fn copy(&self, clock: WallClock) -> Self {
        Self { store: SharedStore::new(self.lock().copy(clock)) }
    }

    /// Serves a custom resource from now on. Called again for the same resource, it replaces the
    /// definition; objects stay as they are.
    ///
    /// # Errors
    /// The `422 Invalid` that an API server would give for the schema, with paths.
    pub fn install_crd(&self, definition: &CustomResourceDefinition) -> Result<(), Box<Status>> {
        self.serve(&ReadDefinition::new(definition)?)
    }

    /// Serves a custom resource from now on, as [`Cluster::install_crd`] does, of a definition that
    /// was read before.
    ///
    /// # Errors
    /// Where the definition as an object is refused, as for its name.
    pub fn serve(&self, definition: &ReadDefinition) -> Result<(), Box<Status>> {
        let mut state = self.lock();
        state.serve(definition.kind.clone());
        let definitions = state
            .kind("apiextensions.k8s.io", "v1", "customresourcedefinitions")
            .expect("definitions are always served");
        let mut object = (*definition.object).clone();
        let place = Place::of(&object);
        match state.get(&definitions, &place).cloned() {
            Some(existing) => {
                for field in ["uid", "creationTimestamp", "resourceVersion", "generation"] {
                    meta::copy(&existing, &mut object, field);
                }
                write::update(&mut state, &definitions, &existing, object, Part::Main, &WriteOptions::own())
            }
            None => write::create(&mut state, &definitions, object, Ownership::Creator, &WriteOptions::own()),
        }
        .map(|_| ())
    }

    /// The API server as a tower service, for [`kube::Client::new`] and for layers that watch or
    /// disturb requests.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.store.clone())
    }

    /// A client of this cluster. It starts a task, so it has to be made inside the runtime that it
    /// will be used in.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), default_namespace)
    }

    /// Runs one pass of the owner-reference garbage collector and returns how many objects it
    /// changed or removed. Repeated until it returns 0, everything that can go is gone.
    pub fn collect_garbage(&self) -> usize {
        gc::collect(&mut self.lock())
    }

    /// Runs one step of the namespace controller: terminating namespaces are emptied, empty ones
    /// removed. Returns how many objects it changed or removed.
    pub fn finalize_namespaces(&self) -> usize {
        namespace::finalize(&mut self.lock())
    }

    /// Runs one step of the controllers of definitions: those that aren't established are, those
    /// that are deleted are emptied, and empty ones served no more. Returns how many objects it
    /// changed or removed.
    pub fn settle_definitions(&self) -> usize {
        definitions::settle(&mut self.lock())
    }

    /// Runs one step of what fills new namespaces: each that isn't terminating gets a
    /// ServiceAccount `default`, and a ConfigMap `kube-root-ca.crt` with this certificate in PEM,
    /// unless that is empty. Returns how many objects it made or changed.
    pub fn furnish_namespaces(&self, ca_pem: &str) -> usize {
        furnish::namespaces(&mut self.lock(), ca_pem)
    }

    /// Removes the Events that nothing has been added to for longer than this, by the cluster's
    /// clock: a server keeps them for an hour. Returns how many.
    pub fn expire_events(&self, older_than: SignedDuration) -> usize {
        furnish::expire_events(&mut self.lock(), older_than)
    }

    /// Holds but so many objects as trees of JSON from now on, and all others as their text, which
    /// takes a sixth of the memory and longer to read. Nothing else changes. Unless this was
    /// called, all are trees.
    pub fn keep_compact(&self, most: usize) {
        self.lock().keep_compact(most);
    }

    /// Forgets the history of all kinds: watches and continued lists from before get 410.
    pub fn compact(&self) {
        self.lock().compact();
    }

    /// Remembers so many changes of each kind, 10,000 unless this says otherwise: watches and
    /// continued lists from before get 410. Each is a whole object.
    pub fn remember(&self, changes: usize) {
        self.lock().remember(changes);
    }

    /// The version of the last write.
    pub fn resource_version(&self) -> u64 {
        self.lock().version()
    }

    /// Waits until something was written after this version.
    pub async fn written_after(&self, version: u64) {
        let written = self.lock().written();
        let mut written = std::pin::pin!(written.notified());
        // From here on no change is missed.
        written.as_mut().enable();
        if self.resource_version() == version {
            written.await;
        }
    }

    /// Tells an observer of everything from now on; of several the last one set.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.store.observers().observe(observer);
    }

    /// What is stored, to be read. No request is answered meanwhile.
    pub fn read(&self) -> impl Deref<Target = Tables> + '_ {
        Reading(self.lock())
    }

    /// The time by the cluster's clock.
    pub fn time(&self) -> Timestamp {
        self.lock().time()
    }

    /// Answers a request that came by this way, whose body is complete.
    ///
    /// # Errors
    /// What is refused, as the status that says so.
    pub fn answer(&self, head: &Parts, body: &Bytes, way: Way) -> Result<Response<ApiBody>, Failure> {
        service::dispatch(&self.store, head, body, way)
    }

    /// What is no resource. A server's own groups say so in a status, those of definitions and
    /// unknown ones with a page.
    ///
    /// # Errors
    /// That status.
    pub fn nowhere(&self, route: &Route) -> Result<Response<ApiBody>, Failure> {
        service::nowhere(&self.lock(), route)
    }

    /// Has built-in objects checked by this from now on, whoever writes them: of several the last
    /// one set.
    pub fn admit_with(&self, admission: Arc<dyn Admission>) {
        self.lock().admission = Some(admission);
    }

    /// Serves from now on the kinds that are kept and that nobody acts on, too: those of RBAC,
    /// workloads, admission, storage, networks.
    pub fn serve_inert_kinds(&self) {
        let mut store = self.lock();
        for kind in builtin::inert_kinds() {
            if store.kind(&kind.group, &kind.version, &kind.plural).is_none() {
                store.serve(kind.clone());
            }
        }
    }

    /// Makes objects as the server makes those that a cluster starts with. One whose name is taken
    /// is left as it is, and one whose kind isn't served left out.
    pub fn bootstrap(&self, objects: impl IntoIterator<Item = Value>) {
        let mut store = self.lock();
        for object in objects {
            let types = ["apiVersion", "kind"].map(|name| object[name].as_str().unwrap_or_default());
            if let Some(kind) = store.kind_named(types[0], types[1]) {
                // One that is there already is somebody's.
                let _ = write::create(&mut store, &kind, object, Ownership::Creator, &WriteOptions::own());
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }
}

/// What is stored, under its lock.
struct Reading<'a>(MutexGuard<'a, Store>);

impl Deref for Reading<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.0
    }
}
