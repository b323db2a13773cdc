//! Placeholder.
pub mod gateway;
pub mod store;
