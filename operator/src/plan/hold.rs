//! How a claim becomes the holder of a bucket: its record decides between claims (spec §3.2).

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

/// The step that makes a claim the holder of its bucket that has no record of it: a new one, or one
/// whose record is lost. `latest` is its latest credential, if it has any.
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
        // Whatever credentials it had, no note tells.
        record.lowest = None;
        record.handled_rotate_request.clone_from(&view.claim().rotate_request);
        let (request, told) = (&view.claim().revoke_request, &view.claim().status.handled_revoke_request);
        if request.is_some() && request != told {
            // Whether it was handled the record told, which is lost: no leaked key is to live on.
            record.revoked_through = record.generation.saturating_sub(1);
            record.settled = view.was_bound();
        }
    }
    record.another = view.records().next().is_some();
    note_another(view)?;
    Ok(Act::CreateRecord(Box::new(record)))
}

/// Of a record that is made again for the endpoint that its key notes: whether the bucket carries
/// our tags, where its backend points to now. That may be another store. Its bucket of that name
/// says nothing then, unless it is the claim's: the store was moved, and the record follows.
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

/// The halt whose step makes this claim the holder of one more bucket, or says why it can't be
/// that.
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

/// Before there is one more record of the claim, each that it has notes so: whoever reads one of
/// them then knows that it does not tell everything.
pub(super) fn note_another(view: &View) -> Result<(), Halt> {
    match view.records().find(|(record, _)| !record.another) {
        Some((record, stored)) => {
            Err(rewrite(view, &BucketRecord { another: true, ..record.clone() }, stored, Change::NoteAnother))
        }
        None => Ok(()),
    }
}

/// A record that says nothing yet but whose the bucket is, and nothing of earlier credentials.
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
        // What was asked for before there was a key ends none.
        handled_revoke_request: view.claim().revoke_request.clone(),
        revoked_through: 0,
        // So that a claim which asks for public access from the first need not note it later.
        public: view.claim().desired.as_ref().is_ok_and(|desired| desired.anonymous.is_some()),
        another: false,
        lowest: None,
        accesses: BTreeMap::new(),
        limits: Limits::default(),
        ending: false,
    }
}

/// Halts unless a record may be made. `Ok(true)` = nobody holds the bucket, but somebody has
/// credentials for it.
fn is_suspicious(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    refuse_shared(view, record)?;
    spelling::refuse(view, record)?;
    let suspicious = refuse_held(view, record)?;
    if !view.is_newborn() {
        // The finalizer was there before this pass: a record may be too, and a cache is no proof
        // that it is not.
        view.require_live()?;
        view.require_list()?;
    }
    view.require_not_taken(record.name().as_str())?;
    Ok(suspicious)
}

/// What an administrator shares is for accesses: a claim that held it would end them, by whatever
/// backend of the store.
pub(super) fn refuse_shared(view: &View, record: &BucketRecord) -> Result<(), Halt> {
    match view.backend(&record.backend)? {
        BackendSeen::Present { shared, .. } if shared.contains(&record.bucket) => {
            let (bucket, backend) = (record.bucket.clone(), record.backend.clone());
            Err(Stop::new(BucketCause::Shared { bucket, backend }).into())
        }
        BackendSeen::Present { .. } | BackendSeen::Missing | BackendSeen::Invalid(_) => Ok(()),
    }
}

/// SDKs send requests for such a bucket elsewhere, whatever the endpoint. A claim that has one
/// already keeps it.
fn refuse_reserved(bucket: &BucketName) -> Result<(), Halt> {
    let Some(ending) = bucket.reserved_ending() else { return Ok(()) };
    Err(Stop::new(ClaimCause::NameReserved { bucket: bucket.clone(), ending }).into())
}

/// What the cache says of another holder is enough to wait: the claim is woken when that one lets
/// go. `Ok(true)` = nobody holds it, but somebody has credentials for it.
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

/// What else than a record tells of an earlier life of this very claim: somebody deleted the record
/// by hand, and it is made again (spec §3.2).
struct EarlierLife {
    /// There was a record.
    was_there: bool,
    /// Name of the backend; where the bucket is, as a key notes it, or the status; and the bucket.
    bucket: Option<(String, Option<Endpoint>, BucketName)>,
}

impl EarlierLife {
    fn of(view: &View, credential: Option<&Stored>) -> Self {
        let status = &view.claim().status;
        let named =
            |secret: &Stored| Some((secret.text("backend")?.to_owned(), secret.text("bucket_name")?.to_owned()));
        let backend = status.backend.as_ref().map(|backend| backend.name.clone());
        // A claim that never got its bucket has nothing to be taken up again: the adoption policy
        // decides.
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
