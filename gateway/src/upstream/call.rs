//! A call to a store: built from the parsed request, signed with the gateway's key, with a deadline
//! that moves with the progress of the body.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Frame;
use http_body_util::BodyExt;
use jiff::Timestamp;
use stowage_api::{AddressingStyle, Endpoint};
use tokio::time::{Instant, sleep_until};
use tower::{BoxError, ServiceExt};

use super::transport::{Transport, is_unreached};
use crate::body::{Body, nothing};
use crate::head::Target;
use crate::sigv4::{HASH_OF_NOTHING, Outgoing, Signer};
use crate::uri::{self, Pair};

/// Maximum time from the last byte of a request to the first byte of its response.
const FIRST_BYTE: Duration = Duration::from_secs(60);
/// The same if the store has to assemble an object first (Amazon S3, CompleteMultipartUpload).
const FIRST_BYTE_OF_LONG: Duration = Duration::from_secs(15 * 60);

/// The location of a store, and its addressing style.
#[derive(Clone, Debug)]
pub struct Place {
    scheme: String,
    authority: String,
    style: AddressingStyle,
}

impl Place {
    /// Returns the store at this endpoint, or `None` if it is not a URL with a host, which an
    /// [`Endpoint`] always is.
    #[must_use]
    pub fn of(endpoint: &Endpoint, style: AddressingStyle) -> Option<Self> {
        let uri: Uri = endpoint.as_str().parse().ok()?;
        Some(Self { scheme: uri.scheme_str()?.to_owned(), authority: uri.authority()?.to_string(), style })
    }

    /// Returns the host and the path of a target.
    fn address(&self, target: &Target) -> (String, Vec<u8>) {
        let (bucket, key) = match target {
            Target::Service => return (self.authority.clone(), b"/".to_vec()),
            Target::Bucket(bucket) => (bucket, ""),
            Target::Object(bucket, key) => (bucket, key.as_str()),
        };
        match self.style {
            AddressingStyle::Virtual => (format!("{bucket}.{}", self.authority), format!("/{key}").into_bytes()),
            AddressingStyle::Path if key.is_empty() => (self.authority.clone(), format!("/{bucket}").into_bytes()),
            AddressingStyle::Path => (self.authority.clone(), format!("/{bucket}/{key}").into_bytes()),
        }
    }
}

/// A request to a store.
pub struct Call {
    /// The method.
    pub method: Method,
    /// The bucket or object.
    pub target: Target,
    /// The parameters, decoded.
    pub query: Vec<Pair>,
    /// The headers, without those of the signature and of the body's length.
    pub headers: HeaderMap,
    /// The value of `x-amz-content-sha256`.
    pub payload: String,
    /// The length of the body as it is sent. `None`: no length is announced.
    pub length: Option<u64>,
    /// The body.
    pub body: Body,
    /// True if the store may take minutes.
    pub is_long: bool,
}

impl Call {
    /// Creates a call without a body, which the store answers soon.
    #[must_use]
    pub fn without_body(method: Method, target: Target, query: Vec<Pair>, headers: HeaderMap) -> Self {
        let payload = HASH_OF_NOTHING.to_owned();
        Self { method, target, query, headers, payload, length: None, body: nothing(), is_long: false }
    }
}

/// The reason why a call has no response. The store may or may not have carried it out.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The store did not begin its response in time.
    #[error("the store did not begin to answer in time")]
    Late,
    /// No connection could be made.
    #[error("{0}")]
    Unreached(BoxError),
    /// The connection broke.
    #[error("{0}")]
    Broken(BoxError),
    /// The request can't be written. Parsed requests should never cause this.
    #[error("the request can't be written: {0}")]
    Unwritable(http::Error),
}

impl CallError {
    /// Returns true if the store may be at fault for every request. A connection may also break
    /// because of a single request.
    pub(super) fn is_about_the_store(&self) -> bool {
        match self {
            Self::Late | Self::Unreached(_) => true,
            Self::Broken(_) | Self::Unwritable(_) => false,
        }
    }
}

/// Sends a call to a store.
///
/// # Errors
/// Returns an error if there is no response.
pub async fn ask(
    transport: &Transport,
    place: &Place,
    signer: &Signer,
    call: Call,
    now: Timestamp,
) -> Result<Response<Body>, CallError> {
    let began = Instant::now();
    let progress = Arc::new(AtomicU64::new(0));
    let patience = if call.is_long { FIRST_BYTE_OF_LONG } else { FIRST_BYTE };
    let request = request(place, signer, call, now, began, &progress).map_err(CallError::Unwritable)?;
    // Boxed, because the compiler can't prove through the service that the future is `Send`.
    let answer: BoxFuture<'static, Result<Response<Body>, BoxError>> = Box::pin(transport.clone().oneshot(request));
    tokio::select! {
        biased;
        answer = answer => answer.map_err(|error| {
            if is_unreached(&error) { CallError::Unreached(error) } else { CallError::Broken(error) }
        }),
        () = overdue(began, &progress, patience) => Err(CallError::Late),
    }
}

fn request(
    place: &Place,
    signer: &Signer,
    call: Call,
    now: Timestamp,
    began: Instant,
    progress: &Arc<AtomicU64>,
) -> Result<Request<Body>, http::Error> {
    let (authority, path) = place.address(&call.target);
    let mut headers = call.headers;
    let (method, query, payload) = (call.method.as_str(), call.query.as_slice(), call.payload.as_str());
    let outgoing = Outgoing { method, host: &authority, path: &path, query, payload };
    signer.sign(&outgoing, &mut headers, now)?;
    if let Some(length) = call.length.filter(|length| *length > 0 || writes(&call.method)) {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let uri = Uri::builder()
        .scheme(place.scheme.as_str())
        .authority(authority)
        .path_and_query(path_and_query(&path, &call.query))
        .build()?;
    let mut request = Request::new(told(call.body, began, progress));
    *request.method_mut() = call.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

fn writes(method: &Method) -> bool {
    matches!(*method, Method::PUT | Method::POST)
}

fn path_and_query(path: &[u8], query: &[Pair]) -> String {
    let mut text = uri::encode_path(path);
    for (at, pair) in query.iter().enumerate() {
        text.push(if at == 0 { '?' } else { '&' });
        text.push_str(&uri::encode(&pair.name));
        text.push('=');
        text.push_str(&uri::encode(&pair.value));
    }
    text
}

/// Wraps a body to note when its last bytes were taken, in milliseconds from `began`.
fn told(body: Body, began: Instant, progress: &Arc<AtomicU64>) -> Body {
    let progress = progress.clone();
    body.map_frame(move |frame: Frame<Bytes>| {
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        progress.store(elapsed, Ordering::Relaxed);
        frame
    })
    .boxed_unsync()
}

/// Completes once no bytes of the request were taken for the time `patience`.
async fn overdue(began: Instant, progress: &AtomicU64, patience: Duration) {
    loop {
        let due = began + Duration::from_millis(progress.load(Ordering::Relaxed)) + patience;
        if Instant::now() >= due {
            return;
        }
        sleep_until(due).await;
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn target(path: &str) -> Target {
        Target::of(path.as_bytes(), None).expect("a target")
    }

    #[rstest]
    #[case(AddressingStyle::Path, "/photos", "s3.example:9000", "/photos")]
    #[case(AddressingStyle::Path, "/photos//a b", "s3.example:9000", "/photos//a b")]
    #[case(AddressingStyle::Virtual, "/photos", "photos.s3.example:9000", "/")]
    #[case(AddressingStyle::Virtual, "/photos//a", "photos.s3.example:9000", "//a")]
    fn a_bucket_is_in_the_path_or_in_the_host(
        #[case] style: AddressingStyle,
        #[case] path: &str,
        #[case] host: &str,
        #[case] asked: &str,
    ) {
        let endpoint = Endpoint::parse("http://s3.example:9000").expect("an endpoint");
        let place = Place::of(&endpoint, style).expect("it has a host");
        assert_eq!(place.address(&target(path)), (host.to_owned(), asked.as_bytes().to_vec()));
    }

    #[test]
    fn what_was_decoded_is_encoded_again() {
        let query = uri::parse_query("uploads&prefix=a%2Bb%26c").expect("a query");
        assert_eq!(path_and_query(b"/photos//a b%+", &query), "/photos//a%20b%25%2B?uploads=&prefix=a%2Bb%26c");
    }

    #[tokio::test(start_paused = true)]
    async fn time_counts_from_the_last_byte() {
        let began = Instant::now();
        let progress = AtomicU64::new(0);
        let late = overdue(began, &progress, FIRST_BYTE);
        let upload = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                let elapsed = u64::try_from(began.elapsed().as_millis()).expect("it is short");
                progress.store(elapsed, Ordering::Relaxed);
            }
        };
        tokio::join!(late, upload);
        assert_eq!(began.elapsed(), Duration::from_secs(560));
    }
}
