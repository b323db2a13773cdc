//! Everything that exists at rest belongs to a claim (I14).

use stowage_operator::api::wire::TAG_CLAIM_UID;
use stowage_world::effects::{Call, CallFault, CallOutcome, Fault, KubeVerb, Line, ProcessFault};

use super::Promise;
use super::buckets::{Buckets, is_empty};
use super::case::Case;
use super::findings::Findings;
use super::ground::destroys;
use super::keys::key_of;
use super::state::{Hand, Held, Life, Place, State, is_standstill};
use super::views::{Policy, Secret};

/// Judges the end of a run that came to rest.
pub(super) fn judge(case: &Case<'_>, state: &State<'_>, buckets: &Buckets, found: &mut Findings) {
    for (place, held) in &state.secrets {
        judge_secret(state, *place, held, found);
    }
    for ((host, name), bucket) in &case.end.buckets {
        let tagged = bucket.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID)).map(String::as_str);
        let Some(uid) = tagged.or_else(|| buckets.maker(host, name, bucket)) else { continue };
        let Some(life) = state.lives.get(uid) else { continue };
        let spared = tagged.is_none() && is_empty(bucket);
        if life.gone.is_none() || spared || is_retained(case, state, life, name) {
            continue;
        }
        let message =
            format!("bucket {name} is left of claim {}, which was to be deleted with it", life.claim.full_name());
        if !state.alone {
            // One operator may create a bucket while the other one releases the claim (spec §3.2).
            found.limit_in_the_end(Promise::I14, message);
        } else {
            found.broken_in_the_end(Promise::I14, message);
        }
    }
}

fn judge_secret(state: &State<'_>, (namespace, name): Place<'_>, held: &Held<'_>, found: &mut Findings) {
    // A Secret that another actor changed last may no longer show its claim.
    let Some(uid) = held.secret.uid().filter(|_| held.hand != Hand::Other) else { return };
    let Some(life) = state.lives.get(uid).filter(|life| life.gone.is_none()) else {
        let message = format!("Secret {namespace}/{name} is left of a claim that is gone");
        return found.broken_in_the_end(Promise::I14, message);
    };
    let claim = life.claim.full_name();
    match &held.secret {
        Secret::Key(_) | Secret::Binding(_) if life.claim.is_deleting() && life.claim.has_finalizer() => {
            let message = format!("claim {claim} is being deleted, and Secret {name} is still there");
            found.broken_in_the_end(Promise::I7, message);
        }
        Secret::Key(key) if state.is_revoked(key) => {
            let message = format!("key {} of claim {claim} is revoked, and Secret {name} is still there", key.id);
            found.broken_in_the_end(Promise::I7, message);
        }
        Secret::Binding(_) if !life.claim.wants_public_access() && !life.claim.is_paused() => {
            let message = format!("binding {name} opens the bucket of claim {claim}, which asks for no public access");
            found.broken_in_the_end(Promise::I14, message);
        }
        Secret::Consumer(consumer) => {
            let bound = life.claim.object["status"]["boundSecretName"].as_str();
            // If its name, or that of its next key, is taken by a foreign Secret, a claim does
            // nothing but report the Secret that it has.
            let is_stopped = match life.claim.reason() {
                Some("SecretConflict") => bound.is_some(),
                reason => reason == Some("CreationInconsistent"),
            };
            // A stopped claim need not report a Secret whose key was deleted by hand, and which
            // opens nothing.
            let opens_nothing = !life.claim.is_ready() && life.meddling.keys && key_of(state, &consumer.id).is_none();
            let waits = life.claim.is_paused() || is_stopped || opens_nothing;
            if life.claim.secret_name() != name && bound != Some(name) && !waits {
                let message = format!("Secret {namespace}/{name} is no longer that of claim {claim}");
                found.broken_in_the_end(Promise::I14, message);
            }
        }
        _ => {}
    }
}

/// Returns true if a bucket may outlive its claim.
///
/// A bucket may outlive its claim if the claim's policy is Retain, or was when its record was
/// deleted; if another actor removed the claim; or if the bucket could not be proved ours, which an
/// Event reports. Nothing waits for that Event, so the API server may have refused it (spec §3).
fn is_retained(case: &Case<'_>, state: &State<'_>, life: &Life<'_>, bucket: &str) -> bool {
    let told = || {
        case.end.all("events").any(|(_, _, event)| {
            event["reason"] == "BucketRetained" && event["regarding"]["uid"].as_str() == Some(life.claim.uid)
        })
    };
    let kept = life.claim.policy() == Policy::Retain || life.kept.iter().any(|kept| kept == bucket);
    kept || life.meddling.any() || told() || was_untold(state, life, bucket)
}

/// Returns true if the operator could not report right after it had released the claim: its pass
/// was interrupted, or it didn't learn that the claim was gone.
///
/// The latter is no excuse once it had begun to delete the bucket: that proves that ownership was
/// verified.
fn was_untold(state: &State<'_>, life: &Life<'_>, bucket: &str) -> bool {
    let Some(Hand::Operator(number)) = life.gone else { return false };
    let Some(release) = state.line(number) else { return false };
    if matches!(release.answer, CallOutcome::Status(status) if status < 300) {
        return was_cut_off(state, life, release);
    }
    let mut at_bucket = state.before(number).filter_map(|line| match &line.call {
        Call::S3(call) if call.bucket.as_deref() == Some(bucket) => Some(call.operation),
        _ => None,
    });
    !at_bucket.next().is_some_and(destroys)
}

/// Returns true if the pass that released the claim could not send its Events, which it does at its
/// end.
///
/// The operator was paused until the deadline of the last answer was over, or died, or an Event was
/// refused. The trace doesn't have the content of Events.
fn was_cut_off(state: &State<'_>, life: &Life<'_>, release: &Line) -> bool {
    let is_event = |call: &Call| {
        matches!(call, Call::Kube(call)
            if call.verb == KubeVerb::Create && call.resource == "events" && call.namespace.as_deref() == Some(life.claim.namespace))
    };
    // Only the Events themselves take time between that answer and the end of the pass.
    let mut over_ms = answered_ms(release);
    let own = state.trace.lines().iter().filter(|line| line.instance == release.instance);
    for line in own.skip_while(|line| line.number < release.number) {
        if line.began_ms > over_ms {
            break;
        }
        let told = is_event(&line.call);
        let not_taken = told && line.world.is_none_or(|status| status >= 300);
        let stood_still = is_standstill(line) && line.number > release.number;
        if not_taken || stood_still || matches!(line.fault, Some(Fault::Process(ProcessFault::Crash(_)))) {
            return true;
        }
        if told {
            over_ms = over_ms.max(answered_ms(line));
        }
    }
    false
}

/// Returns the time at which a call that was carried out was answered, in milliseconds since the
/// start of the run.
fn answered_ms(line: &Line) -> u64 {
    let late = match line.fault {
        Some(Fault::Call(CallFault::Slow { millis })) => millis,
        Some(Fault::Process(ProcessFault::Pause { seconds })) => u64::from(seconds) * 1000,
        _ => 0,
    };
    line.began_ms.saturating_add(late)
}
