//! Signing of requests to a store.

use std::fmt;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, InvalidHeaderValue, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use stowage_api::SecretKey;

use super::canonical::{ALGORITHM, Canonical, push_names};
use super::raw::{AMZ_CONTENT_SHA256, AMZ_DATE};
use super::scope::{Day, Scope, stamp};
use super::secret::{self, SigningSecret};
use crate::uri::Pair;

/// Signs with a store's key, for one region. Caches the signing key of the day last used. `Debug`
/// prints nothing of it.
pub struct Signer {
    access_key_id: String,
    secret: SigningSecret,
    region: String,
}

/// A request to a store, without its headers.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The method.
    pub method: &'a str,
    /// The store's host, with its port if that isn't the scheme's default: the `Host` header.
    pub host: &'a str,
    /// The path, decoded.
    pub path: &'a [u8],
    /// The query, decoded.
    pub query: &'a [Pair],
    /// The body's SHA-256 in hexadecimal digits, or the constant in its place: the header
    /// `x-amz-content-sha256`.
    pub payload: &'a str,
}

impl Signer {
    /// Creates a signer with this key, for this region.
    #[must_use]
    pub fn new(access_key_id: String, secret: &SecretKey, region: String) -> Self {
        Self { access_key_id, secret: SigningSecret::new(secret), region }
    }

    /// Adds `host`, `x-amz-date`, `x-amz-content-sha256` and `authorization`, replacing any that
    /// are present.
    ///
    /// Signs `host`, `x-amz-*`, `content-type`, `content-md5` and `range`, which no proxy changes.
    ///
    /// # Errors
    /// Returns an error if host, payload, id or region is not a valid header value.
    pub fn sign(
        &self,
        outgoing: &Outgoing<'_>,
        headers: &mut HeaderMap,
        now: Timestamp,
    ) -> Result<(), InvalidHeaderValue> {
        let Outgoing { method, host, path, query, payload } = *outgoing;
        headers.insert(HOST, HeaderValue::from_str(host)?);
        headers.insert(AMZ_DATE, HeaderValue::from_bytes(&stamp(now))?);
        headers.insert(AMZ_CONTENT_SHA256, HeaderValue::from_str(payload)?);
        let mut signed: Vec<HeaderName> = headers.keys().filter(|name| is_signed(name)).cloned().collect();
        signed.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));

        let scope = Scope { date: Day::of(now), region: self.region.clone() };
        let canonical = Canonical { method, path, query, headers, signed: &signed, payload };
        let text = canonical.string_to_sign(now, &scope);
        let signature = secret::sign(&self.secret.key(&scope), &text);

        let mut value = Vec::with_capacity(512);
        for part in [ALGORITHM, " Credential=", &self.access_key_id, "/"] {
            value.extend_from_slice(part.as_bytes());
        }
        scope.push_to(&mut value);
        value.extend_from_slice(b", SignedHeaders=");
        push_names(&mut value, &signed);
        value.extend_from_slice(b", Signature=");
        value.extend_from_slice(&signature.hex());
        let mut value = HeaderValue::from_maybe_shared(bytes::Bytes::from(value))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

fn is_signed(name: &HeaderName) -> bool {
    [HOST, CONTENT_TYPE, RANGE].contains(name) || name == "content-md5" || name.as_str().starts_with("x-amz-")
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer([REDACTED])")
    }
}
