//! Admin API of a proxy: the methods that a harness in the same process calls, over HTTP.
//!
//! | request | effect |
//! |---|---|
//! | `GET /effects` | `{"effects": [{number, life, call, fault, world, answer, began_ms}], "unfired": "…"}` |
//! | `GET /effects/after/N` | the same for calls with a higher number |
//! | `POST /begin` `{"plan": "…"}` | starts a new run with this plan; numbers count from 1 |
//! | `PUT /plan` `{"plan": "…"}` | replaces the plan; numbers continue |
//! | `POST /life` | the old process is dead, calls pass again: `{"life": 2}` |
//! | `DELETE /life` | the process was killed: nothing passes until the next life |
//! | `GET /crash` | waits up to 30 s for the life to end: `{"life": 1, "effect": 17}`, else 204 |
//! | `GET /healthz` | `ok` |
//!
//! An invalid plan, or one that cannot happen here, is answered with 422 and `{"error": "…"}`, and
//! changes nothing.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Proxy, Unplayable};
use crate::{Call, CallOutcome, Line, Plan, Vocabulary};

/// Maximum duration of a request for a crash.
const LONG_POLL: Duration = Duration::from_secs(30);

/// A call as returned by the admin API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectLine {
    /// Number of the effect, counted from 1.
    pub number: u64,
    /// The controller's process that made the call.
    pub life: u32,
    /// The call, such as `kube:patch deployments/status team-a/web`.
    pub call: String,
    /// The fault that it met.
    pub fault: Option<String>,
    /// Status of the server's answer, if it was reached.
    pub world: Option<u16>,
    /// Result for the controller: a status, `broken`, `dropped`, `died`, `pending`.
    pub answer: String,
    /// Start in milliseconds since the beginning of the run.
    pub began_ms: u64,
}

impl<V: Vocabulary> From<&Line<V>> for EffectLine {
    fn from(line: &Line<V>) -> Self {
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

impl<V: Vocabulary> TryFrom<EffectLine> for Line<V> {
    type Error = Untold;

    /// Converts back from the admin API's form. It does not contain the API group of a Kubernetes
    /// call.
    fn try_from(told: EffectLine) -> Result<Self, Untold> {
        let untold = |what: &str| Untold(format!("`{what}` of effect {}", told.number));
        let fault = |word: &String| {
            let plan: Plan<V> = format!("#1 {word}").parse().map_err(|_| untold(word))?;
            plan.entries.first().map(|entry| entry.fault).ok_or_else(|| untold(word))
        };
        Ok(Self {
            number: told.number,
            instance: told.life,
            call: Call::told(&told.call).ok_or_else(|| untold(&told.call))?,
            fault: told.fault.as_ref().map(fault).transpose()?,
            world: told.world,
            answer: CallOutcome::told(&told.answer).ok_or_else(|| untold(&told.answer))?,
            began_ms: told.began_ms,
        })
    }
}

/// Error: the response of an admin API cannot be parsed, because it has another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy tells what is not understood: {0}")]
pub struct Untold(String);

#[derive(Deserialize)]
struct Planned {
    #[serde(default)]
    plan: String,
}

/// Returns the admin API of a proxy.
pub fn router<V: Vocabulary>(proxy: Proxy<V>) -> Router {
    Router::new()
        .route("/effects", get(effects::<V>))
        .route("/effects/after/{number}", get(effects_after::<V>))
        .route("/begin", post(begin::<V>))
        .route("/plan", put(set_plan::<V>))
        .route("/life", post(next_life::<V>).delete(end_life::<V>))
        .route("/crash", get(crash::<V>))
        .route("/healthz", get(|| std::future::ready("ok\n")))
        .with_state(proxy)
}

async fn effects<V: Vocabulary>(State(proxy): State<Proxy<V>>) -> Response {
    effects_after(State(proxy), Path(0)).await
}

async fn effects_after<V: Vocabulary>(State(proxy): State<Proxy<V>>, Path(number): Path<u64>) -> Response {
    let effects = proxy.effects();
    let trace = effects.trace();
    let lines = trace.lines().iter().skip_while(|line| line.number <= number);
    let lines: Vec<EffectLine> = lines.map(EffectLine::from).collect();
    Json(json!({"effects": lines, "unfired": effects.unfired().to_string()})).into_response()
}

async fn begin<V: Vocabulary>(State(proxy): State<Proxy<V>>, Json(planned): Json<Planned>) -> Response {
    planned_by(&planned, |plan| proxy.begin(plan))
}

async fn set_plan<V: Vocabulary>(State(proxy): State<Proxy<V>>, Json(planned): Json<Planned>) -> Response {
    planned_by(&planned, |plan| proxy.set_plan(plan))
}

fn planned_by<V: Vocabulary>(planned: &Planned, apply: impl FnOnce(Plan<V>) -> Result<(), Unplayable<V>>) -> Response {
    let outcome = match planned.plan.parse::<Plan<V>>() {
        Ok(plan) => apply(plan).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"error": error}))).into_response(),
    }
}

async fn next_life<V: Vocabulary>(State(proxy): State<Proxy<V>>) -> Response {
    Json(json!({"life": proxy.next_life()})).into_response()
}

async fn end_life<V: Vocabulary>(State(proxy): State<Proxy<V>>) -> StatusCode {
    proxy.end_life();
    StatusCode::NO_CONTENT
}

async fn crash<V: Vocabulary>(State(proxy): State<Proxy<V>>) -> Response {
    match tokio::time::timeout(LONG_POLL, proxy.crash()).await {
        Ok(crash) => Json(crash).into_response(),
        Err(_) => StatusCode::NO_CONTENT.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    type Line = crate::Line;

    fn told(call: &str, fault: Option<&str>, answer: &str) -> EffectLine {
        let (call, fault, answer) = (call.to_owned(), fault.map(str::to_owned), answer.to_owned());
        EffectLine { number: 7, life: 2, call, fault, world: Some(200), answer, began_ms: 9 }
    }

    #[rstest]
    #[case("kube:patch deployments/status team-a/web", Some("crash(after-effect)"), "died")]
    #[case("kube:watch secrets", Some("watch-cut"), "200")]
    #[case("kube:list secrets team-a/", None, "pending")]
    #[case("kube:get /version", None, "broken")]
    #[case("s3:ListBuckets", Some("slow(250)"), "dropped")]
    #[case("s3:PutObject photos/a/b%20c.txt", None, "503")]
    #[case("s3:Unknown photos", None, "405")]
    fn a_line_that_was_told_is_read_back(#[case] call: &str, #[case] fault: Option<&str>, #[case] answer: &str) {
        let told = told(call, fault, answer);
        let line = Line::try_from(told.clone()).expect("it is understood");
        assert_eq!(EffectLine::from(&line), told);
    }

    #[rstest]
    #[case("ftp:get x", None, "200", "`ftp:get x` of effect 7")]
    #[case("kube:get secrets a/b", Some("hagn"), "200", "`hagn` of effect 7")]
    #[case("kube:get secrets a/b", None, "gone", "`gone` of effect 7")]
    fn what_makes_no_sense_is_named(
        #[case] call: &str,
        #[case] fault: Option<&str>,
        #[case] answer: &str,
        #[case] named: &str,
    ) {
        let error = Line::try_from(told(call, fault, answer)).expect_err("it makes no sense");
        assert!(error.to_string().ends_with(named), "{error}");
    }
}
