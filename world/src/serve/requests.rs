//! Request log of an S3 server, with the answers' status.
//!
//! Oracles that judge from the outside read it, in process or as lines of JSON.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, request::Parts};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tower::{Layer, Service};

use crate::effects::{S3Call, S3Operation};

/// Maximum number of requests kept in memory. Later ones are still written out and counted.
const MOST_REMEMBERED: usize = 1_000_000;

/// One request to an S3 server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct S3Request {
    /// Time of arrival.
    pub at: Timestamp,
    /// Access key id that signed the request; `None` for an unsigned request.
    pub who: Option<String>,
    /// Name of the operation in the AWS service model; `Unknown` if it is not recognized.
    #[serde(with = "by_name")]
    pub operation: S3Operation,
    /// Bucket in the path.
    pub bucket: Option<String>,
    /// Key in the path, percent-encoded as sent.
    pub key: Option<String>,
    /// Status of the answer; `None` if the client or the server closed the connection before an
    /// answer.
    pub status: Option<u16>,
}

/// Serialization of an operation in a line of the log.
mod by_name {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::S3Operation;

    pub(super) fn serialize<S: Serializer>(operation: &S3Operation, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(operation.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<S3Operation, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(S3Operation::named(&name).unwrap_or(S3Operation::UNKNOWN))
    }
}

/// Requests that a server has answered. Clones share the same log.
#[derive(Clone, Default)]
pub struct RequestLog(Arc<Mutex<Log>>);

#[derive(Default)]
struct Log {
    requests: Vec<S3Request>,
    forgotten: u64,
    out: Option<Box<dyn Write + Send>>,
}

impl fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestLog").field("requests", &self.lock().requests.len()).finish_non_exhaustive()
    }
}

impl RequestLog {
    /// Creates a log that is also written out, as one line of JSON per request.
    pub fn written_to(out: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Log { out: Some(Box::new(out)), ..Log::default() })))
    }

    /// Returns all answered requests, in the order of their answers.
    pub fn requests(&self) -> Vec<S3Request> {
        self.lock().requests.clone()
    }

    /// Returns the number of requests that exceeded the limit and are not kept. An oracle that
    /// needs all requests checks that it is zero.
    pub fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// Locks the log. Each change is a single call, so a panic elsewhere leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock()
    }

    fn note(&self, request: S3Request) {
        let mut log = self.lock();
        let log = &mut *log;
        if let Some(out) = &mut log.out
            && let Err(error) = write_line(out, &request)
        {
            tracing::error!(%error, "the request log can't be written any more");
            log.out = None;
        }
        if log.requests.len() < MOST_REMEMBERED {
            log.requests.push(request);
        } else {
            log.forgotten += 1;
        }
    }
}

fn write_line(out: &mut impl Write, request: &S3Request) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

impl<S> Layer<S> for RequestLog {
    type Service = Logged<S>;

    fn layer(&self, inner: S) -> Logged<S> {
        Logged { inner, log: self.clone() }
    }
}

/// A service whose requests are logged.
#[derive(Clone, Debug)]
pub struct Logged<S> {
    inner: S,
    log: RequestLog,
}

impl<S, Q, B> Service<Request<Q>> for Logged<S>
where
    S: Service<Request<Q>, Response = Response<B>, Future: Send + 'static>,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        let (head, body) = request.into_parts();
        let mut pending = Pending::new(self.log.clone(), &head);
        let answer = self.inner.call(Request::from_parts(head, body));
        Box::pin(async move {
            let answer = answer.await?;
            pending.answered(answer.status().as_u16());
            Ok(answer)
        })
    }
}

/// A request that is not answered yet. It is logged when it ends in any way, because that happens
/// on drop.
struct Pending {
    log: RequestLog,
    request: S3Request,
}

impl Pending {
    fn new(log: RequestLog, head: &Parts) -> Self {
        let call = S3Call::read(&head.method, &head.uri, &head.headers);
        let request = S3Request {
            at: Timestamp::now(),
            who: S3Call::signer(&head.uri, &head.headers).map(str::to_owned),
            operation: call.operation,
            bucket: call.bucket,
            key: call.key,
            status: None,
        };
        Self { log, request }
    }

    fn answered(&mut self, status: u16) {
        self.request.status = Some(status);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.log.note(self.request.clone());
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt, service_fn};

    use super::*;

    fn request(uri: &str) -> Request<()> {
        Request::get(uri).body(()).expect("a valid request")
    }

    #[tokio::test]
    async fn each_answer_is_a_line() {
        let log = RequestLog::default();
        let service = log.layer(service_fn(|_| async { Ok::<_, Infallible>(Response::new(())) }));
        service.oneshot(request("/photos/a%20b?x-id=GetObject")).await.unwrap();
        let [seen] = log.requests().try_into().expect("one request");
        assert_eq!(
            (seen.operation.name(), seen.bucket.as_deref(), seen.key.as_deref()),
            ("GetObject", Some("photos"), Some("a%20b"))
        );
        assert_eq!((&seen.who, seen.status), (&None, Some(200)));
        let line = serde_json::to_string(&seen).expect("it can be written");
        assert_eq!(serde_json::from_str::<S3Request>(&line).expect("it can be read"), seen);
    }

    #[tokio::test]
    async fn a_request_that_its_client_gave_up_is_noted_without_a_status() {
        let log = RequestLog::default();
        let service = log.layer(service_fn(|_| std::future::pending::<Result<Response<()>, Infallible>>()));
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(1), service.oneshot(request("/b")));
        assert!(given_up.await.is_err());
        assert_eq!(log.requests().iter().map(|request| request.status).collect::<Vec<_>>(), [None]);
    }
}
