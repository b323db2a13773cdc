//! The Stowage operator: turns `BucketClaim`s into S3 buckets and scoped, rotating credentials.
//!
//! ```text
//! api  ←  plan  ←  controller  →  observe, act   →  Kubernetes client, upstream client
//! ```
//!
//! [`api`] is the contract as types, [`plan`] the pure heart: what was observed, and the time, make the next step.

pub mod api;
