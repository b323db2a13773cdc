//! The status is true at rest (I16), and a bound claim has exactly one key without an expiry (I5).

use stowage_world::history::facts::condition;

use super::Promise;
use super::case::Case;
use super::findings::Findings;
use super::keys::key_of;
use super::state::{Hand, HistoryStep, Life, Seen, State};
use super::views::{Claim, Consumer, End, Secret};

/// Reasons of `Ready=False` that wait for someone to change something (spec §1).
const STALLED: [&str; 10] = [
    "BackendNotAllowed",
    "TemplateInvalid",
    "BucketNameConflict",
    "BucketExists",
    "BucketMissing",
    "SecretConflict",
    "CreationInconsistent",
    "ServedByAnother",
    "BucketNotEmpty",
    "DeletionBlocked",
];

/// Judges a step: a bound claim whose tenant can work is not reported to be without a key,
/// regardless of the obstacle to the next one (spec `1.bound.impaired.key`).
///
/// Not judged with two operators, because one may learn late of the other's keys; nor after changes
/// of the Secrets by other actors, whose effects are reported.
pub(super) fn see(state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
    let Seen::Claim(_, Some(claim)) = &step.seen else { return };
    let Some(life) = state.lives.get(claim.uid) else { return };
    if !step.by_operator() || state.setting.operators > 1 || life.meddling.any() || claim.is_deleting() {
        return;
    }
    let (before, told) = (&life.claim.object["status"], &claim.object["status"]);
    let stays = before["bucketName"] == told["bucketName"] && life.claim.secret_name() == claim.secret_name();
    let is_made = claim.condition("BucketCreated").is_some_and(|condition| condition["status"] == "True");
    let is_untold = is_made && claim.condition("CredentialsProvisioned").is_none();
    if before["phase"] != "Bound" || told["phase"] == "Bound" || !stays || !is_untold {
        return;
    }
    let is_open = |id: &str| key_of(state, id).is_some_and(|key| key.end == End::Open);
    if links(state, claim).is_ok_and(|links| is_open(&links.id)) {
        let message = format!("claim {} has a key that works, and says that it has none", claim.full_name());
        found.broken(Promise::I16, step, message);
    }
}

/// Judges the end of a run that came to rest.
pub(super) fn judge(case: &Case<'_>, state: &State<'_>, found: &mut Findings) {
    let live = || state.lives.values().filter(|life| life.gone.is_none());
    for life in live() {
        judge_conditions(state, life, found);
        let open = open_keys(state, life);
        let claim = life.claim.full_name();
        // A claim in trouble may have stopped in the middle of a rotation.
        let most = if life.claim.is_ready() { 1 } else { 2 };
        if open > most || (life.claim.is_ready() && open == 0) {
            let message = format!("claim {claim} has {open} keys without an end");
            if (life.meddling.record || !state.alone) && !life.claim.is_ready() {
                // Each time that the record is deleted by hand, another key has to be created. And
                // one of two operators may create its key late, when the other is already at a
                // later generation.
                found.limit_in_the_end(Promise::I5, message);
            } else {
                found.broken_in_the_end(Promise::I5, message);
            }
        }
        if life.claim.is_ready()
            && let Err(why) = works(case, state, life)
        {
            found.broken_in_the_end(Promise::I16, format!("claim {claim} says that it is Ready, but {why}"));
        }
    }
    for (_, name, backend) in case.end.all("s3backends") {
        let on_it = |life: &&Life<'_>| {
            let status = &life.claim.object["status"];
            status["phase"] == "Bound" && status["backend"]["name"] == *name
        };
        let (told, bound) = (&backend["status"]["bucketCount"], live().filter(on_it).count());
        if !case.setting.serves_some && told.as_u64().is_some_and(|told| told != bound as u64) {
            let message = format!("S3Backend {name} says that {told} claims are bound on it, and {bound} are");
            found.broken_in_the_end(Promise::I16, message);
        }
    }
}

/// Returns the number of keys without an expiry that the gateway accepts.
fn open_keys(state: &State<'_>, life: &Life<'_>) -> usize {
    let open = |secret: &Secret<'_>| matches!(secret, Secret::Key(key) if key.counts && key.end == End::Open);
    state.of(life.claim.uid).filter(|(_, held)| open(&held.secret)).count()
}

/// Checks that a tenant can work with the consumer Secret alone: every link from it to the bucket
/// is stored, and the status agrees.
fn works(case: &Case<'_>, state: &State<'_>, life: &Life<'_>) -> Result<(), String> {
    let (claim, status) = (life.claim, &life.claim.object["status"]);
    if claim.is_deleting() {
        return Err("it is being deleted".to_owned());
    }
    let (name, Links { id, bucket, host }) = (claim.secret_name(), links(state, &claim)?);
    if !key_of(state, &id).is_some_and(|key| key.works(case.end.at)) {
        return Err(format!("key {id} in Secret {name} does not work"));
    }
    if !case.end.buckets.contains_key(&(host.clone(), bucket.clone())) {
        return Err(format!("there is no bucket {bucket} at {host}"));
    }
    for (field, value) in [("bucketName", &*bucket), ("accessKeyId", &*id), ("boundSecretName", &*name)] {
        if status[field] != *value {
            return Err(format!("its status has {} as {field}, which is {value}", status[field]));
        }
    }
    Ok(())
}

/// The first links from a tenant to the bucket, as they are stored.
struct Links {
    id: String,
    bucket: String,
    /// Host and port of the store, from the record.
    host: String,
}

/// Follows the links from the consumer Secret to the key and to the record.
fn links(state: &State<'_>, claim: &Claim<'_>) -> Result<Links, String> {
    let name = claim.secret_name();
    let consumer = match state.secrets.get(&(claim.namespace, &*name)).map(|held| &held.secret) {
        Some(Secret::Consumer(consumer)) if consumer.owner == Some(claim.uid) => consumer,
        _ => return Err(format!("it has no Secret {name}")),
    };
    let Consumer { id, secret, bucket, .. } = consumer;
    let key = key_of(state, id).ok_or_else(|| format!("Secret {name} holds key {id:?}, which does not exist"))?;
    if !key.counts || key.secret != *secret || key.uid != claim.uid {
        return Err(format!("key {id} in Secret {name} does not work"));
    }
    if key.bucket != *bucket || !key.scoped {
        return Err(format!("key {id} does not open bucket {bucket}"));
    }
    let record = state.of(claim.uid).find_map(|(_, held)| match &held.secret {
        Secret::Record(record) if record.bucket == *bucket => Some(record),
        _ => None,
    });
    let record = record.ok_or_else(|| format!("it holds no bucket {bucket}"))?;
    Ok(Links { id: id.clone(), bucket: bucket.clone(), host: record.host.clone() })
}

/// Judges that conditions and phase agree with each other (spec §1).
fn judge_conditions(state: &State<'_>, life: &Life<'_>, found: &mut Findings) {
    let (claim, object) = (life.claim.full_name(), life.claim.object);
    let Some(ready) = life.claim.condition("Ready") else { return };
    let (reason, holds) = (condition(object, "Ready"), ready["status"] == "True");
    let (stalled, reconciling) =
        (life.claim.condition("Stalled").is_some(), life.claim.condition("Reconciling").is_some());
    let expected = match (holds, reason) {
        (true, _) | (_, "Paused") => (false, false),
        (false, reason) => (STALLED.contains(&reason), !STALLED.contains(&reason)),
    };
    if (stalled, reconciling) != expected {
        let message = format!("claim {claim}, {reason}, is Stalled: {stalled} and Reconciling: {reconciling}");
        found.broken_in_the_end(Promise::I16, message);
    }
    let is_true = |kind: &str| life.claim.condition(kind).is_some_and(|condition| condition["status"] == "True");
    let held = || state.of(life.claim.uid).any(|(_, held)| matches!(held.secret, Secret::Record(_)));
    let phase = match () {
        () if life.claim.is_deleting() => "Deleting",
        () if is_true("BucketCreated") && is_true("CredentialsProvisioned") => "Bound",
        () if stalled => "Failed",
        () if held() => "Creating",
        () => "Pending",
    };
    let seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    // The operator doesn't check changes to the Secrets of a paused claim.
    let unseen = life.claim.is_paused() && state.of(life.claim.uid).any(|(_, held)| held.hand == Hand::Other);
    if seen && !unseen && object["status"]["phase"] != phase {
        let message = format!("claim {claim} is in phase {}, and should be in {phase}", object["status"]["phase"]);
        found.broken_in_the_end(Promise::I16, message);
    }
}
