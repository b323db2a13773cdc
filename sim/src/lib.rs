//! The simulator: the production operator in a simulated cluster with a simulated S3 store.

pub mod determinism;
pub mod effects;
