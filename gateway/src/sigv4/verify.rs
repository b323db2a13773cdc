//! Verification of a claim: its scope, time, signed headers and signature.

use std::fmt;
use std::sync::LazyLock;

use http::HeaderName;
use http::header::HOST;
use jiff::{SignedDuration, Timestamp};
use ring::hmac;

use super::canonical::Canonical;
use super::chain::Chain;
use super::claim::{Claim, How};
use super::raw::{AMZ_CONTENT_SHA256, Raw};
use super::scope::{Day, Scope};
use super::secret::{Signature, SigningSecret};
use crate::refusal::{Code, Refusal};

/// Maximum difference between a signature's time and the gateway's clock.
const SKEW: SignedDuration = SignedDuration::from_mins(15);

/// A verified signature.
pub struct Verified {
    key: hmac::Key,
    time: Timestamp,
    scope: Scope,
    seed: Signature,
}

impl Verified {
    /// Returns the chain that the signatures of this request's chunks have to match.
    #[must_use]
    pub fn chain(&self) -> Chain {
        Chain::new(self.key.clone(), self.time, &self.scope, self.seed)
    }
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verified([REDACTED])")
    }
}

/// Verifies a claim. `payload` is the last line of the canonical request: the value of
/// `x-amz-content-sha256` or, for a presigned URL, the caller's choice. `region` is the gateway's.
///
/// A presigned URL that pins a hash is signed by some clients with the hash on that line, and by
/// others with `UNSIGNED-PAYLOAD`. The caller tries each.
///
/// # Errors
/// Returns an error if the claim is for another region or time, if a header that has to be signed
/// isn't, or if the signature is wrong. A signature of another request and one by another key have
/// the same error.
pub fn verify(
    raw: &Raw<'_>,
    claim: &Claim,
    payload: &str,
    secret: &SigningSecret,
    region: &str,
    now: Timestamp,
) -> Result<Verified, Refusal> {
    let text = text_to_verify(raw, claim, payload, region, now)?;
    let key = secret.open(&claim.scope, &text, &claim.signature).ok_or_else(mismatch)?;
    Ok(Verified { key, time: claim.time, scope: claim.scope.clone(), seed: claim.signature })
}

/// Refuses a claim with an unknown key, after the same work as [`verify`].
#[must_use]
pub fn refuse_unknown(raw: &Raw<'_>, claim: &Claim, payload: &str, region: &str, now: Timestamp) -> Refusal {
    match text_to_verify(raw, claim, payload, region, now) {
        Err(refusal) => refusal,
        Ok(text) => unknown_key(&claim.scope, &text, &claim.signature),
    }
}

/// Returns the refusal for an unknown key, after the work of checking its signature.
pub(crate) fn unknown_key(scope: &Scope, text: &[u8], signature: &Signature) -> Refusal {
    static NOBODY: LazyLock<SigningSecret> = LazyLock::new(SigningSecret::of_nobody);
    // The result doesn't matter: that key is not a secret.
    std::hint::black_box(NOBODY.holds(scope, text, signature));
    Refusal::new(Code::InvalidAccessKeyId, "The AWS Access Key Id you provided does not exist in our records.")
}

/// Runs all checks that don't need the key, and returns the string to sign.
fn text_to_verify(
    raw: &Raw<'_>,
    claim: &Claim,
    payload: &str,
    region: &str,
    now: Timestamp,
) -> Result<Vec<u8>, Refusal> {
    check_scope(claim, region)?;
    check_time(claim, now)?;
    check_signed(raw, claim)?;
    let bound = raw.headers.get(AMZ_CONTENT_SHA256).is_none_or(|value| value.as_bytes() == payload.as_bytes());
    if claim.how == How::Header && !bound {
        return Err(mismatch());
    }
    let Raw { method, path, query, headers } = *raw;
    let canonical = Canonical { method, path, query, headers, signed: &claim.signed_headers, payload };
    Ok(canonical.string_to_sign(claim.time, &claim.scope))
}

fn check_scope(claim: &Claim, region: &str) -> Result<(), Refusal> {
    let (code, start) = match claim.how {
        How::Header => (Code::AuthorizationHeaderMalformed, "The authorization header is malformed;"),
        How::Query { .. } => (Code::AuthorizationQueryParametersError, "Error parsing the X-Amz-Credential parameter;"),
    };
    let Scope { date, region: theirs } = &claim.scope;
    if theirs != region {
        // Clients parse the element, or the end of the sentence, and sign again.
        let message = format!("{start} the region '{theirs}' is wrong; expecting '{region}'");
        return Err(Refusal::new(code, message).with("Region", region));
    }
    let day = Day::of(claim.time);
    if *date != day {
        let (date, day) = (date.as_str(), day.as_str());
        let message = format!("{start} invalid credential date \"{date}\": not the day of the request, \"{day}\".");
        return Err(Refusal::new(code, message));
    }
    Ok(())
}

fn check_time(claim: &Claim, now: Timestamp) -> Result<(), Refusal> {
    let age = now.duration_since(claim.time);
    match claim.how {
        How::Header if age.abs() > SKEW => {
            let message = "The difference between the request time and the current time is too large.";
            Err(Refusal::new(Code::RequestTimeTooSkewed, message)
                .with("RequestTime", claim.time.to_string())
                .with("ServerTime", now.to_string())
                .with("MaxAllowedSkewMilliseconds", SKEW.as_millis().to_string()))
        }
        How::Query { .. } if age < -SKEW => {
            Err(Refusal::new(Code::AccessDenied, "Request is not valid yet").with("ServerTime", now.to_string()))
        }
        How::Query { expires } if age > SignedDuration::try_from(expires).unwrap_or_default() => {
            Err(Refusal::new(Code::AccessDenied, "Request has expired")
                .with("X-Amz-Expires", expires.as_secs().to_string())
                .with("ServerTime", now.to_string()))
        }
        How::Header | How::Query { .. } => Ok(()),
    }
}

/// Checks that every header with a meaning in S3 is signed, and that every signed header is
/// present.
///
/// Otherwise an attacker in the middle could add headers without a signature: a copy's source, an
/// ACL.
fn check_signed(raw: &Raw<'_>, claim: &Claim) -> Result<(), Refusal> {
    let is_signed =
        |name: &HeaderName| claim.signed_headers.binary_search_by(|signed| signed.as_str().cmp(name.as_str())).is_ok();
    // With a signature in the header, the last line of the canonical request covers its value.
    let is_bound = |name: &HeaderName| claim.how == How::Header && *name == AMZ_CONTENT_SHA256;
    let meant = raw.headers.keys().filter(|name| name.as_str().starts_with("x-amz-") && !is_bound(name));
    let mut unsigned: Vec<&str> = meant.filter(|name| !is_signed(name)).map(HeaderName::as_str).collect();
    if !is_signed(&HOST) {
        unsigned.push(HOST.as_str());
    }
    if !unsigned.is_empty() {
        unsigned.sort_unstable();
        let message = "There were headers present in the request which were not signed";
        return Err(Refusal::new(Code::AccessDenied, message).with("HeadersNotSigned", unsigned.join(", ")));
    }
    let missing = claim.signed_headers.iter().find(|name| !raw.headers.contains_key(*name));
    missing.map_or(Ok(()), |name| {
        let message =
            format!("The signed header {name} is not in the request: something on the way may have removed it.");
        Err(Refusal::new(Code::SignatureDoesNotMatch, message))
    })
}

/// Returns the refusal for a signature of another request, or by another key.
pub(crate) fn mismatch() -> Refusal {
    let message = "The request signature we calculated does not match the signature you provided. Check your key and \
                   signing method.";
    Refusal::new(Code::SignatureDoesNotMatch, message)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
