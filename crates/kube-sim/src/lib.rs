//! A Kubernetes API server in memory, for a real [`kube::Client`].
//!
//! It is generic: the API machinery and some built-in kinds are part of it, and everything else is
//! defined by CustomResourceDefinitions ([`Cluster::install_crd`]). A controller under test uses
//! [`Cluster::client`], or a client of its own on top of [`Cluster::service`] with layers in
//! between. Test harnesses and oracles use the methods of [`Cluster`].
//!
//! A request is processed in these steps. `service` reads it, `route` parses its path, `decode`
//! brings the object into its validated form (`defaulting`), and `patch` and `apply` compute the
//! proposed object. `write` and `delete` run admission (`admit`) and validation (`meta`,
//! `validate`, `cel`, `builtin`), and store the result (`store`). `list` and `watch` read it back.
//! The store reports each change inside the step that makes it (`change_log`).
//!
//! # Guarantees
//!
//! - Messages, codes and the order of checks are those of kube-apiserver 1.34. Custom resources,
//!   Secrets, Namespaces, Events and Leases were compared with one, request by request. The other
//!   kinds follow its code.
//! - Requests take effect one at a time and atomically. A rejected request changes nothing.
//! - Every write has the next resourceVersion. A watch sends each change after its version once and
//!   in order, or reports that it cannot (410).
//! - Server-side apply maintains owners field by field. Lists are atomic, sets or keyed according
//!   to the schema of the kind.
//! - The built-in kinds are Secret, ConfigMap, ServiceAccount, Pod, Service, Deployment, Namespace,
//!   Lease, Event (`events.k8s.io/v1`) and, read-only, CustomResourceDefinition. Their fields are
//!   those of Kubernetes 1.33.
//!
//! # Other interfaces
//!
//! The crate `kube-front` adds the features of an API server that kubectl, Helm and Go clients
//! need: discovery, OpenAPI, tables, protobuf, tokens, roles, policies and webhooks. It uses the
//! public items besides [`Cluster`]. It parses requests ([`route`]), answers them
//! ([`Cluster::answer`], [`output`]) or rejects them ([`status`]), reads the served kinds and
//! stored objects ([`Cluster::read`], [`kind`], [`schema`]), and controls writes ([`admission`]). A
//! cluster in a process that does not use this has no cost.
//!
//! # Determinism
//!
//! Clock and seed are parameters, every order is fixed, and nothing runs in the background. UIDs
//! and generated names are derived from the seed and the preceding writes. The controllers of a
//! cluster are steps that the caller runs: [`Cluster::collect_garbage`] and
//! [`Cluster::finalize_namespaces`]. Watches wait by tokio's clock.
//!
//! # Limits
//!
//! Not modelled of the API server:
//!
//! - authorization, and admission of the server's own writes; requests are reviewed by the
//!   admission that they carry ([`admission::AdmittedBy`]);
//! - conversion between versions except for `apiVersion`; every version is validated by the schema
//!   of the stored one;
//! - conflicts of names between definitions;
//! - CEL's type checker and cost budget;
//! - warnings about the style of finalizer names, resetting `managedFields`;
//! - bookmarks with another version than the client knows already;
//! - the exact messages for JSON that cannot be decoded.
//!
//! Not modelled of the built-in kinds:
//!
//! - controllers, schedulers and kubelets: no Deployment creates pods and no pod runs;
//! - the graceful deletion of pods: a pod without finalizers is removed immediately;
//! - cluster IPs, IP families and node ports of Services;
//! - `binding`, `eviction`, `ephemeralcontainers`, `resize` and other subresources except `status`;
//! - changes of metadata by a request to `status`;
//! - the limits on changing a pod's deadline and the seconds of its tolerations;
//! - validation of special Secret types other than TLS, and of pods' probes, security contexts,
//!   affinities and volume sources;
//! - omission of empty strings, and the canonical form of quantities;
//! - strategic merge patches that replace a container's `resources.claims`, which are merged by
//!   name here, or that merge a pod's `status.hostIPs`, which are replaced.

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

/// Group, version and plural of a resource, for [`Cluster::get`] and similar functions.
pub use kube::core::GroupVersionResource;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
