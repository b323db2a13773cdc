//! The requests of the scripts.

use std::collections::BTreeMap;

use bytes::Bytes;
use stowage_world::history::{Act, Answer, Meant, Right};

use stowage_world::scenes::{BUCKET, CLAIM, NAMESPACE};

/// Another tenant's bucket.
const OTHERS_BUCKET: &str = "team-b-films";
/// A key with all the characters that URLs and their parsers have trouble with.
const ODD: &str = "a b//c+d&e=%2F?";

/// One request, with its key, its form and its correctness.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(super) who: Holder,
    pub(super) want: Want,
    pub(super) how: How,
    pub(super) right: Right,
}

/// The key that signs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The key in the Secret of this claim, given by namespace and name.
    Claim(&'static str, &'static str),
    /// The key that the tenant kept earlier.
    Kept,
    /// A key that was never issued.
    MadeUp,
    /// No key.
    Nobody,
}

/// The form of a request: correct, or wrong in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Correct, with an unsigned body.
    Plain,
    /// Correct, with the hash of the body.
    Hashed,
    /// Correct, with the body in signed chunks.
    Chunks,
    /// Signed with a wrong secret.
    WrongSecret,
    /// With a header that is added after the signature.
    Later(&'static str, &'static str),
    /// With a wrong signature of one chunk.
    ForgedChunk,
    /// With data in one chunk that differs from the signed data.
    AlteredChunk,
    /// With a body that ends too early.
    ShortBody,
    /// With a body that doesn't match its signed hash.
    OtherBody,
    /// Presigned.
    Presigned {
        /// Seconds since the URL was signed.
        ago: i64,
        /// Validity of the URL in seconds.
        expires: u32,
    },
    /// With this path, unchanged.
    Raw(&'static str),
}

/// The operation of an attempt.
#[derive(Clone, Debug)]
pub enum Want {
    /// A single request.
    One(Box<Meant>),
    /// CreateMultipartUpload of this key.
    Begin(&'static str),
    /// UploadPart of this key, with a part number and the part's data.
    Part(&'static str, usize, &'static str),
    /// CompleteMultipartUpload of this key, with the data of its parts.
    Join(&'static str, &'static [&'static str]),
}

impl Want {
    /// Returns the request, with values from earlier answers; `None` if a value is missing.
    pub(super) fn meant(&self, told: &BTreeMap<&'static str, String>) -> Option<Meant> {
        let id = |name: &str| Some(("uploadId".to_owned(), told.get(name)?.clone()));
        let object =
            |method, key: &str| Meant { method, bucket: BUCKET.to_owned(), key: key.to_owned(), ..Meant::default() };
        Some(match self {
            Self::One(meant) => (**meant).clone(),
            Self::Begin(key) => Meant { query: vec![("uploads".to_owned(), String::new())], ..object("POST", key) },
            Self::Part(key, number, bytes) => Meant {
                act: Act::Part,
                query: vec![("partNumber".to_owned(), number.to_string()), id("upload")?],
                body: Bytes::from_static(bytes.as_bytes()),
                ..object("PUT", key)
            },
            Self::Join(key, parts) => {
                let tag = |number: usize| told.get(ETAGS.get(number - 1)?).cloned();
                let mut document = "<CompleteMultipartUpload>".to_owned();
                for number in 1..=parts.len() {
                    let etag = tag(number)?;
                    document.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"));
                }
                document.push_str("</CompleteMultipartUpload>");
                Meant {
                    act: Act::Join(parts.iter().map(|part| Bytes::from_static(part.as_bytes())).collect()),
                    query: vec![id("upload")?],
                    body: document.into(),
                    ..object("POST", key)
                }
            }
        })
    }

    /// Returns true if the operation writes.
    pub(super) fn is_write(&self) -> bool {
        match self {
            Self::One(meant) => meant.method != "GET",
            Self::Begin(_) | Self::Part(..) | Self::Join(..) => true,
        }
    }

    /// Stores values of an answer that later requests need.
    pub(super) fn learn(&self, answer: &Answer, told: &mut BTreeMap<&'static str, String>) {
        let Some(body) = answer.body.as_ref().ok().filter(|_| answer.status == 200) else { return };
        match self {
            Self::Begin(_) => {
                let text = String::from_utf8_lossy(body);
                let id = text.split_once("<UploadId>").and_then(|(_, rest)| rest.split_once("</UploadId>"));
                told.extend(id.map(|(id, _)| ("upload", id.to_owned())));
            }
            Self::Part(_, number, _) => {
                let etag = answer.headers.iter().find(|(name, _)| name == "etag").map(|(_, value)| value.clone());
                let place = number.checked_sub(1).and_then(|at| ETAGS.get(at));
                told.extend(place.zip(etag).map(|(place, etag)| (*place, etag)));
            }
            Self::One(_) | Self::Join(..) => {}
        }
    }
}

/// Names under which the ETags of the parts are stored.
const ETAGS: [&str; 2] = ["first", "second"];

/// The tenant that owns the bucket.
const TENANT: Holder = Holder::Claim(NAMESPACE, CLAIM);

fn meant(act: Act, method: &'static str, key: &str) -> Meant {
    Meant { act, method, bucket: BUCKET.to_owned(), key: key.to_owned(), ..Meant::default() }
}

fn one(how: How, right: Right, meant: Meant) -> Attempt {
    Attempt { who: TENANT, want: Want::One(Box::new(meant)), how, right }
}

fn good(meant: Meant) -> Attempt {
    one(How::Plain, Right::Good, meant)
}

fn put(key: &str, body: &'static str) -> Meant {
    Meant { body: Bytes::from_static(body.as_bytes()), ..meant(Act::Write, "PUT", key) }
}

fn get(key: &str) -> Meant {
    meant(Act::Read(None), "GET", key)
}

fn list(pairs: &[(&str, &str)]) -> Meant {
    let query = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Meant { query, ..meant(Act::Look, "GET", "") }
}

fn copy(bucket: &str, from: &str, to: &str) -> Meant {
    Meant { source: Some((bucket.to_owned(), from.to_owned())), ..meant(Act::Copy, "PUT", to) }
}

/// Writes objects in every possible way.
pub(in super::super) fn uploads() -> Vec<Attempt> {
    // Every part except the last one has 5 MiB at least.
    const PARTS: &[&str] = &["the only part"];
    let kept =
        vec![("x-amz-meta-who".to_owned(), "me".to_owned()), ("content-type".to_owned(), "text/plain".to_owned())];
    let of_upload = |want| Attempt { who: TENANT, want, how: How::Plain, right: Right::Good };
    vec![
        good(Meant { headers: kept, ..put("plain", "plain bytes of an object") }),
        one(How::Hashed, Right::Good, put("hashed", "bytes whose hash is signed")),
        one(How::Chunks, Right::Good, put("chunks", "bytes in two chunks, each of which is signed")),
        good(put(ODD, "under an odd name")),
        good(put("plain", "written over, and longer than it was before")),
        good(copy(BUCKET, ODD, "copy")),
        of_upload(Want::Begin("parts")),
        of_upload(Want::Part("parts", 1, PARTS[0])),
        of_upload(Want::Join("parts", PARTS)),
    ]
}

/// Reads, lists and removes objects.
pub(in super::super) fn looks() -> Vec<Attempt> {
    let range = ("range".to_owned(), "bytes=3-8".to_owned());
    vec![
        good(get("plain")),
        good(get(ODD)),
        good(Meant { headers: vec![range], act: Act::Read(Some((3, 8))), ..get("plain") }),
        good(meant(Act::Look, "HEAD", "chunks")),
        good(list(&[("list-type", "2"), ("fetch-owner", "true"), ("prefix", "a b//c+d&"), ("delimiter", "|")])),
        good(list(&[("uploads", "")])),
        one(How::Presigned { ago: 60, expires: 300 }, Right::Good, get("chunks")),
        good(meant(Act::Remove(vec!["chunks".to_owned()]), "DELETE", "chunks")),
        good(remove(&["hashed", "copy"])),
    ]
}

/// Returns requests that must be refused: none may reach a store or change anything.
pub(in super::super) fn tricks() -> Vec<Attempt> {
    use Right::{Beyond, OtherBody, Over, Unsigned};
    let theirs = Meant { bucket: OTHERS_BUCKET.to_owned(), ..get("data") };
    let nearly = Meant { bucket: format!("{BUCKET}-2"), ..get("data") };
    let acl = Meant { query: vec![("acl".to_owned(), String::new())], ..put("plain", "") };
    let with =
        |name: &str, value: &str, meant: Meant| Meant { headers: vec![(name.to_owned(), value.to_owned())], ..meant };
    let open = with("x-amz-acl", "public-read", put("open", "to all"));
    let ranged = with("x-amz-copy-source-range", "bytes=0-0", copy(BUCKET, "plain", "ranged"));
    vec![
        one(How::WrongSecret, Unsigned, get("plain")),
        one(How::WrongSecret, Unsigned, put("forged", "by nobody")),
        one(How::Later("x-amz-meta-later", "v"), Unsigned, put("later", "with more than was signed")),
        one(How::Later("x-amz-copy-source", "/team-a-photos/plain"), Unsigned, put("later", "")),
        one(How::Presigned { ago: 600, expires: 300 }, Unsigned, get("plain")),
        one(How::ForgedChunk, OtherBody, put("plain", "a chunk with another signature than its own")),
        one(How::AlteredChunk, OtherBody, put("plain", "a chunk whose data was changed on the way")),
        one(How::ShortBody, OtherBody, put("plain", "half of this never comes")),
        one(How::OtherBody, OtherBody, put("plain", "these bytes were signed, others are sent")),
        one(How::Plain, Beyond, theirs),
        one(How::Plain, Beyond, Meant { bucket: OTHERS_BUCKET.to_owned(), ..put("data", "overwritten") }),
        one(How::Plain, Beyond, nearly),
        one(How::Plain, Beyond, copy(OTHERS_BUCKET, "data", "stolen")),
        one(How::Raw("/team-a-photos/../team-b-films/data"), Beyond, get("../team-b-films/data")),
        one(How::Plain, Beyond, remove(&["plain", "../team-b-films/data"])),
        one(How::Plain, Beyond, acl),
        one(How::Plain, Beyond, open),
        one(How::Plain, Beyond, ranged),
        one(How::Plain, Beyond, copy(BUCKET, "plain?versionId=null", "past")),
        one(How::Plain, Beyond, put(".sgwtmp/hidden", "in no list")),
        one(How::Plain, Beyond, with("x-amz-expected-bucket-owner", "guessed", get("plain"))),
        one(How::Plain, Beyond, meant(Act::Look, "DELETE", "")),
        one(How::Plain, Beyond, list(&[("policy", "")])),
        Attempt { who: Holder::MadeUp, ..one(How::Plain, Over, get("plain")) },
        Attempt { who: Holder::Nobody, ..one(How::Plain, Beyond, get("plain")) },
    ]
}

/// Returns requests without a key, while the bucket is public or after it was.
pub(in super::super) fn public(is_open: bool) -> Vec<Attempt> {
    let right = if is_open { Right::Good } else { Right::Beyond };
    let nobody = |right, meant| Attempt { who: Holder::Nobody, ..one(How::Plain, right, meant) };
    vec![
        nobody(right, get("data")),
        nobody(right, list(&[("list-type", "2")])),
        nobody(Right::Beyond, put("data", "written by anybody")),
        nobody(Right::Beyond, meant(Act::Remove(vec!["data".to_owned()]), "DELETE", "data")),
        nobody(Right::Beyond, list(&[("versions", "")])),
    ]
}

/// Reads an object with a key that is valid or not.
pub(in super::super) fn with(who: Holder, right: Right) -> Vec<Attempt> {
    vec![Attempt { who, ..one(How::Plain, right, get("data")) }]
}

/// Writes an object of this many bytes.
pub(in super::super) fn of_length(key: &str, length: usize, right: Right) -> Vec<Attempt> {
    let body = Bytes::from(vec![b'x'; length]);
    vec![one(How::Plain, right, Meant { body, ..meant(Act::Write, "PUT", key) })]
}

/// Writes more than the quota allows, then removes the object that was there.
pub(in super::super) fn beyond_quota() -> Vec<Attempt> {
    let removed = good(meant(Act::Remove(vec!["first".to_owned()]), "DELETE", "first"));
    [of_length("second", 2000, Right::TooMuch), vec![removed]].concat()
}

/// Returns a DeleteObjects request for these keys, which need no escapes in XML.
fn remove(keys: &[&str]) -> Meant {
    let object = |key: &&str| format!("<Object><Key>{key}</Key></Object>");
    let document = format!("<Delete>{}</Delete>", keys.iter().map(object).collect::<String>());
    Meant {
        query: vec![("delete".to_owned(), String::new())],
        headers: vec![("content-md5".to_owned(), md5_of(&document))],
        body: document.into(),
        ..meant(Act::Remove(keys.iter().map(|key| (*key).to_owned()).collect()), "POST", "")
    }
}

/// Returns the Content-MD5 that DeleteObjects requires for its document.
fn md5_of(text: &str) -> String {
    use base64::Engine;
    use md5::Digest;
    base64::prelude::BASE64_STANDARD.encode(md5::Md5::digest(text.as_bytes()))
}
