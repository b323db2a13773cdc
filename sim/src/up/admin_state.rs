//! What the handlers of the admin API are given, and how they refuse.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::again::Beginning;
use super::served::Served;
use super::simulator::Simulator;

/// A simulator, where it is served, and how it begins.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) simulator: Simulator,
    pub(super) served: Arc<Served>,
    pub(super) beginning: Arc<Beginning>,
}

/// An answer that says why not.
pub(super) fn refused(code: StatusCode, why: impl Into<String>) -> Response {
    (code, Json(json!({"error": why.into()}))).into_response()
}
