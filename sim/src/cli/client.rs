//! A client of the admin API of a running simulator.

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

/// Maximum size of an answer: 1,000 calls take some 300 KB.
const LARGEST: usize = 8 << 20;

/// The body of a request.
type Sent = UnsyncBoxBody<Bytes, io::Error>;

fn whole(text: String) -> Sent {
    Full::from(text).map_err(|never| match never {}).boxed_unsync()
}

/// Size of the chunks in which a file is sent.
const AT_ONCE: usize = 1 << 20;

/// Returns a body that reads the file chunk by chunk.
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

/// A client for one simulator.
#[derive(Debug)]
pub(super) struct Client {
    base: String,
    http: Http<HttpConnector, Sent>,
}

impl Client {
    /// Creates a client for the simulator at this URL.
    ///
    /// # Errors
    /// Returns a message if it isn't an http URL.
    pub(super) fn new(url: &Uri) -> Result<Self, String> {
        match (url.scheme_str(), url.authority()) {
            (Some("http"), Some(authority)) => {
                let http = Http::builder(TokioExecutor::new()).build_http();
                Ok(Self { base: format!("http://{authority}"), http })
            }
            _ => Err(format!("{url} is no URL of a simulator: expected http:// and a host")),
        }
    }

    /// Sends a request and returns the status and the JSON of the answer; `null` if the answer has
    /// no body.
    ///
    /// # Errors
    /// Returns an error message if there is no answer.
    pub(super) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(StatusCode, Value), String> {
        let body = whole(body.map(|body| body.to_string()).unwrap_or_default());
        self.read(self.send(method, path, "application/json", body).await?).await
    }

    /// Sends a file and returns the answer as [`Client::ask`] does.
    ///
    /// # Errors
    /// Returns an error message if there is no answer.
    pub(super) async fn upload(
        &self,
        path: &str,
        content_type: &str,
        file: File,
    ) -> Result<(StatusCode, Value), String> {
        self.read(self.send(Method::POST, path, content_type, parts(file)).await?).await
    }

    /// Receives a file. An answer without success is returned as by [`Client::ask`].
    ///
    /// # Errors
    /// Returns an error message if the answer is missing or incomplete, or can't be written.
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
