//! What kubectl, Helm and Go clients need of an API server besides its resources, in front of a
//! simulated cluster ([`kube_sim::Cluster`]).
//!
//! A [`Front`] is a tower service over the same state as the cluster's own; a socket is its
//! caller's business (`examples/serve.rs`). Compared with a server were some 160 commands of
//! `kubectl` 1.32 and the life of a chart by Helm 3. It adds:
//!
//! - discovery, in one document and in the older form; OpenAPI v3 of all that is served, by a hash
//!   of its content; `/healthz`, `/livez`, `/readyz`, `/version`;
//! - tables for objects, lists and watches, with the columns of definitions and of built-in kinds
//!   and with ages by the cluster's clock;
//! - bodies in protobuf, which typed Go clients send, and in YAML;
//! - Events of the core group, which are another face of those of `events.k8s.io`;
//! - definitions that are written through the API: established at once, at all their versions,
//!   with `/scale`, and emptied before they go ([`kube_sim::Cluster::settle_definitions`]);
//! - reviews, impersonation, and tokens of ServiceAccounts that the front knows again;
//! - ValidatingAdmissionPolicies with parameters, which judge who writes through the front;
//! - admission webhooks, which do the same where whoever sets it up brings what calls them
//!   ([`Webhooks`]);
//! - RBAC, workloads, storage and network kinds, which are kept and acted on by nobody.
//!
//! [`kube_sim::Cluster::furnish_namespaces`] and [`kube_sim::Cluster::expire_events`] are steps as
//! the others are. None of it is there without a front: a cluster in process serves what it did, at
//! the same cost.
//!
//! # The way of a request
//!
//! It goes through a pipeline of pure steps before and after the cluster's own service: `identity`
//! says who calls, `accept` which form of an answer is wanted, `body` makes JSON of protobuf and
//! YAML; `face` puts requests at another version, or for the events of the core group, in the form
//! of what is stored, and its answer back; `table` makes tables of it. Discovery, OpenAPI and
//! tables are made of one `catalog`, which is read from what the cluster serves. Writes are judged
//! inside the cluster, by the `admission` that a request brings along: `policies` and `webhooks`.
//!
//! # Limits
//!
//! Not modelled:
//!
//! - OpenAPI v2; the descriptions of built-in kinds, but for `metadata`; strategic merge patches
//!   are served and not published;
//! - answers in protobuf, and bodies in CBOR; protobuf of kinds that no group here has (415);
//! - columns of built-in kinds that are seldom looked at, which show name and age;
//!   `autoscaling/v1`;
//! - the content of the kinds that nobody acts on: everything is kept as it comes, without
//!   defaults;
//! - authorization, but for roles where a front is told so ([`Authorization::Rbac`]): those who
//!   write roles may give away more than they have;
//! - admission of what the server does by itself;
//! - of policies and webhooks: `authorizer`, audit annotations, and that a server takes a moment to
//!   hear of them;
//! - of webhooks: asking one again whose object another one changed (`reinvocationPolicy`), what
//!   one makes of `managedFields`; of `/scale` and of events of the core group they see what is
//!   stored, of reviews and of requests for tokens nothing;
//! - audiences of tokens, and what is signed: a token is a text that this front knows;
//! - `managedFields` of events that were written by the core group name the fields as
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
