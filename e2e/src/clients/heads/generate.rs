//! Heads of requests on a claim's bucket, in which much is written in an odd way: what one reader
//! might take for data, and another for administration.

use fastrand::Rng;
use http::{HeaderMap, HeaderName, HeaderValue};
use stowage_gateway::uri::Pair;

/// A request, before it is signed.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) method: &'static str,
    /// The path, decoded, as it is signed.
    pub(super) path: Vec<u8>,
    /// The query, decoded.
    pub(super) query: Vec<Pair>,
    /// Path and query as they are written.
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// An operation's method, whether it names a key, names that it needs, and names that it may have.
type Shape = (&'static str, bool, &'static [&'static str], &'static [&'static str]);

const LISTS: &[&str] = &["delimiter", "encoding-type", "max-keys", "prefix"];
const READS: &[&str] = &["partNumber", "response-content-type", "response-expires", "versionId"];

/// Requests for data, as S3's documentation has them.
const SHAPES: [Shape; 22] = [
    ("GET", false, &[], &["delimiter", "encoding-type", "marker", "max-keys", "prefix"]),
    ("GET", false, &["list-type"], &["continuation-token", "fetch-owner", "max-keys", "prefix", "start-after"]),
    ("GET", false, &["versions"], LISTS),
    ("GET", false, &["uploads"], &["delimiter", "key-marker", "max-uploads", "prefix", "upload-id-marker"]),
    ("GET", false, &["location"], &[]),
    ("HEAD", false, &[], &[]),
    ("POST", false, &["delete"], &[]),
    ("GET", true, &[], READS),
    ("GET", true, &[], READS),
    ("HEAD", true, &[], READS),
    ("GET", true, &["attributes"], &["versionId"]),
    ("GET", true, &["tagging"], &["versionId"]),
    ("PUT", true, &["tagging"], &["versionId"]),
    ("DELETE", true, &["tagging"], &["versionId"]),
    ("GET", true, &["uploadId"], &["max-parts", "part-number-marker"]),
    ("PUT", true, &[], &[]),
    ("PUT", true, &[], &[]),
    ("PUT", true, &["partNumber", "uploadId"], &[]),
    ("POST", true, &["uploads"], &[]),
    ("POST", true, &["uploadId"], &[]),
    ("DELETE", true, &["uploadId"], &[]),
    ("DELETE", true, &[], &["versionId"]),
];

/// Names that mean administration, to somebody, or nearly.
const TRAPS: [&str; 40] = [
    "acl",
    "ACL",
    "Acl",
    "acl ",
    " acl",
    "acl\0",
    "acl=",
    "acl/",
    "?acl",
    "&acl",
    ";acl",
    "policy",
    "Policy",
    "policyStatus",
    "versioning",
    "lifecycle",
    "cors",
    "website",
    "tagging",
    "Tagging",
    "uploads",
    "delete",
    "Delete",
    "object-lock",
    "retention",
    "legal-hold",
    "restore",
    "select",
    "select-type",
    "encryption",
    "publicAccessBlock",
    "ownershipControls",
    "logging",
    "notification",
    "replication",
    "torrent",
    "x-id",
    "x-amz-acl",
    "versions",
    "location",
];

/// Pieces of keys, and of values.
const PIECES: [&str; 36] = [
    "a",
    "photos",
    "k0",
    "k1",
    "?acl",
    "?policy",
    "&acl",
    ";acl",
    "#acl",
    "acl",
    "%61cl",
    "%2e%2e",
    "%3Facl",
    "+",
    " ",
    "ä",
    "😀",
    "\t",
    "\u{7f}",
    "\\",
    "\\..\\",
    "..a",
    "a..",
    "...",
    "~",
    "*",
    "'",
    "\"",
    "<x>",
    "//",
    "/",
    "=",
    "&",
    ":",
    "@",
    ".minio.sys",
];

/// Headers that a client may send, or somebody who tries something.
const HEADERS: [(&str, &[&str]); 30] = [
    ("range", &["bytes=0-1", "bytes=-1", "bytes=5-2", "lines=1"]),
    ("if-match", &["*", "\"a\""]),
    ("if-none-match", &["*", "\"a\""]),
    ("if-modified-since", &["Sat, 01 Jan 2000 00:00:00 GMT", "yesterday"]),
    ("cache-control", &["no-cache"]),
    ("content-type", &["text/plain", "application/xml", "multipart/form-data", "multipart/form-data; boundary=x"]),
    ("content-disposition", &["attachment; filename=\"?acl\""]),
    ("content-encoding", &["gzip", "aws-chunked"]),
    ("content-language", &["en"]),
    ("expires", &["0"]),
    ("x-amz-meta-a", &["b", "?acl", "x-amz-acl: public-read", "\u{e9}"]),
    ("x-amz-meta-x-amz-acl", &["public-read"]),
    ("x-amz-acl", &["private", "bucket-owner-full-control", "public-read"]),
    ("x-amz-tagging", &["a=b", "a=b&acl=", "acl"]),
    ("x-amz-storage-class", &["STANDARD"]),
    (
        "x-amz-copy-source",
        &["/BUCKET/k0", "BUCKET/k1", "/BUCKET/k0?versionId=null", "%2FBUCKET%2Fk0", "/BUCKET/a%3Facl"],
    ),
    ("x-amz-metadata-directive", &["REPLACE", "COPY"]),
    ("x-amz-object-attributes", &["ETag", "ETag,ObjectSize"]),
    ("x-amz-expected-bucket-owner", &["1"]),
    ("x-amz-checksum-mode", &["ENABLED"]),
    ("x-amz-request-payer", &["requester"]),
    ("x-amz-bypass-governance-retention", &["true"]),
    ("x-http-method-override", &["DELETE", "PUT"]),
    ("x-http-method", &["DELETE"]),
    ("x-original-url", &["/BUCKET?policy"]),
    ("x-rewrite-url", &["/BUCKET?acl"]),
    ("x-forwarded-host", &["other"]),
    ("x-minio-force-delete", &["true"]),
    ("x-minio-extract", &["true"]),
    ("connection", &["x-amz-date", "x-amz-content-sha256"]),
];

const DOCUMENTS: [&str; 5] = [
    "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    "<Delete><Object><Key>k9</Key></Object></Delete>",
    "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a\"</ETag></Part></CompleteMultipartUpload>",
    "<AccessControlPolicy/>",
    "",
];

/// Makes heads for a bucket. The same seed makes the same ones.
pub(super) struct Generator {
    random: Rng,
    bucket: String,
}

impl Generator {
    pub(super) fn new(seed: u64, bucket: &str) -> Self {
        Self { random: Rng::with_seed(seed), bucket: bucket.to_owned() }
    }

    /// The next head.
    pub(super) fn head(&mut self) -> Head {
        let (method, has_key, asks, may) = self.one(&SHAPES);
        let mut path = format!("/{}", self.bucket).into_bytes();
        if has_key {
            path.push(b'/');
            path.extend(self.key());
        } else if self.random.u8(..) < 64 {
            path.push(b'/');
        }
        let mut query: Vec<Pair> = asks.iter().map(|name| self.pair(name)).collect();
        for name in may {
            if self.random.u8(..) < 70 {
                query.push(self.pair(name));
            }
        }
        if self.random.u8(..) < 40 {
            let name = self.one(&TRAPS);
            query.push(Pair {
                name: name.as_bytes().to_vec(),
                value: if self.random.bool() { self.text(2) } else { Vec::new() },
            });
        }
        self.random.shuffle(&mut query);
        let target = self.written(&path, &query);
        let headers = self.headers();
        let body = if matches!(method, "PUT" | "POST") { self.one(&DOCUMENTS).into() } else { Vec::new() };
        Head { method, path, query, target, headers, body }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        // The tables are not empty.
        of[self.random.usize(..of.len())]
    }

    fn text(&mut self, most: usize) -> Vec<u8> {
        let count = self.random.usize(1..=most);
        (0..count).flat_map(|_| self.one(&PIECES).bytes()).collect()
    }

    fn key(&mut self) -> Vec<u8> {
        match self.random.u8(..) {
            0..=99 => self.one(&["k0", "k1", "a/k2", "k3 ?acl", "k4+ä"]).into(),
            100..=239 => self.text(5),
            // Any bytes, of which few are UTF-8.
            240..=255 => (0..self.random.usize(1..4)).map(|_| self.random.u8(..)).collect(),
        }
    }

    /// A parameter with a value that it could have, mostly.
    fn pair(&mut self, name: &str) -> Pair {
        let value =
            match name {
                "list-type" => self.one(&["2", "2", "2", "02", "1"]).into(),
                "partNumber" | "max-keys" | "max-parts" | "max-uploads" | "part-number-marker" => {
                    self.one(&["1", "2", "1000", "0", "x"]).into()
                }
                "encoding-type" => b"url".to_vec(),
                "versionId" => self.one(&["null", "01HZX0000000000000000000", "a/b"]).into(),
                "uploadId" => self.one(&["bf0d3128-d18b-4b78-ae7d-9d21bcb90c2f", "x", ".."]).into(),
                "attributes" | "delete" | "location" | "tagging" | "uploads" | "versions" => {
                    if self.random.u8(..) < 10 { b"x".to_vec() } else { Vec::new() }
                }
                _ => self.text(3),
            };
        Pair { name: name.into(), value }
    }

    fn headers(&mut self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for _ in 0..self.random.usize(0..4) {
            let (name, values) = self.one(&HEADERS);
            let value = self.one(values).replace("BUCKET", &self.bucket);
            // As one byte a character, so that there are some beyond ASCII.
            let bytes: Vec<u8> = value.chars().filter_map(|it| u8::try_from(it).ok()).collect();
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    /// Path and query in one of the ways in which they can be written.
    fn written(&mut self, path: &[u8], query: &[Pair]) -> String {
        let mut target = String::new();
        for byte in path {
            let plain = byte.is_ascii_alphanumeric() || b"-._~/!$'()*,:;=@&+".contains(byte);
            self.push(*byte, plain, &mut target);
        }
        for (at, pair) in query.iter().enumerate() {
            target.push(if at == 0 { '?' } else { '&' });
            for byte in &pair.name {
                self.push(*byte, byte.is_ascii_alphanumeric() || b"-._~/?;".contains(byte), &mut target);
            }
            if !pair.value.is_empty() || self.random.bool() {
                target.push('=');
            }
            for byte in &pair.value {
                self.push(*byte, byte.is_ascii_alphanumeric() || b"-._~/?;=:".contains(byte), &mut target);
            }
        }
        if query.is_empty() && self.random.u8(..) < 20 {
            target.push('?');
        }
        target
    }

    /// A byte, encoded where it has to be, and at times where it hasn't.
    fn push(&mut self, byte: u8, plain: bool, to: &mut String) {
        let encoded = !plain || (byte != b'/' && self.random.u8(..) < 12);
        match (encoded, self.random.bool()) {
            (false, _) => to.push(char::from(byte)),
            (true, true) => to.push_str(&format!("%{byte:02X}")),
            (true, false) => to.push_str(&format!("%{byte:02x}")),
        }
    }
}
