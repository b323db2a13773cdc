//! What every long-running process of a Kubernetes cluster needs around its own work.
//!
//! # Guarantees
//!
//! - What one connection to the [`admin`] port costs is bounded, and how many there are.
//! - The [`log`] never quotes an answer of the API server that kube can't read: Secrets are in
//!   such.
//! - Errors about a kubeconfig don't quote it.
//!
//! # Limits
//!
//! - Unix alone: signals and descriptors are its.

#![warn(clippy::too_many_lines)]

pub mod admin;
pub mod backoff;
pub mod cluster;
pub mod descriptors;
pub mod log;
pub mod memory;
pub mod signals;
