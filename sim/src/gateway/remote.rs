//! Stores that are reached over HTTP: a tenant's request goes on as it is, signed anew with the
//! store's own keys.
//!
//! The same rules hold as before backends of the same process. What the protocol knows and the
//! gateway doesn't (headers, kinds of checksums, answers) passes through untouched.

use std::fmt;
use std::time::SystemTime;

use aws_sdk_s3::config::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_runtime_api::client::identity::Identity;
use http::uri::{Authority, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use s3s::dto::CopySource;
use s3s::route::S3Route;
use s3s::{Body, S3Error, S3ErrorCode, S3Request, S3Response, S3Result};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

use super::decide::{Operation, Verdict};
use super::front::{Front, Route, configures, denied, deny_old_versions};
use crate::effects::S3Call;

/// What a tenant's signature consists of, besides `Authorization`, and what speaks of a body as it
/// was before the gateway took it out of its chunks.
const OF_SIGNATURE: [&str; 8] = [
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-decoded-content-length",
    "x-amz-trailer",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-security-token",
    "expect",
    "connection",
];

/// A store that is reached over HTTP. Clones share its connections.
#[derive(Clone)]
pub struct Remote {
    scheme: Scheme,
    authority: Authority,
    region: String,
    identity: Identity,
    http: BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>,
}

/// Why a URL is not that of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not the URL of a store: http:// and a host, nothing behind it")]
pub struct NoStore(String);

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("authority", &self.authority).finish_non_exhaustive()
    }
}

impl Remote {
    /// The store at this URL, used with these keys.
    ///
    /// # Errors
    /// When the URL has another scheme than http, or a path.
    pub fn new(endpoint: &Uri, region: &str, access_key: &str, secret_key: &str) -> Result<Self, NoStore> {
        let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build_http();
        let http = client.map_response(|answer: Response<_>| answer.map(Body::from)).map_err(BoxError::from);
        Self::through(http, endpoint, region, access_key, secret_key)
    }

    /// The store that this service leads to.
    ///
    /// # Errors
    /// When the URL has another scheme than http, or a path.
    pub(super) fn through(
        http: impl Service<Request<Body>, Response = Response<Body>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
        endpoint: &Uri,
        region: &str,
        access_key: &str,
        secret_key: &str,
    ) -> Result<Self, NoStore> {
        let wrong = || NoStore(endpoint.to_string());
        let scheme = endpoint.scheme().filter(|scheme| **scheme == Scheme::HTTP).ok_or_else(wrong)?;
        let authority = endpoint.authority().ok_or_else(wrong)?;
        if endpoint.path() != "/" || endpoint.query().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.clone(),
            region: region.to_owned(),
            identity: Credentials::new(access_key, secret_key, None, None, "gateway").into(),
            http: BoxCloneSyncService::new(http),
        })
    }

    /// Asks the store what the tenant asks.
    async fn forward(&self, request: S3Request<Body>) -> Result<Response<Body>, BoxError> {
        let query: Vec<&str> = request.uri.query().unwrap_or_default().split('&').filter(|it| !presigns(it)).collect();
        let path = match query.join("&") {
            none if none.is_empty() => request.uri.path().to_owned(),
            query => format!("{}?{query}", request.uri.path()),
        };
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        let mut onward = Request::new(request.input);
        *onward.method_mut() = request.method;
        *onward.uri_mut() = uri.path_and_query(path).build()?;
        *onward.headers_mut() = unsigned(request.headers);
        onward.headers_mut().insert(header::HOST, HeaderValue::from_str(self.authority.as_str())?);
        self.sign(&mut onward)?;
        self.http.clone().oneshot(onward).await
    }

    /// Signs all but the body, which is on its way still.
    fn sign(&self, request: &mut Request<Body>) -> Result<(), BoxError> {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let parameters = v4::SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()?
            .into();
        // Only the headers that S3 wants signed: what stands in the others is nobody's business on
        // the way.
        let wanted = |name: &HeaderName| *name == header::HOST || name.as_str().starts_with("x-amz-");
        let headers = request.headers().iter().filter(|(name, _)| wanted(name));
        let headers: Result<Vec<_>, _> = headers.map(|(name, value)| Ok((name.as_str(), value.to_str()?))).collect();
        let headers: Vec<(&str, &str)> = headers.map_err(|error: header::ToStrError| BoxError::from(error))?;
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.uri().to_string(),
            headers.into_iter(),
            SignableBody::UnsignedPayload,
        )?;
        let (instructions, _) = sign(signable, &parameters)?.into_parts();
        instructions.apply_to_request_http1x(request);
        Ok(())
    }
}

/// Whether a pair of a query belongs to a signature that stands there.
fn presigns(pair: &str) -> bool {
    const SIGNS: [&str; 7] =
        ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders", "Signature", "Security-Token"];
    let name = pair.split('=').next().unwrap_or_default();
    name.strip_prefix("X-Amz-").is_some_and(|name| SIGNS.contains(&name))
}

/// The headers without what the tenant signed with.
fn unsigned(mut headers: HeaderMap) -> HeaderMap {
    headers.remove(header::AUTHORIZATION);
    headers.remove(header::TRANSFER_ENCODING);
    for name in OF_SIGNATURE {
        headers.remove(name);
    }
    let encodings = headers.remove(header::CONTENT_ENCODING);
    let kept = encodings.as_ref().and_then(|value| value.to_str().ok()).map(|text| {
        text.split(',').map(str::trim).filter(|encoding| *encoding != "aws-chunked").collect::<Vec<_>>().join(",")
    });
    if let Some(Ok(kept)) = kept.filter(|kept| !kept.is_empty()).map(|kept| HeaderValue::from_str(&kept)) {
        headers.insert(header::CONTENT_ENCODING, kept);
    }
    headers
}

/// Everything but the list of the caller's buckets, which the gateway answers itself.
#[async_trait::async_trait]
impl S3Route for Front {
    fn is_match(&self, _: &Method, uri: &Uri, _: &HeaderMap, _: &mut Extensions) -> bool {
        uri.path() != "/"
    }

    async fn check_access(&self, request: &mut S3Request<Body>) -> S3Result<()> {
        if request.headers.keys().any(|name| configures(name.as_str())) {
            return Err(denied());
        }
        let call = S3Call::read(&request.method, &request.uri, &request.headers);
        let key = request.credentials.as_ref().map(|credentials| credentials.access_key.as_str());
        let operation = Operation::from_name(call.operation.name());
        let verdict = self.verdict(key, operation, call.bucket.as_deref())?;
        let Verdict::Forward { backend } = verdict else { return Err(denied()) };
        request.extensions.insert(Route(backend));
        if operation == Operation::ReadObject {
            let query = request.uri.query().unwrap_or_default();
            let version = query.split('&').any(|pair| pair.split('=').next() == Some("versionId"));
            deny_old_versions(request.credentials.is_none(), version)?;
        }
        match request.headers.get("x-amz-copy-source") {
            None => Ok(()),
            Some(source) => {
                let source = source.to_str().ok().and_then(|source| CopySource::parse(source).ok());
                self.check_source(request, &source.ok_or_else(denied)?)
            }
        }
    }

    async fn call(&self, mut request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let remote = self.remote(&mut request)?;
        let answer = remote.forward(request).await.map_err(|error| {
            tracing::debug!(%error, ?remote, "the store gave no answer");
            S3Error::with_message(S3ErrorCode::ServiceUnavailable, "The store gives no answer. Please try again.")
        })?;
        let (head, body) = answer.into_parts();
        let mut answer = S3Response::new(body);
        (answer.status, answer.headers) = (Some(head.status), head.headers);
        Ok(answer)
    }
}
