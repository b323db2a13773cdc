//! From a new claim to a bound one, and what keeps it bound (spec §3.1).
//!
//! finalizer → backend → name → record → bucket → credential → consumer Secret → anonymous binding. Each room
//! either finds its part as it should be or halts the walk with what has to be done first.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::{Backend, BucketName, BucketRecord, Claim, Credential, Desired, Reason, wire};

use super::answer::{BackendSeen, Holder, Stored};
use super::bucket;
use super::credentials;
use super::moves;
use super::repair::Change;
use super::step::{Act, Concern, Halt, Look, Stop, Target, together, tolerate};
use super::view::View;

/// Walks through the steps. `Ok` = everything is as it should be, but for an impairment that withdraws nothing:
/// a bound claim whose backend turned not-Ready keeps its keys (spec §1).
pub(super) fn walk(view: &View, now: Timestamp) -> Result<Settled, Halt> {
    let claim = &view.claim;
    refuse_own_namespaces(view)?;
    if claim.paused {
        return Err(Stop::refused(Reason::Paused, Concern::Ready, "paused by annotation").into());
    }
    let desired = desired(claim)?;
    if !claim.has_finalizer() {
        return Err(Act::AddFinalizer(claim.id.clone()).into());
    }
    let open = tolerate(credentials::withdraw_public_access(view, desired))?;
    let Some((record, stored)) = view.record() else {
        let latest = view.credentials().max_by_key(|secret| view.labelled_generation(secret));
        return Err(recall(view, desired, latest)?.into());
    };
    for (record, stored) in view.records() {
        // Its labels: deletion finds it by them.
        credentials::repair(view, bucket::record_patch(view, record, stored, Change::Repair))?;
    }
    let settled = if view.is_bound_by(&record) {
        keep(view, desired, &record, &stored, now)?
    } else {
        moves::choose(view, desired, &record, &stored)?;
        bucket::obtain(view, desired, &record, &stored)?;
        credentials::walk(view, desired, &record, &stored, now)?
    };
    Ok(Settled { impaired: together([open, settled.impaired]), ..settled })
}

/// Keeps a claim bound. What is wrong with bucket or backend, and what keeps an edit from taking effect or a key from going,
/// withdraws nothing: keys and rotation go on.
fn keep(
    view: &View,
    desired: &Desired,
    record: &BucketRecord,
    stored: &Stored,
    now: Timestamp,
) -> Result<Settled, Halt> {
    moves::mark_left(view, record)?;
    let impaired = tolerate(check(view, record, stored))?;
    let keys = credentials::walk(view, desired, record, stored, now)?;
    let edited = if desired.backend != record.backend {
        tolerate(moves::walk(view, desired, record, stored))?
    } else if impaired.is_none() {
        tolerate(bucket::keep_versioning(view, desired, record))?
    } else {
        None
    };
    let left = moves::leave(view, desired, record, now)?;
    Ok(Settled {
        impaired: together([keys.impaired, edited, impaired, left.impaired]),
        wake: keys.wake.into_iter().chain(left.wake).min(),
    })
}

/// Backend and bucket of a bound claim.
fn check(view: &View, record: &BucketRecord, stored: &Stored) -> Result<(), Halt> {
    let backend = still_usable(view, record)?;
    if backend.endpoint == record.endpoint {
        bucket::drift(view, record, stored)
    } else {
        moves::follow(view, record, stored, &backend)
    }
}

/// Everything is as it should be, or nothing more can be done about it now.
#[derive(Default)]
pub(super) struct Settled {
    /// What keeps the claim from being Ready all the same.
    pub(super) impaired: Option<Stop>,
    /// When time alone will make something due.
    pub(super) wake: Option<Timestamp>,
}

/// A claim in the operator namespace or in a trusted Secret namespace is refused: labels and names there are
/// proof for gateway and operator (spec §2).
fn refuse_own_namespaces(view: &View) -> Result<(), Halt> {
    let namespace = &view.claim.at.namespace;
    if view.setting.trusts(namespace) {
        let message = format!("claims are not allowed in namespace {namespace}, which holds secrets of the operator");
        return Err(Stop::refused(Reason::BackendNotAllowed, Concern::Ready, message).into());
    }
    Ok(())
}

fn desired(claim: &Claim) -> Result<&Desired, Halt> {
    claim.desired.as_ref().map_err(|error| {
        let message = format!("the spec can't be read: {error}");
        Stop::refused(Reason::TemplateInvalid, Concern::Ready, message).into()
    })
}

/// The backend of this name, if it is there, lets the claim's namespace in and is Ready.
pub(super) fn usable(view: &View, name: &str) -> Result<Arc<Backend>, Halt> {
    let refused = |reason, message: String| Err(Stop::refused(reason, Concern::Ready, message).into());
    match view.backends.get(name) {
        None => Err(Look::Backend(name.to_owned()).into()),
        Some(BackendSeen::Missing) => refused(Reason::BackendNotReady, format!("there is no S3Backend {name}")),
        Some(BackendSeen::Invalid(why)) => refused(Reason::BackendNotReady, format!("S3Backend {name}: {why}")),
        Some(BackendSeen::Present { allowed: false, .. }) => {
            let namespace = &view.claim.at.namespace;
            refused(Reason::BackendNotAllowed, format!("S3Backend {name} does not allow namespace {namespace}"))
        }
        Some(BackendSeen::Present { backend, .. }) if !backend.ready => {
            refused(Reason::BackendNotReady, format!("S3Backend {name} is not Ready"))
        }
        Some(BackendSeen::Present { backend, .. }) => Ok(backend.clone()),
    }
}

/// The backend of a bound claim. An edit that the next probe is still to judge doesn't turn it not-Ready, unless the backend
/// points elsewhere by it: nothing has been seen to be wrong.
fn still_usable(view: &View, record: &BucketRecord) -> Result<Arc<Backend>, Halt> {
    match view.backends.get(&record.backend) {
        Some(BackendSeen::Present { backend, allowed: true })
            if backend.was_ready && backend.endpoint == record.endpoint =>
        {
            Ok(backend.clone())
        }
        _ => usable(view, &record.backend),
    }
}

/// The step that makes a claim the holder of its bucket that has no record of it: a new one, or one whose record is lost.
/// `latest` is its latest credential, if it has any.
pub(super) fn recall(view: &View, desired: &Desired, latest: Option<&Stored>) -> Result<Act, Halt> {
    let memory = Memory::of(view, latest);
    let target = match memory.bucket {
        Some((name, bucket)) => {
            let backend = usable(view, &name)?;
            Target { backend: name, endpoint: backend.endpoint.clone(), bucket }
        }
        None => {
            let target = wanted(view, desired)?;
            refuse_reserved(&target.bucket)?;
            target
        }
    };
    let mut record = blank(view, target, 1);
    let suspicious = is_suspicious(view, &record)?;
    if suspicious || memory.remake {
        bucket::refuse_rivals(view, &record)?;
    }
    if memory.remake {
        record.adopted = !bucket::carries_our_tags(view, &record)?;
        bucket::refuse_another_claims(view, &record)?;
        moves::find_target(view, &record.name())?;
        record.generation = view.next_generation();
        record.handled_rotate_request = view.claim.rotate_request.as_deref().map(wire::rotate_receipt);
    }
    Ok(Act::CreateRecord(record))
}

/// The halt whose step makes this claim the holder of one more bucket, or says why it can't be that.
pub(super) fn hold(view: &View, record: BucketRecord) -> Result<(), Halt> {
    refuse_reserved(&record.bucket)?;
    if is_suspicious(view, &record)? {
        bucket::refuse_rivals(view, &record)?;
    }
    require_fresh(view)?;
    Err(Act::CreateRecord(record).into())
}

/// A record that says nothing yet but whose the bucket is.
pub(super) fn blank(view: &View, target: Target, generation: u64) -> BucketRecord {
    BucketRecord {
        claim: view.claim.at.clone(),
        uid: view.claim.uid.clone(),
        backend: target.backend,
        endpoint: target.endpoint,
        bucket: target.bucket,
        absence: false,
        adopted: false,
        settled: false,
        generation,
        handled_rotate_request: None,
    }
}

/// The bucket that the spec asks for, at a backend that can be used.
pub(super) fn wanted(view: &View, desired: &Desired) -> Result<Target, Halt> {
    let backend = usable(view, &desired.backend)?;
    let bucket = wanted_bucket(&view.claim, desired, &backend)?;
    Ok(Target { backend: backend.name.clone(), endpoint: backend.endpoint.clone(), bucket })
}

/// Halts unless a record may be made. `Ok(true)` = nobody holds the bucket, but somebody has credentials for it.
fn is_suspicious(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    let suspicious = refuse_held(view, record)?;
    if !view.newborn {
        // The finalizer was there before this pass: a record may be too, and a cache is no proof that it is not.
        require_fresh(view)?;
        if view.own_lists == 0 {
            return Err(Look::Own.into());
        }
    }
    if view.taken.contains(record.name().as_str()) {
        return Err(Look::Internal(record.name().to_string()).into());
    }
    Ok(suspicious)
}

/// The bucket that spec and template name.
pub(super) fn wanted_bucket(claim: &Claim, desired: &Desired, backend: &Backend) -> Result<BucketName, Halt> {
    if let Some(bucket) = &desired.bucket {
        return Ok(bucket.clone());
    }
    backend.template.render(&claim.at.namespace, &claim.at.name).map_err(|error| {
        let message = format!("the template of S3Backend {} gives this claim no bucket: {error}", backend.name);
        Stop::refused(Reason::TemplateInvalid, Concern::Ready, message).into()
    })
}

/// SDKs send requests for such a bucket elsewhere, whatever the endpoint. A claim that has one already keeps it.
fn refuse_reserved(bucket: &BucketName) -> Result<(), Halt> {
    let Some(ending) = bucket.reserved_ending() else { return Ok(()) };
    let message = format!("bucket {bucket} can't be had: S3 reserves the ending {ending} for another kind of bucket");
    Err(Stop::refused(Reason::TemplateInvalid, Concern::Ready, message).into())
}

/// The record decides between claims (spec §3.2). What the cache says of another holder is enough to wait: the
/// claim is woken when that one lets go. `Ok(true)` = nobody holds it, but somebody has credentials for it.
fn refuse_held(view: &View, record: &BucketRecord) -> Result<bool, Halt> {
    let (name, bucket) = (record.name(), &record.bucket);
    match &view.holder {
        Some((seen, holder)) if *seen == name => match holder {
            Holder::Unknown => Ok(false),
            Holder::Suspect => Ok(true),
            Holder::Other(claim) => Err(Stop::held(name, claim, bucket, &view.claim.at.namespace).into()),
            Holder::Damaged(why) => {
                let message = format!("the record of bucket {bucket} is damaged: {why}");
                Err(Stop::refused(Reason::CreationInconsistent, Concern::Ready, message).into())
            }
        },
        _ => Err(Look::Holder(target(record)).into()),
    }
}

/// Before a pass that did not itself just write the claim creates or repairs a Secret: this UID exists and isn't
/// being deleted (spec §3).
pub(super) fn require_fresh(view: &View) -> Result<(), Halt> {
    if view.fresh { Ok(()) } else { Err(Look::Claim.into()) }
}

/// The bucket of a record as a target of calls.
pub(super) fn target(record: &BucketRecord) -> Target {
    Target { backend: record.backend.clone(), endpoint: record.endpoint.clone(), bucket: record.bucket.clone() }
}

/// What else than a record tells of an earlier life of this very claim: somebody deleted the record by hand, and
/// it is made again (spec §3.2).
struct Memory {
    remake: bool,
    /// Name of the backend, and the bucket.
    bucket: Option<(String, BucketName)>,
}

impl Memory {
    fn of(view: &View, credential: Option<&Stored>) -> Self {
        let status = &view.claim.status;
        let named =
            |secret: &Stored| Some((secret.text("backend")?.to_owned(), secret.text("bucket_name")?.to_owned()));
        let backend = status.backend.as_ref().map(|backend| backend.name.clone());
        // A claim that never got its bucket has nothing to be taken up again: the adoption policy decides.
        let pinned = backend.zip(status.bucket_name.clone()).filter(|_| status.bucket_origin.is_some());
        let bucket = credential.and_then(named).or_else(|| pinned.clone());
        Self {
            remake: credential.is_some() || pinned.is_some(),
            bucket: bucket.and_then(|(backend, bucket)| Some((backend, BucketName::parse(&bucket).ok()?))),
        }
    }
}

/// The claim's credential at the record's target, if its Secret is there and whole.
pub(super) fn target_credential(view: &View, record: &BucketRecord) -> Option<Credential> {
    let stored = view.credential(record.generation)?;
    Credential::read(&stored.0, &record.uid, record.generation).ok()
}
