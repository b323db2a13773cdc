//! Public access: the anonymous binding, by which the gateway lets anybody read (spec §2).

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

/// Public access that is no longer asked for goes before anything else is looked at: no trouble
/// keeps it. Read live: an operator that is behind would take away what was asked for since.
pub(super) fn withdraw(view: &View, desired: &Desired) -> Result<(), Halt> {
    match view.binding() {
        Some(secret) if desired.anonymous.is_none() => {
            view.require_live()?;
            Err(delete_secret(view, secret))
        }
        Some(_) | None => Ok(()),
    }
}

/// The claim's binding, if it opens this bucket.
pub(super) fn opening<'a>(view: &'a View, record: &BucketRecord) -> Option<&'a Stored> {
    view.binding().filter(|binding| binding.opens(record))
}

/// Exists exactly while the claim is bound and its mode is not `None`.
pub(super) fn ensure_binding(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
) -> Result<(), Halt> {
    // Without it, one that is there was withdrawn when the pass began.
    let Some(per_source_ip_rps) = desired.anonymous else { return Ok(()) };
    if !record.public {
        // A deletion asks for the binding only where the record tells that there may be one.
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
        // One that goes to another bucket goes to that one's store.
        place::keep(view, secret, record, &mut content)?;
    }
    let patch = SecretPatch::between(&secret.0, &content, &[], Change::Repair);
    if patch.is_some() {
        view.require_settled_if_in_doubt(record)?;
    }
    repair(view, patch)
}

/// What is to be told where another claim's public access counts: a request without a key says no
/// store, so of several buckets of one name that are open the one counts whose record is the oldest
/// (spec §6).
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
