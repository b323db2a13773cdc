//! Placeholder.
pub mod store;
