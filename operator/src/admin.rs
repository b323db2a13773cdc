//! The admin port: whether the process lives, whether it works, and what it measures.

use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::metrics::Metrics;

/// The format of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves `/healthz` (always 200), `/readyz` (200 once every cache is filled) and `/metrics` until
/// dropped.
///
/// # Errors
/// When the address can't be served.
pub(crate) async fn serve(address: SocketAddr, ready: watch::Receiver<bool>, metrics: Metrics) -> Result<(), String> {
    let readyz = move || {
        let ready = *ready.borrow();
        std::future::ready(if ready {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "filling caches\n")
        })
    };
    let scrape = move || std::future::ready(([(CONTENT_TYPE, OPEN_METRICS)], metrics.encode()));
    let router = Router::new()
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape));
    let failed = |error| format!("can't serve the admin address {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    axum::serve(listener, router).await.map_err(failed)
}
