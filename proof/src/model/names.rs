//! Names of the objects in the abstract world.

use stowage_operator::api::{ClaimRef, Endpoint};

use super::facts::{BACKENDS, NAMES};

/// Returns the namespace and name of a claim. With the default template both claims get the bucket
/// name `a-b-c`.
pub(super) fn claim_ref(slot: usize) -> ClaimRef {
    let (namespace, name) = [("a-b", "c"), ("a", "b-c")][slot];
    ClaimRef { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// Returns the name of a claim's consumer Secret.
pub(super) fn consumer_name(slot: usize, renamed: bool) -> String {
    if renamed { "connection".to_owned() } else { format!("{}-s3", claim_ref(slot).name) }
}

/// Returns the name of a backend.
pub(super) fn backend_name(number: u8) -> &'static str {
    ["main", "second"][number as usize]
}

/// Returns the number of a backend.
pub(super) fn backend_number(name: &str) -> Option<u8> {
    (0..BACKENDS as u8).find(|number| backend_name(*number) == name)
}

/// Returns the URL of a store.
pub(super) fn endpoint(store: u8) -> Endpoint {
    parsed(Endpoint::parse(["http://one.example", "http://two.example"][store as usize]))
}

/// Returns the number of a bucket, from its store and its name.
pub(super) fn bucket_number(endpoint_text: &str, bucket: &str) -> Option<usize> {
    let store = (0..BACKENDS).find(|store| endpoint(*store as u8).as_str() == endpoint_text)?;
    let name = (0..NAMES).find(|name| bucket_name(*name) == bucket)?;
    Some(store * NAMES + name)
}

/// Returns the name of a bucket.
pub(super) fn bucket_name(name: usize) -> &'static str {
    ["a-b-c", "x-a-b-c"][name]
}

/// Encodes the number of an object and its count of writes as a resourceVersion. The planner takes
/// the greater one of two versions of an object for the later one.
pub(super) fn resource_version(writes: u16, number: u32) -> String {
    ((u64::from(writes) << u32::BITS) | u64::from(number)).to_string()
}

/// Decodes the number of the object from a resourceVersion.
pub(super) fn number_of(resource_version: &str) -> u32 {
    let all = resource_version.parse::<u64>();
    // The upper bits count the writes.
    all.unwrap_or_else(|_| unreachable!("no resourceVersion of the model: {resource_version}")) as u32
}

/// Unwraps the result of parsing a constant of the model.
pub(super) fn parsed<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| unreachable!("a constant of the model: {error:?}"))
}
