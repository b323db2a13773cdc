//! The simulator as `stowage-sim up` serves it, in this process and without an operator.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Result, anyhow};
use stowage_sim::up::{Authorization, Listen, Options, Up};

/// Starts it at free ports, with its kubeconfig below this folder. Roles are judged; workloads are
/// told to be ready if asked for, though nothing runs.
pub(crate) async fn start(folder: &Path, workloads_ready: bool) -> Result<Up> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = Options {
        listen: Listen { kube: anywhere, s3: anywhere, store: anywhere, admin: anywhere },
        kubeconfig: folder.join("simulator/kubeconfig"),
        operator: false,
        authorization: Authorization::Rbac,
        obc: false,
        workloads_ready,
        data: None,
        manifests: Vec::new(),
    };
    Up::start(options).await.map_err(|error| anyhow!(error))
}
