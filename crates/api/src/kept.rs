//! What the operator keeps of an object that others may write: a copy with a bound on its memory,
//! whatever they write (spec §3.5).
//!
//! A copy, because what is cut keeps its allocation. Of metadata the copy has what is named here,
//! so that a field that nobody thought of is not kept either.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};

use super::access::{BucketAccess, BucketAccessStatus};
use super::backend::S3Backend;
use super::claim::{BucketClaim, BucketClaimStatus};
use super::{ACCESS_FINALIZER, FINALIZER, OBC_FINALIZER, OBC_GROUP, wire};

/// Longer than any value of a label or annotation of ours, in bytes: names of objects have 253.
pub const LONGEST: usize = 256;

/// Longer than any text of ours in a status that is no condition: endpoints have 2048.
const LONGEST_TEXT: usize = 2100;

/// Longer than the names of the first twenty accesses of a claim, in bytes.
const LONGEST_ACCESSES: usize = 20 * 320;

/// Most entries of an access.
const MOST_ENTRIES: usize = 64;

/// Of so many finalizers the names are kept.
const MOST_FINALIZERS: usize = 16;

/// Longer than any finalizer's name: a prefix of 253, a slash and 63.
const LONGEST_FINALIZER: usize = 320;

/// Stands for the finalizers that are not kept. None can be called so: their names have no blanks.
const MORE_FINALIZERS: &str = "and more";

/// Annotations that ask for something, and where the copy has the receipt of one that is too long
/// to be kept. No annotation can be called so.
const REQUESTS: [(&str, &str); 2] =
    [(wire::ROTATE, "broker.stowage.io/rotate (receipt)"), (wire::REVOKE, "broker.stowage.io/revoke (receipt)")];

/// Bytes of conditions that are kept: the schema has no bound on how many there are.
const MOST_CONDITIONS: usize = 64 << 10;

/// The annotations of a claim that are read.
const CLAIM_ANNOTATIONS: [&str; 6] =
    [wire::ROTATE, wire::REVOKE, wire::PAUSED, wire::SERVED_BY, REQUESTS[0].1, REQUESTS[1].1];

/// The annotations of a backend that are read.
const BACKEND_ANNOTATIONS: [&str; 1] = [wire::SERVED_BY];

/// What is kept of metadata: of labels and annotations those of these names.
pub fn metadata(of: &ObjectMeta, labels: &[&str], annotations: &[&str]) -> ObjectMeta {
    ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        uid: of.uid.clone(),
        resource_version: of.resource_version.clone(),
        generation: of.generation,
        creation_timestamp: of.creation_timestamp.clone(),
        deletion_timestamp: of.deletion_timestamp.clone(),
        labels: of.labels.as_ref().map(|all| only(all, labels)),
        annotations: of.annotations.as_ref().map(|all| only(all, annotations)),
        finalizers: of.finalizers.as_deref().map(finalizers),
        ..ObjectMeta::default()
    }
}

/// What is there and empty stays: a patch would add the whole of what is absent.
fn only(all: &BTreeMap<String, String>, names: &[&str]) -> BTreeMap<String, String> {
    let entry = |name: &&str| all.get_key_value(*name).filter(|(_, value)| value.len() <= LONGEST);
    names.iter().filter_map(entry).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The finalizers, or what is to be known of too many: whether ours is one, and that there are
/// others.
fn finalizers(all: &[String]) -> Vec<String> {
    if all.len() <= MOST_FINALIZERS && all.iter().all(|name| name.len() <= LONGEST_FINALIZER) {
        return all.to_vec();
    }
    let ours = all.iter().find(|name| [FINALIZER, ACCESS_FINALIZER, OBC_FINALIZER].contains(&name.as_str())).cloned();
    ours.into_iter().chain([MORE_FINALIZERS.to_owned()]).collect()
}

/// Whether these finalizers are all that the object has, in their order.
pub fn are_all_finalizers(kept: &[String]) -> bool {
    kept.iter().all(|name| name != MORE_FINALIZERS)
}

/// What is kept of a claim. What its schema bounds is kept whole.
pub fn claim(of: &BucketClaim) -> BucketClaim {
    let mut metadata = asking(&of.metadata);
    metadata.owner_references = obc_controller(&of.metadata);
    BucketClaim { metadata, spec: of.spec.clone(), status: of.status.as_ref().map(status) }
}

/// The owner reference of the ObjectBucketClaim that controls an object: by that it is found.
pub fn obc_controller(of: &ObjectMeta) -> Option<Vec<OwnerReference>> {
    let is_controller = |owner: &&OwnerReference| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        owner.controller == Some(true)
            && owner.api_version.split('/').next() == Some(OBC_GROUP)
            && texts.iter().all(|text| text.len() <= LONGEST)
    };
    let owner = of.owner_references.iter().flatten().find(is_controller)?;
    Some(vec![owner.clone()])
}

/// What is kept of an access. What its schema bounds is kept whole.
pub fn access(of: &BucketAccess) -> BucketAccess {
    let mut metadata = asking(&of.metadata);
    metadata.owner_references = obc_controller(&of.metadata);
    BucketAccess { metadata, spec: of.spec.clone(), status: of.status.as_ref().map(access_status) }
}

/// What is kept of the metadata of an object whose annotations may ask for something.
fn asking(of: &ObjectMeta) -> ObjectMeta {
    let mut metadata = metadata(of, &[], &CLAIM_ANNOTATIONS);
    for (annotation, receipt) in REQUESTS {
        let request = of.annotations.as_ref().and_then(|all| all.get(annotation));
        if let Some(long) = request.filter(|request| request.len() > LONGEST) {
            let kept = metadata.annotations.get_or_insert_default();
            kept.insert(receipt.to_owned(), wire::receipt(long));
        }
    }
    metadata
}

/// The same of an access. Entries beyond those that a spec can have are none that the operator
/// wrote.
fn access_status(of: &BucketAccessStatus) -> BucketAccessStatus {
    let mut kept = of.clone();
    for text in [&mut kept.bound_secret_name, &mut kept.access_key_id] {
        *text = text.take().filter(|text| text.len() <= LONGEST_TEXT);
    }
    kept.binding = kept.binding.filter(|binding| binding.name.len() <= LONGEST_TEXT);
    let is_ours = |text: &Option<String>| text.as_ref().is_none_or(|text| text.len() <= LONGEST);
    kept.buckets.truncate(MOST_ENTRIES);
    kept.buckets.retain(|entry| {
        let texts = [&entry.bucket, &entry.backend, &entry.mode, &entry.reason];
        texts.into_iter().all(is_ours) && entry.state.len() <= LONGEST
    });
    kept.conditions = conditions(&of.conditions);
    kept
}

/// The receipt of what an annotation of a claim asks for, or of what is kept of one.
pub(crate) fn receipt(annotations: &BTreeMap<String, String>, annotation: &str) -> Option<String> {
    let whole = || annotations.get(annotation).map(|request| wire::receipt(request));
    let long = REQUESTS.iter().find(|(asks, _)| *asks == annotation).and_then(|(_, receipt)| annotations.get(*receipt));
    long.cloned().or_else(whole)
}

/// A text that is too long is none that the operator wrote.
fn status(of: &BucketClaimStatus) -> BucketClaimStatus {
    let mut kept = of.clone();
    for text in [
        &mut kept.bucket_name,
        &mut kept.proxy_endpoint,
        &mut kept.bound_secret_name,
        &mut kept.access_key_id,
        &mut kept.handled_rotate_request,
        &mut kept.handled_revoke_request,
    ] {
        *text = text.take().filter(|text| text.len() <= LONGEST_TEXT);
    }
    kept.binding = kept.binding.filter(|binding| binding.name.len() <= LONGEST_TEXT);
    kept.backend = kept.backend.filter(|backend| backend.name.len().max(backend.endpoint.len()) <= LONGEST_TEXT);
    kept.accesses = kept.accesses.filter(|all| all.first.iter().map(String::len).sum::<usize>() <= LONGEST_ACCESSES);
    kept.conditions = conditions(&of.conditions);
    kept
}

/// The first conditions, as many as fit: ours come first.
fn conditions(of: &[Condition]) -> Vec<Condition> {
    let mut room = MOST_CONDITIONS;
    let mut fits = |condition: &&Condition| {
        let texts = [&condition.type_, &condition.status, &condition.reason, &condition.message];
        let size = size_of::<Condition>() + texts.map(String::len).iter().sum::<usize>();
        room.checked_sub(size).map(|left| room = left).is_some()
    };
    let kept: Vec<&Condition> = of.iter().filter(&mut fits).collect();
    kept.into_iter().cloned().collect()
}

/// What is kept of a backend. What its schema bounds is kept whole.
pub fn backend(of: &S3Backend) -> S3Backend {
    let mut status = of.status.clone();
    if let Some(status) = &mut status {
        status.conditions = conditions(&status.conditions);
    }
    S3Backend { metadata: metadata(&of.metadata, &[], &BACKEND_ANNOTATIONS), spec: of.spec.clone(), status }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use rstest::rstest;
    use serde_json::json;

    use super::super::Claim;
    use super::*;

    fn claim_with(annotations: &[(&str, &str)], finalizers: Vec<String>) -> BucketClaim {
        let raw = json!({"metadata": {"name": "photos"}, "spec": {"backendRef": {"name": "main"}}});
        let mut raw: BucketClaim = serde_json::from_value(raw).expect("a claim");
        let annotation = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        raw.metadata.annotations = Some(annotations.iter().map(annotation).collect());
        raw.metadata.finalizers = Some(finalizers);
        raw
    }

    /// Bytes that metadata takes, by what is allocated.
    fn size(meta: &ObjectMeta) -> usize {
        let map = |map: &Option<BTreeMap<String, String>>| -> usize {
            map.iter().flatten().map(|(key, value)| 2 * size_of::<String>() + key.capacity() + value.capacity()).sum()
        };
        let finalizers = meta
            .finalizers
            .as_ref()
            .map_or(0, |all| all.capacity() * size_of::<String>() + all.iter().map(String::capacity).sum::<usize>());
        let owners = meta.owner_references.as_ref().map_or(0, |all| all.capacity() * size_of::<OwnerReference>());
        map(&meta.labels) + map(&meta.annotations) + finalizers + owners
    }

    // covers: 3.5.memory
    #[test]
    fn what_is_kept_of_a_claim_has_a_bound_by_capacity() {
        let long = "x".repeat(250_000);
        let names = (0..5000).map(|number| format!("example.com/f-{number}")).chain([FINALIZER.to_owned()]);
        let texts = [wire::ROTATE, wire::REVOKE, wire::PAUSED, "theirs"].map(|name| (name, long.as_str()));
        let mut raw = claim_with(&texts, names.collect());
        raw.metadata.labels = raw.metadata.annotations.clone();
        raw.metadata.owner_references = Some(vec![OwnerReference::default(); 5000]);
        raw.metadata.generate_name = Some(long);
        let kept = claim(&raw);
        assert!(size(&kept.metadata) < 1 << 10, "{} bytes", size(&kept.metadata));
        assert_eq!(kept.metadata.generate_name, None);
        let most = vec!["f".repeat(LONGEST_FINALIZER); MOST_FINALIZERS];
        let most = claim(&claim_with(&[(wire::ROTATE, &"x".repeat(LONGEST))], most));
        assert!(size(&most.metadata) < 8 << 10, "{} bytes", size(&most.metadata));
    }

    // covers: 3.5.memory, 1.status.handledRotateRequest, 1.status.handledRevokeRequest
    #[rstest]
    #[case("now")]
    #[case(&"x".repeat(64))]
    #[case(&"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    #[case(&"x".repeat(LONGEST + 1))]
    fn a_request_is_the_same_in_what_is_kept(#[case] request: &str) {
        let asked = |raw: &BucketClaim| {
            let claim = Claim::parse(raw);
            (claim.rotate_request, claim.revoke_request)
        };
        for (annotation, expected) in
            [(wire::ROTATE, (Some(wire::receipt(request)), None)), (wire::REVOKE, (None, Some(wire::receipt(request))))]
        {
            let raw = claim_with(&[(annotation, request)], Vec::new());
            assert_eq!(asked(&raw), expected);
            assert_eq!(asked(&claim(&claim(&raw))), expected, "also in a copy of a copy");
        }
    }

    // covers: 3.5.memory.finalizers
    #[test]
    fn of_many_finalizers_it_is_known_whether_ours_is_one() {
        let few = vec!["example.com/a".to_owned(), FINALIZER.to_owned()];
        assert_eq!(finalizers(&few), few);
        assert!(are_all_finalizers(&few));
        let mut many: Vec<String> = (0..17).map(|number| format!("example.com/f-{number}")).collect();
        assert!(!are_all_finalizers(&finalizers(&many)));
        assert!(!finalizers(&many).is_empty() && !finalizers(&many).contains(&FINALIZER.to_owned()));
        many.push(FINALIZER.to_owned());
        assert!(finalizers(&finalizers(&many)).contains(&FINALIZER.to_owned()));
    }

    // covers: 3.5.memory.conditions
    #[test]
    fn of_a_status_the_conditions_that_fit_are_kept() {
        let condition = |type_: &str, message: usize| -> Condition {
            let message = "m".repeat(message);
            let time = "2026-01-01T00:00:00Z";
            let raw =
                json!({"type": type_, "status": "True", "reason": "R", "message": message, "lastTransitionTime": time});
            serde_json::from_value(raw).expect("a condition")
        };
        let all = [condition("Ready", 100), condition("Theirs", 1 << 20), condition("Other", 100)];
        let kept = conditions(&all);
        assert_eq!(kept.iter().map(|kept| kept.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Other"]);
        let mut raw = claim_with(&[], Vec::new());
        let long = Some("x".repeat(1 << 20));
        raw.status = Some(BucketClaimStatus { bucket_name: long, conditions: all.into(), ..Default::default() });
        let kept = claim(&raw).status.expect("a status");
        assert_eq!((kept.bucket_name, kept.conditions.capacity()), (None, 2));
    }
}
