//! Requests that none of our clients sends on purpose: odd names, unsuitable keys, invalid
//! signatures.

use fastrand::Rng;

use super::bodies::one;
use super::call::{Call, Signer};

/// Invalid suffixes of bucket names. The prefix is the sequence's own.
const NAMES: [&str; 6] =
    ["A", "_", "..a", "-", ".", "-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789"];

/// Returns a random one of them.
pub(super) fn call(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let on = |method| Call::to_key(method, bucket, key);
    match rng.u8(..8) {
        0 => Call {
            bucket: Some(format!("$(place){}", one(rng, &NAMES))),
            ..Call::to_store(one(rng, &["PUT", "HEAD", "GET"]))
        },
        1 | 2 => signed_wrong(rng, bucket, key),
        3 => Call::to_bucket("PUT", bucket).of("tagging").checked(one(rng, &["<Tagging>", "nonsense"])),
        4 => Call::to_bucket("POST", bucket).of("delete").checked(one(rng, &["<Delete></Delete>", "<Delete>"])),
        5 => on("PUT").header("x-amz-copy-source", one(rng, &["/$(place)-z/k", "/$(place)-a/never-there"])),
        6 => Call { key: Some("l".repeat(1025)), ..on(one(rng, &["PUT", "GET", "HEAD", "DELETE"])) },
        _ => Call::to_bucket(one(rng, &["GET", "HEAD", "DELETE"]), "z"),
    }
}

/// Returns a read or write with an invalid signature, which is refused before anything is read.
fn signed_wrong(rng: &mut Rng, bucket: &str, key: &str) -> Call {
    let call = match rng.u8(..5) {
        0 => Call::to_store("GET"),
        1 => Call::to_bucket("PUT", bucket),
        2 => Call::to_bucket("GET", bucket).query("list-type", "2"),
        3 => Call::to_key("PUT", bucket, key).body("x"),
        _ => Call::to_key("GET", bucket, key),
    };
    call.signed(one(rng, &[Signer::WrongSecret, Signer::Unknown, Signer::Nobody]))
}
