//! Encoding and signing of requests, in the same way for both sides.

use std::time::SystemTime;

use aws_sdk_s3::config::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use http::{Request, header};

use super::call::Signer;

/// Keys that sign requests.
#[derive(Clone)]
pub struct Keys {
    /// Access key id of the account.
    pub access_key: String,
    /// Secret key of the account.
    pub secret_key: String,
    /// Region of the signatures.
    pub region: String,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// Percent-encodes everything except unreserved characters and `slashes`.
pub(super) fn encoded(text: &str, slashes: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || slashes.as_bytes().contains(&byte);
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(one).collect()
}

impl Keys {
    /// Signs a request, including its body.
    ///
    /// # Errors
    /// Returns an error for a header that is not text.
    pub(super) fn sign(&self, request: &mut Request<Bytes>, signer: Signer) -> Result<(), String> {
        let (access_key, secret_key) = match signer {
            Signer::Account => (self.access_key.as_str(), self.secret_key.as_str()),
            Signer::WrongSecret => (self.access_key.as_str(), "not-the-secret-key"),
            Signer::Unknown => ("AKIANOSUCHKEYEXISTS0", self.secret_key.as_str()),
            Signer::Nobody => return Ok(()),
        };
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        let identity = Credentials::new(access_key, secret_key, None, None, "conformance").into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(|error| error.to_string())?
            .into();
        let text = |value: &header::HeaderValue| value.to_str().map(str::to_owned).map_err(|error| error.to_string());
        let headers: Result<Vec<_>, String> =
            request.headers().iter().map(|(name, value)| Ok((name.as_str().to_owned(), text(value)?))).collect();
        let headers = headers?;
        let signable = SignableRequest::new(
            request.method().as_str(),
            request.uri().to_string(),
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())),
            SignableBody::Bytes(request.body()),
        )
        .map_err(|error| error.to_string())?;
        let (instructions, _) = sign(signable, &parameters).map_err(|error| error.to_string())?.into_parts();
        instructions.apply_to_request_http1x(request);
        Ok(())
    }
}
