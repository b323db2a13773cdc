//! From a new claim to a bound one, and what keeps it bound (spec §3.1).
//!
//! finalizer → backend → name → record → bucket → credential → consumer Secret → anonymous binding. Each room
//! either finds its part as it should be or halts the walk with what has to be done first.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::{Backend, BucketName, BucketRecord, Claim, Credential, Desired, Reason, wire};

use super::bucket;
use super::credentials;
use super::repair::Change;
use super::step::{Act, Concern, Halt, Look, Stop, Target};
use super::view::{BackendSeen, Holder, Stored, View};

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
    credentials::withdraw_public_access(view, desired)?;
    let Some((record, stored)) = view.record() else {
        return Err(hold_bucket(view, desired)?.into());
    };
    // Its labels: deletion finds it by them.
    credentials::repair(view, bucket::record_patch(view, &record, &stored, Change::Repair))?;
    let impaired = impairment(view, &record)?;
    let impaired = bucket::walk(view, desired, &record, &stored, impaired)?;
    let wake = credentials::walk(view, desired, &record, &stored, now)?;
    Ok(Settled { impaired, wake })
}

/// Everything is as it should be.
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
    if *namespace == view.setting.operator_namespace || view.setting.trusted_namespaces.contains(namespace) {
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

/// What is wrong with the backend that the claim's bucket is held at. Halts the walk unless the claim was bound.
fn impairment(view: &View, record: &BucketRecord) -> Result<Option<Stop>, Halt> {
    match usable(view, &record.backend) {
        Ok(backend) if backend.endpoint == record.endpoint => Ok(None),
        Ok(backend) => tolerate(view, moved(&backend, record)),
        Err(Halt::Stop(stop)) => tolerate(view, *stop),
        Err(halt) => Err(halt),
    }
}

fn tolerate(view: &View, stop: Stop) -> Result<Option<Stop>, Halt> {
    if view.was_bound() { Ok(Some(stop)) } else { Err(stop.into()) }
}

fn moved(backend: &Backend, record: &BucketRecord) -> Stop {
    let message = format!(
        "S3Backend {} now points to {}, the bucket is held at {}",
        backend.name, backend.endpoint, record.endpoint
    );
    Stop::refused(Reason::BackendNotReady, Concern::Ready, message)
}

/// The backend of this name, if it is there, lets the claim's namespace in and is Ready.
fn usable(view: &View, name: &str) -> Result<Arc<Backend>, Halt> {
    let refused = |reason, message: String| Err(Stop::refused(reason, Concern::Ready, message).into());
    match &view.backend {
        Some((seen, backend)) if seen == name => match backend {
            BackendSeen::Missing => refused(Reason::BackendNotReady, format!("there is no S3Backend {name}")),
            BackendSeen::Invalid(why) => refused(Reason::BackendNotReady, format!("S3Backend {name}: {why}")),
            BackendSeen::Present { allowed: false, .. } => {
                let namespace = &view.claim.at.namespace;
                refused(Reason::BackendNotAllowed, format!("S3Backend {name} does not allow namespace {namespace}"))
            }
            BackendSeen::Present { backend, .. } if !backend.ready => {
                refused(Reason::BackendNotReady, format!("S3Backend {name} is not Ready"))
            }
            BackendSeen::Present { backend, .. } => Ok(backend.clone()),
        },
        _ => Err(Look::Backend(name.to_owned()).into()),
    }
}

/// The step that makes this claim the holder of its bucket.
fn hold_bucket(view: &View, desired: &Desired) -> Result<Act, Halt> {
    let backend = usable(view, &desired.backend)?;
    let memory = Memory::of(view);
    let bucket = match &memory.bucket {
        Some(bucket) => bucket.clone(),
        None => wanted_bucket(&view.claim, desired, &backend)?,
    };
    let mut record = BucketRecord {
        claim: view.claim.at.clone(),
        uid: view.claim.uid.clone(),
        backend: backend.name.clone(),
        endpoint: backend.endpoint.clone(),
        bucket,
        absence: false,
        adopted: false,
        settled: false,
        generation: 1,
        handled_rotate_request: None,
    };
    let suspicious = refuse_held(view, &record)?;
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
    if suspicious || memory.remake {
        bucket::refuse_rivals(view, &record)?;
    }
    if memory.remake {
        record.adopted = !bucket::carries_our_tags(view, &record)?;
        bucket::refuse_another_claims(view, &record)?;
        record.generation = memory.highest_generation.saturating_add(1);
        record.handled_rotate_request = view.claim.rotate_request.as_deref().map(wire::rotate_receipt);
    }
    Ok(Act::CreateRecord(record))
}

fn wanted_bucket(claim: &Claim, desired: &Desired, backend: &Backend) -> Result<BucketName, Halt> {
    if let Some(bucket) = &desired.bucket {
        return Ok(bucket.clone());
    }
    backend.template.render(&claim.at.namespace, &claim.at.name).map_err(|error| {
        let message = format!("the template of S3Backend {} gives this claim no bucket: {error}", backend.name);
        Stop::refused(Reason::TemplateInvalid, Concern::Ready, message).into()
    })
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
    bucket: Option<BucketName>,
    highest_generation: u64,
}

impl Memory {
    fn of(view: &View) -> Self {
        let status = &view.claim.status;
        let credential = view.credentials().next();
        let consumers = view.consumers.values().flatten().filter(|secret| secret.is_controlled_by(&view.claim.uid));
        let generation = |secret: &Stored| secret.label(wire::ROTATION_GENERATION).and_then(|text| text.parse().ok());
        let published = consumers.filter_map(|secret| credentials::published_generation(view, secret));
        let pinned = status.bucket_name.as_deref().filter(|_| status.backend.is_some());
        let bucket = credential.and_then(|secret| secret.text("bucket_name")).or(pinned);
        Self {
            // A claim that never got its bucket has nothing to be taken up again: the adoption policy decides.
            remake: credential.is_some() || (pinned.is_some() && status.bucket_origin.is_some()),
            bucket: bucket.and_then(|name| BucketName::parse(name).ok()),
            // The status is no memory, but a number that it shows was used.
            highest_generation: view
                .credentials()
                .filter_map(generation)
                .chain(published)
                .chain(status.rotation_generation.and_then(|shown| u64::try_from(shown).ok()))
                .max()
                .unwrap_or(0),
        }
    }
}

/// The claim's credential at the record's target, if its Secret is there and whole.
pub(super) fn target_credential(view: &View, record: &BucketRecord) -> Option<Credential> {
    let stored = view.credential(record.generation)?;
    Credential::read(&stored.0, &record.uid, record.generation).ok()
}
