//! The parts of an API server that kubectl, Helm and Go clients need besides its resources, in
//! front of a simulated cluster ([`kube_sim::Cluster`]).
//!
//! A [`Front`] is a tower service over the same state as the cluster's own service. The caller
//! opens the socket (`examples/serve.rs`). The answers were compared with those of an API server
//! for some 160 commands of `kubectl` 1.32 and for the lifecycle of a Helm 3 chart. A front adds:
//!
//! - discovery, aggregated and in the older format; OpenAPI v3 of all served resources, with a hash
//!   of the content; `/healthz`, `/livez`, `/readyz`, `/version`;
//! - tables for objects, lists and watches, with the columns of definitions and of built-in kinds,
//!   and with ages by the cluster's clock;
//! - request bodies in protobuf, which typed Go clients send, and in YAML;
//! - Events of the core group, a second view of the Events in `events.k8s.io`;
//! - CustomResourceDefinitions written through the API: established at once, at all their versions,
//!   with `/scale`, and deleted only after their objects
//!   ([`kube_sim::Cluster::settle_definitions`]);
//! - access and token reviews, impersonation, and ServiceAccount tokens that the front accepts;
//! - ValidatingAdmissionPolicies with parameters, which apply to writes through the front;
//! - admission webhooks, which apply to the same writes if the caller provides an implementation
//!   that calls them ([`Webhooks`]);
//! - RBAC, workload, storage and network kinds, which are stored but have no controllers.
//!
//! The caller runs [`kube_sim::Cluster::furnish_namespaces`] and
//! [`kube_sim::Cluster::expire_events`] like the cluster's other controllers. None of this is
//! active without a front: a cluster that is used in process has the same answers and the same cost
//! as without this crate.
//!
//! # Request pipeline
//!
//! A request passes through pure steps before and after the cluster's own service. `identity`
//! identifies the caller, `accept` chooses the response format, `body` converts protobuf and YAML
//! to JSON. `face` converts a request at another version, or for Events of the core group, to the
//! stored version, and converts the answer back. `table` turns the answer into a table. Discovery,
//! OpenAPI and tables are built from one `catalog`, which is read from the resources that the
//! cluster serves. A write carries its `admission` (`policies` and `webhooks`) into the cluster,
//! which runs it.
//!
//! # Limits
//!
//! Not modelled:
//!
//! - OpenAPI v2; descriptions of built-in kinds, except for `metadata`; strategic merge patches in
//!   the published schemas, although they are served;
//! - answers in protobuf, and bodies in CBOR; protobuf of kinds of unknown groups (415);
//! - the columns of some rarely used built-in kinds, which show name and age; `autoscaling/v1`;
//! - validation and defaults of kinds without controllers: everything is stored as it is sent;
//! - authorization, unless a front is set up with [`Authorization::Rbac`]. With it, privilege
//!   escalation is not prevented: users who may write roles can grant more than they have;
//! - admission of the server's own writes;
//! - of policies and webhooks: `authorizer`, audit annotations, and the delay before a server
//!   observes them;
//! - of webhooks: reinvocation after another webhook changed the object (`reinvocationPolicy`), and
//!   changes to `managedFields`. For `/scale` and Events of the core group, webhooks see the stored
//!   objects. They are not called for reviews and token requests;
//! - token audiences and signatures: a token is a random string that this front knows;
//! - `managedFields` of Events written through the core group: they name the fields as in
//!   `events.k8s.io`.

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
