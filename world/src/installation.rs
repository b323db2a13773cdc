//! How the operator is installed in every simulated cluster.

use std::sync::LazyLock;

use kube_sim::ReadDefinition;
use stowage_operator::api;

/// The operator namespace.
pub const OPERATOR_NAMESPACE: &str = "stowage-system";
/// Account of the store that the operator's admin credentials belong to.
pub const ADMIN_ACCOUNT: &str = "stowage-admin";
/// Access key id of those credentials.
pub const ADMIN_ACCESS_KEY: &str = "STOWAGEADMIN";
/// Secret key of those credentials.
pub const ADMIN_SECRET_KEY: &str = "stowage-admin-secret-key-for-demonstration";
/// Where tenants reach the gateway.
pub const GATEWAY_ENDPOINT: &str = "http://gateway.example";
/// Where the operator reaches the store.
pub const STORE_ENDPOINT: &str = "http://s3.example:9000";

/// What storage classes call the operator of a world that serves ObjectBucketClaims.
pub const PROVISIONER: &str = "broker.stowage.io/bucket";

/// The operator's CRDs, read once in a process: that of accesses last.
pub fn definitions() -> &'static [ReadDefinition] {
    static DEFINITIONS: LazyLock<Vec<ReadDefinition>> = LazyLock::new(|| {
        let read = |crd| ReadDefinition::new(crd).expect("the project's own CRDs are valid");
        api::crds().iter().map(read).collect()
    });
    &DEFINITIONS
}
