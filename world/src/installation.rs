//! How the operator is installed in every simulated cluster.

/// The operator namespace.
pub const OPERATOR_NAMESPACE: &str = "stowage-system";
