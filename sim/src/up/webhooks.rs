//! Calls of admission webhooks outside of the simulator, over HTTPS.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt as _, Collected, Full, LengthLimitError, Limited};
use kube_front::{ANSWER_LIMIT, NoAnswer, WebhookCall, WebhookPlace, Webhooks};
use stowage_gateway::body::Body;
use stowage_gateway::upstream::{Connect as _, RustlsConnect, Trust};
use tower::{BoxError, ServiceExt as _};

/// The reason why Services are not called.
const NO_SERVICE: &str =
    "nothing runs in this cluster, so no Service has an address: give the webhook a clientConfig.url";

/// Calls the host of a configuration, with a new connection for each call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Https;

impl Webhooks for Https {
    fn call(&self, call: WebhookCall) -> BoxFuture<'static, Result<Bytes, NoAnswer>> {
        Box::pin(ask(call))
    }
}

async fn ask(call: WebhookCall) -> Result<Bytes, NoAnswer> {
    let unreached = |why: String| NoAnswer::Unreached(why);
    if call.place == WebhookPlace::Service {
        return Err(unreached(NO_SERVICE.to_owned()));
    }
    if !call.url.starts_with("https://") {
        return Err(unreached("it is asked over HTTPS alone".to_owned()));
    }
    let trust = if call.ca_bundle.is_empty() { Trust::System } else { Trust::Bundle(call.ca_bundle) };
    let transport = RustlsConnect.connect(&trust).map_err(|error| unreached(error.to_string()))?;
    let body: Body = Full::new(call.review).map_err(|never| -> BoxError { match never {} }).boxed_unsync();
    let request = Request::post(&call.url)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(body)
        .map_err(|error| unreached(error.to_string()))?;
    // The types are named because the compiler can't infer that this is `Send`.
    let answer: BoxFuture<'static, Result<Response<Body>, BoxError>> = Box::pin(transport.oneshot(request));
    let answer = answer.await.map_err(|error| unreached(whole(&error)))?;
    let (head, body) = answer.into_parts();
    let body: BoxFuture<'static, Result<Collected<Bytes>, BoxError>> =
        Box::pin(Limited::new(body, ANSWER_LIMIT).collect());
    let body = body.await.map_err(|error| {
        let is_long = error.is::<LengthLimitError>();
        unreached(if is_long { format!("its answer is longer than {ANSWER_LIMIT} bytes") } else { whole(&error) })
    })?;
    let body = body.to_bytes();
    if head.status.is_success() {
        return Ok(body);
    }
    let text = is_text(&head.headers).then(|| String::from_utf8_lossy(&body).into_owned());
    Err(NoAnswer::Refused { code: head.status.as_u16(), text })
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media_type.is_some_and(|media_type| media_type.starts_with("text/"))
}

/// Returns the message of an error with those of its causes.
fn whole(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
