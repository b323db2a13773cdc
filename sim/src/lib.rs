//! Placeholder.
pub mod kubernetes;
