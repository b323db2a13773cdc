//! Order of a claim's deletion.

mod revocation;

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::SignedDuration;

use crate::api::{AnonymousBinding, Deletion};

use super::super::{LetGo, PurgeEnd, Purged};
use super::*;

/// Returns a bound claim that is being deleted.
fn deleting() -> Given {
    let mut given = bound();
    given.claim.deleting = true;
    given
}

/// Returns the name of the claim's anonymous binding.
fn binding_name() -> String {
    AnonymousBinding::name(&record().uid)
}

// covers: 3.4.live
#[test]
fn deletion_begins_with_live_reads() {
    let given = deleting();
    let mut view = given.cached();
    ask(&mut view, &Look::Claim, &given);
    assert_eq!(step(&view), Step::Look(Look::Internal(record().name().to_string())));
}

// covers: 3.4.live
#[test]
fn deletion_stops_when_the_live_claim_is_another_version() {
    let given = deleting();
    let mut view = given.cached();
    assert_eq!(step(&view), Step::Look(Look::Claim));
    let mut edited = given.claim;
    edited.id.resource_version = "6".into();
    view.learn(live(&edited));
    assert!(matches!(step(&view), Step::Rest(_)));
}

/// The claim has just moved, and its pass was interrupted before it noted so.
#[test]
fn a_bucket_that_was_left_is_left_alone_also_where_nothing_notes_that_yet() {
    let mut given = deleting();
    given.claim.deletion = Deletion::Force;
    let endpoint = Endpoint::parse("http://second.example").unwrap();
    given.put(record_secret(&BucketRecord {
        backend: "second".into(),
        endpoint: endpoint.clone(),
        generation: 2,
        ..record()
    }));
    given.put(key_secret(&CredentialFacts { backend: "second".into(), endpoint, ..facts(2) }));
    let mut view = given.read();
    ask(&mut view, &Look::Internal(binding_name()), &given);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((patch.change, patch.target.name), (Change::Leave, record().name().to_string()));
}

// covers: 8.ending
#[rstest]
#[case(Deletion::Retain, false)]
#[case(Deletion::Delete, true)]
#[case(Deletion::Force, true)]
fn a_deletion_first_writes_each_record_once(#[case] policy: Deletion, #[case] settles: bool) {
    let mut given = deleting();
    given.claim.deletion = policy;
    let consent = (crate::api::NamespaceUid::new("n-1"), crate::api::Consent::full());
    given.put(record_secret(&BucketRecord { ending: false, accesses: [consent].into(), ..record() }));
    let mut view = given.cached();
    ask(&mut view, &Look::Claim, &given);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    let written = patch.json().to_string();
    assert_eq!((patch.change, patch.target.name), (Change::End, record().name().to_string()));
    assert!(
        written.contains(r#"{"op":"remove","path":"/data/accesses"}"#) && written.contains("/data/ending"),
        "{written}"
    );
    assert_eq!(written.contains("/data/settled"), settles, "{written}");
}

/// Runs a deletion to its end. Returns its queries, and the kinds of the Secrets that it deletes.
fn delete_all(given: &mut Given) -> (Vec<Look>, Vec<String>) {
    let mut view = given.cached();
    let (mut asked, mut deleted) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let answer = match step(&view) {
            Step::Look(look) => {
                asked.push(look.clone());
                given.answer(look)
            }
            Step::Act(Act::Delete(secret)) => {
                deleted.push(secret.name.chars().take(2).collect::<String>());
                given.delete(secret)
            }
            Step::Act(Act::RemoveFinalizer(_)) => return (asked, deleted),
            other => panic!("{other}"),
        };
        view.learn(answer);
    }
    panic!("no end")
}

// covers: 2.record.last, 3.4.order, 3.4.lastLook
#[test]
fn deletion_revokes_before_it_lets_anything_else_go() {
    let mut given = deleting();
    let (asked, deleted) = delete_all(&mut given);
    assert_eq!(deleted, ["vc", "ph", "br"], "credential, consumer Secret, record");
    let expected = [Look::Claim, Look::Internal(record().name().to_string()), Look::Internal(key_name(1))];
    assert_eq!(asked, expected, "the key once more before the finalizer goes");
}

// covers: 3.4.order, 3.4.lastLook
#[test]
fn a_record_that_does_not_tell_of_all_has_the_secrets_listed_at_the_beginning_and_at_the_end() {
    for change in [|record: &mut BucketRecord| record.lowest = None, |record: &mut BucketRecord| record.another = true]
    {
        let mut given = deleting();
        let mut record = record();
        change(&mut record);
        given.put(record_secret(&record));
        let (asked, deleted) = delete_all(&mut given);
        assert_eq!(deleted, ["vc", "ph", "br"]);
        assert_eq!(asked.iter().filter(|look| **look == Look::Own).count(), 2, "{asked:?}");
    }
}

/// Another operator bumped the generation or moved the claim.
// covers: 3.4.live
#[test]
fn what_a_cache_shows_otherwise_than_it_is_by_now_is_read() {
    let mut given = deleting();
    given.claim.deletion = Deletion::Delete;
    let mut view = given.cached();
    ask(&mut view, &Look::Claim, &given);
    let settle = step(&view);
    let Step::Act(Act::Patch(patch)) = &settle else { panic!("{settle}") };
    assert_eq!(patch.change, Change::Settle);
    view.learn(Answer::Failed(settle.clone(), Failure::Conflict));
    given.put(record_secret(&BucketRecord { settled: true, generation: 2, ..record() }));
    ask(&mut view, &Look::Internal(record().name().to_string()), &given);
    let delete = step(&view);
    assert!(matches!(&delete, Step::Act(Act::Delete(secret)) if secret.name == key_name(1)), "{delete}");
    view.learn(Answer::Failed(delete, Failure::Conflict));
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
    view.learn(given.delete(secret));
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    // A conflict on a Secret that was read live ends the pass.
    view.learn(Answer::Failed(
        Step::Act(Act::Delete(given.internal[&record().name().to_string()].reference())),
        Failure::Conflict,
    ));
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
}

/// Without labels no list shows the record, and the read by name may be stale, from before the
/// record was created.
#[test]
fn a_record_that_one_read_did_not_find_is_asked_for_once_more() {
    let mut given = deleting();
    let name = record().name().to_string();
    given.take(&key_name(1));
    given.consumers.clear();
    given.hide(&name);
    let mut view = given.cached();
    let mut reads = 0;
    for _ in 0..50 {
        let answer = match step(&view) {
            Step::Look(Look::Internal(asked)) if asked == name && reads == 0 => {
                reads += 1;
                Answer::Internal(asked, None)
            }
            Step::Look(Look::Bucket(at)) => Answer::Bucket(at, BucketSeen::Absent),
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Delete(secret)) if secret.name == name => return,
            other => panic!("{other}"),
        };
        view.learn(answer);
    }
    panic!("no end");
}

/// Between CreateBucket and tagging no status names the bucket yet. Then spec and template lead to
/// its record, unless the backend is gone. Another claim's record there is left alone.
// covers: 3.4.live
#[test]
fn a_record_without_labels_is_found_before_any_status_has_spoken_of_its_bucket() {
    let asked = |backend: BackendSeen, holder: &str| {
        let mut given = holding(|record| record.uid = ClaimUid::new(holder));
        given.claim.deleting = true;
        given.backends.insert("main".into(), backend);
        let name = record().name().to_string();
        given.hide(&name);
        let mut view = given.cached();
        let mut reads = 0;
        for _ in 0..50 {
            match step(&view) {
                Step::Look(look) => {
                    reads += u32::from(look == Look::Internal(name.clone()));
                    view.learn(given.answer(look));
                }
                Step::Act(Act::Delete(secret)) if secret.name == name => return (reads, true),
                Step::Act(Act::RemoveFinalizer(_)) => return (reads, false),
                other => panic!("{other}"),
            }
        }
        panic!("no end");
    };
    assert_eq!(asked(backend(AdoptionPolicy::Owned), "u-1"), (1, true));
    assert_eq!(asked(backend(AdoptionPolicy::Owned), "u-2"), (2, false), "asked once more before the claim goes");
    assert_eq!(asked(BackendSeen::Missing, "u-1"), (0, false), "a deletion depends on no backend");
}

// covers: 3.4.neverBound
#[test]
fn a_claim_that_never_came_as_far_as_a_bucket_goes_though_it_may_not_see_whose_that_is() {
    let refused = |change: fn(&mut BucketRecord)| {
        let mut given = holding(change);
        (given.claim.deleting, given.claim.deletion) = (true, Deletion::Delete);
        let mut view = given.read();
        for _ in 0..20 {
            match step(&view) {
                Step::Look(Look::Bucket(at)) => view.learn(Answer::Bucket(at, BucketSeen::Forbidden)),
                Step::Look(look) => view.learn(given.answer(look)),
                Step::Act(Act::Delete(_)) => return false,
                Step::Act(Act::WriteStatus(..)) => return verdict(&view) == "DeletionBlocked",
                other => panic!("{other}"),
            }
        }
        panic!("no end")
    };
    assert!(!refused(|_| {}), "nothing was ever asked of the store");
    assert!(refused(|record| record.absence = true), "it may be one that was made");
    assert!(refused(|record| record.settled = true), "it was bound, and our right to look was taken away");
}

// covers: 3.2.lateCall, 3.4.told
#[test]
fn the_record_stays_while_a_create_without_an_answer_may_still_land() {
    let time = Duration::from_secs(7);
    let mut given = holding(|_| {});
    given.claim.deleting = true;
    let mut view = given.read_after(Remembered { unanswered: Some(time), ..Remembered::default() });
    for _ in 0..20 {
        match step(&view) {
            Step::Look(look) => view.learn(given.answer(look)),
            Step::Act(Act::WriteStatus(..)) => {
                assert_eq!(write_status(&mut view).phase, Some(Phase::Deleting));
            }
            Step::Rest(rest) => return assert_eq!(rest.then, Then::Wait(time)),
            Step::Act(act) => panic!("{act}"),
        }
    }
    panic!("no rest");
}

// covers: 3.4.told
#[test]
fn a_claim_that_goes_tells_of_a_write_that_failed() {
    let given = deleting();
    let mut view = given.read();
    while let Step::Look(look) = step(&view) {
        view.learn(given.answer(look));
    }
    let failed = step(&view);
    assert!(matches!(failed, Step::Act(_)), "{failed}");
    let why = "failed calling webhook \"secrets.example.com\": connection refused";
    view.learn(Answer::Failed(failed.clone(), Failure::Kubernetes(why.to_owned())));
    let status = write_status(&mut view);
    assert_eq!(status.phase, Some(Phase::Deleting));
    assert_eq!(status.conditions[0].reason, "BackendError");
    assert_eq!(status.conditions[0].message, format!("can't {failed}: {why}"));
    assert!(matches!(step(&view), Step::Rest(rest) if matches!(rest.then, Then::Retry(_))));
}

/// Returns the seconds until the next pass over a claim that waits for its bucket to be emptied,
/// after it has waited for this number of seconds.
fn looked_at_again_after(waited: i64) -> u64 {
    let mut given = deleting();
    given.claim.deletion = Deletion::Delete;
    let since = Timestamp::UNIX_EPOCH.checked_sub(SignedDuration::from_secs(waited)).unwrap();
    let mut view = given.read();
    for _ in 0..30 {
        let answer = match step(&view) {
            Step::Look(Look::Bucket(_)) => tagged(OURS),
            Step::Look(Look::Contents(at)) => Answer::Contents(at, false),
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Delete(secret)) => given.delete(secret),
            Step::Act(Act::Patch(patch)) => {
                Answer::Patched(patch.change, record_secret(&BucketRecord { settled: true, ..record() }))
            }
            Step::Act(Act::WriteStatus(_, status)) => {
                let mut status = *status;
                let stalled = status.conditions.iter_mut().find(|condition| condition.type_ == "Stalled").unwrap();
                stalled.last_transition_time = Time(since);
                Answer::StatusWritten(Box::new(Claim { status, ..view.claim().clone() }))
            }
            Step::Rest(rest) => {
                let Then::After(delay) = rest.then else { panic!("{}", rest.then) };
                return delay.as_secs();
            }
            other @ Step::Act(_) => panic!("{other}"),
        };
        view.learn(answer);
    }
    panic!("no rest")
}

// covers: 3.4.notEmpty.again
#[test]
fn a_bucket_that_somebody_is_to_empty_is_looked_at_again_ever_more_seldom() {
    for (waited, again) in [(0, 25), (400, 25), (600, 30), (3600, 180), (36_000, 1800)] {
        assert_eq!(looked_at_again_after(waited), again, "after {waited} s");
    }
}

/// An edit to `Retain` must not be missed.
#[test]
fn the_claim_is_read_once_more_right_before_anything_is_destroyed() {
    let mut given = deleting();
    given.claim.deletion = Deletion::Force;
    let mut view = given.cached();
    let mut destroyed = Vec::new();
    let mut before = None;
    while destroyed.len() < 2 {
        let planned = step(&view);
        let answer = match planned.clone() {
            Step::Look(Look::Bucket(_)) => tagged(OURS),
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Patch(patch)) => {
                Answer::Patched(patch.change, record_secret(&BucketRecord { settled: true, ..record() }))
            }
            Step::Act(Act::Delete(secret)) => given.delete(secret),
            Step::Act(act @ (Act::Purge(..) | Act::DeleteBucket(_))) => {
                assert_eq!(before, Some(Step::Look(Look::Claim)), "before {act}");
                let mut late = view.clone();
                late.learn_late(live(&given.claim));
                assert_eq!(step(&late), Step::Look(Look::Claim), "a late answer is not one of now");
                destroyed.push(act.clone());
                Answer::BucketPurged(at(), 10_000, Purged { deleted: 3, end: PurgeEnd::Empty })
            }
            other => panic!("{other}"),
        };
        view.learn(answer);
        before = Some(planned);
    }
    assert_eq!(destroyed, [Act::Purge(at(), 10_000), Act::DeleteBucket(at())]);
}

// covers: 4.event.BucketDeleted
#[test]
fn a_bucket_that_an_earlier_pass_deleted_is_told_of_whatever_the_policy_is_by_now() {
    let mut given = deleting();
    given.claim.deletion = Deletion::Retain;
    let let_go = vec![LetGo { record: BucketRecord { settled: true, ..record() }, gone: true }];
    let mut view = given.begin(Remembered { let_go, ..Remembered::default() });
    view.learn(Answer::FinalizerRemoved);
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    let told: Vec<&str> = rest.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(told, ["BucketDeleted"]);
}
