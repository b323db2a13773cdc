//! Where a simulator listens, and where what of it is served.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use terminal::quoted;
use tokio::net::TcpListener;

/// The kubeconfig that a simulator writes unless it is told another place.
pub const KUBECONFIG: &str = ".stowage/kubeconfig";

/// Where a simulator listens unless it is told otherwise.
pub const ADMIN_URL: &str = "http://127.0.0.1:9002";

/// Whether an address can be reached from this machine alone.
pub fn is_private(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The command by which a shell gets to use a kubeconfig.
pub fn use_of(kubeconfig: &Path) -> String {
    format!("export KUBECONFIG={}", quoted(&kubeconfig.to_string_lossy()))
}

/// Where it listens; port 0 is any that is free.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// The Kubernetes API.
    pub kube: SocketAddr,
    /// The gateway, which tenants use.
    pub s3: SocketAddr,
    /// The store behind it, for whoever wants to look behind the gateway.
    pub store: SocketAddr,
    /// The admin API.
    pub admin: SocketAddr,
}

/// Where what is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// The kubeconfig, which names the Kubernetes API.
    pub kubeconfig: PathBuf,
    /// URL of the Kubernetes API.
    pub kubernetes: String,
    /// URL of the gateway, where the credentials of claims work.
    pub s3: String,
    /// URL of the store behind it.
    pub store: String,
    /// URL of the admin API.
    pub admin: String,
}

/// The URL of what a listener serves.
pub(super) fn url(scheme: &str, listener: &TcpListener) -> Result<String, String> {
    let address = listener.local_addr().map_err(|error| format!("a listener has no address: {error}"))?;
    Ok(format!("{scheme}://{address}"))
}
