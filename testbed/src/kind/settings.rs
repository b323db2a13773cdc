//! Settings of a kind cluster.

use std::path::PathBuf;

/// Settings of a kind cluster.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Image of the operator under test.
    pub operator_image: String,
    /// Image of the gateway.
    pub gateway_image: String,
    /// Image of store and proxy.
    pub sim_image: String,
    /// Image of the node, which determines the version of Kubernetes; kind's default if absent.
    pub node_image: Option<String>,
    /// The project's `kind-config` directory.
    pub manifests: PathBuf,
    /// True if clusters are kept after the run.
    pub keep: bool,
}
