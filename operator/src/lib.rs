//! The Stowage operator: turns `BucketClaim`s into S3 buckets and scoped, rotating credentials.
//!
//! ```text
//! api  ←  plan  ←  controller  →  observe, act   →  Kubernetes client, upstream client
//! ```
//!
//! [`api`] is the contract as types. [`plan`] is the pure core: it computes the next step from the
//! observed state and the time.

#![warn(clippy::too_many_lines)]

mod act;
pub use stowage_api as api;
mod cache;
mod cli;
mod clock;
pub mod controller;
mod election;
mod kubernetes;
mod managed_fields;
pub mod mandate;
mod metrics;
mod observe;
mod pages;
pub mod plan;
pub mod preview;
mod turns;
pub mod upstream;

pub use cli::{Cli, crds_yaml};
pub use clock::{Clock, Uptime};
pub use controller::{Config, Parts, StartError, run};
pub use election::{Election, Terms};
pub use metrics::Metrics;
