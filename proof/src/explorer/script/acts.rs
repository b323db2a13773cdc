//! The requests of the scripts.

use std::collections::BTreeMap;

use bytes::Bytes;
use stowage_world::history::{Act, Answer, Meant, Right};

use stowage_world::scenes::{BUCKET, CLAIM, NAMESPACE};

/// Another tenant's bucket, and the claim that has it.
const OTHERS_BUCKET: &str = "team-b-films";
/// A key with all that URLs and readers of them trip over.
const ODD: &str = "a b//c+d&e=%2F?";

/// One request, by somebody, done in some way.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub(super) who: Holder,
    pub(super) want: Want,
    pub(super) how: How,
    pub(super) right: Right,
}

/// Whose key a request is signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The key that stands in the Secret of this claim now.
    Claim(&'static str, &'static str),
    /// The key that was put aside.
    Kept,
    /// A key that nobody has.
    MadeUp,
    /// None.
    Nobody,
}

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// As it should be, the body unsigned.
    Plain,
    /// As it should be, with the body's hash.
    Hashed,
    /// As it should be, the body in signed chunks.
    Chunks,
    /// Signed with another secret.
    WrongSecret,
    /// With a header that is added after it was signed.
    Later(&'static str, &'static str),
    /// One chunk's signature is another.
    ForgedChunk,
    /// One chunk's data is other than was signed.
    AlteredChunk,
    /// The body ends before its time.
    ShortBody,
    /// The body is another than the one whose hash is signed.
    OtherBody,
    /// Presigned, so many seconds ago, for so many.
    Presigned {
        /// Seconds since it was signed.
        ago: i64,
        /// Seconds that it is good for.
        expires: u32,
    },
    /// With this path as it stands.
    Raw(&'static str),
}

/// What is wanted.
#[derive(Clone, Debug)]
pub enum Want {
    /// A request.
    One(Box<Meant>),
    /// The beginning of an upload in parts, of the key.
    Begin(&'static str),
    /// One of its parts.
    Part(&'static str, usize, &'static str),
    /// Its end, of so many parts with these bytes.
    Join(&'static str, &'static [&'static str]),
}

impl Want {
    /// What it means, by what stores have told before; `None` where they have not told enough.
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

    /// Whether it writes anything.
    pub(super) fn is_write(&self) -> bool {
        match self {
            Self::One(meant) => meant.method != "GET",
            Self::Begin(_) | Self::Part(..) | Self::Join(..) => true,
        }
    }

    /// Remembers what a store has told that later requests need.
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

/// What parts are told by.
const ETAGS: [&str; 2] = ["first", "second"];

/// The tenant whose bucket it is.
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

/// Objects are written in every way that there is.
pub(in super::super) fn uploads() -> Vec<Attempt> {
    // But for the last one a part has 5 MiB at least.
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

/// Objects are read, listed and removed.
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

/// What is not to be: nothing of it may come to a store, and nothing be changed by it.
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

/// Somebody without a key, while the bucket is public, or is so no more.
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

/// An object is read with a key, which works or doesn't.
pub(in super::super) fn with(who: Holder, right: Right) -> Vec<Attempt> {
    vec![Attempt { who, ..one(How::Plain, right, get("data")) }]
}

/// An object of so many bytes is written.
pub(in super::super) fn of_length(key: &str, length: usize, right: Right) -> Vec<Attempt> {
    let body = Bytes::from(vec![b'x'; length]);
    vec![one(How::Plain, right, Meant { body, ..meant(Act::Write, "PUT", key) })]
}

/// More is written than there is room for; then what there was is removed.
pub(in super::super) fn beyond_quota() -> Vec<Attempt> {
    let removed = good(meant(Act::Remove(vec!["first".to_owned()]), "DELETE", "first"));
    [of_length("second", 2000, Right::TooMuch), vec![removed]].concat()
}

/// A DeleteObjects of these keys, which need no escapes in XML.
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

/// What DeleteObjects wants for its document.
fn md5_of(text: &str) -> String {
    use base64::Engine;
    use md5::Digest;
    base64::prelude::BASE64_STANDARD.encode(md5::Md5::digest(text.as_bytes()))
}
