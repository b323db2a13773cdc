//! A simulated cluster, and the operations on it.

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
    /// Creates a cluster with the initial namespaces. UIDs and generated names are derived from
    /// `seed`.
    pub fn new(clock: WallClock, seed: u64) -> Self {
        let mut state = Store::new(clock, seed);
        for kind in builtin::kinds() {
            state.serve(kind.clone());
        }
        namespace::create_initial(&mut state);
        Self { store: SharedStore::new(state) }
    }

    /// Returns an independent copy with another clock, without watches and observers.
    pub fn copy(&self, clock: WallClock) -> Self {
        Self { store: SharedStore::new(self.lock().copy(clock)) }
    }

    /// Serves a custom resource from now on. A second call for the same resource replaces the
    /// definition and leaves the objects unchanged.
    ///
    /// # Errors
    /// Returns the `422 Invalid` of an API server for the schema, with paths.
    pub fn install_crd(&self, definition: &CustomResourceDefinition) -> Result<(), Box<Status>> {
        self.serve(&ReadDefinition::new(definition)?)
    }

    /// Serves a custom resource from now on, like [`Cluster::install_crd`], with a definition that
    /// was read before.
    ///
    /// # Errors
    /// Returns the rejection of the definition as an object, for instance because of its name.
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

    /// Returns the API server as a tower service, for [`kube::Client::new`] and for layers that
    /// observe or disturb requests.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.store.clone())
    }

    /// Returns a client of this cluster. It spawns a task, so it must be created in the runtime in
    /// which it is used.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        kube::Client::new(self.service(), default_namespace)
    }

    /// Runs one pass of the owner-reference garbage collector, and returns the number of objects
    /// changed or removed. Once it returns 0, everything that can be collected is gone.
    pub fn collect_garbage(&self) -> usize {
        gc::collect(&mut self.lock())
    }

    /// Runs one step of the namespace controller: removes the objects of terminating namespaces,
    /// and empty terminating namespaces. Returns the number of objects changed or removed.
    pub fn finalize_namespaces(&self) -> usize {
        namespace::finalize(&mut self.lock())
    }

    /// Runs one step of the CRD controllers and returns the number of objects changed or removed.
    ///
    /// New definitions become established. The objects of deleted definitions are removed, and
    /// their resources are no longer served once they have no objects.
    pub fn settle_definitions(&self) -> usize {
        definitions::settle(&mut self.lock())
    }

    /// Runs one step of the controllers for new namespaces, and returns the number of objects
    /// created or changed.
    ///
    /// Every namespace that is not terminating gets a ServiceAccount `default`, and a ConfigMap
    /// `kube-root-ca.crt` with this certificate in PEM unless it is empty.
    pub fn furnish_namespaces(&self, ca_pem: &str) -> usize {
        furnish::namespaces(&mut self.lock(), ca_pem)
    }

    /// Removes the Events that have not been updated for longer than `older_than`, by the cluster's
    /// clock, and returns their number. An API server keeps them for an hour.
    pub fn expire_events(&self, older_than: SignedDuration) -> usize {
        furnish::expire_events(&mut self.lock(), older_than)
    }

    /// Keeps at most this number of objects as JSON trees, and the others as text, which takes a
    /// sixth of the memory and longer to read. Nothing else changes. By default, all objects are
    /// trees.
    pub fn keep_compact(&self, most: usize) {
        self.lock().keep_compact(most);
    }

    /// Discards the history of all kinds. Earlier watches and continued lists get 410.
    pub fn compact(&self) {
        self.lock().compact();
    }

    /// Sets the number of changes to remember for each kind, 10,000 by default. Older watches and
    /// continued lists get 410. Each change is a whole object.
    pub fn remember(&self, changes: usize) {
        self.lock().remember(changes);
    }

    /// Returns the version of the last write.
    pub fn resource_version(&self) -> u64 {
        self.lock().version()
    }

    /// Waits until there has been a write after this version.
    pub async fn written_after(&self, version: u64) {
        let written = self.lock().written();
        let mut written = std::pin::pin!(written.notified());
        // From here on no notification is missed.
        written.as_mut().enable();
        if self.resource_version() == version {
            written.await;
        }
    }

    /// Notifies this observer of everything from now on. It replaces an earlier observer.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.store.observers().observe(observer);
    }

    /// Returns read access to the stored objects. No request is answered while it is held.
    pub fn read(&self) -> impl Deref<Target = Tables> + '_ {
        Reading(self.lock())
    }

    /// Returns the time by the cluster's clock.
    pub fn time(&self) -> Timestamp {
        self.lock().time()
    }

    /// Answers a complete request received through this entry point.
    ///
    /// # Errors
    /// Returns the status of a request that fails.
    pub fn answer(&self, head: &Parts, body: &Bytes, way: Way) -> Result<Response<ApiBody>, Failure> {
        service::dispatch(&self.store, head, body, way)
    }

    /// Answers a request for something that is not a resource. In the server's own groups this is a
    /// status; in groups of definitions and in unknown groups it is a page.
    ///
    /// # Errors
    /// The status, if the answer is one.
    pub fn nowhere(&self, route: &Route) -> Result<Response<ApiBody>, Failure> {
        service::nowhere(&self.lock(), route)
    }

    /// Validates all writes of built-in objects with this admission from now on. It replaces an
    /// earlier one.
    pub fn admit_with(&self, admission: Arc<dyn Admission>) {
        self.lock().admission = Some(admission);
    }

    /// Serves the kinds without controllers too from now on: those of RBAC, workloads, admission,
    /// storage and networking.
    pub fn serve_inert_kinds(&self) {
        let mut store = self.lock();
        for kind in builtin::inert_kinds() {
            if store.kind(&kind.group, &kind.version, &kind.plural).is_none() {
                store.serve(kind.clone());
            }
        }
    }

    /// Creates objects like a server creates those of a new cluster. Objects whose name is taken,
    /// or whose kind is not served, are skipped.
    pub fn bootstrap(&self, objects: impl IntoIterator<Item = Value>) {
        let mut store = self.lock();
        for object in objects {
            let types = ["apiVersion", "kind"].map(|name| object[name].as_str().unwrap_or_default());
            if let Some(kind) = store.kind_named(types[0], types[1]) {
                // An existing object may have been changed by its owner, so it is left alone.
                let _ = write::create(&mut store, &kind, object, Ownership::Creator, &WriteOptions::own());
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock()
    }
}

/// Read access to the stored objects, with their lock.
struct Reading<'a>(MutexGuard<'a, Store>);

impl Deref for Reading<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.0
    }
}
