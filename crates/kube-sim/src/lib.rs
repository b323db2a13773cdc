//! A Kubernetes API server in memory, for a real [`kube::Client`].
//!
//! Generic: it knows the API machinery and some built-in kinds, and is given everything else as
//! CustomResourceDefinitions ([`Cluster::install_crd`]). A controller under test gets
//! [`Cluster::client`], or a client of its own over [`Cluster::service`] with layers in between;
//! harnesses and oracles use the methods of [`Cluster`].
//!
//! What a request goes through: `service` reads it, `route` names its target, `decode` shapes the
//! object (`defaulting`), `patch` and `apply` work out what is proposed, `write` and `delete` check
//! it (`meta`, `validate`, `cel`, `builtin`) and store it (`store`); `list` and `watch` read it
//! back.
//!
//! # Guarantees
//!
//! - Words, codes and order of checks are those of kube-apiserver 1.34. Custom resources, Secrets,
//!   Namespaces, Events and Leases were compared with one, request by request; the other kinds
//!   follow its code.
//! - Requests take effect one at a time, each as a whole: a refused one changes nothing.
//! - Every write has the next resourceVersion. A watch tells each change after its version once and
//!   in order, or that it can't (410).
//! - Server-side apply keeps owners field by field. Lists are atomic, sets or keyed as the kind's
//!   schema says.
//! - Built-in are Secret, ConfigMap, ServiceAccount, Pod, Service, Deployment, Namespace, Lease,
//!   Event (`events.k8s.io/v1`) and, for reading, CustomResourceDefinition. Their fields are those
//!   of Kubernetes 1.33.
//!
//! # For kubectl, Helm and Go clients
//!
//! [`Cluster::front`] is the same cluster as clients know one that are not written for it: a
//! [`Front`] is a tower service, too, and a socket is its caller's business
//! (`examples/serve.rs`). Compared with a server were some 160 commands of `kubectl` 1.32 and the
//! life of a chart by Helm 3. It adds:
//!
//! - discovery, in one document and in the older form; OpenAPI v3 of all that is served, by a hash
//!   of its content; `/healthz`, `/livez`, `/readyz`, `/version`;
//! - tables for objects, lists and watches, with the columns of definitions and of built-in kinds
//!   and with ages by the cluster's clock;
//! - bodies in protobuf, which typed Go clients send, and in YAML;
//! - Events of the core group, which are another face of those of `events.k8s.io`;
//! - definitions that are written through the API: established at once, at all their versions,
//!   with `/scale`, and emptied before they go ([`Cluster::settle_definitions`]);
//! - reviews, impersonation, and tokens of ServiceAccounts that the front knows again;
//! - ValidatingAdmissionPolicies with parameters, which judge who writes through the front;
//! - admission webhooks, which do the same where whoever sets it up brings what calls them
//!   ([`Webhooks`]);
//! - RBAC, workloads, storage and network kinds, which are kept and acted on by nobody.
//!
//! [`Cluster::furnish_namespaces`] and [`Cluster::expire_events`] are steps as the others are. None
//! of it is there without a front: a cluster in process serves what it did, at the same cost.
//!
//! # Determinism
//!
//! Time and seed are passed in, every order is fixed, and nothing runs by itself. UIDs and the ends
//! of generated names follow from the seed and the writes before. The controllers of a cluster are
//! steps that the caller takes: [`Cluster::collect_garbage`] and [`Cluster::finalize_namespaces`].
//! Waiting, of watches, goes by tokio's clock.
//!
//! # Limits
//!
//! Not modelled of the API server:
//!
//! - authorization, but for roles where a front is told so ([`Authorization::Rbac`]): those who
//!   write roles may give away more than they have;
//! - admission but at a front, and of what the server does by itself;
//! - of policies and webhooks: `authorizer`, audit annotations, and that a server takes a moment to
//!   hear of them;
//! - of webhooks: asking one again whose object another one changed (`reinvocationPolicy`), what
//!   one makes of `managedFields`; of `/scale` and of events of the core group they see what is
//!   stored, of reviews and of requests for tokens nothing;
//! - conversion between versions but for `apiVersion`; every version is checked by the schema of
//!   the one that is stored;
//! - conflicts of names between definitions;
//! - CEL's type checker and cost budget;
//! - warnings about the style of finalizer names, resetting `managedFields`;
//! - bookmarks that tell the client no other version than it knows;
//! - the exact words for JSON that doesn't decode.
//!
//! Not modelled of what only a front serves:
//!
//! - OpenAPI v2; the descriptions of built-in kinds, but for `metadata`; strategic merge patches
//!   are served and not published;
//! - answers in protobuf, and bodies in CBOR; protobuf of kinds that no group here has (415);
//! - columns of built-in kinds that are seldom looked at, which show name and age;
//!   `autoscaling/v1`;
//! - the content of the kinds that nobody acts on: everything is kept as it comes, without
//!   defaults;
//! - audiences of tokens, and what is signed: a token is a text that this front knows;
//! - `managedFields` of events that were written by the core group name the fields as
//!   `events.k8s.io` does.
//!
//! Not modelled of the built-in kinds:
//!
//! - controllers, schedulers and kubelets: no Deployment makes pods and no pod runs;
//! - the graceful deletion of pods: what no finalizer keeps is gone at once;
//! - cluster IPs, IP families and node ports of Services;
//! - `binding`, `eviction`, `ephemeralcontainers`, `resize` and other subresources but `status`,
//!   and `scale` and `token` at a front;
//! - changes of metadata by a request to `status`;
//! - of an update of a pod, by how much its deadline and the seconds of its tolerations may change;
//! - content rules of special Secret types other than TLS, and the rules for pods' probes, security
//!   contexts, affinities and sources of volumes;
//! - that empty texts are left out and quantities brought into a canonical form;
//! - strategic merge patches that replace a container's `resources.claims`, which are merged by
//!   name here, or merge a pod's `status.hostIPs`, which are replaced.

#![warn(clippy::too_many_lines)]

mod admin;
mod admission;
mod apply;
mod builtin;
mod cel;
mod compact;
mod decode;
mod defaulting;
mod definition;
mod definitions;
mod delete;
mod disturbance;
mod fields;
mod front;
mod furnish;
mod gc;
mod inventory;
mod kept;
mod kind;
mod list;
mod managed;
mod meta;
mod names;
mod namespace;
mod observer;
mod output;
mod patch;
mod path;
mod policies;
mod replaced;
mod route;
mod schema;
mod selector;
mod service;
mod shared;
mod status;
mod store;
mod strategic;
mod structure;
mod table;
mod upgrade;
mod validate;
mod watch;
mod webhooks;
mod write;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::Status;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

pub use definition::ReadDefinition;
pub use disturbance::{Disturbance, LAG};
pub use front::{Authorization, BODY_LIMIT, Front, FrontOptions, Identity, Issued, IssuedTo, KeepIssued, Random};
pub use kept::{Keeper, Kept};
pub use observer::{Asked, Author, Observer, Stored};
pub use output::ApiBody;
pub use service::ApiService;
pub use webhooks::{ANSWER_LIMIT, Call as WebhookCall, NoAnswer, Place as WebhookPlace, Webhooks};

/// Group, version and plural: what [`Cluster::get`] and its like are told of a resource.
pub use kube::core::GroupVersionResource;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use decode::FieldValidation;
use store::{Place, State};
use write::{Ownership, WriteOptions};

/// Where the server takes the time from, for `creationTimestamp` and its like. Waiting (of watches)
/// goes by tokio's clock instead.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A simulated cluster's API server and its store. Clones share one state.
#[derive(Clone)]
pub struct Cluster {
    state: Arc<Mutex<State>>,
}

/// One stored object, for oracles and tests.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredObject {
    /// API group, empty for the core group.
    pub group: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The whole object as stored.
    pub object: Arc<Value>,
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
        let mut state = State::new(clock, seed);
        for kind in builtin::kinds() {
            state.serve(kind.clone());
        }
        create_namespaces(&mut state);
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// A cluster of its own that stands as this one does, by another clock: nobody watches or
    /// observes it yet.
    pub fn copy(&self, clock: WallClock) -> Self {
        Self { state: Arc::new(Mutex::new(self.lock().copy(clock))) }
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
                let part = write::Part::Main;
                write::update(&mut state, &definitions, &existing, object, part, &own_writes())
            }
            None => write::create(&mut state, &definitions, object, Ownership::Creator, &own_writes()),
        }
        .map(|_| ())
    }

    /// The API server as a tower service, for [`kube::Client::new`] and for layers that watch or
    /// disturb requests.
    pub fn service(&self) -> ApiService {
        ApiService::new(self.clone())
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
        self.lock().observer = Some(observer);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.lock_for(None)
    }

    /// The state, to be changed in the name of this author.
    fn lock_for(&self, author: Option<Author>) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug in this module; its state is still the best there is.
        let mut state = self.state.lock();
        state.author = author;
        state
    }
}

/// Makes the namespaces that every cluster has.
fn create_namespaces(state: &mut State) {
    let namespaces = state.kind("", "v1", "namespaces").expect("it is always served");
    for name in namespace::INITIAL {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        write::create(state, &namespaces, object, Ownership::Creator, &own_writes())
            .expect("the initial namespaces are valid");
    }
}

/// How the server writes what it makes itself.
fn own_writes() -> WriteOptions {
    WriteOptions {
        manager: "kube-apiserver".to_owned(),
        dry_run: false,
        validation: FieldValidation::Ignore,
        asking: None,
    }
}
