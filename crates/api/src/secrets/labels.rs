//! Labels of the operator's Secrets.

use std::collections::BTreeMap;

use crate::identity::{ClaimRef, ClaimUid};
use crate::names::BucketName;
use crate::wire::{self, Role};

/// Labels or annotations.
pub(super) type Texts = BTreeMap<String, String>;

/// Returns the labels that every Secret of a claim has, and annotations for values that are too
/// long for a label.
pub(super) fn labels(
    role: Role,
    claim: &ClaimRef,
    uid: &ClaimUid,
    backend: &str,
    bucket: &BucketName,
    own: &[(&str, &str)],
) -> (Texts, Texts) {
    let common = [
        (wire::ROLE, role.as_str()),
        (wire::CLAIM_NAMESPACE, claim.namespace.as_str()),
        (wire::CLAIM_NAME, claim.name.as_str()),
        (wire::CLAIM_UID, uid.as_str()),
        (wire::BACKEND, backend),
        (wire::BUCKET, bucket.as_str()),
    ];
    labelled(common.iter().chain(own))
}

/// Returns labels for these entries, and annotations for values that are too long for a label.
pub(super) fn labelled<'a>(all: impl Iterator<Item = &'a (&'a str, &'a str)>) -> (Texts, Texts) {
    let mut labels = Texts::new();
    let mut annotations = Texts::new();
    for (key, value) in all {
        let short = wire::label_value(value);
        if short != *value {
            annotations.insert((*key).to_owned(), (*value).to_owned());
        }
        labels.insert((*key).to_owned(), short);
    }
    (labels, annotations)
}
