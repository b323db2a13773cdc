//! Heads of requests. The first line of an input is method and target, and each further line a
//! header, up to an empty line. `!query` signs in the query instead of a header, `!none` doesn't
//! sign, and `!skip NAME` excludes a header from the signature. Everything else that a signature
//! needs is added.

mod rules;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use stowage_gateway::head::{Ask, Domains, Operation, Sent, Target, path_of};
use stowage_gateway::refusal::Code;
use stowage_gateway::sigv4::{How, Raw, claim, verify};
use stowage_gateway::uri;

use super::{reading, signing};
use crate::held::held;

const DOMAIN: &str = "gateway.example";
const DATE: &str = "x-amz-date";
const PAYLOAD: &str = "x-amz-content-sha256";

/// Place of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Header,
    Query,
    Not,
}

/// An input.
struct Case {
    method: Method,
    target: Vec<u8>,
    headers: HeaderMap,
    way: Way,
    skipped: Vec<String>,
}

impl Case {
    fn read(input: &[u8]) -> Option<Self> {
        let mut lines = input.split(|byte| *byte == b'\n');
        let (method, target) = reading::split(lines.next()?, b' ');
        let method = Method::from_bytes(method).ok()?;
        // A fragment is never sent.
        let target = target.filter(|target| !target.contains(&b'#'));
        let mut case =
            Self { method, target: target?.to_vec(), headers: HeaderMap::new(), way: Way::Header, skipped: Vec::new() };
        for line in lines.take_while(|line| !line.is_empty()).take(64) {
            match line {
                b"!query" => case.way = Way::Query,
                b"!none" => case.way = Way::Not,
                _ => match line.strip_prefix(b"!skip ") {
                    Some(name) => case.skipped.push(str::from_utf8(name).ok()?.to_owned()),
                    None => {
                        let (name, value) = reading::split(line, b':');
                        let name = HeaderName::from_bytes(name).ok()?;
                        case.headers.append(name, HeaderValue::from_bytes(value?.trim_ascii()).ok()?);
                    }
                },
            }
        }
        Some(case)
    }

    /// Signs the request, if its target is a valid URI.
    fn signed(mut self) -> Option<(Parts, Way)> {
        let whole = Uri::try_from(self.target.as_slice()).ok()?;
        if self.way == Way::Header {
            for (name, value) in [(DATE, signing::STAMP), (PAYLOAD, "UNSIGNED-PAYLOAD")] {
                self.headers.entry(name).or_insert(HeaderValue::from_static(value));
            }
        }
        let mut names: Vec<&str> = self.headers.keys().map(HeaderName::as_str).collect();
        names.retain(|name| *name != "authorization" && !self.skipped.iter().any(|skipped| skipped == name));
        names.sort_unstable();
        if self.way == Way::Query {
            let credential = format!("{}/{}", signing::KEY_ID, signing::SCOPE).replace('/', "%2F");
            let added = format!(
                "{}X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={credential}&X-Amz-Date={}&X-Amz-Expires=600&\
                 X-Amz-SignedHeaders={}",
                if whole.query().is_some() { "&" } else { "?" },
                signing::STAMP,
                signing::escaped(names.join(";").as_bytes(), b"")
            );
            self.target.extend(added.bytes());
        }
        let asked = Uri::try_from(self.target.as_slice()).ok()?;
        let path = reading::unescaped(asked.path().as_bytes());
        let query = reading::query(asked.query().unwrap_or_default().as_bytes());
        if let (Some(path), Some(query)) = (path, query) {
            let word = self
                .headers
                .get(PAYLOAD)
                .and_then(|word| str::from_utf8(word.as_bytes()).ok())
                .unwrap_or("UNSIGNED-PAYLOAD");
            let signature = signing::request(self.method.as_str(), &path, &query, (&self.headers, &names), word);
            match self.way {
                Way::Header => {
                    let header = HeaderValue::from_str(&signing::authorization(&names, &signature)).ok()?;
                    self.headers.append("authorization", header);
                }
                Way::Query => self.target.extend(format!("&X-Amz-Signature={signature}").bytes()),
                Way::Not => {}
            }
        }
        let mut request = Request::new(());
        *request.method_mut() = self.method;
        *request.uri_mut() = Uri::try_from(self.target.as_slice()).ok()?;
        *request.headers_mut() = self.headers;
        Some((request.into_parts().0, self.way))
    }
}

/// Checks that an accepted request is signed, that it is parsed in agreement with a second parser,
/// and that the request written for the store is parsed as the same, with only names of S3 in it.
pub(crate) fn play(input: &[u8]) {
    let Some(case) = Case::read(input) else { return };
    let (whole, long) = (case.skipped.is_empty(), input.len());
    let Some((parts, way)) = case.signed() else { return };
    let (read, bytes) = held(|| Sent::read(parts.clone(), &domains()));
    assert!(bytes <= 16 * long + 32 * 1024, "{bytes} bytes are held of {long}");
    let Ok(sent) = read else { return };
    let Some((by_query, word)) = known(&sent, way, whole) else { return };
    let Ok(ask) = sent.clone().ask(by_query, &word) else { return };
    named(&parts, &ask);
    rules::closed(&ask, &sent);
    read_again(&ask);
}

fn domains() -> Domains {
    Domains::new([DOMAIN.to_owned()])
}

/// Returns true if the signature is in the query, and the payload hash, like the gateway's front.
/// Returns `None` if the request is not authenticated.
fn known(sent: &Sent, way: Way, whole: bool) -> Option<(bool, String)> {
    let raw = Raw { method: sent.method.as_str(), path: &sent.path, query: &sent.query, headers: &sent.headers };
    let Some(claim) = claim(&raw).ok()? else {
        assert_eq!(way, Way::Not, "a signature isn't seen");
        return Some((false, "UNSIGNED-PAYLOAD".to_owned()));
    };
    let by_query = matches!(claim.how, How::Query { .. });
    let word = sent.payload_word(by_query).ok()?.unwrap_or("UNSIGNED-PAYLOAD");
    let verify = |word, secret| verify(&raw, &claim, word, &secret, signing::REGION, signing::now());
    assert!(verify(word, signing::other_secret()).is_err(), "it is believed by another key");
    let believed = verify(word, signing::secret());
    if way == Way::Not {
        assert!(believed.is_err(), "what nobody signed is believed");
    } else if whole && claim.access_key_id == signing::KEY_ID {
        let is_ours = !by_query || sent.headers.contains_key(PAYLOAD) || word == "UNSIGNED-PAYLOAD";
        let code = believed.as_ref().err().map(|refusal| refusal.code);
        assert!(!is_ours || code != Some(Code::SignatureDoesNotMatch), "another client signs otherwise");
    }
    believed.ok().map(|_| (by_query, word.to_owned()))
}

/// Checks that bucket and key are those in the path, or in host name and path.
fn named(parts: &Parts, ask: &Ask) {
    let path = reading::unescaped(parts.uri.path().as_bytes()).expect("it was read");
    let host = parts.headers.get("host").and_then(|host| host.to_str().ok()).expect("it was read").to_ascii_lowercase();
    let host = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
    let below = host.trim_end_matches('.').strip_suffix(DOMAIN).and_then(|below| below.strip_suffix('.'));
    let path = path.strip_prefix(b"/").expect("it was read");
    let (bucket, key) = match below {
        Some(bucket) => (bucket.as_bytes(), path),
        None => {
            let (bucket, key) = reading::split(path, b'/');
            (bucket, key.unwrap_or_default())
        }
    };
    let found = ask.target.bucket().map_or("", |bucket| bucket.as_str());
    assert_eq!(found.as_bytes(), bucket, "the bucket");
    assert_eq!(ask.target.key().map_or("", |key| key.as_str()).as_bytes(), key, "the key");
    assert!(key.is_empty() || reading::is_key(key), "{key:?} is no key");
}

/// Checks that the request for the store is parsed as the same request.
fn read_again(ask: &Ask) {
    let escaped = |pair: &uri::Pair| format!("{}={}", uri::encode(&pair.name), uri::encode(&pair.value));
    let query: Vec<String> = ask.query.iter().map(escaped).collect();
    let target = format!("{}?{}", path_of(&ask.target), query.join("&"));
    let mut request = Request::new(());
    *request.method_mut() = ask.method();
    *request.uri_mut() = target.parse().unwrap_or_else(|error| panic!("{target}: {error}"));
    let written: Vec<_> = query.iter().flat_map(|text| reading::query(text.as_bytes()).expect("a query")).collect();
    assert!(
        ask.query.iter().map(|pair| (&pair.name, &pair.value)).eq(written.iter().map(|(name, value)| (name, value)))
    );
    let path = reading::unescaped(request.uri().path().as_bytes());
    let expected = match &ask.target {
        Target::Service => "/".to_owned(),
        Target::Bucket(bucket) => format!("/{bucket}"),
        Target::Object(bucket, key) => format!("/{bucket}/{}", key.as_str()),
    };
    assert_eq!(path, Some(expected.into_bytes()));
    let headers = request.headers_mut();
    *headers = ask.headers.clone();
    headers.insert("host", HeaderValue::from_static("store.example:9000"));
    headers.insert("content-length", HeaderValue::from(ask.payload.length()));
    if let Some(source) = &ask.copy {
        headers.insert("x-amz-copy-source", source.header().parse().expect("a header"));
    }
    let sent = Sent::read(request.into_parts().0, &domains()).unwrap_or_else(|refusal| panic!("{target}: {refusal:?}"));
    let again = sent.ask(false, "UNSIGNED-PAYLOAD").unwrap_or_else(|refusal| panic!("{target}: {refusal:?}"));
    assert_ne!(ask.operation, Operation::PostObject);
    assert_eq!((again.operation, &again.target, &again.query), (ask.operation, &ask.target, &ask.query), "{target}");
    assert_eq!((&again.headers, &again.copy), (&ask.headers, &ask.copy), "{target}");
}
