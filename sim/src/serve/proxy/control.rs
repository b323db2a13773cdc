//! The admin API of a proxy: what a harness in the same process does by calling it, over HTTP.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /effects` | `{"effects": [{number, life, call, fault, world, answer, began_ms}], "unfired": "…"}` |
//! | `POST /begin` `{"plan": "…"}` | begins anew with this plan: numbers count from 1 |
//! | `PUT /plan` `{"plan": "…"}` | from now on this is the plan, numbers go on |
//! | `POST /life` | the old process is dead, calls pass again: `{"life": 2}` |
//! | `GET /crash` | waits up to 30 s for the life to end: `{"life": 1, "effect": 17}`, else 204 |
//! | `GET /healthz` | `ok` |
//!
//! A plan that is none, or that can't happen here, is answered with 422 and `{"error": "…"}`; nothing changes then.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Proxy, Unplayable};
use crate::effects::{Line, Plan};

/// How long a question for a crash is kept open.
const LONG_POLL: Duration = Duration::from_secs(30);

/// How a life of the operator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    /// Which life, counted from 1.
    pub life: u32,
    /// Number of the effect that it was to crash at; absent if it was ended by hand.
    pub effect: Option<u64>,
}

/// An effect as the admin API tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectLine {
    /// Its number, counted from 1.
    pub number: u64,
    /// The life of the operator that made the call.
    pub life: u32,
    /// The call, such as `kube:patch bucketclaims/status team-a/photos`.
    pub call: String,
    /// The fault that it met.
    pub fault: Option<String>,
    /// Status that the server answered with, if it was reached.
    pub world: Option<u16>,
    /// What came of it for the operator: a status, `broken`, `dropped`, `died`, `pending`.
    pub answer: String,
    /// When it began, in milliseconds since the beginning.
    pub began_ms: u64,
}

impl From<&Line> for EffectLine {
    fn from(line: &Line) -> Self {
        Self {
            number: line.number,
            life: line.instance,
            call: line.call.to_string(),
            fault: line.fault.map(|fault| fault.to_string()),
            world: line.world,
            answer: line.answer.to_string(),
            began_ms: line.began_ms,
        }
    }
}

#[derive(Deserialize)]
struct Planned {
    #[serde(default)]
    plan: String,
}

/// The admin API of a proxy.
pub fn router(proxy: Proxy) -> Router {
    Router::new()
        .route("/effects", get(effects))
        .route("/begin", post(begin))
        .route("/plan", put(set_plan))
        .route("/life", post(next_life))
        .route("/crash", get(crash))
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .with_state(proxy)
}

async fn effects(State(proxy): State<Proxy>) -> Response {
    let effects = proxy.effects();
    let lines: Vec<EffectLine> = effects.trace().lines().iter().map(EffectLine::from).collect();
    Json(json!({"effects": lines, "unfired": effects.unfired().to_string()})).into_response()
}

async fn begin(State(proxy): State<Proxy>, Json(planned): Json<Planned>) -> Response {
    planned_by(&planned, |plan| proxy.begin(plan))
}

async fn set_plan(State(proxy): State<Proxy>, Json(planned): Json<Planned>) -> Response {
    planned_by(&planned, |plan| proxy.set_plan(plan))
}

fn planned_by(planned: &Planned, apply: impl FnOnce(Plan) -> Result<(), Unplayable>) -> Response {
    let outcome = match planned.plan.parse::<Plan>() {
        Ok(plan) => apply(plan).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": error}))).into_response(),
    }
}

async fn next_life(State(proxy): State<Proxy>) -> Response {
    Json(json!({"life": proxy.next_life()})).into_response()
}

async fn crash(State(proxy): State<Proxy>) -> Response {
    match tokio::time::timeout(LONG_POLL, proxy.crash()).await {
        Ok(crash) => Json(crash).into_response(),
        Err(_) => StatusCode::NO_CONTENT.into_response(),
    }
}
