//! Placeholder.
pub mod gateway;
pub mod kubernetes;
pub mod store;
