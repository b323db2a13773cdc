//! Alternative ends of a scenario, which changes by other actors may cause where the end that the
//! user wanted can't or need not be reached.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_sim::LAG;
use serde_json::Value;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{
    Actor, ClockFault, Edit, Effects, Fault, Feature, KubeFault, ProcessFault, Rival, S3Fault, StowageFault, Tampering,
};
use stowage_world::history::Facts;
use stowage_world::scenes::{CLAIM, NAMESPACE};

use super::scenario::{Scenario, ScenarioPhase};

/// Maximum time until the next drift check, jitter included.
const DRIFT: Duration = Duration::from_secs(700);

/// Returns the reasons of `Ready` with which this claim may rest after a fault, besides the one
/// that the user wanted.
fn reasons(fault: Fault, claim: &Value, facts: &Facts) -> &'static [&'static str] {
    match fault {
        // A stranger has taken the name: of the bucket, the record, the credential or the consumer
        // Secret.
        Fault::S3(S3Fault::BucketExists) => &["BucketExists"],
        Fault::Kube(KubeFault::AlreadyExists(Rival::Foreign)) => {
            &["BucketNameConflict", "CreationInconsistent", "SecretConflict"]
        }
        // The stranger's bucket replaced one that was just created and had no tags yet: the data in
        // it must not be lost.
        Fault::Project(StowageFault::Usurp { empty: false }) if is_going(claim) => {
            &["BucketExists", "BucketMissing", "BucketNameConflict", "BucketNotEmpty"]
        }
        Fault::Project(StowageFault::Usurp { .. }) => &["BucketExists", "BucketMissing", "BucketNameConflict"],
        // A bucket that was bound is never replaced by an empty one; one that wasn't bound yet is.
        Fault::S3(S3Fault::Vanish) if claim["status"]["boundSecretName"].is_string() => &["BucketMissing"],
        // Without its owner reference the Secret belongs to no claim.
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => &["SecretConflict"],
        // Until the record of the former UID is swept.
        Fault::Project(StowageFault::Recreate) => &["BucketNameConflict"],
        // The claim was bound to a bucket that a stale read showed, and that no longer existed.
        Fault::S3(S3Fault::StaleRead) if has_no_bucket(claim, facts) => &["BucketMissing"],
        Fault::Project(StowageFault::Edit(Edit::Pause)) => &["Paused"],
        // While the claim is being deleted without force, a person has to decide.
        Fault::Project(StowageFault::Edit(Edit::Delete | Edit::NoForce)) => &["BucketNotEmpty"],
        Fault::S3(S3Fault::LateWrite) if claim["spec"]["forceDelete"] != true => &["BucketNotEmpty"],
        Fault::S3(S3Fault::Locked) => &["DeletionBlocked"],
        // Versions that can't be listed can't be deleted. Objects that are deleted repeatedly and
        // reappear are reported in the end.
        Fault::S3(S3Fault::NotImplemented(Feature::Versioning)) => &["Purging", "DeletionBlocked"],
        _ => &[],
    }
}

/// Returns true if the claim is being deleted, and not by force.
fn is_going(claim: &Value) -> bool {
    !claim["metadata"]["deletionTimestamp"].is_null() && claim["spec"]["forceDelete"] != true
}

/// Returns true if no store has the bucket named in the claim's status.
fn has_no_bucket(claim: &Value, facts: &Facts) -> bool {
    claim["status"]["bucketName"].as_str().is_some_and(|bucket| facts.bucket(bucket).is_none())
}

/// Returns true if the bucket named in the claim's status exists and carries no tags.
fn has_no_tags(claim: &Value, facts: &Facts) -> bool {
    let bucket = claim["status"]["bucketName"].as_str().and_then(|bucket| facts.bucket(bucket));
    bucket.is_some_and(|bucket| bucket.tags.as_ref().is_none_or(BTreeMap::is_empty))
}

/// Returns true if a claim may rest with this reason of `Ready` after several faults, none of which
/// leads there alone.
fn rests_together(faults: &[Fault], claim: &Value, reason: &str, facts: &Facts) -> bool {
    let among = |fault: Fault| faults.contains(&fault);
    // A bucket without record and tags can't be proven to be ours; a claim that waits for it may
    // create the record.
    let no_record = among(Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord)));
    match reason {
        _ if faults.len() < 2 => false,
        "BucketNameConflict" | "BucketMissing" => no_record,
        "BucketExists" => no_record || faults.iter().any(|fault| leaves_untagged(*fault, claim, facts)),
        // Two claims of a namespace get the same Secret name.
        "SecretConflict" => {
            faults.iter().filter(|fault| **fault == Fault::Project(StowageFault::Edit(Edit::Rename))).count() > 1
        }
        _ => false,
    }
}

/// Returns true if a fault may leave a bucket of ours without tags.
///
/// Either tags can't be written, or something happened before the bucket had them: its claim was
/// recreated or its finalizers were removed, another actor wrote into the bucket, or a stale read
/// showed it as absent.
fn leaves_untagged(fault: Fault, claim: &Value, facts: &Facts) -> bool {
    match fault {
        Fault::S3(S3Fault::VerbDown(operation)) => operation.name() == "PutBucketTagging",
        Fault::S3(S3Fault::NotImplemented(Feature::Tagging)) | Fault::Project(StowageFault::Recreate) => true,
        Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers))
        | Fault::S3(S3Fault::LateWrite | S3Fault::StaleRead) => has_no_tags(claim, facts),
        _ => false,
    }
}

/// Returns true if the state is one in which one of these faults, or several together, may leave
/// it.
pub(super) fn may_rest(scenario: &Scenario, facts: &Facts, faults: &[Fault]) -> bool {
    let claim = facts.claim(NAMESPACE, CLAIM);
    let reason = facts.ready(NAMESPACE, CLAIM);
    let goes = matches!(scenario.phase, ScenarioPhase::Delete | ScenarioPhase::Purge);
    (scenario.otherwise)(facts, faults)
        || rests_together(faults, claim, reason, facts)
        || faults
            .iter()
            .any(|fault| reasons(*fault, claim, facts).contains(&reason) || leaves(*fault, claim, reason, goes))
}

fn leaves(fault: Fault, claim: &Value, reason: &str, goes: bool) -> bool {
    match fault {
        Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers)) => claim.is_null(),
        // A Secret without an owner stays in place.
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) if goes => claim.is_null(),
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => {
            let wanted = &claim["spec"]["writeConnectionSecretToRef"]["name"];
            wanted.is_string() && claim["status"]["boundSecretName"] == *wanted
        }
        // Nobody deletes the claim that was recreated.
        Fault::Project(StowageFault::Recreate) => {
            goes && reason == "Bound" && claim["metadata"]["deletionTimestamp"].is_null()
        }
        _ => false,
    }
}

/// Returns true if any claim rests as one of these faults may leave the claim that it meets.
pub(super) fn any_may_rest(facts: &Facts, faults: &[Fault]) -> bool {
    let mut claims = facts.all("bucketclaims").map(|(namespace, name, claim)| (facts.ready(namespace, name), claim));
    claims.any(|(reason, claim)| {
        rests_together(faults, claim, reason, facts)
            || faults.iter().any(|fault| reasons(*fault, claim, facts).contains(&reason))
    })
}

/// Returns true if the fault is a change by another actor, or a false answer of a store: the run
/// then need not end like one without it.
pub(super) fn is_somebodys_doing(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::Project(
            StowageFault::Recreate | StowageFault::Tamper(_) | StowageFault::Edit(_) | StowageFault::Usurp { .. }
        ) | Fault::Kube(KubeFault::AlreadyExists(Rival::Foreign))
            | Fault::S3(
                S3Fault::AlreadyOwned
                    | S3Fault::BucketExists
                    | S3Fault::OkOnExisting
                    | S3Fault::Locked
                    | S3Fault::LateWrite
                    | S3Fault::Vanish
                    | S3Fault::NotImplemented(_)
                    | S3Fault::StaleRead
            )
    )
}

/// Returns true if the effects of a fault, or of two together, may show only later.
///
/// - One fault shows later if it takes a drift check to find it, if a silent watch has to time out,
///   or if a sweep has to find internal Secrets: those of a claim whose deletion no watch reported,
///   or those that another operator has created.
/// - Two faults show later if one is another actor's change and the other hides its effect: a stale
///   read after the watch event, a stale read that delayed the run which the change ends, a
///   namespace reported as terminating in which the change is to a Secret, or a refused status
///   write.
pub(super) fn show_late(effects: &Effects) -> bool {
    let faults = effects.fired();
    let hand = faults.iter().any(|fault| is_somebodys_doing(*fault));
    faults.iter().any(|fault| match fault {
        Fault::S3(S3Fault::Vanish | S3Fault::StaleRead)
        | Fault::Project(StowageFault::Usurp { .. })
        | Fault::Kube(KubeFault::WatchSilent | KubeFault::Collapse)
        | Fault::Process(ProcessFault::Twin) => true,
        // The next retry sweeps the internal Secrets that a finalizer kept after the claim was
        // gone.
        Fault::Project(StowageFault::Tamper(Tampering::KeepInternal)) => true,
        Fault::Kube(KubeFault::Stale { .. } | KubeFault::Rewind | KubeFault::Denied | KubeFault::Forbidden) => hand,
        // A claim whose namespace is reported as terminating waits for the watch to show a change.
        // The operator's own namespace has no claims.
        Fault::Kube(KubeFault::NamespaceTerminating) => hand && !effects.has_met(*fault, OPERATOR_NAMESPACE),
        _ => false,
    })
}

/// Returns the time for which missing information may delay a repair.
///
/// A repair is delayed for a while by a watch that lags or collapses many changes into one, and by
/// the consequence of such a watch. Tags that a store doesn't show delay the repair until the next
/// drift check.
pub(super) fn told_late(faults: &[Fault]) -> Duration {
    let late = |fault: &Fault| match fault {
        Fault::Kube(KubeFault::Stale { .. } | KubeFault::Collapse) => 2 * LAG,
        Fault::S3(S3Fault::NotImplemented(Feature::Tagging)) => DRIFT,
        _ => Duration::ZERO,
    };
    faults.iter().map(late).max().unwrap_or_default()
}

/// Returns how far the fault sets the operator's clock back: everything that is due at a wall-clock
/// time comes that much later.
pub(super) fn is_behind(fault: Fault) -> Duration {
    match fault {
        Fault::Clock(ClockFault::Step { seconds })
        | Fault::Project(StowageFault::Skew { actor: Actor::Operator, seconds })
            if seconds < 0 =>
        {
            Duration::from_secs(seconds.unsigned_abs().into())
        }
        _ => Duration::ZERO,
    }
}

/// Returns the gateway's lag that the faults add to the usual one.
pub(super) fn gateway_lag(faults: &[Fault]) -> Duration {
    let lags = faults.iter().filter_map(|fault| match fault {
        Fault::Project(StowageFault::Lag { seconds }) => Some(Duration::from_secs((*seconds).into())),
        _ => None,
    });
    lags.max().unwrap_or_default()
}

/// Returns the time for which a fault may pause the operator after everything else has ended.
pub(super) fn stands_still(fault: Fault) -> Duration {
    match fault {
        Fault::Process(ProcessFault::Pause { seconds }) => Duration::from_secs(seconds.into()),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stowage_world::effects::CallFault;

    use super::*;
    use stowage_world::scenes::BUCKET;

    fn rests(fault: Fault, claim: &Value, reason: &str) -> bool {
        reasons(fault, claim, &Facts::default()).contains(&reason)
    }

    #[test]
    fn a_reason_is_allowed_only_where_it_comes_about() {
        let bound = json!({"status": {"bucketName": BUCKET, "boundSecretName": "photos-s3"}});
        assert!(rests(Fault::S3(S3Fault::Vanish), &bound, "BucketMissing"));
        assert!(rests(Fault::S3(S3Fault::StaleRead), &bound, "BucketMissing"), "no store has the bucket");
        let unbound = json!({"status": {}});
        assert!(!rests(Fault::S3(S3Fault::Vanish), &unbound, "BucketMissing"));
        assert!(!rests(Fault::S3(S3Fault::StaleRead), &unbound, "BucketMissing"));
        assert!(rests(Fault::S3(S3Fault::LateWrite), &json!({"spec": {"deletionPolicy": "Delete"}}), "BucketNotEmpty"));
        assert!(!rests(Fault::S3(S3Fault::LateWrite), &json!({"spec": {"forceDelete": true}}), "BucketNotEmpty"));
        let going = json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "spec": {}});
        assert!(rests(Fault::Project(StowageFault::Usurp { empty: false }), &going, "BucketNotEmpty"));
        assert!(!rests(Fault::Project(StowageFault::Usurp { empty: true }), &going, "BucketNotEmpty"));
        assert!(!rests(Fault::Project(StowageFault::Usurp { empty: false }), &bound, "BucketNotEmpty"));
    }

    #[test]
    fn what_several_may_leave_one_alone_may_not() {
        let claim = json!({"status": {"bucketName": BUCKET}});
        let together = |faults: &[Fault], reason| rests_together(faults, &claim, reason, &Facts::default());
        let rename = Fault::Project(StowageFault::Edit(Edit::Rename));
        assert!(together(&[rename, Fault::Call(CallFault::LostAnswer), rename], "SecretConflict"));
        assert!(!together(&[rename, Fault::Call(CallFault::LostAnswer)], "SecretConflict"));
        assert!(together(
            &[Fault::Project(StowageFault::Recreate), Fault::Call(CallFault::LostAnswer)],
            "BucketExists"
        ));
        assert!(!together(&[Fault::Project(StowageFault::Recreate)], "BucketExists"));
        for fault in [Fault::S3(S3Fault::LateWrite), Fault::S3(S3Fault::StaleRead)] {
            assert!(
                !together(&[fault, Fault::Call(CallFault::LostAnswer)], "BucketExists"),
                "{fault}: there is no bucket"
            );
        }
    }
}
