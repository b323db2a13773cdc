//! The access log record of a request, written when its response has ended.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use jiff::Timestamp;
use tokio::time::Instant;
use tower::BoxError;

use super::peer::Peer;
use crate::answer::{REQUEST_ID, Unhappy};
use crate::audit::{Entry, Log, redacted};
use crate::body::Body;
use crate::deletion::Deletion;
use crate::head::{Ask, Key};
use crate::metrics::{Answered, Metrics};
use crate::registry::{self, Holder};

/// Maximum length of a logged text from a client, in characters.
const LONGEST: usize = 1024;

/// Maximum length of the logged keys of one DeleteObjects, in bytes: some thousand lines may be
/// queued for the log's writer.
const LONGEST_KEYS: usize = 8 << 10;

/// The record of a request in progress.
pub(super) struct Record {
    entry: Entry,
    began: Instant,
}

impl Record {
    pub(super) fn of(parts: &Parts, peer: &Peer, id: String, now: Timestamp) -> Self {
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let entry = Entry {
            time: now.to_string(),
            remote_ip: Some(peer.address.ip().to_string()),
            request_id: id,
            request_uri: short(&format!("{} {}", parts.method, redacted(target))),
            referer: text(&parts.headers, &header::REFERER).map(|referer| redacted(&referer)),
            user_agent: text(&parts.headers, &header::USER_AGENT),
            host_header: text(&parts.headers, &header::HOST),
            ..Entry::default()
        };
        Self { entry, began: Instant::now() }
    }

    pub(super) fn id(&self) -> &str {
        &self.entry.request_id
    }

    pub(super) fn signed_by(&mut self, key: &registry::Key, how: &'static str) {
        self.entry.requester = Some(key.id().to_owned());
        match &key.holder {
            Holder::Claim(credential) => {
                self.entry.claim = credential.claim.as_ref().map(|claim| format!("{}/{}", claim.namespace, claim.name));
                self.entry.claim_uid = Some(credential.uid.as_str().to_owned());
                self.entry.key_generation = credential.generation;
            }
            Holder::Access(access) => self.entry.access_uid = Some(access.uid.as_str().to_owned()),
        }
        self.entry.signature_version = Some("SigV4");
        self.entry.authentication_type = Some(how);
    }

    pub(super) fn asks(&mut self, ask: &Ask) {
        self.entry.operation = Some(ask.operation.name());
        self.entry.bucket = ask.target.bucket().map(ToString::to_string);
        self.entry.key = ask.target.key().map(|key| key.as_str().to_owned());
    }

    /// Records the objects that a DeleteObjects deletes: their number and the first keys, within
    /// bounds.
    pub(super) fn deletes(&mut self, deletion: &Deletion) {
        self.entry.deleted_objects = Some(deletion.objects().len());
        let mut room = LONGEST_KEYS;
        let fits = |key: &&str| {
            let left = room.checked_sub(key.len());
            room = left.unwrap_or_default();
            left.is_some()
        };
        self.entry.deleted_keys = deletion.keys().map(Key::as_str).take_while(fits).map(str::to_owned).collect();
    }

    /// Records that the request is a CORS preflight.
    pub(super) fn asks_for_leave(&mut self) {
        self.entry.operation = Some("Preflight");
    }

    /// Returns the backend that the request was forwarded to.
    pub(super) fn backend(&self) -> Option<&str> {
        self.entry.backend.as_deref()
    }

    pub(super) fn forwarded(&mut self, backend: &str) {
        self.entry.backend = Some(backend.to_owned());
    }

    pub(super) fn fail(&mut self, unhappy: &Unhappy) {
        self.entry.error_code = Some(unhappy.code.clone());
    }

    /// Completes the record with the response. The line is written when the response's body ends.
    pub(super) fn close(mut self, mut answer: Response<Body>, log: Option<Log>, metrics: Metrics) -> Response<Body> {
        let turnaround = self.began.elapsed();
        self.entry.http_status = answer.status().as_u16();
        self.entry.turn_around_time = millis(turnaround);
        metrics.answered(&Answered {
            operation: self.entry.operation,
            status: self.entry.http_status,
            code: self.entry.error_code.as_deref(),
            authentication: self.entry.authentication_type,
            turnaround,
        });
        if let Ok(id) = HeaderValue::from_str(&self.entry.request_id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        let written = Written { entry: self.entry, began: self.began, log, metrics };
        answer.map(|body| Told { body, written }.boxed_unsync())
    }
}

/// Writes the line when it is dropped.
struct Written {
    entry: Entry,
    began: Instant,
    log: Option<Log>,
    metrics: Metrics,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.metrics.bytes(0, self.entry.bytes_sent);
        if let Some(log) = &self.log {
            self.entry.total_time = millis(self.began.elapsed());
            log.write(&self.entry);
        }
    }
}

/// A body that counts the bytes sent.
struct Told {
    body: Body,
    written: Written,
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.written.entry.bytes_sent += bytes as u64;
                self.written.entry.complete = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.written.entry.complete = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => (),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A guard kept until a response has ended, such as a slot of a limit.
pub(super) struct Held {
    _held: Box<dyn Any + Send>,
}

impl Held {
    pub(super) fn new(held: impl Any + Send) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Keeps a guard until the end of a response.
pub(super) fn holding(answer: Response<Body>, held: Held) -> Response<Body> {
    answer.map(|body| Holding { body, _held: held }.boxed_unsync())
}

struct Holding {
    body: Body,
    _held: Held,
}

impl http_body::Body for Holding {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| short(&String::from_utf8_lossy(value.as_bytes())))
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use http::Request;

    use super::*;

    // covers: 6.deleteObjects.logged
    #[test]
    fn deleted_keys_are_named_within_bounds() {
        let (parts, ()) = Request::post("/photos?delete").body(()).expect("a request").into_parts();
        let peer = Peer { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), is_tls: false };
        let mut record = Record::of(&parts, &peer, String::new(), Timestamp::UNIX_EPOCH);
        let object = |at: usize| format!("<Object><Key>{at:01000}</Key></Object>");
        let document = format!("<Delete>{}</Delete>", (0..1000).map(object).collect::<String>());
        record.deletes(&Deletion::read(document.as_bytes()).expect("a document"));
        assert_eq!(record.entry.deleted_objects, Some(1000));
        assert_eq!(record.entry.deleted_keys, (0..8).map(|at| format!("{at:01000}")).collect::<Vec<_>>());
    }
}
