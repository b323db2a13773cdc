//! A scripted store, which records its requests.

use std::sync::Arc;

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use parking_lot::Mutex;

/// Operation of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Look,
    Owner,
    IsEmpty,
    Create,
    Delete,
    Tag,
    Versioning,
    Purge,
    Probe,
}

impl Operation {
    fn named(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"look" => Self::Look,
            b"owner" => Self::Owner,
            b"is-empty" => Self::IsEmpty,
            b"create" => Self::Create,
            b"delete" => Self::Delete,
            b"tag" => Self::Tag,
            b"versioning" => Self::Versioning,
            b"purge" => Self::Purge,
            b"probe" => Self::Probe,
            _ => return None,
        })
    }
}

/// An operation, and the store's responses.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) operation: Operation,
    pub(super) replies: Vec<Reply>,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) region: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Script {
    /// Parses an input; `None` without an operation or a response.
    pub(super) fn read(input: &[u8]) -> Option<Self> {
        let (first, rest) = line(input);
        let operation = Operation::named(first)?;
        let mut replies: Vec<Vec<&[u8]>> = vec![Vec::new()];
        for line in rest.split(|byte| *byte == b'\n') {
            match (line, replies.last_mut()) {
                (b"----", _) | (_, None) => replies.push(Vec::new()),
                (line, Some(reply)) => reply.push(line),
            }
        }
        let replies = replies.into_iter().map(|lines| Reply::read(&lines.join(&b'\n'))).collect::<Option<Vec<_>>>()?;
        Some(Self { operation, replies })
    }
}

/// Splits off the first line.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, b""),
    }
}

impl Reply {
    fn read(text: &[u8]) -> Option<Self> {
        let (head, body) = line(text);
        let head = str::from_utf8(head).ok()?;
        let (status, region) = head.split_once(' ').map_or((head, None), |(status, region)| (status, Some(region)));
        let status = status.parse().ok().filter(|status| (200..600).contains(status))?;
        let region = region.filter(|region| region.bytes().all(|byte| byte.is_ascii_graphic())).map(str::to_owned);
        Some(Self { status, region, body: body.to_vec() })
    }

    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn response(&self) -> HttpResponse {
        let status = StatusCode::try_from(self.status).expect("a status");
        let mut response = HttpResponse::new(status, SdkBody::from(self.body.clone()));
        if let Some(region) = &self.region {
            response.headers_mut().insert("x-amz-bucket-region", region.clone());
        }
        response
    }
}

/// A request with its response.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Method and URI.
    pub(super) asked: String,
    pub(super) said: Reply,
}

/// A store that plays a script.
#[derive(Clone, Debug)]
pub(super) struct Store {
    replies: Arc<Vec<Reply>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Store {
    pub(super) fn of(script: &Script) -> Self {
        Self { replies: Arc::new(script.replies.clone()), exchanges: Arc::default() }
    }

    /// Returns all requests with their responses, in order.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().clone()
    }
}

impl HttpConnector for Store {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let mut exchanges = self.exchanges.lock();
        let at = exchanges.len().min(self.replies.len() - 1);
        let mut said = self.replies[at].clone();
        if request.method() == "HEAD" {
            said.body.clear();
        }
        let response = said.response();
        exchanges.push(Exchange { asked: format!("{} {}", request.method(), request.uri()), said });
        HttpConnectorFuture::ready(Ok(response))
    }
}
