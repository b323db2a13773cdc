//! The simulator in this process, as `stowage-sim up` serves it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Result, anyhow};
use stowage_sim::up::{Authorization, Listen, Options, Up};

/// Starts it without an operator. If requested, it reports workloads as ready, though nothing runs.
pub(crate) async fn start(folder: &Path, workloads_ready: bool) -> Result<Up> {
    begin(Options { workloads_ready, ..bare(folder) }).await
}

/// Starts it with all features: an operator if requested, ObjectBucketClaims, and workloads that
/// are reported as ready.
pub(crate) async fn start_whole(folder: &Path, operator: bool) -> Result<Up> {
    begin(Options { operator, obc: true, workloads_ready: true, ..bare(folder) }).await
}

async fn begin(options: Options) -> Result<Up> {
    Up::start(options).await.map_err(|error| anyhow!(error))
}

/// Returns options for free ports and for a kubeconfig below this folder, with RBAC enforced.
fn bare(folder: &Path) -> Options {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Options {
        listen: Listen { kube: anywhere, s3: anywhere, store: anywhere, admin: anywhere },
        kubeconfig: folder.join("simulator/kubeconfig"),
        operator: false,
        authorization: Authorization::Rbac,
        obc: false,
        workloads_ready: false,
        data: None,
        manifests: Vec::new(),
    }
}
