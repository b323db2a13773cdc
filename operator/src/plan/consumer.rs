//! The consumer Secret, which the tenant reads (spec §2, §3.7).

use crate::api::{BucketRecord, ConsumerContent, Credential, CredentialFacts, Desired, SecretContent, Shaped, wire};

use super::cause::SecretCause;
use super::credentials::{publish, unpublish};
use super::halt::Halt;
use super::known::Knowledge;
use super::secret::Stored;
use super::step::Look;
use super::stop::Stop;
use super::view::View;

/// Ensures that the consumer Secret exists under the name from the spec.
pub(super) fn ensure_secret(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    credential: &Credential,
) -> Result<(), Halt> {
    // The caches keep only a digest of a long template.
    let Some(shape) = &desired.shape else { return Err(Look::Claim.into()) };
    let shaped = Shaped { publishing: &view.setting().publishing, shape };
    let wanted = wanted(view, record, credential, shaped, desired)?;
    publish(view, record, credential, wanted, shaped.removable())
}

/// Returns the wanted consumer Secret. A bad template is refused before an older key gets an
/// expiry: as long as the Secret can't be written, the key that tenants read keeps working.
fn wanted(
    view: &View,
    record: &BucketRecord,
    credential: &Credential,
    shaped: Shaped<'_>,
    desired: &Desired,
) -> Result<SecretContent, Halt> {
    let secret = view.claim().consumer_secret.clone();
    if let Some(key) = shaped.shape.forbidden(&shaped.publishing.metadata_prefixes) {
        return Err(Stop::new(SecretCause::Forbidden { secret, key: key.to_owned() }).into());
    }
    let facts = &CredentialFacts::of(desired, record);
    let content = ConsumerContent { facts, credential, gateway: &view.setting().gateway, name: &secret, shaped };
    content.content().map_err(|too_large| Stop::new(SecretCause::TooLarge { secret: secret.clone(), too_large }).into())
}

/// Deletes the Secret of the old name after `writeConnectionSecretToRef` was edited and the new
/// Secret exists, if this claim controls it (spec §3.7). Otherwise it would keep publishing a key
/// that the next rotation replaces.
pub(super) fn remove_renamed(view: &View) -> Result<(), Halt> {
    let bound = view.status_before().bound_secret_name.as_ref();
    let is_unknown = |name: &&String| matches!(view.consumer(name), Knowledge::Unknown | Knowledge::Taken);
    if let Some(name) = bound.filter(is_unknown) {
        // If the labels of the Secret were removed, no list contains it.
        return Err(Look::Consumer(name.clone()).into());
    }
    let is_ours = |secret: &&Stored| {
        let labelled = secret.label(wire::ROLE) == Some(wire::Role::ConsumerSecret.as_str());
        labelled || bound.is_some_and(|name| name == secret.name())
    };
    let is_renamed = |secret: &&Stored| secret.name() != view.claim().consumer_secret;
    view.own_consumers().filter(is_ours).find(is_renamed).map_or(Ok(()), |secret| unpublish(view, secret.name()))
}
