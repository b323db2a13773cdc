//! What a kind cluster is made of.

use std::path::PathBuf;

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The operator under test.
    pub(crate) operator_image: String,
    /// The gateway.
    pub(crate) gateway_image: String,
    /// Store and proxy.
    pub(crate) sim_image: String,
    /// The image of the node, and with it the version of Kubernetes; else kind's default.
    pub(crate) node_image: Option<String>,
    /// The project's `kind-config`.
    pub(crate) manifests: PathBuf,
    /// Whether clusters stay when all is done.
    pub(crate) keep: bool,
}
