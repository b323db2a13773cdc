//! A tenant's client: it writes and signs requests by Amazon's documents, without any code of the
//! gateway, and makes mistakes on demand.

use std::fmt;
use std::time::SystemTime;

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use stowage_world::history::Meant;

use super::acts::How;

const REGION: &str = "us-east-1";
const HOST: &str = "gateway.example";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const CHUNKS: &str = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";

/// An access key id and its secret key.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: String,
}

impl Keys {
    /// Returns a pair that was never issued.
    pub(super) fn made_up() -> Self {
        Self { id: "AKIAAAAAAAAAAAAAAAAA".to_owned(), secret: "made-up".to_owned() }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A request as it is sent.
pub(super) struct Made {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    /// The body, in pieces.
    pub(super) body: Vec<Bytes>,
    /// True if no body is sent at all.
    pub(super) is_empty: bool,
}

/// Builds the request in this form, signed with these keys.
pub(super) fn made(meant: &Meant, keys: Option<&Keys>, how: How, now: Timestamp) -> Made {
    let path = path(meant, how);
    let has_body = matches!(meant.method, "PUT" | "POST");
    let mut headers = HeaderMap::new();
    for (name, value) in meant.headers.iter().chain(&source(meant)) {
        put(&mut headers, name, value);
    }
    put(&mut headers, "host", HOST);
    let (body, length) = if has_body { plain(meant, how) } else { (Vec::new(), 0) };
    if has_body {
        put(&mut headers, "content-length", &length.to_string());
    }
    let mut made = Made { method: meant.method, target: String::new(), headers, body, is_empty: length == 0 };
    let mut query = meant.query.clone();
    if let Some(keys) = keys {
        let signer = Signer { keys, how, meant, time: signed_at(how, now) };
        match how {
            How::Presigned { expires, .. } => signer.presign(&mut made, &path, &mut query, expires),
            _ => signer.sign(&mut made, &path, &query),
        }
    }
    if let How::Later(name, value) = how {
        put(&mut made.headers, name, value);
    }
    let query = written(&query);
    made.target = if query.is_empty() { path } else { format!("{path}?{query}") };
    made
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes()).expect("scripts have names of headers");
    headers.insert(name, HeaderValue::from_str(value).expect("scripts have values of headers"));
}

fn source(meant: &Meant) -> Vec<(String, String)> {
    let header = |(bucket, key): &(String, String)| {
        ("x-amz-copy-source".to_owned(), format!("/{}/{}", encoded(bucket, false), encoded(key, true)))
    };
    meant.source.iter().map(header).collect()
}

fn path(meant: &Meant, how: How) -> String {
    match how {
        How::Raw(path) => path.to_owned(),
        _ if meant.key.is_empty() => format!("/{}", meant.bucket),
        _ => format!("/{}/{}", meant.bucket, encoded(&meant.key, true)),
    }
}

/// Returns the body and the announced length. Chunks are framed when they are signed.
fn plain(meant: &Meant, how: How) -> (Vec<Bytes>, usize) {
    let length = meant.body.len();
    let body = match how {
        How::ShortBody => meant.body.slice(..length / 2),
        How::OtherBody => Bytes::from(vec![b'x'; length]),
        _ => meant.body.clone(),
    };
    (vec![body], length)
}

fn signed_at(how: How, now: Timestamp) -> Timestamp {
    match how {
        How::Presigned { ago, .. } => now.checked_sub(SignedDuration::from_secs(ago)).unwrap_or(now),
        _ => now,
    }
}

struct Signer<'a> {
    keys: &'a Keys,
    how: How,
    meant: &'a Meant,
    time: Timestamp,
}

impl Signer<'_> {
    fn stamp(&self) -> String {
        self.time.strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    fn scope(&self) -> String {
        format!("{}/{REGION}/s3/aws4_request", self.time.strftime("%Y%m%d"))
    }

    fn key(&self) -> impl AsRef<[u8]> {
        let secret = if self.how == How::WrongSecret { "not-the-secret" } else { &self.keys.secret };
        generate_signing_key(secret, SystemTime::from(self.time), REGION, "s3")
    }

    /// Returns the names of the signed headers, which are all, and the signature of the request.
    fn signature(&self, made: &Made, path: &str, query: &[(String, String)], payload: &str) -> (String, String) {
        let mut signed: Vec<(&str, &str)> =
            made.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default())).collect();
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let canonical = format!("{}\n{path}\n{}\n{lines}\n{names}\n{payload}", made.method, written(query));
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{}", self.stamp(), self.scope(), hash(canonical.as_bytes()));
        (names, calculate_signature(self.key(), text.as_bytes()))
    }

    fn sign(&self, made: &mut Made, path: &str, query: &[(String, String)]) {
        let is_chunked = matches!(self.how, How::Chunks | How::ForgedChunk | How::AlteredChunk);
        let payload = match self.how {
            _ if is_chunked => CHUNKS.to_owned(),
            How::Hashed | How::OtherBody => hash(&self.meant.body),
            _ => UNSIGNED.to_owned(),
        };
        put(&mut made.headers, "x-amz-content-sha256", &payload);
        put(&mut made.headers, "x-amz-date", &self.stamp());
        if is_chunked {
            put(&mut made.headers, "x-amz-decoded-content-length", &self.meant.body.len().to_string());
            put(&mut made.headers, "content-encoding", "aws-chunked");
            // The length of the framing does not depend on the values of the signatures.
            let length: usize = self.chunks(&"0".repeat(64)).iter().map(Bytes::len).sum();
            put(&mut made.headers, "content-length", &length.to_string());
            made.is_empty = false;
        }
        let (names, signature) = self.signature(made, path, query, &payload);
        let credential = format!("{}/{}", self.keys.id, self.scope());
        let header = format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
        put(&mut made.headers, "authorization", &header);
        if is_chunked {
            made.body = self.chunks(&signature);
        }
    }

    fn presign(&self, made: &mut Made, path: &str, query: &mut Vec<(String, String)>, expires: u32) {
        let mut add = |name: &str, value: String| query.push((name.to_owned(), value));
        add("X-Amz-Algorithm", "AWS4-HMAC-SHA256".to_owned());
        add("X-Amz-Credential", format!("{}/{}", self.keys.id, self.scope()));
        add("X-Amz-Date", self.stamp());
        add("X-Amz-Expires", expires.to_string());
        let mut names: Vec<&str> = made.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        add("X-Amz-SignedHeaders", names.join(";"));
        let (_, signature) = self.signature(made, path, query, UNSIGNED);
        query.push(("X-Amz-Signature".to_owned(), signature));
    }

    /// Returns the body in two chunks and the empty final one, each signed with the previous
    /// signature.
    fn chunks(&self, seed: &str) -> Vec<Bytes> {
        let (first, second) = self.meant.body.split_at(self.meant.body.len() / 2);
        let mut previous = seed.to_owned();
        let mut framed = Vec::new();
        for (at, data) in [first, second, &[]].into_iter().enumerate() {
            let nothing = hash(b"");
            let text = format!(
                "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{previous}\n{nothing}\n{}",
                self.stamp(),
                self.scope(),
                hash(data)
            );
            let signature = calculate_signature(self.key(), text.as_bytes());
            previous.clone_from(&signature);
            let shown = if self.how == How::ForgedChunk && at == 1 { "f".repeat(64) } else { signature };
            let data = match self.how {
                How::AlteredChunk if at == 1 => vec![b'x'; data.len()],
                _ => data.to_vec(),
            };
            let mut chunk = format!("{:x};chunk-signature={shown}\r\n", data.len()).into_bytes();
            chunk.extend_from_slice(&data);
            chunk.extend_from_slice(b"\r\n");
            framed.push(Bytes::from(chunk));
        }
        framed
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Formats names and values for a URL and a canonical request: sorted.
fn written(query: &[(String, String)]) -> String {
    let mut pairs: Vec<(String, String)> =
        query.iter().map(|(name, value)| (encoded(name, false), encoded(value, false))).collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// Percent-encodes everything but unreserved characters and, in a path, slashes.
fn encoded(text: &str, is_path: bool) -> String {
    let stays = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (is_path && byte == b'/');
    text.bytes().map(|byte| if stays(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
