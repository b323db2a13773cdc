//! Public access: the anonymous binding, by which the gateway lets everybody read a bucket (spec
//! §2).

use crate::api::{AnonymousBinding, BucketRecord, Desired};

use super::cause::{BucketCause, SecretCause};
use super::credentials::{KeyHolder, delete_secret, repair, rewrite};
use super::halt::Halt;
use super::patch::{Change, SecretPatch};
use super::place;
use super::secret::Stored;
use super::step::Act;
use super::stop::Stop;
use super::target::Target;
use super::view::View;

/// Deletes the binding once the spec no longer requests public access. Done first, so that no
/// problem keeps it open. The claim is read live, because an outdated spec could remove access that
/// was requested since.
pub(super) fn withdraw(view: &View, desired: &Desired) -> Result<(), Halt> {
    match view.binding() {
        Some(secret) if desired.anonymous.is_none() => {
            view.require_live()?;
            Err(delete_secret(view, secret))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the claim's binding if it opens this bucket.
pub(super) fn opening<'a>(view: &'a View, record: &BucketRecord) -> Option<&'a Stored> {
    view.binding().filter(|binding| binding.opens(record))
}

/// Ensures that the binding exists exactly while the claim is bound and its mode is not `None`.
pub(super) fn ensure_binding(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<(), Halt> {
    // An existing binding was deleted at the start of the pass.
    let Some(per_source_ip_rps) = desired.anonymous else { return Ok(()) };
    if !record.public {
        // A deletion looks for the binding only if the record notes that there may be one.
        return Err(rewrite(view, &BucketRecord { public: true, ..record.clone() }, stored, Change::NotePublic));
    }
    let wanted = AnonymousBinding {
        claim: record.claim.clone(),
        uid: record.uid.clone(),
        backend: record.backend.clone(),
        endpoint: record.endpoint.clone(),
        bucket: record.bucket.clone(),
        per_source_ip_rps,
    };
    let Some(secret) = view.binding() else {
        view.require_live()?;
        view.require_settled_if_in_doubt(record)?;
        view.require_not_taken(&AnonymousBinding::name(&record.uid))?;
        return Err(Act::CreateBinding(wanted).into());
    };
    AnonymousBinding::check(&secret.0, &record.uid)
        .map_err(|damage| Stop::new(SecretCause::BindingDamaged { why: damage.to_string() }))?;
    let mut content = wanted.content(&view.setting().operator_namespace);
    if secret.names_bucket_of(record) {
        // A binding that changes to another bucket changes to that bucket's store as well.
        place::keep(view, secret, record, &mut content)?;
    }
    let patch = SecretPatch::between(&secret.0, &content, &[], Change::Repair);
    if patch.is_some() {
        view.require_settled_if_in_doubt(record)?;
    }
    repair(view, patch)
}

/// Returns the stop for a claim whose public access another claim outranks.
///
/// A request without a key names no store. If several public buckets have the same name, the one
/// with the oldest record is served (spec §6).
pub(super) fn outranked(view: &View, desired: &Desired, record: &BucketRecord) -> Result<Option<Stop>, Halt> {
    if desired.anonymous.is_none() {
        return Ok(None);
    }
    let rival = view.public_rival(&Target::of(record))?;
    Ok(rival.map(|rival| {
        let (bucket, namespace) = (record.bucket.clone(), record.claim.namespace.clone());
        Stop::new(BucketCause::OpenElsewhere { bucket, rival: rival.clone(), namespace })
    }))
}
