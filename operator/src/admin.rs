//! The admin port: whether the process lives, and whether it works.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Serves `/healthz` (always 200) and `/readyz` (200 once every cache is filled) until dropped.
///
/// # Errors
/// When the address can't be served.
pub(crate) async fn serve(address: SocketAddr, ready: watch::Receiver<bool>) -> Result<(), String> {
    let readyz = move || {
        let ready = *ready.borrow();
        std::future::ready(if ready {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "filling caches\n")
        })
    };
    let router = Router::new().route("/healthz", get(|| std::future::ready("ok\n"))).route("/readyz", get(readyz));
    let failed = |error| format!("can't serve the admin address {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    axum::serve(listener, router).await.map_err(failed)
}
