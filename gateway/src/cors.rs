//! CORS headers, by the rule of the backend and never by the store's own rules (Fetch standard,
//! "HTTP CORS protocol"; Amazon S3, "Using cross-origin resource sharing").
//!
//! CORS protects no bucket: a client with a key or a presigned URL needs no browser. It only
//! decides which pages a browser lets read a response.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use stowage_api::{CorsMethod, CorsRule};

use crate::refusal::{Code, Refusal};

/// Maximum number of headers in a preflight.
const MOST_HEADERS: usize = 64;

/// A parsed rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    origins: Vec<Pattern>,
    methods: Vec<CorsMethod>,
    /// Allowed headers, in lower case.
    headers: Vec<Pattern>,
    exposed: Option<HeaderValue>,
    max_age: Option<HeaderValue>,
}

/// A literal, or a prefix and a suffix with anything in between.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Text(String),
    Around(String, String),
}

impl Pattern {
    fn read(text: &str) -> Self {
        match text.split_once('*') {
            None => Self::Text(text.to_owned()),
            Some((begin, end)) => Self::Around(begin.to_owned(), end.to_owned()),
        }
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Text(it) => it == text,
            Self::Around(begin, end) => {
                text.strip_prefix(begin.as_str()).is_some_and(|rest| rest.ends_with(end.as_str()))
            }
        }
    }

    fn is_anything(&self) -> bool {
        matches!(self, Self::Around(begin, end) if begin.is_empty() && end.is_empty())
    }
}

/// The parts of a request that decide about the CORS headers of its response.
#[derive(Clone, Debug)]
pub struct Asked {
    method: Method,
    origin: Option<HeaderValue>,
}

impl Asked {
    /// Reads these parts from the head of a request.
    #[must_use]
    pub fn of(parts: &Parts) -> Self {
        Self { method: parts.method.clone(), origin: parts.headers.get(ORIGIN).cloned() }
    }
}

impl Rule {
    /// Parses the rule of a backend. Values that are not valid in a header are ignored.
    #[must_use]
    pub fn read(rule: &CorsRule) -> Self {
        let exposed: Vec<&str> = rule.expose_headers.iter().flatten().map(String::as_str).collect();
        let exposed = HeaderValue::from_str(&exposed.join(", ")).ok().filter(|value| !value.is_empty());
        let headers = rule.allowed_headers.iter().flatten();
        Self {
            origins: rule.allowed_origins.iter().map(|origin| Pattern::read(origin)).collect(),
            methods: rule.allowed_methods.clone(),
            headers: headers.map(|name| Pattern::read(&name.to_ascii_lowercase())).collect(),
            exposed,
            max_age: rule.max_age_seconds.filter(|seconds| *seconds >= 0).map(HeaderValue::from),
        }
    }

    /// Returns the value of `Access-Control-Allow-Origin` if a page of this origin may use the
    /// method.
    fn grant(&self, origin: &HeaderValue, method: &str) -> Option<HeaderValue> {
        let text = origin.to_str().ok()?;
        let fits: Vec<&Pattern> = self.origins.iter().filter(|pattern| pattern.fits(text)).collect();
        let may = !fits.is_empty() && self.methods.iter().any(|allowed| allowed.as_str() == method);
        may.then(|| if fits.iter().any(|it| it.is_anything()) { HeaderValue::from_static("*") } else { origin.clone() })
    }

    fn lets_send(&self, header: &HeaderName) -> bool {
        self.headers.iter().any(|pattern| pattern.fits(header.as_str()))
    }

    fn preflight(&self, origin: &HeaderValue, method: &str, headers: &[HeaderName]) -> Option<HeaderMap> {
        let granted = self.grant(origin, method).filter(|_| headers.iter().all(|name| self.lets_send(name)))?;
        let methods: Vec<&str> = self.methods.iter().map(|method| method.as_str()).collect();
        let names: Vec<&str> = headers.iter().map(HeaderName::as_str).collect();
        let told = [
            (ACCESS_CONTROL_ALLOW_ORIGIN, Some(granted)),
            (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_str(&methods.join(", ")).ok()),
            (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_str(&names.join(", ")).ok().filter(|it| !it.is_empty())),
            (ACCESS_CONTROL_MAX_AGE, self.max_age.clone()),
            (ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone()),
        ];
        Some(told.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

/// Returns the headers of the response to a preflight, by the first of these rules that allows it.
/// The caller passes the rules of all backends, so the response doesn't reveal which buckets exist.
///
/// # Errors
/// `BadRequest` if it is not a valid preflight, `AccessForbidden` if no rule allows it.
pub fn preflight<'a>(rules: impl IntoIterator<Item = &'a Rule>, asked: &HeaderMap) -> Result<HeaderMap, Refusal> {
    let missing = || Refusal::new(Code::BadRequest, "Insufficient information. Origin request header needed.");
    let origin = asked.get(ORIGIN).ok_or_else(missing)?;
    let method = asked.get(ACCESS_CONTROL_REQUEST_METHOD).and_then(|method| method.to_str().ok());
    let method = method.ok_or_else(|| Refusal::new(Code::BadRequest, "Invalid Access-Control-Request-Method."))?;
    let headers = headers(asked)?;
    let allowed = rules.into_iter().find_map(|rule| rule.preflight(origin, method, &headers));
    let refusal = || Refusal::new(Code::AccessForbidden, "CORSResponse: This CORS request is not allowed.");
    let mut told = allowed.ok_or_else(refusal)?;
    told.insert(
        VARY,
        HeaderValue::from_static("Origin, Access-Control-Request-Headers, Access-Control-Request-Method"),
    );
    Ok(told)
}

/// Returns the header names in a preflight.
fn headers(asked: &HeaderMap) -> Result<Vec<HeaderName>, Refusal> {
    let invalid = || Refusal::new(Code::BadRequest, "Invalid Access-Control-Request-Headers.");
    let values = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let names: Result<Vec<HeaderName>, Refusal> = names
        .filter(|name| !name.is_empty())
        .take(MOST_HEADERS + 1)
        .map(|name| HeaderName::from_bytes(name).map_err(|_| invalid()))
        .collect();
    names.and_then(|names| if names.len() > MOST_HEADERS { Err(invalid()) } else { Ok(names) })
}

/// Adds CORS headers to a response, by the first of these rules that allows the request. If there
/// are any rules, the response varies by origin for caches.
pub fn mark<'a>(rules: impl IntoIterator<Item = &'a Rule>, asked: &Asked, answer: &mut HeaderMap) {
    // The response to a preflight has its headers already.
    if asked.method == Method::OPTIONS {
        return;
    }
    let mut rules = rules.into_iter().peekable();
    if rules.peek().is_none() {
        return;
    }
    answer.append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = &asked.origin else { return };
    let granted = rules.find_map(|rule| Some((rule.grant(origin, asked.method.as_str())?, rule)));
    if let Some((granted, rule)) = granted {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, granted);
        if let Some(exposed) = &rule.exposed {
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
        }
    }
}

#[cfg(test)]
#[path = "cors_tests.rs"]
mod tests;
