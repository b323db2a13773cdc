//! Claims and backends as the API server sends them, and their copies in memory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use stowage_api::{Backend, BucketClaim, Claim, LONGEST_MESSAGE, NameTemplate, S3Backend, kept, merge_conditions};

use super::held::held;

/// Maximum size of a claim in memory without its conditions (spec §3.5).
const MOST: usize = 16 << 10;
/// Maximum size of the conditions of a status in memory.
const MOST_CONDITIONS: usize = 64 << 10;
/// Maximum length of a name, a UID or a version on any API server.
const LONGEST_NAME: usize = 253;
/// Maximum length of a spec that is measured: the API server rejects one that exceeds the limits of
/// its definition.
const LONGEST_SPEC: usize = 4 << 10;

/// Labels of a namespace.
static LABELS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| [("tier".to_owned(), "gold".to_owned())].into());

/// Parses JSON as both kinds.
pub(crate) fn play(input: &[u8]) {
    if let Ok(raw) = serde_json::from_slice::<BucketClaim>(input) {
        claim(&BucketClaim { metadata: possible(&raw.metadata), ..raw });
    }
    if let Ok(raw) = serde_json::from_slice::<S3Backend>(input) {
        backend(&S3Backend { metadata: possible(&raw.metadata), ..raw });
    }
}

/// Returns metadata that an API server can store: with short names, and without blanks in the names
/// of annotations and finalizers.
fn possible(of: &ObjectMeta) -> ObjectMeta {
    let short = |text: &Option<String>| {
        text.as_ref().map(|text| text[..text.floor_char_boundary(text.len().min(LONGEST_NAME))].to_owned())
    };
    let mut possible = ObjectMeta {
        name: short(&of.name),
        namespace: short(&of.namespace),
        uid: short(&of.uid),
        resource_version: short(&of.resource_version),
        ..of.clone()
    };
    if let Some(annotations) = &mut possible.annotations {
        annotations.retain(|name, _| !name.contains(' '));
    }
    if let Some(finalizers) = &mut possible.finalizers {
        finalizers.retain(|name| !name.contains(' '));
    }
    possible
}

fn claim(raw: &BucketClaim) {
    written_as_read(raw);
    same_in_what_is_kept(raw);
    let grown = grown(raw);
    same_in_what_is_kept(&grown);
    // Fields with limits in the definition are copied completely, so a spec that no API server
    // stores is not measured.
    let length = serde_json::to_vec(&raw.spec).map_or(0, |spec| spec.len());
    if length <= LONGEST_SPEC {
        for raw in [raw, &grown] {
            let (copy, bytes) = held(|| kept::claim(raw));
            let conditions = copy.status.as_ref().map_or(0, |status| status.conditions.len());
            let most = if conditions == 0 { MOST } else { MOST + MOST_CONDITIONS };
            assert!(bytes <= most, "{bytes} bytes are kept, of them {conditions} conditions");
        }
    }
}

/// Checks that a serialized claim is parsed as the same. Claims with unknown values are skipped,
/// because they can't be serialized.
fn written_as_read(raw: &BucketClaim) {
    let Ok(written) = serde_json::to_value(raw) else { return };
    let read: BucketClaim = serde_json::from_value(written.clone()).expect("it is read as it was written");
    assert_eq!(serde_json::to_value(&read).ok(), Some(written));
}

/// Checks that the operator's decisions about the copy and about the original are the same.
fn same_in_what_is_kept(raw: &BucketClaim) {
    let copy = kept::claim(raw);
    assert_eq!(kept::claim(&copy), copy, "a copy of a copy");
    let (whole, short) = (Claim::parse(raw), Claim::parse(&copy));
    assert_eq!((&whole.id, &whole.at, &whole.uid), (&short.id, &short.at, &short.uid));
    assert_eq!((whole.generation, whole.deleting, whole.paused), (short.generation, short.deleting, short.paused));
    assert_eq!((&whole.rotate_request, whole.deletion), (&short.rotate_request, short.deletion));
    assert_eq!(whole.revoke_request, short.revoke_request);
    assert_eq!((&whole.consumer_secret, &whole.desired), (&short.consumer_secret, &short.desired));
    assert_eq!(whole.has_finalizer(), short.has_finalizer());
    assert_eq!(whole.finalizers.is_empty(), short.finalizers.is_empty());
    if kept::are_all_finalizers(&short.finalizers) {
        assert_eq!(whole.finalizers, short.finalizers);
    }
    let status = (&whole.status, &short.status);
    assert_eq!((status.0.phase, status.0.rotation_generation), (status.1.phase, status.1.rotation_generation));
    assert!(short.status.conditions.iter().all(|condition| whole.status.conditions.contains(condition)));
    messages(&whole);
}

/// Checks that messages written to a status don't exceed their maximum length, whatever the status
/// contained.
fn messages(claim: &Claim) {
    let Some(now) = claim.status.conditions.first().map(|condition| condition.last_transition_time.clone()) else {
        return;
    };
    let merged = merge_conditions(&claim.status.conditions, claim.status.conditions.clone(), &now);
    let ours = &merged[..claim.status.conditions.len()];
    assert!(ours.iter().all(|condition| condition.message.len() <= LONGEST_MESSAGE));
}

/// Returns the claim with its existing fields extended.
fn grown(raw: &BucketClaim) -> BucketClaim {
    let mut grown = raw.clone();
    let metadata = &mut grown.metadata;
    for texts in [&mut metadata.labels, &mut metadata.annotations].into_iter().flatten() {
        texts.values_mut().for_each(|text| *text = text.repeat(300));
    }
    if let Some(finalizers) = &mut metadata.finalizers {
        let more: Vec<String> = finalizers.iter().map(|name| name.repeat(20)).collect();
        for _ in 0..20 {
            finalizers.extend_from_slice(&more);
        }
    }
    if let Some(owners) = &mut metadata.owner_references {
        owners.iter_mut().for_each(|owner| owner.uid = owner.uid.repeat(300));
    }
    if let Some(status) = &mut grown.status {
        for text in [&mut status.bucket_name, &mut status.proxy_endpoint, &mut status.access_key_id] {
            *text = text.as_ref().map(|text| text.repeat(300));
        }
        let more = status.conditions.clone();
        for number in 1..30 {
            status.conditions.extend(more.iter().cloned().map(|mut condition| {
                condition.message = condition.message.repeat(number * 10);
                condition
            }));
        }
    }
    grown
}

/// Checks that a backend that can be parsed has a valid endpoint and a valid template, and allows
/// the namespaces that it names.
fn backend(raw: &S3Backend) {
    let copy = kept::backend(raw);
    assert_eq!(kept::backend(&copy), copy, "a copy of a copy");
    let (whole, short) = (Backend::parse(raw), Backend::parse(&copy));
    let Ok(whole) = whole else {
        assert_eq!(whole, short);
        return;
    };
    let short = short.expect("what can be read can be read in what is kept");
    assert_eq!((&whole.id, &whole.endpoint, &whole.template), (&short.id, &short.endpoint, &short.template));
    assert_eq!((&whole.access, &whole.credentials, &whole.tls), (&short.access, &short.credentials, &short.tls));
    assert_eq!((&whole.region, whole.adoption, whole.proof), (&short.region, short.adoption, short.proof));
    assert_eq!(NameTemplate::parse(&raw.spec.bucket_name_template).as_ref(), Ok(&whole.template));
    let named = raw.spec.allowed_namespaces.as_ref().and_then(|allowed| allowed.names.as_ref());
    assert!(named.into_iter().flatten().all(|name| whole.access.allows(name, None)));
    if let Some(allowed) = &raw.spec.allowed_namespaces {
        let is_named = allowed.names.iter().flatten().any(|name| name == "team-a");
        assert_eq!(whole.access.allows("team-a", None), is_named, "without labels the name alone counts");
        let nothing = allowed.selector.is_none() && !is_named;
        assert!(!nothing || !whole.access.allows("team-a", Some(&LABELS)), "nothing lets team-a in");
    }
}
