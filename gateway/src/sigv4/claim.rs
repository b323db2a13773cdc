//! Parses the authentication of a request, before the access key is looked up and the signature
//! verified.
//!
//! Source: "Authenticating requests (AWS Signature Version 4)" in Amazon S3's API reference.

use std::time::Duration;

use http::header::{AUTHORIZATION, DATE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use super::canonical::ALGORITHM;
use super::raw::{AMZ_CONTENT_SHA256, AMZ_DATE, Raw};
use super::scope::{Clause, Credential, Scope, parse_stamp};
use super::secret::Signature;
use crate::refusal::{Code, Refusal};
use crate::uri::Pair;

/// Algorithm of SigV4A, the asymmetric variant of Signature Version 4. It is refused.
const ASYMMETRIC: &str = "AWS4-ECDSA-P256-SHA256";
/// The maximum validity of a presigned URL.
const LONGEST_EXPIRY: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of signed headers. A request has at most as many headers in total.
const MOST_SIGNED: usize = 128;

/// A request's authentication, parsed but not verified yet.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The access key id: visible ASCII, at most 128 bytes.
    pub access_key_id: String,
    /// The date and region of the credential, from which the signing key is derived.
    pub scope: Scope,
    /// The time of the signature.
    pub time: Timestamp,
    /// The location of the signature.
    pub how: How,
    /// The signed headers, sorted, each once.
    pub signed_headers: Vec<HeaderName>,
    pub(super) signature: Signature,
}

/// The location of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The `Authorization` header.
    Header,
    /// The query: a presigned URL.
    Query {
        /// The validity period, counted from the time of the signature: 1 s to 7 days.
        expires: Duration,
    },
}

/// Parses the authentication of a request. Returns `None` if it isn't signed.
///
/// # Errors
/// Returns an error if the request is signed by another scheme or in two ways at once, or its
/// authentication is malformed.
pub fn claim(raw: &Raw<'_>) -> Result<Option<Claim>, Refusal> {
    refuse_tokens(raw)?;
    let header = single(raw.headers, &AUTHORIZATION)?;
    let parameters = Parameters::read(raw.query)?;
    let is_old = raw.query.iter().any(|pair| pair.name == b"Signature" || pair.name == b"AWSAccessKeyId");
    let claim = match (header, parameters) {
        (Some(_), Some(_)) => return Err(two_ways()),
        (Some(_), None) if is_old => return Err(two_ways()),
        (None, Some(_)) if is_old => return Err(two_ways()),
        (None, None) if is_old => return Err(version_2()),
        (None, None) => return Ok(None),
        (Some(header), None) => from_header(raw, header)?,
        (None, Some(parameters)) => from_query(&parameters)?,
    };
    // With two hosts it would be unclear for which one the request was signed.
    single(raw.headers, &HOST)?;
    Ok(Some(claim))
}

/// Refuses session tokens, which belong to temporary credentials. The gateway issues none.
fn refuse_tokens(raw: &Raw<'_>) -> Result<(), Refusal> {
    const NAME: &str = "x-amz-security-token";
    let in_query = raw.query.iter().any(|pair| pair.name.eq_ignore_ascii_case(NAME.as_bytes()));
    if in_query || raw.headers.contains_key(NAME) {
        return Err(Refusal::new(Code::InvalidToken, "The provided token is malformed or otherwise invalid."));
    }
    Ok(())
}

fn two_ways() -> Refusal {
    let message = "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string \
                   parameter or the Authorization header should be specified.";
    Refusal::new(Code::InvalidRequest, message)
}

fn version_2() -> Refusal {
    let message = "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.";
    Refusal::new(Code::InvalidRequest, message)
}

fn asymmetric() -> Refusal {
    let message = "Signatures by AWS4-ECDSA-P256-SHA256 are not supported. Please use AWS4-HMAC-SHA256.";
    Refusal::new(Code::NotImplemented, message)
}

/// Returns the value of a header, if there is one. Refuses a header that occurs twice.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Refusal::new(Code::InvalidRequest, format!("The header {name} may be given only once.")));
    }
    Ok(first)
}

fn from_header(raw: &Raw<'_>, header: &HeaderValue) -> Result<Claim, Refusal> {
    let text = header.to_str().map_err(|_| bad_header("it holds bytes that are not visible ASCII."))?;
    let fields = Fields::read(after_scheme(text)?).map_err(bad_header)?;
    let Credential { access_key_id, scope } = Credential::parse(fields.credential).map_err(bad_header)?;
    let signed_headers = signed_headers(fields.signed_headers).map_err(bad_header)?;
    let signature = Signature::parse(fields.signature)
        .ok_or_else(|| bad_header("the Signature has to be 64 lower-case hexadecimal digits."))?;
    if single(raw.headers, &AMZ_CONTENT_SHA256)?.is_none() {
        let message = "Missing required header for this request: x-amz-content-sha256";
        return Err(Refusal::new(Code::InvalidRequest, message));
    }
    let time = header_time(raw.headers)?;
    Ok(Claim { access_key_id, scope, time, how: How::Header, signed_headers, signature })
}

/// Strips the scheme `AWS4-HMAC-SHA256`, and refuses any other.
fn after_scheme(text: &str) -> Result<&str, Refusal> {
    let (scheme, rest) = text.trim_matches([' ', '\t']).split_once([' ', '\t']).unwrap_or((text, ""));
    match scheme {
        ALGORITHM => Ok(rest),
        ASYMMETRIC => Err(asymmetric()),
        "AWS" => Err(version_2()),
        "" => Err(Refusal::new(Code::AccessDenied, "Access Denied")),
        _ => Err(Refusal::new(Code::InvalidArgument, "Unsupported Authorization Type")),
    }
}

/// The fields of an `Authorization` header after its scheme.
struct Fields<'a> {
    credential: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
}

impl<'a> Fields<'a> {
    fn read(text: &'a str) -> Result<Self, Clause> {
        const FORM: Clause = "it has to hold Credential, SignedHeaders and Signature, each once and nothing else.";
        let [mut credential, mut signed_headers, mut signature] = [None; 3];
        for field in text.split(',') {
            let (name, value) = field.trim_matches([' ', '\t']).split_once('=').ok_or(FORM)?;
            let place = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return Err(FORM),
            };
            if place.replace(value).is_some() {
                return Err(FORM);
            }
        }
        let (Some(credential), Some(signed_headers), Some(signature)) = (credential, signed_headers, signature) else {
            return Err(FORM);
        };
        Ok(Self { credential, signed_headers, signature })
    }
}

fn bad_header(clause: Clause) -> Refusal {
    Refusal::new(Code::AuthorizationHeaderMalformed, format!("The authorization header is malformed; {clause}"))
}

/// Returns the time of `X-Amz-Date` or, if it is missing, of `Date`: botocore drops `X-Amz-Date`
/// from a request that has a `Date`.
fn header_time(headers: &HeaderMap) -> Result<Timestamp, Refusal> {
    let header = match single(headers, &AMZ_DATE)? {
        None => single(headers, &DATE)?,
        found => found,
    };
    let text = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let http_date = || rfc2822::DateTimeParser::new().parse_timestamp(text).ok();
    parse_stamp(text).or_else(http_date).ok_or_else(|| {
        Refusal::new(Code::AccessDenied, "AWS authentication requires a valid Date or x-amz-date header")
    })
}

/// The six parameters of a presigned URL.
struct Parameters<'a>([Option<&'a str>; 6]);

impl<'a> Parameters<'a> {
    const NAMES: [&'static str; 6] = [
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
    ];

    /// Reads the parameters. Returns `None` if all of them are missing.
    fn read(query: &'a [Pair]) -> Result<Option<Self>, Refusal> {
        let mut values = [None; 6];
        for pair in query {
            let mut places = Self::NAMES.iter().zip(values.iter_mut());
            let Some((name, place)) = places.find(|(name, _)| pair.name.eq_ignore_ascii_case(name.as_bytes())) else {
                continue;
            };
            if pair.name != name.as_bytes() {
                // Parsers that ignore case would take the request for a signed one, others for an
                // unsigned one.
                return Err(bad_query(format!("{name} has to be spelled like this.")));
            }
            let value = str::from_utf8(&pair.value).map_err(|_| bad_query(format!("{name} has to be ASCII.")))?;
            if place.replace(value).is_some() {
                return Err(bad_query(format!("{name} may be given only once.")));
            }
        }
        Ok(values.iter().any(Option::is_some).then_some(Self(values)))
    }
}

fn from_query(parameters: &Parameters<'_>) -> Result<Claim, Refusal> {
    let [Some(algorithm), Some(credential), Some(date), Some(expires), Some(headers), Some(signature)] = parameters.0
    else {
        let message = "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
                       X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";
        return Err(bad_query(message));
    };
    match algorithm {
        ALGORITHM => {}
        ASYMMETRIC => return Err(asymmetric()),
        _ => return Err(bad_query("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"")),
    }
    let Credential { access_key_id, scope } = Credential::parse(credential).map_err(bad_credential_parameter)?;
    let time = parse_stamp(date)
        .ok_or_else(|| bad_query("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""))?;
    let signed_headers =
        signed_headers(headers).map_err(|clause| bad_query(format!("Error parsing X-Amz-SignedHeaders; {clause}")))?;
    let signature = Signature::parse(signature)
        .ok_or_else(|| bad_query("X-Amz-Signature has to be 64 lower-case hexadecimal digits."))?;
    let how = How::Query { expires: expiry(expires)? };
    Ok(Claim { access_key_id, scope, time, how, signed_headers, signature })
}

fn expiry(text: &str) -> Result<Duration, Refusal> {
    let digits = (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text);
    let digits = digits.ok_or_else(|| bad_query("X-Amz-Expires should be a number"))?;
    // A number that overflows is more than a week, too.
    match digits.parse().map_or(Duration::MAX, Duration::from_secs) {
        Duration::ZERO => Err(bad_query("X-Amz-Expires must be at least one second")),
        expiry if expiry > LONGEST_EXPIRY => Err(bad_query(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than \
             604800 seconds",
        )),
        expiry => Ok(expiry),
    }
}

fn bad_query(message: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::AuthorizationQueryParametersError, message)
}

fn bad_credential_parameter(clause: Clause) -> Refusal {
    bad_query(format!("Error parsing the X-Amz-Credential parameter; {clause}"))
}

/// Parses `SignedHeaders` and sorts it: clients may send any order, the canonical request has the
/// names sorted.
fn signed_headers(text: &str) -> Result<Vec<HeaderName>, Clause> {
    const FORM: Clause = "SignedHeaders has to be a list of lower-case names of headers between semicolons.";
    if text.split(';').nth(MOST_SIGNED).is_some() {
        return Err("SignedHeaders names too many headers.");
    }
    let read = |name: &str| HeaderName::from_bytes(name.as_bytes()).ok().filter(|read| read.as_str() == name);
    let mut names = text.split(';').map(read).collect::<Option<Vec<_>>>().ok_or(FORM)?;
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    let is_twice = names.windows(2).any(|pair| matches!(pair, [a, b] if a == b));
    if is_twice { Err("SignedHeaders names a header twice.") } else { Ok(names) }
}

#[cfg(test)]
#[path = "claim_tests.rs"]
mod tests;
