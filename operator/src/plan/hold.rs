//! Acquiring a bucket: the bucket record decides between claims (spec §3.2).

use std::collections::BTreeMap;

use crate::api::{BucketName, BucketRecord, Desired, Endpoint, Limits};

use super::answer::{BackendSeen, Holder};
use super::cause::{BackendCause, BucketCause, ClaimCause};
use super::consent::closed;
use super::credentials::{KeyHolder, rewrite};
use super::halt::Halt;
use super::ownership::{carries_our_tags, refuse_another_claims, refuse_others_credentials};
use super::patch::Change;
use super::secret::Stored;
use super::spelling;
use super::step::Act;
use super::stop::Stop;
use super::target::Target;
use super::view::View;

/// Returns the step that creates the record of a claim that has none: a new claim, or one that has
/// lost its record. `latest` is its latest credential, if it has any.
pub(super) fn recall(view: &View, desired: &Desired, latest: Option<&Stored>) -> Result<Act, Halt> {
    let earlier = EarlierLife::of(view, latest);
    let target = match earlier.bucket {
        Some((name, noted, bucket)) => {
            let backend = view.usable_backend(&name)?;
            Target { backend: name, endpoint: noted.unwrap_or_else(|| backend.endpoint.clone()), bucket }
        }
        None => {
            let target = view.wanted(desired)?;
            refuse_reserved(&target.bucket)?;
            target
        }
    };
    let mut record = BucketRecord { lowest: Some(1), ..blank(view, target, 1) };
    let suspicious = is_suspicious(view, &record)?;
    if suspicious || earlier.was_there {
        refuse_others_credentials(view, &record)?;
    }
    if earlier.was_there {
        record.adopted = !is_ours(view, &record)?;
        refuse_another_claims(view, &record)?;
        view.require_wanted_record(&record.name())?;
        record.generation = view.remade_generation();
        // No note says which credentials the claim had.
        record.lowest = None;
        record.handled_rotate_request.clone_from(&view.claim().rotate_request);
        let (request, told) = (&view.claim().revoke_request, &view.claim().status.handled_revoke_request);
        if request.is_some() && request != told {
            // Only the lost record knew whether the request was handled. All keys are revoked, so
            // that a leaked one does not survive.
            record.revoked_through = record.generation.saturating_sub(1);
            record.settled = view.was_bound();
        }
    }
    record.another = view.records().next().is_some();
    note_another(view)?;
    Ok(Act::CreateRecord(Box::new(record)))
}

/// Returns true if the bucket of a recreated record carries our tags, at the current endpoint of
/// its backend.
///
/// That endpoint may belong to another store than the one noted in the key. A bucket of the same
/// name there proves nothing, unless it is the claim's: then the store has moved, and the record
/// follows it.
fn is_ours(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    let backend = view.usable_backend(&record.backend)?;
    let ours = carries_our_tags(view, &BucketRecord { endpoint: backend.endpoint.clone(), ..record.clone() })?;
    let is_same_store = backend.endpoint == record.endpoint || backend.former_endpoints.contains(&record.endpoint);
    if ours || is_same_store {
        return Ok(ours);
    }
    let (backend, now, held_at) = (backend.name.clone(), backend.endpoint.clone(), record.endpoint.clone());
    Err(Stop::new(BackendCause::Moved { backend, now, held_at }).into())
}

/// Halts with the step that makes this claim the holder of one more bucket, or with the reason that
/// it can't be.
pub(super) fn hold(view: &View, record: BucketRecord) -> Result<(), Halt> {
    refuse_reserved(&record.bucket)?;
    if is_suspicious(view, &record)? {
        refuse_others_credentials(view, &record)?;
    }
    view.require_live()?;
    note_another(view)?;
    let record = BucketRecord { another: true, ending: false, ..closed(&record) };
    Err(Act::CreateRecord(Box::new(record)).into())
}

/// Notes in each record of the claim that there may be another one. A reader of one record then
/// knows that the list is not complete. Happens before another record is created.
pub(super) fn note_another(view: &View) -> Result<(), Halt> {
    match view.records().find(|(record, _)| !record.another) {
        Some((record, stored)) => {
            Err(rewrite(view, &BucketRecord { another: true, ..record.clone() }, stored, Change::NoteAnother))
        }
        None => Ok(()),
    }
}

/// Returns a record that names the bucket and its claim and has no history yet.
pub(super) fn blank(view: &View, target: Target, generation: u64) -> BucketRecord {
    BucketRecord {
        claim: view.claim().at.clone(),
        uid: view.claim().uid.clone(),
        backend: target.backend,
        endpoint: target.endpoint,
        bucket: target.bucket,
        absence: false,
        adopted: false,
        settled: false,
        generation,
        handled_rotate_request: None,
        // A request made before the first key existed revokes nothing.
        handled_revoke_request: view.claim().revoke_request.clone(),
        revoked_through: 0,
        // Set from the start, so that a claim with public access in its spec need not note it
        // later.
        public: view.claim().desired.as_ref().is_ok_and(|desired| desired.anonymous.is_some()),
        another: false,
        lowest: None,
        accesses: BTreeMap::new(),
        limits: Limits::default(),
        ending: false,
    }
}

/// Halts unless a record may be created. `Ok(true)` means that the bucket has no holder, but
/// another claim has credentials for it.
fn is_suspicious(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    refuse_shared(view, record)?;
    spelling::refuse(view, record)?;
    let suspicious = refuse_held(view, record)?;
    if !view.is_newborn() {
        // The finalizer existed before this pass, so a record may exist as well. A cache can't
        // prove that it does not.
        view.require_live()?;
        view.require_list()?;
    }
    view.require_not_taken(record.name().as_str())?;
    Ok(suspicious)
}

/// Refuses a bucket that an administrator shares through any backend of the store. It is for
/// accesses; a claim that holds it would end them.
pub(super) fn refuse_shared(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    match view.backend(&record.backend)? {
        BackendSeen::Present { shared, .. } if shared.contains(&record.bucket) => {
            let (bucket, backend) = (record.bucket.clone(), record.backend.clone());
            Err(Stop::new(BucketCause::Shared { bucket, backend }).into())
        }
        BackendSeen::Present { .. } | BackendSeen::Missing | BackendSeen::Invalid(_) => Ok(()),
    }
}

/// Refuses a reserved name, because SDKs send requests for such a bucket elsewhere, even with a
/// custom endpoint. A claim that has one already keeps it.
fn refuse_reserved(bucket: &BucketName) -> Result<(), Halt> {
    let Some(ending) = bucket.reserved_ending() else { return Ok(()) };
    Err(Stop::new(ClaimCause::NameReserved { bucket: bucket.clone(), ending }).into())
}

/// Waits if the cache shows another holder. The claim is woken when that holder releases the
/// bucket. `Ok(true)` means that the bucket has no holder, but another claim has credentials for
/// it.
fn refuse_held(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    let bucket = record.bucket.clone();
    match view.holder_of(&Target::of(record))? {
        Holder::Unknown => Ok(false),
        Holder::Suspect => Ok(true),
        Holder::Other(holder) => {
            let namespace = view.claim().at.namespace.clone();
            let stop = Stop::new(BucketCause::Held { bucket, holder: holder.clone(), namespace });
            Err(stop.until_released(record.name()).into())
        }
        Holder::Damaged(why) => Err(Stop::new(BucketCause::RecordDamaged { bucket, why: why.clone() }).into()),
    }
}

/// Traces of an earlier record of this claim, which somebody deleted by hand and which is recreated
/// (spec §3.2).
struct EarlierLife {
    /// True if there was a record.
    was_there: bool,
    /// Name of the backend, endpoint as noted in a key or in the status, and bucket.
    bucket: Option<(String, Option<Endpoint>, BucketName)>,
}

impl EarlierLife {
    fn of(view: &View, credential: Option<&Stored>) -> Self {
        let status = &view.claim().status;
        let named =
            |secret: &Stored| Some((secret.text("backend")?.to_owned(), secret.text("bucket_name")?.to_owned()));
        let backend = status.backend.as_ref().map(|backend| backend.name.clone());
        // A claim that never got its bucket has nothing to resume: the adoption policy decides.
        let pinned = backend.zip(status.bucket_name.clone()).filter(|_| status.bucket_origin.is_some());
        let of_key = credential.and_then(|secret| Some((named(secret)?, secret.endpoint())));
        let held_at = || Endpoint::parse(&status.backend.as_ref()?.endpoint).ok();
        let bucket = of_key.or_else(|| Some((pinned.clone()?, held_at())));
        Self {
            was_there: credential.is_some() || pinned.is_some(),
            bucket: bucket
                .and_then(|((backend, bucket), noted)| Some((backend, noted, BucketName::parse(&bucket).ok()?))),
        }
    }
}
