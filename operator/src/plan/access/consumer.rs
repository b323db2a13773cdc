//! The consumer Secret of an access, which its pods read (spec §8).

use crate::api::{AccessConsumer, AccessCredential, AccessReason, AccessRecord, AccessScope, BucketName, Shaped, wire};

use super::super::credentials::{publish, unpublish};
use super::super::secret::Stored;
use super::step::AccessLook;
use super::view::{AccessView, Halt, Stop};

/// Ensures that the consumer Secret exists under the name from the spec.
pub(super) fn ensure(
    view: &AccessView,
    record: &AccessRecord,
    credential: &AccessCredential,
    scopes: &[AccessScope],
) -> Result<(), Halt> {
    let name = &view.access.consumer_secret;
    let buckets: Vec<BucketName> = scopes.iter().map(|scope| scope.bucket.clone()).collect();
    let (access, uid, gateway) = (&view.access.at, &view.access.uid, &view.setting.gateway);
    let shape = view.access.shape.as_ref();
    let shape = shape.map_err(|error| Stop::new(AccessReason::SpecInvalid, error.to_string()))?;
    // The caches keep only a digest of a long template.
    let Some(shape) = shape else { return Err(AccessLook::Access.into()) };
    let shaped = Shaped { publishing: &view.setting.publishing, shape };
    if let Some(key) = shape.forbidden(&view.setting.publishing.metadata_prefixes) {
        let why = format!("this operator lets spec.secretTemplate write no {key} (--secret-metadata-prefix)");
        return Err(Stop::new(AccessReason::SpecInvalid, why).into());
    }
    let content = AccessConsumer { access, uid, credential, buckets: &buckets, gateway, name, shaped }.content();
    let wanted = content.map_err(|too_large| Stop::new(AccessReason::SpecInvalid, too_large.to_string()))?;
    publish(view, record, credential, wanted, shaped.removable())
}

/// Deletes consumer Secrets of other names once the one from the spec exists: the bound one after
/// an edit of the name, and any other with our labels and owner reference. A rotation does not wait
/// for such a Secret that somebody created by hand.
pub(super) fn remove_renamed(view: &AccessView) -> Result<(), Halt> {
    let wanted = &view.access.consumer_secret;
    if let Some(bound) = view.before.bound_secret_name.as_ref().filter(|bound| *bound != wanted) {
        // If the labels of the Secret were removed, no list contains it.
        unpublish(view, bound)?;
    }
    own(view).find(|secret| secret.name() != wanted).map_or(Ok(()), |secret| unpublish(view, secret.name()))
}

/// Returns the Secrets that the access controls and that have the consumer Secret's role.
fn own(view: &AccessView) -> impl Iterator<Item = &Stored> {
    view.consumers.all().filter(|secret| {
        secret.is_controlled_by_uid(view.access.uid.as_str())
            && secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str())
    })
}

/// Returns true if every consumer Secret of the access was observed with this key, by a pass that
/// wrote none of them.
pub(super) fn is_published(view: &AccessView, credential: &AccessCredential) -> bool {
    let mut ours = own(view).peekable();
    ours.peek().is_some() && ours.all(|secret| secret.published_key() == Some(credential.id.as_str()))
}
