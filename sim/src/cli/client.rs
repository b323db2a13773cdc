//! A client of the admin API of a simulator that runs.

use std::fs::File;
use std::io::{self, Read, Write};

use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// Largest answer that is read: 1,000 calls take some 300 KB.
const LARGEST: usize = 8 << 20;

/// A request's body.
type Sent = UnsyncBoxBody<Bytes, io::Error>;

fn whole(text: String) -> Sent {
    Full::from(text).map_err(|never| match never {}).boxed_unsync()
}

/// Bytes of a file that are sent at once.
const AT_ONCE: usize = 1 << 20;

/// The parts of a file, as they are sent.
fn parts(file: File) -> Sent {
    let parts = stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut part = vec![0; AT_ONCE];
        match file.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some((Ok(Frame::data(part.into())), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    StreamBody::new(parts).boxed_unsync()
}

/// Asks one simulator.
#[derive(Debug)]
pub(super) struct Client {
    base: String,
    http: Http<HttpConnector, Sent>,
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
        let body = whole(body.map(|body| body.to_string()).unwrap_or_default());
        self.read(self.send(method, path, "application/json", body).await?).await
    }

    /// Sends a file; the answer is as of [`Client::ask`].
    ///
    /// # Errors
    /// In one sentence, when there is no answer.
    pub(super) async fn upload(
        &self,
        path: &str,
        content_type: &str,
        file: File,
    ) -> Result<(StatusCode, Value), String> {
        self.read(self.send(Method::POST, path, content_type, parts(file)).await?).await
    }

    /// Receives a file. An answer that isn't good is as of [`Client::ask`].
    ///
    /// # Errors
    /// In one sentence, when there is no whole answer, or no room for it.
    pub(super) async fn download(&self, path: &str, out: &mut impl Write) -> Result<(StatusCode, Value), String> {
        let answer = self.send(Method::GET, path, "application/json", whole(String::new())).await?;
        if !answer.status().is_success() {
            return self.read(answer).await;
        }
        let (head, mut body) = answer.into_parts();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.nobody(&error))?;
            let bytes = frame.into_data().unwrap_or_default();
            out.write_all(&bytes).map_err(|error| format!("can't write: {error}"))?;
        }
        Ok((head.status, Value::Null))
    }

    fn nobody(&self, error: &dyn std::fmt::Display) -> String {
        format!("no simulator answers at {}: {error}; `stowage-sim up` starts one", self.base)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Sent,
    ) -> Result<Response<Incoming>, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::CONTENT_TYPE, content_type)
            .body(body)
            .map_err(|error| format!("can't ask for {path}: {error}"))?;
        self.http.request(request).await.map_err(|error| self.nobody(&error))
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<(StatusCode, Value), String> {
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(|error| self.nobody(&error))?.to_bytes();
        Ok((head.status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
