//! Requests to buckets.

use fastrand::Rng;

use super::bodies::{self, chance, maybe, one};
use super::call::Call;

/// Returns a random request to a bucket.
pub(super) fn call(rng: &mut Rng, bucket: &str) -> Call {
    let on = |method| Call::to_bucket(method, bucket);
    match rng.u8(..100) {
        ..18 => create(rng, bucket),
        18..27 => on("HEAD"),
        27..38 => on("DELETE"),
        38..52 => on("GET").of("tagging"),
        52..66 => on("PUT").of("tagging").checked(bodies::tagging(&bodies::tags(rng))),
        66..71 => on("DELETE").of("tagging"),
        71..76 => on("GET").of("location"),
        76..83 => on("GET").of("versioning"),
        83..91 => set_versioning(rng, bucket),
        _ => list(rng),
    }
}

/// Returns a request that creates a bucket. It is mostly a plain one, because the operations that
/// follow need the bucket.
pub(super) fn create(rng: &mut Rng, bucket: &str) -> Call {
    let create = Call::to_bucket("PUT", bucket);
    match rng.u8(..100) {
        ..80 => create,
        80..90 => create.header("x-amz-bucket-object-lock-enabled", "true"),
        _ => {
            let region = one(rng, &["us-east-1", "nowhere"]);
            let constraint = format!("<LocationConstraint>{region}</LocationConstraint>");
            create.body(format!("<CreateBucketConfiguration>{constraint}</CreateBucketConfiguration>"))
        }
    }
}

pub(super) fn set_versioning(rng: &mut Rng, bucket: &str) -> Call {
    let status = if chance(rng, 95) { one(rng, &["Enabled", "Enabled", "Suspended"]) } else { "On" };
    Call::to_bucket("PUT", bucket).of("versioning").checked(bodies::versioning(status))
}

/// Lists buckets. Only the sequence's own are compared.
fn list(rng: &mut Rng) -> Call {
    Call::to_store("GET").maybe("prefix", maybe(rng, 50, |rng| one(rng, &["$(place)", "$(place)-a", "$(place)-z"])))
}
