//! What others' hands may make of a scenario's end, where that can't or need not be what the user
//! wanted first.

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

/// By when a drift check comes, jitter included.
const DRIFT: Duration = Duration::from_secs(700);

/// Reasons of `Ready` with which this claim may rest after a fault, besides what the user wanted.
fn reasons(fault: Fault, claim: &Value, facts: &Facts) -> &'static [&'static str] {
    match fault {
        // A stranger has the name: of the bucket, the record, the credential or the consumer
        // Secret.
        Fault::S3(S3Fault::BucketExists) => &["BucketExists"],
        Fault::Kube(KubeFault::AlreadyExists(Rival::Foreign)) => {
            &["BucketNameConflict", "CreationInconsistent", "SecretConflict"]
        }
        // It was put in the place of one that was just made, before that had its tags: what is in
        // it is not to be lost.
        Fault::Project(StowageFault::Usurp { empty: false }) if is_going(claim) => {
            &["BucketExists", "BucketMissing", "BucketNameConflict", "BucketNotEmpty"]
        }
        Fault::Project(StowageFault::Usurp { .. }) => &["BucketExists", "BucketMissing", "BucketNameConflict"],
        // A bucket that was bound is never replaced by an empty one; one that was not yet is.
        Fault::S3(S3Fault::Vanish) if claim["status"]["boundSecretName"].is_string() => &["BucketMissing"],
        // Without its owner reference it is nobody's.
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => &["SecretConflict"],
        // Until the former UID's record is swept.
        Fault::Project(StowageFault::Recreate) => &["BucketNameConflict"],
        // It was bound to a bucket that a read of the past showed, and that was gone.
        Fault::S3(S3Fault::StaleRead) if has_no_bucket(claim, facts) => &["BucketMissing"],
        Fault::Project(StowageFault::Edit(Edit::Pause)) => &["Paused"],
        // While the claim goes, without force: somebody has to decide.
        Fault::Project(StowageFault::Edit(Edit::Delete | Edit::NoForce)) => &["BucketNotEmpty"],
        Fault::S3(S3Fault::LateWrite) if claim["spec"]["forceDelete"] != true => &["BucketNotEmpty"],
        Fault::S3(S3Fault::Locked) => &["DeletionBlocked"],
        // Versions that can't be listed can't be deleted; what is deleted again and again, and is
        // there again, is told in time.
        Fault::S3(S3Fault::NotImplemented(Feature::Versioning)) => &["Purging", "DeletionBlocked"],
        _ => &[],
    }
}

/// Whether the claim is deleted, and not by force.
fn is_going(claim: &Value) -> bool {
    !claim["metadata"]["deletionTimestamp"].is_null() && claim["spec"]["forceDelete"] != true
}

/// Whether no store has the bucket that the claim's status speaks of.
fn has_no_bucket(claim: &Value, facts: &Facts) -> bool {
    claim["status"]["bucketName"].as_str().is_some_and(|bucket| facts.bucket(bucket).is_none())
}

/// Whether the bucket that the claim's status speaks of is there, and carries no tags.
fn has_no_tags(claim: &Value, facts: &Facts) -> bool {
    let bucket = claim["status"]["bucketName"].as_str().and_then(|bucket| facts.bucket(bucket));
    bucket.is_some_and(|bucket| bucket.tags.as_ref().is_none_or(BTreeMap::is_empty))
}

/// Whether a claim may rest with this reason of `Ready` after several faults, none of which leads
/// there by itself.
fn rests_together(faults: &[Fault], claim: &Value, reason: &str, facts: &Facts) -> bool {
    let among = |fault: Fault| faults.contains(&fault);
    // Nothing proves a bucket ours that has neither record nor tags; who waits for it may take the
    // record.
    let no_record = among(Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord)));
    match reason {
        _ if faults.len() < 2 => false,
        "BucketNameConflict" | "BucketMissing" => no_record,
        "BucketExists" => no_record || faults.iter().any(|fault| leaves_untagged(*fault, claim, facts)),
        // Two claims of a namespace are given one name.
        "SecretConflict" => {
            faults.iter().filter(|fault| **fault == Fault::Project(StowageFault::Edit(Edit::Rename))).count() > 1
        }
        _ => false,
    }
}

/// Whether a bucket of ours may be left without tags: they can't be had; or before it had them, its
/// claim was made again or let go by hand, or somebody wrote into it, or a look from the past
/// showed it to be gone.
fn leaves_untagged(fault: Fault, claim: &Value, facts: &Facts) -> bool {
    match fault {
        Fault::S3(S3Fault::VerbDown(operation)) => operation.name() == "PutBucketTagging",
        Fault::S3(S3Fault::NotImplemented(Feature::Tagging)) | Fault::Project(StowageFault::Recreate) => true,
        Fault::Project(StowageFault::Tamper(Tampering::StripFinalizers))
        | Fault::S3(S3Fault::LateWrite | S3Fault::StaleRead) => has_no_tags(claim, facts),
        _ => false,
    }
}

/// Whether all rests as one of these faults may leave it, or several together.
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
        // What is nobody's stays where it is.
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) if goes => claim.is_null(),
        Fault::Project(StowageFault::Tamper(Tampering::DisownConsumer)) => {
            let wanted = &claim["spec"]["writeConnectionSecretToRef"]["name"];
            wanted.is_string() && claim["status"]["boundSecretName"] == *wanted
        }
        // The one that was made again is nobody's to delete.
        Fault::Project(StowageFault::Recreate) => {
            goes && reason == "Bound" && claim["metadata"]["deletionTimestamp"].is_null()
        }
        _ => false,
    }
}

/// Whether any claim, whichever, rests as one of these faults may leave the one that it meets.
pub(super) fn any_may_rest(facts: &Facts, faults: &[Fault]) -> bool {
    let mut claims = facts.all("bucketclaims").map(|(namespace, name, claim)| (facts.ready(namespace, name), claim));
    claims.any(|(reason, claim)| {
        rests_together(faults, claim, reason, facts)
            || faults.iter().any(|fault| reasons(*fault, claim, facts).contains(&reason))
    })
}

/// Whether somebody has done something in the world, or a store has shown what isn't so: it need
/// not end as it does without that.
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

/// Whether what comes of one of them shows only later: at the next drift check, or when a watch
/// that tells nothing is given up, or when the Secrets are swept of a claim whose end no watch has
/// told, or of which another operator has made them; and of two, when somebody's hand is told once
/// and then hidden by a read from before, or ends a run that such a read has made wait, or has
/// changed a Secret in a namespace that is said to be going, or what comes of it is told by a
/// status that is refused.
pub(super) fn show_late(effects: &Effects) -> bool {
    let faults = effects.fired();
    let hand = faults.iter().any(|fault| is_somebodys_doing(*fault));
    faults.iter().any(|fault| match fault {
        Fault::S3(S3Fault::Vanish | S3Fault::StaleRead)
        | Fault::Project(StowageFault::Usurp { .. })
        | Fault::Kube(KubeFault::WatchSilent | KubeFault::Collapse)
        | Fault::Process(ProcessFault::Twin) => true,
        // What was kept of a claim that is gone is swept with the next try.
        Fault::Project(StowageFault::Tamper(Tampering::KeepInternal)) => true,
        Fault::Kube(KubeFault::Stale { .. } | KubeFault::Rewind | KubeFault::Denied | KubeFault::Forbidden) => hand,
        // A claim whose namespace is said to be going waits for that to be told. The operator's own
        // is no claim's.
        Fault::Kube(KubeFault::NamespaceTerminating) => hand && !effects.has_met(*fault, OPERATOR_NAMESPACE),
        _ => false,
    })
}

/// How long what the operator has not been told keeps it from putting something right: a watch that
/// is behind, or tells of many changes at once, for a while, and what follows from that; tags that
/// a store doesn't show until the next drift check.
pub(super) fn told_late(faults: &[Fault]) -> Duration {
    let late = |fault: &Fault| match fault {
        Fault::Kube(KubeFault::Stale { .. } | KubeFault::Collapse) => 2 * LAG,
        Fault::S3(S3Fault::NotImplemented(Feature::Tagging)) => DRIFT,
        _ => Duration::ZERO,
    };
    faults.iter().map(late).max().unwrap_or_default()
}

/// How much later it is to the operator than it takes it to be: what is due at a time of day comes
/// as much later.
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

/// How far the faults have put the gateway behind, besides what is usual.
pub(super) fn gateway_lag(faults: &[Fault]) -> Duration {
    let lags = faults.iter().filter_map(|fault| match fault {
        Fault::Project(StowageFault::Lag { seconds }) => Some(Duration::from_secs((*seconds).into())),
        _ => None,
    });
    lags.max().unwrap_or_default()
}

/// How long the operator may stand still after all else has come to its end.
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
