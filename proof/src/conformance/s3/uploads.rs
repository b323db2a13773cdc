//! Multipart uploads.

use fastrand::Rng;

use super::bodies::{self, TEXTS, chance, one};
use super::call::{Call, Listing, Operation, tag_of};
use super::objects::{large, source};

/// Minimum size of all parts except the last.
const LEAST: usize = 5 * 1024 * 1024;
const FILLED: u8 = b'p';

/// Returns a random request about an upload to this key.
pub(super) fn operation(rng: &mut Rng, bucket: &str, key: &str, from: (&str, &str)) -> Operation {
    let on = |method| Call::to_key(method, bucket, key);
    let id = if chance(rng, 95) { format!("$(upload {bucket}/{key})") } else { "no-such-upload".to_owned() };
    match rng.u8(..100) {
        ..20 => create(rng, bucket, key).into(),
        20..48 => part(rng, on("PUT"), &id).into(),
        48..56 => part_copy(rng, on("PUT"), &id, from).into(),
        56..66 => on("GET").query("uploadId", id).into(),
        66..72 => Operation::Pages(Listing::Parts, on("GET").query("uploadId", id).query("max-parts", "1")),
        72..88 => {
            let parts = chosen(rng);
            on("POST").query("uploadId", id).body(bodies::complete(&parts)).into()
        }
        88..94 => on("DELETE").query("uploadId", id).into(),
        _ => Call::to_bucket("GET", bucket).of("uploads").query("prefix", key).into(),
    }
}

fn create(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let create = Call::to_key("POST", bucket, key).of("uploads");
    match rng.u8(..4) {
        0 => create.header("content-type", "text/plain").header("x-amz-meta-a", "1"),
        1 => create.header("x-amz-tagging", "a=1"),
        _ => create,
    }
}

fn part(rng: &mut Rng, call: Call, id: &str) -> Call {
    let number = one(rng, &["1", "1", "2", "2", "3", "10000"]);
    let number = if chance(rng, 4) { "10001" } else { number };
    call.query("partNumber", number).query("uploadId", id).body(one(rng, &TEXTS))
}

fn part_copy(rng: &mut Rng, call: Call, id: &str, from: (&str, &str)) -> Call {
    let copy = call.query("partNumber", one(rng, &["1", "2"])).query("uploadId", id);
    let copy = copy.header("x-amz-copy-source", source(rng, from, 0));
    if chance(rng, 40) {
        return copy.header("x-amz-copy-source-range", one(rng, &["bytes=0-1", "bytes=1-2", "bytes=0-50"]));
    }
    copy
}

/// Returns a random list of parts that may have been uploaded like that.
fn chosen(rng: &mut Rng) -> Vec<(u32, String)> {
    let part = |rng: &mut Rng, number| (number, tag_of(one(rng, &TEXTS)));
    match rng.u8(..10) {
        ..6 => {
            let number = one(rng, &[1, 2, 3]);
            vec![part(rng, number)]
        }
        6 | 7 => vec![part(rng, 1), part(rng, 2)],
        8 => vec![part(rng, 2), part(rng, 1)],
        _ => vec![],
    }
}

/// Uploads two parts, the first of minimum size, into a new bucket. With a bucket of earlier
/// operations the server might refuse the part before it has read it, and close the connection.
pub(super) fn whole(rng: &mut Rng, bucket: &str, key: &str) -> Vec<Operation> {
    let on = |method| Call::to_key(method, bucket, key);
    let id = format!("$(upload {bucket}/{key})");
    let part = |number: &str| on("PUT").query("partNumber", number).query("uploadId", &*id);
    let last = one(rng, &TEXTS);
    let first = String::from_utf8(vec![FILLED; LEAST]).unwrap_or_default();
    let parts = [(1, tag_of(&first)), (2, tag_of(last))];
    let range = one(rng, &["bytes=5242878-", "bytes=-3", "bytes=0-1"]);
    vec![
        Call::to_bucket("PUT", bucket).into(),
        create(rng, bucket, key).into(),
        large(part("1"), FILLED, LEAST).into(),
        part("2").body(last).into(),
        on("GET").query("uploadId", &*id).into(),
        on("POST").query("uploadId", &*id).body(bodies::complete(&parts)).into(),
        on("HEAD").into(),
        on("GET").header("range", range).into(),
        on("GET").into(),
    ]
}
