//! Bounded copies of objects that other users may write, for the operator's caches (spec §3.5).
//!
//! The functions copy, because a value truncated in place keeps its allocation. A copy of metadata
//! contains only the fields named here, so that no unconsidered field is kept.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};

use super::access::{BucketAccess, BucketAccessSpec, BucketAccessStatus};
use super::backend::S3Backend;
use super::claim::{BucketClaim, BucketClaimStatus};
use super::sharing::SharingRule;
use super::{ACCESS_FINALIZER, FINALIZER, OBC_FINALIZER, OBC_GROUP, wire};

/// Bound on the operator's labels and annotations, in bytes. Object names have at most 253.
pub const LONGEST: usize = 256;

/// Bound on the operator's strings in a status outside of conditions, in bytes. Endpoints have at
/// most 2048.
const LONGEST_TEXT: usize = 2100;

/// Maximum number of bytes in the names of accesses in the status of a claim.
pub const LONGEST_ACCESSES: usize = 2 << 10;

/// Maximum number of bytes of a template in a cache.
pub const MOST_TEMPLATE: usize = 2 << 10;

/// Maximum number of bytes of a claim's sharing rules: the schema's limit, and field names.
const MOST_SHARING: usize = SharingRule::MOST_TEXT + (4 << 10);

/// Maximum number of bytes of an access's entries: the schema's limit, and field names.
const MOST_ENTRIES: usize = BucketAccessSpec::MOST_TEXT + (4 << 10);

/// Maximum number of bytes of the entries' state in the status of an access, in a cache.
const MOST_ENTRIES_SHOWN: usize = 512;

/// Maximum number of finalizers whose names are kept.
const MOST_FINALIZERS: usize = 16;

/// Maximum number of bytes in the names of all finalizers.
const LONGEST_FINALIZERS: usize = 1 << 10;

/// Maximum length of a request that is kept verbatim, in bytes. [`wire::receipt`] does not change
/// such a request.
const LONGEST_REQUEST: usize = 63;

/// Placeholder for the finalizers that are not kept. No finalizer can have this name, because it
/// contains blanks.
const MORE_FINALIZERS: &str = "and more";

/// Annotations that contain a request, and the key under which the copy has the receipt of a
/// request too long to keep. No annotation can have such a key.
const REQUESTS: [(&str, &str); 2] =
    [(wire::ROTATE, "broker.stowage.io/rotate (receipt)"), (wire::REVOKE, "broker.stowage.io/revoke (receipt)")];

/// Annotation of a cached consumer Secret whose copy lacks everything written by templates. No
/// annotation can have this key.
pub const TEMPLATE_LEFT_OUT: &str = "broker.stowage.io/template (left out)";

/// Maximum number of bytes of conditions: those of the operator fit. The schema does not bound
/// their number.
const MOST_CONDITIONS: usize = 24 << 10;

/// Annotations of a claim that the operator reads.
const CLAIM_ANNOTATIONS: [&str; 6] =
    [wire::ROTATE, wire::REVOKE, wire::PAUSED, wire::SERVED_BY, REQUESTS[0].1, REQUESTS[1].1];

/// Annotations of a backend that the operator reads.
const BACKEND_ANNOTATIONS: [&str; 1] = [wire::SERVED_BY];

/// Copies metadata, with only the given labels and annotations.
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

/// Copies the entries with the given names. A map that becomes empty is kept, because a JSON patch
/// has to create a map that is absent.
fn only(all: &BTreeMap<String, String>, names: &[&str]) -> BTreeMap<String, String> {
    let entry = |name: &&str| all.get_key_value(*name).filter(|(_, value)| value.len() <= LONGEST);
    names.iter().filter_map(entry).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Copies the finalizers. If there are too many, the copy has the operator's finalizer, if present,
/// and [`MORE_FINALIZERS`].
fn finalizers(all: &[String]) -> Vec<String> {
    if all.len() <= MOST_FINALIZERS && all.iter().map(String::len).sum::<usize>() <= LONGEST_FINALIZERS {
        return all.to_vec();
    }
    let ours = all.iter().find(|name| [FINALIZER, ACCESS_FINALIZER, OBC_FINALIZER].contains(&name.as_str())).cloned();
    ours.into_iter().chain([MORE_FINALIZERS.to_owned()]).collect()
}

/// Returns true if these are all finalizers of the object, in order.
pub fn are_all_finalizers(kept: &[String]) -> bool {
    kept.iter().all(|name| name != MORE_FINALIZERS)
}

/// Copies the parts of a claim that a cache keeps. A long template is replaced by its digest.
pub fn claim(of: &BucketClaim) -> BucketClaim {
    let mut kept = claim_for_pass(of);
    if let Some(template) = &mut kept.spec.secret_template {
        template.shed(MOST_TEMPLATE);
    }
    kept
}

/// Copies the parts of a claim that a reconciliation reads.
pub fn claim_for_pass(of: &BucketClaim) -> BucketClaim {
    let mut metadata = asking(&of.metadata);
    metadata.owner_references = obc_controller(&of.metadata);
    let mut spec = of.spec.clone();
    if let Some(sharing) = &mut spec.sharing {
        sharing.truncate(MOST_SHARING);
    }
    BucketClaim { metadata, spec, status: of.status.as_ref().map(status) }
}

/// Returns the owner reference of the ObjectBucketClaim that controls an object.
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

/// Copies the parts of an access that a cache keeps. A long template, and a long list of entries in
/// the status, are replaced by their digests.
pub fn access(of: &BucketAccess) -> BucketAccess {
    let mut kept = access_for_pass(of);
    if let Some(template) = &mut kept.spec.secret_template {
        template.shed(MOST_TEMPLATE);
    }
    if let Some(status) = &mut kept.status {
        status.buckets.shed(MOST_ENTRIES_SHOWN);
    }
    kept
}

/// Copies the parts of an access that a reconciliation reads.
pub fn access_for_pass(of: &BucketAccess) -> BucketAccess {
    let mut metadata = asking(&of.metadata);
    metadata.owner_references = obc_controller(&of.metadata);
    let mut spec = of.spec.clone();
    spec.buckets.truncate(MOST_ENTRIES);
    BucketAccess { metadata, spec, status: of.status.as_ref().map(access_status) }
}

/// Copies the metadata of an object whose annotations may contain requests.
fn asking(of: &ObjectMeta) -> ObjectMeta {
    let mut metadata = metadata(of, &[], &CLAIM_ANNOTATIONS);
    for (annotation, receipt) in REQUESTS {
        let request = of.annotations.as_ref().and_then(|all| all.get(annotation));
        if let Some(long) = request.filter(|request| request.len() > LONGEST_REQUEST) {
            let kept = metadata.annotations.get_or_insert_default();
            kept.remove(annotation);
            kept.insert(receipt.to_owned(), wire::receipt(long));
        }
    }
    metadata
}

/// Copies the status of an access without strings that are too long.
fn access_status(of: &BucketAccessStatus) -> BucketAccessStatus {
    let mut kept = of.clone();
    for text in [&mut kept.bound_secret_name, &mut kept.access_key_id] {
        *text = text.take().filter(|text| text.len() <= LONGEST);
    }
    kept.binding = kept.binding.filter(|binding| binding.name.len() <= LONGEST);
    kept.conditions = conditions(&of.conditions);
    kept
}

/// Returns the receipt of the request in an annotation, from the original object or from a copy.
pub(crate) fn receipt(annotations: &BTreeMap<String, String>, annotation: &str) -> Option<String> {
    let whole = || annotations.get(annotation).map(|request| wire::receipt(request));
    let long = REQUESTS.iter().find(|(asks, _)| *asks == annotation).and_then(|(_, receipt)| annotations.get(*receipt));
    long.cloned().or_else(whole)
}

/// Copies the status of a claim. A string that is too long is dropped, because the operator cannot
/// have written it.
fn status(of: &BucketClaimStatus) -> BucketClaimStatus {
    let mut kept = of.clone();
    for text in [
        &mut kept.bucket_name,
        &mut kept.bound_secret_name,
        &mut kept.access_key_id,
        &mut kept.handled_rotate_request,
        &mut kept.handled_revoke_request,
    ] {
        *text = text.take().filter(|text| text.len() <= LONGEST);
    }
    kept.proxy_endpoint = kept.proxy_endpoint.filter(|endpoint| endpoint.len() <= LONGEST_TEXT);
    kept.binding = kept.binding.filter(|binding| binding.name.len() <= LONGEST);
    kept.backend = kept.backend.filter(|backend| backend.name.len().max(backend.endpoint.len()) <= LONGEST_TEXT);
    kept.accesses = kept.accesses.filter(|all| all.first.iter().map(String::len).sum::<usize>() <= LONGEST_ACCESSES);
    kept.conditions = conditions(&of.conditions);
    kept
}

/// Copies the conditions that fit, in order. The operator's come first.
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

/// Copies the parts of a backend that a cache keeps. Fields bounded by the schema are copied whole.
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

    use super::super::{Claim, Packed};
    use super::*;

    fn claim_with(annotations: &[(&str, &str)], finalizers: Vec<String>) -> BucketClaim {
        let raw = json!({"metadata": {"name": "photos"}, "spec": {"backendRef": {"name": "main"}}});
        let mut raw: BucketClaim = serde_json::from_value(raw).expect("a claim");
        let annotation = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        raw.metadata.annotations = Some(annotations.iter().map(annotation).collect());
        raw.metadata.finalizers = Some(finalizers);
        raw
    }

    /// Returns the number of bytes allocated for metadata.
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
        raw.metadata.generate_name = Some(long.clone());
        let kept = claim(&raw);
        assert!(size(&kept.metadata) < 1 << 10, "{} bytes", size(&kept.metadata));
        assert_eq!(kept.metadata.generate_name, None);
        let most = vec!["f".repeat(LONGEST_FINALIZERS / MOST_FINALIZERS); MOST_FINALIZERS];
        let texts = CLAIM_ANNOTATIONS.map(|name| (name, &long[..LONGEST]));
        let most = claim(&claim_with(&texts, most));
        assert!(size(&most.metadata) < 3 << 10, "{} bytes", size(&most.metadata));
    }

    /// Returns a template of the maximum size that the schema allows.
    fn template() -> serde_json::Value {
        let map = |longest: usize| -> BTreeMap<String, String> {
            let text = |number: usize| (format!("{number:02}{}", "k".repeat(40)), "\u{1}".repeat(longest));
            (0..32).map(text).collect()
        };
        json!({"labels": map(63), "annotations": map(256), "data": map(4096)})
    }

    // covers: 3.5.memory, 3.5.memory.template
    #[test]
    fn a_long_template_is_a_digest_in_a_cache_and_whole_in_a_pass() {
        let spec = json!({"backendRef": {"name": "main"}, "secretTemplate": template()});
        let raw: BucketClaim = serde_json::from_value(json!({"metadata": {"name": "photos"}, "spec": spec})).unwrap();
        let taken = |of: &BucketClaim| of.spec.secret_template.as_ref().map(Packed::size);
        assert!(taken(&raw) > Some(128 << 10));
        assert_eq!((taken(&claim(&raw)), taken(&claim_for_pass(&raw))), (Some(0), taken(&raw)));
        let shape = |of: &BucketClaim| Claim::parse(of).desired.map(|desired| desired.shape.is_some());
        assert_eq!(shape(&claim(&raw)), Ok(false));
        let short = json!({"backendRef": {"name": "main"}, "secretTemplate": {"data": {"a": "x"}}});
        let raw: BucketClaim = serde_json::from_value(json!({"metadata": {"name": "photos"}, "spec": short})).unwrap();
        assert_eq!(shape(&claim(&raw)), Ok(true));
    }

    // covers: 3.5.memory
    #[test]
    fn what_is_kept_of_an_access_has_a_bound_by_capacity() {
        let entry = |number: usize| {
            let name = format!("{number:02}{}", "n".repeat(20));
            json!({"claimRef": {"name": name, "namespace": "team-a"}, "mode": "ReadOnly", "prefix": format!("{name}/")})
        };
        let shown = |number: usize| json!({"bucket": format!("{number}{}", "b".repeat(60)), "state": "Open"});
        let access_of = |entries: Vec<serde_json::Value>| -> BucketAccess {
            let status = json!({"buckets": (0..64).map(shown).collect::<Vec<_>>()});
            let spec = json!({
                "buckets": entries, "writeConnectionSecretToRef": {"name": "s"}, "secretTemplate": template(),
            });
            serde_json::from_value(json!({"metadata": {"name": "reader"}, "spec": spec, "status": status})).unwrap()
        };
        let raw = access_of((0..64).map(entry).collect());
        let kept = access(&raw);
        assert_eq!(kept.spec.buckets, raw.spec.buckets, "as many as the schema takes");
        assert_eq!(kept.spec.secret_template.as_ref().map(Packed::size), Some(0));
        let shown = |of: &BucketAccess| of.status.as_ref().map(|status| status.buckets.clone());
        assert_eq!((shown(&kept), shown(&kept).map(|all| all.size())), (shown(&raw), Some(0)));
        let many = access(&access_of((0..5000).map(entry).collect()));
        assert!((MOST_ENTRIES / 2..=MOST_ENTRIES).contains(&many.spec.buckets.size()));
    }

    // covers: 3.5.memory
    #[test]
    fn the_first_rules_of_a_claim_are_kept_that_fit() {
        let rule = |number: usize| {
            let names: Vec<String> = (0..32).map(|name| format!("{number}-{name:02}-{}", "n".repeat(50))).collect();
            json!({"namespaces": {"names": names}, "maxMode": "ReadOnly"})
        };
        let spec = json!({"backendRef": {"name": "main"}, "sharing": (0..8).map(rule).collect::<Vec<_>>()});
        let raw: BucketClaim = serde_json::from_value(json!({"metadata": {"name": "photos"}, "spec": spec})).unwrap();
        let kept = claim(&raw).spec.sharing.expect("some");
        assert!(kept.size() <= MOST_SHARING, "{} bytes", kept.size());
        assert_eq!(kept.get().map(|rules| rules.len()), Some(4));
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
