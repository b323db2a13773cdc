//! What a kind cluster is made of.

use std::path::PathBuf;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operator under test.
    pub operator_image: String,
    /// The gateway.
    pub gateway_image: String,
    /// Store and proxy.
    pub sim_image: String,
    /// The image of the node, and with it the version of Kubernetes; else kind's default.
    pub node_image: Option<String>,
    /// The project's `kind-config`.
    pub manifests: PathBuf,
    /// Whether clusters stay when all is done.
    pub keep: bool,
}
