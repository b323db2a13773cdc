//! A client of the admin API of a simulator that runs.

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Largest answer that is read: 1,000 calls take some 300 KB.
const LARGEST: usize = 8 << 20;

/// Asks one simulator.
#[derive(Debug)]
pub(super) struct Client {
    base: String,
    http: Http<HttpConnector, Full<Bytes>>,
}

impl Client {
    /// For the simulator at this URL.
    ///
    /// # Errors
    /// When it isn't an http URL.
    pub(super) fn new(url: &Uri) -> Result<Self, String> {
        match (url.scheme_str(), url.authority()) {
            (Some("http"), Some(authority)) => {
                let http = Http::builder(TokioExecutor::new()).build_http();
                Ok(Self { base: format!("http://{authority}"), http })
            }
            _ => Err(format!("{url} is no URL of a simulator: expected http:// and a host")),
        }
    }

    /// The answer to a request, and its JSON; `null` where it has none.
    ///
    /// # Errors
    /// In one sentence, when there is no answer.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Value), String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::from(body.map(|body| body.to_string()).unwrap_or_default()))
            .map_err(|error| format!("can't ask for {path}: {error}"))?;
        let nobody = |error: &dyn std::fmt::Display| {
            format!("no simulator answers at {}: {error}; `stowage-sim up` starts one", self.base)
        };
        let answer = self.http.request(request).await.map_err(|error| nobody(&error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| nobody(&error))?.to_bytes();
        Ok((head.status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
