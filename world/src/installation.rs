//! Installation parameters of the operator in every simulated cluster.

use std::sync::LazyLock;

use kube_sim::ReadDefinition;
use stowage_operator::api;

/// The operator namespace.
pub const OPERATOR_NAMESPACE: &str = "stowage-system";
/// Account of the operator's admin credentials at the store.
pub const ADMIN_ACCOUNT: &str = "stowage-admin";
/// Access key id of the admin credentials.
pub const ADMIN_ACCESS_KEY: &str = "STOWAGEADMIN";
/// Secret key of the admin credentials.
pub const ADMIN_SECRET_KEY: &str = "stowage-admin-secret-key-for-demonstration";
/// Endpoint at which tenants reach the gateway.
pub const GATEWAY_ENDPOINT: &str = "http://gateway.example";
/// Endpoint at which the operator reaches the store.
pub const STORE_ENDPOINT: &str = "http://s3.example:9000";

/// Provisioner in storage classes that selects the operator in worlds with ObjectBucketClaims.
pub const PROVISIONER: &str = "broker.stowage.io/bucket";

/// Returns the operator's CRDs, parsed once per process. The last one is BucketAccess.
pub fn definitions() -> &'static [ReadDefinition] {
    static DEFINITIONS: LazyLock<Vec<ReadDefinition>> = LazyLock::new(|| {
        let read = |crd| ReadDefinition::new(crd).expect("the project's own CRDs are valid");
        api::crds().iter().map(read).collect()
    });
    &DEFINITIONS
}
