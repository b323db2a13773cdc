//! Addresses and URLs of a simulator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use terminal::quoted;
use tokio::net::TcpListener;

/// The default path of the kubeconfig.
pub const KUBECONFIG: &str = ".stowage/kubeconfig";

/// The default URL of the admin API.
pub const ADMIN_URL: &str = "http://127.0.0.1:9002";

/// Returns true if an address can only be reached from this machine.
pub fn is_private(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Returns the shell command that selects a kubeconfig.
pub fn use_of(kubeconfig: &Path) -> String {
    format!("export KUBECONFIG={}", quoted(&kubeconfig.to_string_lossy()))
}

/// The addresses to listen on; port 0 takes any free port.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// The Kubernetes API.
    pub kube: SocketAddr,
    /// The gateway, which tenants use.
    pub s3: SocketAddr,
    /// The store behind it, for direct access without the gateway.
    pub store: SocketAddr,
    /// The admin API.
    pub admin: SocketAddr,
}

/// The URLs of all parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Served {
    /// Path of the kubeconfig for the Kubernetes API.
    pub kubeconfig: PathBuf,
    /// URL of the Kubernetes API.
    pub kubernetes: String,
    /// URL of the gateway, which accepts the credentials of claims.
    pub s3: String,
    /// URL of the store behind it.
    pub store: String,
    /// URL of the admin API.
    pub admin: String,
}

/// Returns the URL of a listener.
pub(super) fn url(scheme: &str, listener: &TcpListener) -> Result<String, String> {
    let address = listener.local_addr().map_err(|error| format!("a listener has no address: {error}"))?;
    Ok(format!("{scheme}://{address}"))
}
