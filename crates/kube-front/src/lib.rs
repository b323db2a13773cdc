//! The parts of an API server that kubectl, Helm and Go clients need besides its resources, in
//! front of a simulated cluster ([`kube_sim::Cluster`]).
//!
//! A [`Front`] is a tower service over the same state as the cluster's own service. The socket is
//! up to its caller (`examples/serve.rs`). Its answers were compared with those of an API server
//! for some 160 commands of `kubectl` 1.32 and the lifecycle of a chart with Helm 3. It adds:
//!
//! - discovery, aggregated and in the older format; OpenAPI v3 of all served resources, with a hash
//!   of the content; `/healthz`, `/livez`, `/readyz`, `/version`;
//! - tables for objects, lists and watches, with the columns of definitions and of built-in kinds,
//!   and with ages by the cluster's clock;
//! - request bodies in protobuf, which typed Go clients send, and in YAML;
//! - Events of the core group, which are a second view of those of `events.k8s.io`;
//! - CustomResourceDefinitions that are written through the API: established at once, at all their
//!   versions, with `/scale`, and with their objects deleted before them
//!   ([`kube_sim::Cluster::settle_definitions`]);
//! - reviews, impersonation, and ServiceAccount tokens that the front accepts;
//! - ValidatingAdmissionPolicies with parameters, which apply to writes through the front;
//! - admission webhooks, which apply to the same writes if the caller provides an implementation
//!   that calls them ([`Webhooks`]);
//! - RBAC, workload, storage and network kinds, which are stored but have no controllers.
//!
//! [`kube_sim::Cluster::furnish_namespaces`] and [`kube_sim::Cluster::expire_events`] are steps
//! like the other controllers' steps. Without a front none of this is active: a cluster in process
//! serves the same as before, at the same cost.
//!
//! # Request pipeline
//!
//! A request passes through pure steps before and after the cluster's own service. `identity`
//! identifies the caller, `accept` chooses the response format, `body` converts protobuf and YAML
//! to JSON. `face` converts requests at another version, or for events of the core group, to the
//! stored version, and the answer back. `table` turns it into a table. Discovery, OpenAPI and
//! tables are built from one `catalog`, which is read from the resources that the cluster serves.
//! Writes are reviewed inside the cluster by the `admission` that is attached to a request:
//! `policies` and `webhooks`.
//!
//! # Limits
//!
//! Not modelled:
//!
//! - OpenAPI v2; descriptions of built-in kinds, except for `metadata`; strategic merge patches are
//!   served but not published;
//! - answers in protobuf, and bodies in CBOR; protobuf of kinds of unknown groups (415);
//! - the columns of some rarely used built-in kinds, which show name and age; `autoscaling/v1`;
//! - validation and defaults of kinds without controllers: everything is stored as it is sent;
//! - authorization, unless a front is set up with [`Authorization::Rbac`]. With it, privilege
//!   escalation is not prevented: users who may write roles can grant more than they have;
//! - admission of the server's own writes;
//! - of policies and webhooks: `authorizer`, audit annotations, and the delay before a server
//!   observes them;
//! - of webhooks: reinvocation after another webhook changed the object (`reinvocationPolicy`), and
//!   changes to `managedFields`. For `/scale` and events of the core group they see the stored
//!   objects; for reviews and token requests they are not called;
//! - token audiences and signatures: a token is a random string that this front knows;
//! - `managedFields` of events written through the core group: they name the fields as
//!   `events.k8s.io` does.

#![warn(clippy::too_many_lines)]

mod accept;
mod admission;
mod asked;
mod authorize;
mod body;
mod catalog;
mod discovery;
mod events;
mod face;
mod front;
mod health;
mod identity;
mod known;
mod media;
mod openapi;
mod options;
mod pipeline;
mod policies;
mod protobuf;
mod rbac;
mod resource;
mod reviews;
mod scale;
mod stored;
mod table;
mod tokens;
mod webhooks;

#[cfg(test)]
mod tests;

pub use front::{BODY_LIMIT, Front};
pub use identity::Identity;
pub use options::{Authorization, FrontOptions, Random};
pub use tokens::{Issued, IssuedTo, KeepIssued};
pub use webhooks::{ANSWER_LIMIT, Call as WebhookCall, NoAnswer, Place as WebhookPlace, Webhooks};

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
