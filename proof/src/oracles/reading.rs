//! An independent parser of requests to a store, by the rules of RFC 3986 and of form encoding,
//! without any code of the gateway.

use bytes::Bytes;
use stowage_world::history::{Meant, Received};

/// The meaning of a request to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    method: String,
    bucket: String,
    key: String,
    query: Vec<(String, String)>,
    source: Option<(String, String)>,
    headers: Vec<(String, String)>,
}

/// Headers of signature and transport, which don't change the meaning of a request.
const OF_TRANSPORT: [&str; 7] = [
    "authorization",
    "content-length",
    "host",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-trailer",
];

impl Reading {
    /// Parses a request in path style.
    pub(super) fn of(received: &Received) -> Result<Self, String> {
        let (path, query) = received.target.split_once('?').unwrap_or((&received.target, ""));
        let path = path.strip_prefix('/').ok_or("its path has no slash before it")?;
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        let bucket = decoded(bucket, false)?;
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok::<_, String>((decoded(name, true)?, decoded(value, true)?))
        };
        let mut query = pairs.map(pair).collect::<Result<Vec<_>, _>>()?;
        query.sort();
        let header = |wanted: &str| received.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let source = header("x-amz-copy-source").map(|source| {
            let source = source.split_once('?').map_or(source.as_str(), |(source, _)| source);
            let (bucket, key) = source.trim_start_matches('/').split_once('/').ok_or("its source has no key")?;
            Ok::<_, String>((decoded(bucket, false)?, decoded(key, false)?))
        });
        let meant = |name: &str| !OF_TRANSPORT.contains(&name) && name != "x-amz-copy-source";
        let mut headers: Vec<_> = received.headers.iter().filter(|(name, _)| meant(name)).cloned().collect();
        headers.sort();
        let key = decoded(key, false)?;
        Ok(Self { method: received.method.clone(), bucket, key, query, source: source.transpose()?, headers })
    }

    /// Returns true for a HEAD of this object, and nothing more.
    pub(super) fn is_head_of(&self, bucket: &str, key: &str) -> bool {
        let is_plain = self.query.is_empty() && self.source.is_none();
        is_plain && self.method == "HEAD" && self.bucket == bucket && self.key == key
    }

    /// Describes differences from the client's intention.
    pub(super) fn differs(&self, meant: &Meant, body: Option<&Bytes>) -> Vec<String> {
        let mut query = meant.query.clone();
        query.sort();
        // The gateway writes a new document for the store, with a new digest.
        let is_document =
            meant.method == "POST" && query.iter().any(|(name, _)| matches!(name.as_str(), "delete" | "uploadId"));
        let is_of_document = |name: &str| is_document && matches!(name, "content-md5" | "content-type");
        let without = |headers: &[(String, String)]| {
            let mut headers = headers.to_vec();
            headers.retain(|(name, _)| !is_of_document(name));
            headers.sort();
            headers
        };
        let (headers, found) = (without(&meant.headers), without(&self.headers));
        let body_is_other = body.is_some_and(|body| match is_document {
            true => plain(body) != plain(&meant.body),
            false => *body != meant.body,
        });
        let told = |what: &str, it: String| format!("the store reads another {what}: {it}");
        let all = [
            (self.method != meant.method, told("method", self.method.clone())),
            (self.bucket != meant.bucket, told("bucket", self.bucket.clone())),
            (self.key != meant.key, told("key", format!("{:?}", self.key))),
            (self.query != query, told("query", format!("{:?}", self.query))),
            (self.source != meant.source, told("source", format!("{:?}", self.source))),
            (found != headers, told("set of headers", format!("{found:?}"))),
            (body_is_other, told("body", format!("{} bytes", body.map_or(0, Bytes::len)))),
        ];
        all.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect()
    }
}

/// Returns a document without its declaration and its namespace.
fn plain(document: &[u8]) -> String {
    let text = String::from_utf8_lossy(document);
    let text =
        text.split_once("?>\n").filter(|(begin, _)| begin.starts_with("<?xml ")).map_or(&*text, |(_, rest)| rest);
    text.replacen(" xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"", "", 1)
}

/// Returns the access key id that a request is signed with.
pub(super) fn signer(received: &Received) -> Option<&str> {
    let (_, authorization) = received.headers.iter().find(|(name, _)| name == "authorization")?;
    authorization.split_once("Credential=")?.1.split('/').next()
}

/// Decodes percent encoding. A plus is a space in a query, and a plus elsewhere.
fn decoded(text: &str, is_query: bool) -> Result<String, String> {
    let mut bytes = text.bytes();
    let mut read = Vec::new();
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or("a digit is missing");
    while let Some(byte) = bytes.next() {
        read.push(match byte {
            b'%' => u8::try_from(digit(bytes.next())? * 16 + digit(bytes.next())?).unwrap_or_default(),
            b'+' if is_query => b' ',
            other => other,
        });
    }
    String::from_utf8(read).map_err(|_| "it is no text".to_owned())
}
