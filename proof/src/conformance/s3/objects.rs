//! Requests to objects.

use fastrand::Rng;

use super::bodies::{self, TEXTS, chance, maybe, one, some_tag};
use super::call::{Body, Call, DIGEST, own};
use super::sign::encoded;

/// Times for conditions.
const LONG_AGO: &str = "Mon, 01 Jan 2001 00:00:00 GMT";
const LATER: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

/// Returns a random request to an object. `versions` is the percentage of requests that name a
/// version.
pub(super) fn call(rng: &mut Rng, bucket: &str, key: &str, from: (&str, &str), versions: u8) -> Call {
    match rng.u8(..100) {
        ..28 => put(rng, bucket, key),
        28..43 => read(rng, "GET", bucket, key, versions),
        43..52 => read(rng, "HEAD", bucket, key, versions),
        52..64 => copy(rng, bucket, key, from, versions),
        64..78 => of_version(rng, Call::to_key("DELETE", bucket, key), versions),
        78..86 => delete_many(rng, bucket, &[key, from.1], versions),
        _ => tagging(rng, bucket, key, versions),
    }
}

/// Returns a version of an object: the newest that was seen, an older one, a deleted one, or one
/// that never existed.
fn version(rng: &mut Rng, object: &str) -> String {
    match rng.u8(..20) {
        0 => "null".to_owned(),
        _ => format!("$(version {object} {})", one(rng, &[0, 0, 1, 1, 2])),
    }
}

fn of_version(rng: &mut Rng, call: Call, versions: u8) -> Call {
    let object = call.object();
    call.maybe("versionId", maybe(rng, versions, |rng| version(rng, &object)))
}

/// Adds headers that are stored with an object.
fn attributes(rng: &mut Rng, mut call: Call) -> Call {
    for (name, value) in [
        ("content-type", "text/plain"),
        ("cache-control", "max-age=60"),
        ("content-disposition", "attachment"),
        ("content-language", "de"),
        ("content-encoding", "gzip"),
        ("x-amz-meta-a", "1"),
        ("x-amz-meta-b", "two words"),
    ] {
        if chance(rng, 12) {
            call = call.header(name, value);
        }
    }
    call
}

pub(super) fn put(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let put = Call::to_key("PUT", bucket, key).body(one(rng, &TEXTS));
    let mut put = attributes(rng, put);
    if chance(rng, 12) {
        put = put.header("x-amz-tagging", one(rng, &["a=1", "a=1&b=x%20y", "a=1&a=2", ""]));
    }
    if chance(rng, 16) {
        put = match rng.u8(..3) {
            0 => put.header("if-none-match", "*"),
            1 => put.header("if-match", some_tag(rng)),
            _ => put.header("content-md5", one(rng, &[DIGEST, DIGEST, "AAAAAAAAAAAAAAAAAAAAAA==", "short"])),
        };
    }
    put
}

fn read(rng: &mut Rng, method: &'static str, bucket: &str, key: &str, versions: u8) -> Call {
    let mut read = of_version(rng, Call::to_key(method, bucket, key), versions);
    match rng.u8(..16) {
        ..4 => {
            read = read.header("range", one(rng, &["bytes=0-3", "bytes=-2", "bytes=4-", "bytes=0-100", "bytes=100-"]));
        }
        4 => read = read.header("if-match", some_tag(rng)),
        5 => read = read.header("if-none-match", some_tag(rng)),
        6 => read = read.header("if-modified-since", LONG_AGO),
        7 => read = read.header("if-unmodified-since", one(rng, &[LONG_AGO, LATER])),
        8 => read = read.header("if-match", some_tag(rng)).header("if-unmodified-since", one(rng, &[LONG_AGO, LATER])),
        _ => {}
    }
    read
}

/// Returns the source of a copy.
pub(super) fn source(rng: &mut Rng, (bucket, key): (&str, &str), versions: u8) -> String {
    let path = format!("/{}/{}", own(bucket), encoded(key, "/"));
    let version = maybe(rng, versions, |rng| version(rng, &format!("{bucket}/{key}")));
    version.map_or_else(|| path.clone(), |id| format!("{path}?versionId={id}"))
}

fn copy(rng: &mut Rng, bucket: &str, key: &str, from: (&str, &str), versions: u8) -> Call {
    let mut copy = Call::to_key("PUT", bucket, key).header("x-amz-copy-source", source(rng, from, versions));
    if chance(rng, 30) {
        copy = attributes(rng, copy.header("x-amz-metadata-directive", "REPLACE"));
    }
    if chance(rng, 12) {
        copy = copy.header("x-amz-tagging-directive", "REPLACE").header("x-amz-tagging", "copied=yes");
    }
    if chance(rng, 15) {
        copy = match rng.u8(..4) {
            0 => copy.header("x-amz-copy-source-if-match", some_tag(rng)),
            1 => copy.header("x-amz-copy-source-if-none-match", some_tag(rng)),
            2 => copy.header("x-amz-copy-source-if-modified-since", LONG_AGO),
            _ => copy.header("x-amz-copy-source-if-unmodified-since", one(rng, &[LONG_AGO, LATER])),
        };
    }
    copy
}

fn delete_many(rng: &mut Rng, bucket: &str, keys: &[&str], versions: u8) -> Call {
    let mut objects: Vec<(String, Option<String>)> = Vec::new();
    for key in keys.iter().chain([&"never-there"]) {
        if objects.is_empty() || (chance(rng, 60) && objects.iter().all(|(known, _)| known != key)) {
            // Clients that empty a bucket name the version of each object.
            let id = maybe(rng, versions.max(15), |rng| version(rng, &format!("{bucket}/{key}")));
            objects.push(((*key).to_owned(), id));
        }
    }
    // With `quiet`, the answer has no ids of the delete markers, so later operations could not name
    // them.
    let nameable = versions == 0 || objects.iter().all(|(_, id)| id.is_some());
    Call::to_bucket("POST", bucket).of("delete").checked(bodies::delete(&objects, nameable && chance(rng, 30)))
}

fn tagging(rng: &mut Rng, bucket: &str, key: &str, versions: u8) -> Call {
    let on = |method| Call::to_key(method, bucket, key).of("tagging");
    let call = match rng.u8(..3) {
        0 => on("GET"),
        1 => on("PUT").checked(bodies::tagging(&bodies::tags(rng))),
        _ => on("DELETE"),
    };
    of_version(rng, call, versions)
}

/// Sets a body of this length, which is too large to print.
pub(super) fn large(call: Call, byte: u8, length: usize) -> Call {
    Call { body: Body::Filled(byte, length), ..call }
}
