//! The Secret that the tenant reads (spec §2, §3.7).

use crate::api::{BucketRecord, ConsumerContent, Credential, CredentialFacts, Desired, Reason, SecretContent, Shaped};

use super::cause::{Foreign, SecretCause};
use super::credentials::repair;
use super::halt::Halt;
use super::patch::{Change, SecretPatch};
use super::secret::Stored;
use super::step::{Act, Look};
use super::stop::Stop;
use super::view::{Knowledge, View};

/// The Secret of the name that the spec gives. Ours only if this claim's UID controls it; a
/// stranger's is left alone.
pub(super) fn ensure_secret(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    credential: &Credential,
) -> Result<(), Halt> {
    let name = &view.claim().consumer_secret;
    // Of a long template the caches have a digest.
    let Some(shape) = &desired.shape else { return Err(Look::Claim.into()) };
    let shaped = Shaped { publishing: &view.setting().publishing, shape };
    let wanted = wanted(view, record, credential, shaped, desired)?;
    let known = view.consumer(name);
    if let Knowledge::Present(secret) = known {
        refuse_stranger(view, secret)?;
        if secret.is_kept_in_part() {
            return Err(Look::Consumer(name.clone()).into());
        }
        if secret.published_key() != Some(credential.id.as_str()) {
            view.require_live_key(record, credential)?;
        }
        let patch = SecretPatch::between(&secret.0, &wanted, shaped.removable(), Change::Repair);
        return repair(view, patch);
    }
    view.require_live_claim()?;
    view.require_live_key(record, credential)?;
    // Where the last pass met a stranger's Secret, look before asking again.
    let conflict = Reason::SecretConflict.to_string();
    let was_taken = || view.status_before().conditions.iter().any(|c| c.reason == conflict);
    let look = known == Knowledge::Taken || (known == Knowledge::Unknown && was_taken());
    Err(if look { Look::Consumer(name.clone()).into() } else { Act::CreateConsumer(Box::new(wanted)).into() })
}

/// The Secret as it should be. What the template asks for is refused before anything is stamped: as
/// long as it can't be written, the key that tenants read goes on working.
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

/// Why a Secret can't be the one that the object of this UID hands out, whoever's it is.
pub(super) fn foreign(secret: &Stored, uid: &str) -> Option<Foreign> {
    if !secret.is_controlled_by_uid(uid) {
        Some(Foreign::NotControlled)
    } else if secret.0.immutable == Some(true) {
        Some(Foreign::Immutable)
    } else if secret.0.type_.as_deref().is_some_and(|type_| type_ != "Opaque") {
        Some(Foreign::OtherType)
    } else {
        None
    }
}

fn refuse_stranger(view: &View, secret: &Stored) -> Result<(), Halt> {
    let Some(why) = foreign(secret, view.claim().uid.as_str()) else { return Ok(()) };
    let name = secret.name().to_owned();
    if !view.is_consumer_live(&name) {
        // The caches may show one that is long gone.
        return Err(Look::Consumer(name).into());
    }
    Err(Stop::new(SecretCause::Conflict { secret: name, why }).into())
}
