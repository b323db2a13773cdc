//! JSON patches of Secrets: the difference between the stored and the wanted Secret.
//!
//! The patch tests the UID, pins the resourceVersion and changes only our keys. Labels, annotations
//! and data of others are preserved (spec §2).

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::api::{ObjectId, SecretContent, Written, digest, wire};

use super::secret::SecretRef;

/// A patch of a Secret of ours. Its `Debug` output contains no values.
#[derive(Clone, PartialEq)]
pub struct SecretPatch {
    /// The Secret, in the version that the patch was computed from.
    pub target: SecretRef,
    /// Purpose of the patch.
    pub change: Change,
    operations: Vec<Value>,
}

/// Purpose of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The record notes that the bucket was seen absent.
    NoteAbsence,
    /// The record removes that note again: somebody else created the bucket.
    ForgetAbsence,
    /// The record notes that the bucket is adopted.
    Adopt,
    /// The record notes that the claim was bound, before the other traces of that are deleted.
    Settle,
    /// The record bumps the credential generation.
    RaiseGeneration(Trigger),
    /// The record notes that there may be an anonymous binding.
    NotePublic,
    /// The record notes that the claim may have another record.
    NoteAnother,
    /// The record notes the generation below which all credentials are gone.
    NoteLowest,
    /// The record notes that a revocation was requested while no key existed.
    NoteRevocation,
    /// The record of a bucket that the claim has left notes that the bucket must be kept.
    Leave,
    /// The record names another backend of the same endpoint, or replaces the record for an earlier
    /// endpoint.
    Follow,
    /// The record notes the accesses that the bucket is open to.
    Consent,
    /// The record notes that the claim is ending. No access opens the bucket any more.
    End,
    /// A credential or binding from an older version notes the endpoint of its bucket.
    Complete,
    /// A credential that is being retired gets an `expires-at` annotation.
    Retire,
    /// The Secret is repaired after an edit by somebody else, or updated after an edit of the spec.
    Repair,
}

/// Reason that a credential is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// The rotation interval has passed: `rotationPolicy.mode: TimeBased`.
    Interval,
    /// The rotate annotation.
    Request,
    /// The key was deleted by hand, was never created, or a later key exists.
    Repair,
    /// The claim moves to another bucket.
    Move,
    /// The revoke annotation.
    Revocation,
    /// An entry of an access leads to a bucket that the key does not open.
    Entry,
}

impl Trigger {
    /// All triggers.
    pub(crate) const ALL: [Self; 6] =
        [Self::Interval, Self::Request, Self::Repair, Self::Move, Self::Revocation, Self::Entry];
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoteAbsence => "note that the bucket is absent",
            Self::ForgetAbsence => "note that the bucket is another's",
            Self::Adopt => "note that the bucket is adopted",
            Self::Settle => "note that the claim was bound",
            Self::RaiseGeneration(_) => "aim at the next credential generation",
            Self::NotePublic => "note that the bucket may be public",
            Self::NoteAnother => "note that there may be another record",
            Self::NoteLowest => "note which credentials are gone",
            Self::NoteRevocation => "note that there is no credential to revoke",
            Self::Leave => "note that the bucket is left alone",
            Self::Follow => "follow the backend",
            Self::Consent => "note to which accesses the bucket is open",
            Self::End => "end every access to the bucket",
            Self::Complete => "note where its bucket is",
            Self::Retire => "stamp the time from which it is not accepted",
            Self::Repair => "bring it up to date",
        })
    }
}

impl SecretPatch {
    /// Returns the operations of the JSON patch (RFC 6902), preconditions first. Contains secrets.
    pub fn json(&self) -> Value {
        let mut patch = preconditions(&self.target.id);
        patch.extend(self.operations.iter().cloned());
        Value::Array(patch)
    }

    /// Returns the patch that turns `current` into `wanted`, or `None` if no key of ours differs.
    ///
    /// `removable` are data keys of ours that are removed if `wanted` lacks them.
    pub(super) fn between(
        current: &Secret,
        wanted: &SecretContent,
        removable: &[&str],
        change: Change,
    ) -> Option<SecretPatch> {
        let (metadata, data) = (&current.metadata, current.data.as_ref());
        let (labels, annotations) = (wanted.all_labels(), wanted.all_annotations());
        let own = wanted.data.iter().map(|(key, value)| (*key, Wanted::Whole(value)));
        let extra = wanted.extra.data.iter().map(|(key, value)| (key.as_str(), Wanted::Digested(value)));
        let wanted_data: BTreeMap<&str, Wanted<'_>> = own.chain(extra).collect();
        let mut operations = Vec::new();
        diff(&mut operations, "/metadata/labels", metadata.labels.as_ref(), &labels);
        diff(&mut operations, "/metadata/annotations", metadata.annotations.as_ref(), &annotations);
        diff(&mut operations, "/data", data, &wanted_data);
        let written = Written::of(current);
        let of_template = written.data.iter().map(String::as_str);
        remove(&mut operations, "/data", data, &wanted_data, removable.iter().copied().chain(of_template));
        let gone = written.labels.iter().map(String::as_str);
        remove(&mut operations, "/metadata/labels", metadata.labels.as_ref(), &labels, gone);
        let gone = written.annotations.iter().map(String::as_str).chain([wire::TEMPLATE]);
        remove(&mut operations, "/metadata/annotations", metadata.annotations.as_ref(), &annotations, gone);
        if operations.is_empty() {
            return None;
        }
        let target =
            SecretRef { namespace: wanted.namespace.clone(), name: wanted.name.clone(), id: ObjectId::of(current) };
        Some(SecretPatch { target, change, operations })
    }
}

impl fmt::Debug for SecretPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<&str> = self.operations.iter().filter_map(|op| op["path"].as_str()).collect();
        write!(f, "SecretPatch {:?} {:?} {paths:?}", self.target, self.change)
    }
}

/// Returns the two operations that bind a patch to an object and its version. Another UID makes the
/// test fail (422), a stale resourceVersion is a conflict (409).
pub(crate) fn preconditions(id: &ObjectId) -> Vec<Value> {
    vec![
        json!({ "op": "test", "path": "/metadata/uid", "value": id.uid }),
        json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": id.resource_version }),
    ]
}

/// A map value of a Secret. It is compared without serialization, and serialized only if it
/// differs.
trait Entry<Stored> {
    fn is(&self, stored: &Stored) -> bool;

    /// Returns the value in the API server's encoding.
    fn text(&self) -> String;
}

impl Entry<String> for String {
    fn is(&self, stored: &String) -> bool {
        self == stored
    }

    fn text(&self) -> String {
        self.clone()
    }
}

/// A wanted data value. Caches keep only a digest of values written by templates
/// (`cache::consumer`).
enum Wanted<'a> {
    Whole(&'a [u8]),
    Digested(&'a [u8]),
}

/// Encodes the bytes as base64 with padding.
impl Entry<ByteString> for Wanted<'_> {
    fn is(&self, stored: &ByteString) -> bool {
        match self {
            Self::Whole(value) => **value == stored.0,
            Self::Digested(value) => digest(value) == stored.0,
        }
    }

    fn text(&self) -> String {
        let (Self::Whole(value) | Self::Digested(value)) = self;
        data_encoding::BASE64.encode(value)
    }
}

/// Adds the operations that give the map at `at` every entry of `wanted`.
fn diff<S, K: AsRef<str>, W: Entry<S>>(
    operations: &mut Vec<Value>,
    at: &str,
    current: Option<&BTreeMap<String, S>>,
    wanted: &BTreeMap<K, W>,
) {
    let Some(current) = current else {
        if !wanted.is_empty() {
            let all: BTreeMap<&str, String> = wanted.iter().map(|(key, value)| (key.as_ref(), value.text())).collect();
            operations.push(json!({ "op": "add", "path": at, "value": all }));
        }
        return;
    };
    for (key, value) in wanted {
        let key = key.as_ref();
        if !current.get(key).is_some_and(|stored| value.is(stored)) {
            operations.push(json!({ "op": "add", "path": path(at, key), "value": value.text() }));
        }
    }
}

/// Adds the operations that remove these names from the map at `at`, if they are present and not
/// wanted.
fn remove<'a, S, K: Borrow<str> + Ord, W>(
    operations: &mut Vec<Value>,
    at: &str,
    current: Option<&BTreeMap<String, S>>,
    wanted: &BTreeMap<K, W>,
    names: impl Iterator<Item = &'a str>,
) {
    let names: BTreeSet<&str> = names.collect();
    let is_left = |name: &&&str| current.is_some_and(|all| all.contains_key(**name)) && !wanted.contains_key(**name);
    let removals = names.iter().filter(is_left).map(|name| json!({ "op": "remove", "path": path(at, name) }));
    operations.extend(removals);
}

/// Returns a JSON pointer (RFC 6901).
fn path(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Extra;

    fn wanted() -> SecretContent {
        let text = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        SecretContent {
            namespace: "team-a".into(),
            name: "photos-s3".into(),
            labels: BTreeMap::from([text("broker.stowage.io/role", "consumer-secret")]),
            annotations: BTreeMap::new(),
            data: BTreeMap::from([("BUCKET_NAME", b"photos".to_vec())]),
            owner: None,
            extra: Extra::default(),
        }
    }

    fn stored() -> Secret {
        let mut secret = wanted().to_secret();
        secret.metadata.uid = Some("u".into());
        secret.metadata.resource_version = Some("7".into());
        secret
    }

    fn operations(current: &Secret) -> Vec<Value> {
        SecretPatch::between(current, &wanted(), &["QUOTA_SOFT_BYTES"], Change::Repair)
            .map(|patch| patch.operations)
            .unwrap_or_default()
    }

    // covers: 2.consumer.patch.none
    #[test]
    fn nothing_to_do_is_no_patch() {
        assert_eq!(operations(&stored()), Vec::<Value>::new());
    }

    // covers: 2.consumer.patch
    #[test]
    fn keys_of_others_survive() {
        let mut secret = stored();
        secret.data.get_or_insert_default().insert("theirs".into(), ByteString(b"x".to_vec()));
        secret.metadata.labels.get_or_insert_default().insert("theirs".into(), "x".into());
        assert_eq!(operations(&secret), Vec::<Value>::new());
    }

    // covers: 2.consumer.patch.removed
    #[test]
    fn what_differs_is_written_and_what_is_left_over_removed() {
        let mut secret = stored();
        let data = secret.data.get_or_insert_default();
        data.insert("BUCKET_NAME".into(), ByteString(b"other".to_vec()));
        data.insert("QUOTA_SOFT_BYTES".into(), ByteString(b"1".to_vec()));
        secret.metadata.labels = None;
        let expected = [
            json!({"op": "add", "path": "/metadata/labels", "value": {"broker.stowage.io/role": "consumer-secret"}}),
            json!({"op": "add", "path": "/data/BUCKET_NAME", "value": "cGhvdG9z"}),
            json!({"op": "remove", "path": "/data/QUOTA_SOFT_BYTES"}),
        ];
        assert_eq!(operations(&secret), expected);
    }

    // covers: 2.consumer.patch, 4.secrecy
    #[test]
    fn a_patch_is_bound_to_uid_and_resource_version_and_prints_no_values() {
        let mut secret = stored();
        secret.data = None;
        let patch = SecretPatch::between(&secret, &wanted(), &[], Change::Repair).unwrap();
        assert_eq!(patch.json()[0], json!({"op": "test", "path": "/metadata/uid", "value": "u"}));
        assert_eq!(patch.json()[1], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
        assert!(!format!("{patch:?}").contains("cGhvdG9z"));
    }

    /// Returns a Secret as the cache keeps it, after a template wrote `extra`.
    fn templated(extra: &Extra) -> Secret {
        let mut secret = SecretContent { extra: extra.clone(), ..wanted() }.to_secret();
        secret.metadata.uid = Some("u".into());
        secret.metadata.resource_version = Some("7".into());
        for key in extra.data.keys() {
            let data = secret.data.get_or_insert_default();
            let kept = digest(&data[key].0);
            data.insert(key.clone(), ByteString(kept));
        }
        secret
    }

    fn extra() -> Extra {
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Extra {
            labels: map("example.com/app", "photos"),
            annotations: map("example.com/reload", "true"),
            data: BTreeMap::from([("rclone.conf".to_owned(), b"[s3]".to_vec())]),
        }
    }

    fn of_template(current: &Secret, extra: Extra) -> Vec<Value> {
        let wanted = SecretContent { extra, ..wanted() };
        SecretPatch::between(current, &wanted, &[], Change::Repair).map(|patch| patch.operations).unwrap_or_default()
    }

    // covers: 10.kept
    #[test]
    fn what_a_template_wrote_is_compared_by_its_digest_and_goes_when_it_is_wanted_no_more() {
        assert_eq!(of_template(&templated(&extra()), extra()), [] as [Value; 0]);
        let mut other = extra();
        other.data.insert("rclone.conf".to_owned(), b"[b2]".to_vec());
        let added = json!({"op": "add", "path": "/data/rclone.conf", "value": "W2IyXQ=="});
        assert_eq!(of_template(&templated(&extra()), other), [added]);
        let gone: Vec<Value> = ["/data/rclone.conf", "/metadata/labels/example.com~1app"]
            .into_iter()
            .chain(["/metadata/annotations/broker.stowage.io~1template", "/metadata/annotations/example.com~1reload"])
            .map(|path| json!({"op": "remove", "path": path}))
            .collect();
        assert_eq!(of_template(&templated(&extra()), Extra::default()), gone);
    }

    // covers: 10.written
    #[test]
    fn an_annotation_that_somebody_edited_takes_none_of_our_own_keys() {
        let mut secret = templated(&extra());
        let told = json!({"data": ["BUCKET_NAME"], "labels": ["broker.stowage.io/role"]}).to_string();
        secret.metadata.annotations.get_or_insert_default().insert(wire::TEMPLATE.to_owned(), told);
        let paths: Vec<String> =
            of_template(&secret, extra()).iter().filter_map(|it| it["path"].as_str().map(str::to_owned)).collect();
        assert_eq!(paths, ["/metadata/annotations/broker.stowage.io~1template"]);
    }
}
