//! Parts that every long-running process in a Kubernetes cluster needs besides its own work.
//!
//! # Guarantees
//!
//! - The number of connections to the [`admin`] port is bounded, and so is the cost of each.
//! - The [`log`] never quotes an answer of the API server that kube can't decode: it may contain
//!   Secrets.
//! - Errors about a kubeconfig don't quote it.
//!
//! # Limits
//!
//! - Unix only: signals and file descriptors are Unix concepts.

#![warn(clippy::too_many_lines)]

pub mod admin;
pub mod backoff;
pub mod cluster;
pub mod descriptors;
pub mod log;
pub mod memory;
pub mod signals;
