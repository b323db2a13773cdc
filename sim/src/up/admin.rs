//! The admin API of a running simulator, with JSON in bodies and answers.
//!
//! | request | effect |
//! |---|---|
//! | `GET /readyz` | `ok`, once everything is served |
//! | `GET /status` | the addresses of all parts, and the simulator's time |
//! | `GET /claims/NAMESPACE/NAME/connection` | an app's connection to the bucket, see below |
//! | `GET /calls?after=N` | the operator's calls with higher numbers, 1,000 at most; without N the last 1,000 |
//! | `GET /` | the page |
//! | `GET /view` | the state that the page shows |
//! | `GET /stream` | the state as server-sent events: `view` after a change, `call` for each call |
//! | `GET /faults` | `{"armed": "…"}`: the faults that have not met a call yet |
//! | `POST /faults` `{"plan": "…"}` | adds faults |
//! | `DELETE /faults` | removes all faults |
//! | `POST /clock` `{"advanceSeconds": N}` | moves time forward: `{"now", "aheadSeconds"}` |
//! | `GET /history` | `{"history", "plan", "caveats": […]}`: users' actions, faults as a plan |
//! | `POST /reset` | returns to the initial state, with the manifests of `up` |
//! | `GET /snapshot` | the whole state, as a file of type [`SNAPSHOT`] |
//! | `POST /snapshot` | replaces the state by that of such a file |
//!
//! The name of a connection is that of a claim; without such a claim, of an access or an
//! ObjectBucketClaim. The answer is 404 if none exists, and 409 while it isn't ready.
//!
//! It is for the user of this machine. A page of another origin in the user's browser must not use
//! it. So `Host` has to be a name of this machine, and `Origin`, if present, this very server. A
//! request that changes something needs `content-type: application/json` or that of a snapshot: a
//! browser sends a preflight request before it sends either to another origin.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use faults::proxy::EffectLine;
use futures::stream;
use http::Uri;
use serde::Deserialize;
use serde_json::json;
use stowage_world::effects::{Line, Plan};

use super::admin_state::{Admin, refused};
use super::again::Beginning;
use super::connection::Connection;
use super::data::Data;
use super::lives::{self, SNAPSHOT};
use super::served::Served;
use super::simulator::Simulator;

/// Maximum number of calls in an answer.
const MOST_CALLS: usize = 1000;
/// Interval between checks for new calls and changes while a page is connected.
const GLANCE: Duration = Duration::from_millis(100);
/// Number of calls that a page gets at first.
const CALLS_SHOWN: u64 = 100;
/// Maximum seconds to move time in one step: ten years.
const FURTHEST: u32 = 10 * 366 * 24 * 3600;

/// Returns the admin API of a simulator with these addresses and this initial state.
pub(super) fn router(simulator: Simulator, served: Arc<Served>, beginning: Arc<Beginning>) -> Router {
    Router::new()
        .route("/readyz", get(|| std::future::ready("ok\n")))
        .route("/status", get(status))
        .route("/claims/{namespace}/{name}/connection", get(connection))
        .route("/calls", get(calls))
        .route("/", get(page))
        .route("/view", get(view))
        .route("/stream", get(stream_of_page))
        .route("/faults", get(armed).post(arm).delete(calm))
        .route("/clock", post(advance))
        .route("/history", get(history))
        .route("/reset", post(lives::reset))
        .route("/snapshot", get(lives::save).post(lives::load).layer(DefaultBodyLimit::disable()))
        .layer(middleware::from_fn_with_state(simulator.data().cloned(), hold))
        .layer(middleware::from_fn(guard))
        .with_state(Admin { simulator, served, beginning })
}

/// Refuses requests that a page of another origin may have sent.
async fn guard(request: Request, next: Next) -> Response {
    match foreign(request.method(), request.headers()) {
        Some(why) => refused(StatusCode::FORBIDDEN, why),
        None => next.run(request).await,
    }
}

/// Holds back answers until the data they contain is durable. The page's events may be ahead of
/// that.
async fn hold(State(data): State<Option<Data>>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    if let Some(data) = data {
        data.settled().await;
    }
    answer
}

/// Returns why a request may come from another origin; `None` if it is the user's own.
fn foreign(method: &Method, headers: &HeaderMap) -> Option<&'static str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    if !names_this_machine(host) {
        return Some("the Host header names another machine");
    }
    if text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}")) {
        return Some("a page of another origin has sent this");
    }
    let of_type = text(header::CONTENT_TYPE).and_then(|it| it.split(';').next());
    let is_told = matches!(of_type, Some("application/json" | SNAPSHOT));
    (*method != Method::GET && !is_told)
        .then_some("a request that changes something says content-type: application/json")
}

/// Returns true if a host, with or without a port, is an IP address or `localhost`. No DNS lookup
/// is involved for those, which rules out DNS rebinding.
fn names_this_machine(host: &str) -> bool {
    let Some(authority) = host.parse::<Uri>().ok().and_then(|uri| uri.into_parts().authority) else { return false };
    let name = authority.host();
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<IpAddr>().is_ok()
}

async fn status(State(admin): State<Admin>) -> Response {
    let (clock, served) = (admin.simulator.clock(), &admin.served);
    let time = json!({"now": clock.now(), "aheadSeconds": clock.ahead()});
    Json(json!({"served": **served, "clock": time, "calls": admin.simulator.last_call()})).into_response()
}

async fn connection(State(admin): State<Admin>, Path((namespace, name)): Path<(String, String)>) -> Response {
    match admin.simulator.connection(&namespace, &name) {
        Connection::Ready(data) => Json(data).into_response(),
        Connection::NotReady(why) => refused(StatusCode::CONFLICT, why),
        Connection::NoClaim => {
            refused(StatusCode::NOT_FOUND, format!("there is no claim and no access {name} in namespace {namespace}"))
        }
    }
}

#[derive(Deserialize)]
struct After {
    after: Option<u64>,
}

impl After {
    /// Returns the number after which calls are requested.
    fn number(&self, simulator: &Simulator) -> u64 {
        self.after.unwrap_or_else(|| simulator.last_call().saturating_sub(MOST_CALLS as u64))
    }
}

async fn calls(State(admin): State<Admin>, Query(after): Query<After>) -> Response {
    let calls = admin.simulator.calls_after(after.number(&admin.simulator), MOST_CALLS);
    let calls: Vec<EffectLine> = calls.iter().map(EffectLine::from).collect();
    Json(json!({"calls": calls})).into_response()
}

/// Returns the page. Its policy allows only its own inline scripts and styles.
async fn page() -> Response {
    let mut bytes = [0; 16];
    if let Err(error) = getrandom::fill(&mut bytes) {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, format!("there are no random numbers: {error}"));
    }
    let nonce = hex::encode(bytes);
    let policy = format!(
        "default-src 'none'; connect-src 'self'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    (headers, include_str!("page.html").replace("NONCE", &nonce)).into_response()
}

async fn view(State(admin): State<Admin>) -> Response {
    Json(admin.simulator.view()).into_response()
}

/// The position of a client in the page's event stream.
struct Listener {
    simulator: Simulator,
    /// The last version that was sent, if any.
    seen: Option<(u64, u64, String, i64)>,
    last_call: u64,
}

async fn stream_of_page(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let newest = admin.simulator.last_call();
    // A higher number is from an earlier process of the simulator.
    let last = last_event(&headers).filter(|last| *last <= newest);
    let last = last.unwrap_or_else(|| newest.saturating_sub(CALLS_SHOWN));
    let listener = Listener { simulator: admin.simulator, seen: None, last_call: last };
    Sse::new(stream::unfold(listener, next_of_page)).keep_alive(KeepAlive::default()).into_response()
}

/// Returns the next event for a page: a view first, then calls one by one, and another view when
/// something has changed.
async fn next_of_page(mut listener: Listener) -> Option<(Result<Event, Infallible>, Listener)> {
    loop {
        let version = listener.simulator.version();
        let is_first = listener.seen.is_none();
        let calls = if is_first { Vec::new() } else { listener.simulator.calls_after(listener.last_call, 1) };
        if let Some(line) = calls.first() {
            listener.last_call = line.number;
            return Some((Ok(call_event(line)), listener));
        }
        if listener.seen.as_ref() != Some(&version) {
            if !is_first {
                // Several changes are sent as one view.
                tokio::time::sleep(GLANCE).await;
            }
            listener.seen = Some(version);
            let event = Event::default().event("view").json_data(listener.simulator.view()).unwrap_or_default();
            return Some((Ok(event), listener));
        }
        tokio::time::sleep(GLANCE).await;
    }
}

fn call_event(line: &Line) -> Event {
    let event = Event::default().id(line.number.to_string()).event("call");
    event.json_data(EffectLine::from(line)).unwrap_or_default()
}

/// Returns the last event that a client received before its connection broke.
fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok())
}

async fn armed(State(admin): State<Admin>) -> Response {
    Json(json!({"armed": admin.simulator.armed().to_string()})).into_response()
}

#[derive(Deserialize)]
struct Planned {
    plan: String,
}

async fn arm(State(admin): State<Admin>, Json(planned): Json<Planned>) -> Response {
    match planned.plan.parse::<Plan>() {
        Ok(plan) => {
            admin.simulator.arm(plan);
            armed(State(admin)).await
        }
        Err(error) => refused(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

async fn calm(State(admin): State<Admin>) -> Response {
    admin.simulator.calm();
    armed(State(admin)).await
}

async fn history(State(admin): State<Admin>) -> Response {
    admin.simulator.see_calls();
    let (deeds, befell) = (admin.simulator.recorder().deeds(), admin.simulator.recorder().befell());
    let caveats = [deeds.caveats(), befell.caveats()].concat();
    Json(json!({"history": deeds, "plan": befell.plan().to_string(), "caveats": caveats})).into_response()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Advance {
    advance_seconds: u32,
}

async fn advance(State(admin): State<Admin>, Json(Advance { advance_seconds }): Json<Advance>) -> Response {
    if advance_seconds > FURTHEST {
        return refused(StatusCode::UNPROCESSABLE_ENTITY, "time is moved by ten years at most in one step");
    }
    let simulator = admin.simulator.clone();
    match lives::to_the_end(async move { Ok(simulator.advance(advance_seconds).await) }).await {
        Ok(ahead) => Json(json!({"now": admin.simulator.clock().now(), "aheadSeconds": ahead})).into_response(),
        Err(why) => refused(StatusCode::INTERNAL_SERVER_ERROR, why),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("GET", &[("host", "127.0.0.1:9002")], true)]
    #[case("GET", &[("host", "localhost:9002"), ("origin", "http://localhost:9002")], true)]
    #[case("GET", &[("host", "[::1]:9002")], true)]
    #[case("GET", &[], false)]
    #[case("GET", &[("host", "evil.example:9002")], false)]
    #[case("GET", &[("host", "localhost.evil.example")], false)]
    #[case("GET", &[("host", "localhost:9002"), ("origin", "http://evil.example")], false)]
    #[case("POST", &[("host", "localhost:9002"), ("content-type", "application/json; charset=utf-8")], true)]
    #[case("POST", &[("host", "localhost:9002"), ("content-type", "text/plain")], false)]
    #[case("DELETE", &[("host", "localhost:9002")], false)]
    fn requests_of_other_pages_are_turned_away(
        #[case] method: &str,
        #[case] sent: &[(&'static str, &'static str)],
        #[case] own: bool,
    ) {
        let headers = sent.iter().map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)));
        let method = method.parse().expect("a method");
        assert_eq!(foreign(&method, &headers.collect()).is_none(), own);
    }
}
