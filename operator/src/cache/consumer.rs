//! What is kept of a Secret that a tenant may write to.

use k8s_openapi::api::core::v1::Secret;

use crate::api::{ConsumerContent, wire};

/// The role of what a tenant may write to.
pub(super) const CONSUMER: &str = wire::Role::ConsumerSecret.as_str();
/// Longer than any value that is ours, in bytes: of what is longer the beginning tells that it
/// isn't.
pub(super) const LONGEST: usize = 4096;

/// Of a consumer Secret what is ours: its tenant may put a megabyte of other things into it, and
/// make as many of them as it likes.
pub(super) fn keep_ours(secret: &mut Secret) {
    let meta = &mut secret.metadata;
    if meta.labels.as_ref().and_then(|labels| labels.get(wire::ROLE)).map(String::as_str) != Some(CONSUMER) {
        return;
    }
    // What is there and empty stays: a patch would add the whole of what is absent.
    let fits = |key: &String, value: &mut String| wire::LABELS.contains(&key.as_str()) && value.len() <= LONGEST;
    meta.labels.iter_mut().chain(&mut meta.annotations).for_each(|map| map.retain(fits));
    meta.owner_references.iter_mut().for_each(|owners| owners.retain(|owner| owner.controller == Some(true)));
    meta.finalizers = None;
    secret.type_ = secret.type_.take().map(|kind| if kind.len() > LONGEST { "too long".to_owned() } else { kind });
    if let Some(data) = &mut secret.data {
        data.retain(|key, _| ConsumerContent::KEYS.contains(&key.as_str()));
        data.values_mut().for_each(|value| value.0.truncate(LONGEST));
    }
}
