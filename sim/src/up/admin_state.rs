//! The state of the admin API's handlers, and their error answer.

use std::sync::Arc;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::again::Beginning;
use super::served::Served;
use super::simulator::Simulator;

/// A simulator, its addresses, and its initial state.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) simulator: Simulator,
    pub(super) served: Arc<Served>,
    pub(super) beginning: Arc<Beginning>,
}

/// Returns an error answer with a message.
pub(super) fn refused(code: StatusCode, why: impl Into<String>) -> Response {
    (code, Json(json!({"error": why.into()}))).into_response()
}
