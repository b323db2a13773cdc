//! A Kubernetes API server in memory, for a real [`kube::Client`].
//!
//! Generic: it knows the API machinery and some built-in kinds, and is given everything else as
//! CustomResourceDefinitions ([`Cluster::install_crd`]). A controller under test gets
//! [`Cluster::client`], or a client of its own over [`Cluster::service`] with layers in between;
//! harnesses and oracles use the methods of [`Cluster`].
//!
//! What a request goes through: `service` reads it, `route` names its target, `decode` shapes the
//! object (`defaulting`), `patch` and `apply` work out what is proposed, `write` and `delete` admit
//! it (`admit`), check it (`meta`, `validate`, `cel`, `builtin`) and store it (`store`); `list` and
//! `watch` read it back. The store tells each change inside the step that makes it (`change_log`).
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
//! # Other ways in
//!
//! What kubectl, Helm and Go clients need of an API server besides is the crate `kube-front`:
//! discovery, OpenAPI, tables, protobuf, tokens, roles, policies and webhooks. It is built on what
//! is public here besides [`Cluster`]: a request is read ([`route`]), answered
//! ([`Cluster::answer`], [`output`]) or refused ([`status`]); what is served and stored is read
//! ([`Cluster::read`], [`kind`], [`schema`]); and writes are judged ([`admission`]). A cluster
//! in process pays nothing for that.
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
//! - authorization, and admission of what the server does by itself; requests are judged by what
//!   they bring along ([`admission::AdmittedBy`]);
//! - conversion between versions but for `apiVersion`; every version is checked by the schema of
//!   the one that is stored;
//! - conflicts of names between definitions;
//! - CEL's type checker and cost budget;
//! - warnings about the style of finalizer names, resetting `managedFields`;
//! - bookmarks that tell the client no other version than it knows;
//! - the exact words for JSON that doesn't decode.
//!
//! Not modelled of the built-in kinds:
//!
//! - controllers, schedulers and kubelets: no Deployment makes pods and no pod runs;
//! - the graceful deletion of pods: what no finalizer keeps is gone at once;
//! - cluster IPs, IP families and node ports of Services;
//! - `binding`, `eviction`, `ephemeralcontainers`, `resize` and other subresources but `status`;
//! - changes of metadata by a request to `status`;
//! - of an update of a pod, by how much its deadline and the seconds of its tolerations may change;
//! - content rules of special Secret types other than TLS, and the rules for pods' probes, security
//!   contexts, affinities and sources of volumes;
//! - that empty texts are left out and quantities brought into a canonical form;
//! - strategic merge patches that replace a container's `resources.claims`, which are merged by
//!   name here, or merge a pod's `status.hostIPs`, which are replaced.

#![warn(clippy::too_many_lines)]

mod admit;
mod apply;
mod cel;
mod change_log;
mod cluster;
mod defaulting;
mod definition;
mod definitions;
mod delete;
mod disturbance;
mod field_error;
mod fields;
mod furnish;
mod gc;
mod keeper;
mod list;
mod managed;
mod namespace;
mod observer;
mod observers;
mod options;
mod path;
mod service;
mod shared_store;
mod strategic;
mod structure;
mod upgrade;
mod validate;
mod watch;
mod write;

pub mod admission;
pub mod builtin;
pub mod decode;
pub mod json;
pub mod kind;
pub mod meta;
pub mod names;
pub mod output;
pub mod patch;
pub mod route;
pub mod schema;
pub mod selector;
pub mod status;
pub mod store;

#[cfg(test)]
mod tests;

pub use cluster::{Cluster, StoredObject};
pub use definition::ReadDefinition;
pub use disturbance::{Disturbance, LAG};
pub use keeper::{Keeper, Kept};
pub use observer::{Asked, Author, Observer, Stored};
pub use output::ApiBody;
pub use service::{ApiService, Way};
pub use store::WallClock;

/// Group, version and plural: what [`Cluster::get`] and its like are told of a resource.
pub use kube::core::GroupVersionResource;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
