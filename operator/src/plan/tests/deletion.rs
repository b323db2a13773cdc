//! In which order a claim that is deleted lets go.

use super::super::LetGo;
use super::*;
use crate::api::{AccessKeyId, AnonymousBinding, Deletion};

fn deleting(change: impl FnOnce(&mut View)) -> View {
    let mut view = bound();
    view.claim.deleting = true;
    view.fresh = false;
    view.own_lists = 0;
    change(&mut view);
    view
}

// covers: 3.4.live
#[test]
fn deletion_begins_with_live_reads() {
    let view = deleting(|_| {});
    assert_eq!(step(&view), Step::Look(Look::Claim));
    assert_eq!(step(&deleting(|view| view.fresh = true)), Step::Look(Look::Own));
}

// covers: 3.4.live
#[test]
fn deletion_stops_when_the_live_claim_is_another_version() {
    let mut view = deleting(|_| {});
    let look = step(&view);
    let mut live = view.claim.clone();
    live.id.resource_version = "6".into();
    view.learn(&look, Answer::Claim(Some(Box::new(live))));
    assert!(matches!(step(&view), Step::Rest(_)));
}

/// A claim that has just moved, and whose pass was stopped before it noted so.
#[test]
fn a_bucket_that_was_left_is_left_alone_also_where_nothing_notes_that_yet() {
    let view = deleting(|view| {
        view.fresh = true;
        view.own_lists = 1;
        view.own_current = true;
        let new = BucketRecord { backend: "second".into(), generation: 2, ..record(view) };
        let key = CredentialFacts { backend: "second".into(), generation: 2, ..facts(view) };
        let endpoint = Endpoint::parse("http://second.example").unwrap();
        for secret in [
            stored(&BucketRecord { endpoint, ..new }.content(NAMESPACE)),
            stored(&key.content(NAMESPACE, Some(&SecretKey::new("x".into())))),
        ] {
            view.own.insert(secret.name().to_owned(), secret);
        }
        view.claim.deletion = Deletion::Force;
        view.absent.insert(AnonymousBinding::name(&view.claim.uid));
    });
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((patch.change, patch.target.name), (Change::Leave, record(&view).name().to_string()));
}

// covers: 2.record.last, 3.4.order, 3.4.secondList
#[test]
fn deletion_revokes_before_it_lets_anything_else_go() {
    let mut view = deleting(|view| {
        view.fresh = true;
        view.own_lists = 1;
        view.own_current = true;
    });
    let mut deleted = Vec::new();
    for _ in 0..50 {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::Delete(secret)) => {
                deleted.push(secret.name.chars().take(2).collect::<String>());
                Answer::Done
            }
            Step::Act(Act::RemoveFinalizer(_)) => break,
            other => panic!("{other}"),
        };
        view.learn(&step, answer);
    }
    assert_eq!(deleted, ["vc", "ph", "br"], "credential, consumer Secret, record");
    assert!(view.own_lists >= 2, "a second live list before the finalizer goes");
}

/// Without labels no list shows it, and the server may answer the read by its name from before it
/// was made.
#[test]
fn a_record_that_one_read_did_not_find_is_asked_for_once_more() {
    let mut view = deleting(|view| view.fresh = true);
    let (record, stored) = view.record().expect("it holds its bucket");
    let name = record.name().to_string();
    let mut reads = 0;
    view.own.clear();
    view.consumers.clear();
    for _ in 0..50 {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Own) => Answer::Secrets(Vec::new()),
            Step::Look(Look::Internal(asked)) if *asked == name => {
                reads += 1;
                Answer::Secret((reads > 1).then(|| stored.clone()))
            }
            Step::Look(Look::Bucket(_)) => Answer::Bucket(BucketSeen::Absent),
            Step::Look(Look::Claim) => Answer::Claim(Some(Box::new(view.claim.clone()))),
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::Delete(secret)) if secret.name == name => return,
            other => panic!("{other}"),
        };
        view.learn(&step, answer);
    }
    panic!("no end");
}

/// Between CreateBucket and the tags no status has spoken of the bucket yet: then spec and template
/// lead to its record, unless the backend is gone, and another's record there is none of ours.
// covers: 3.4.live
#[test]
fn a_record_without_labels_is_found_before_any_status_has_spoken_of_its_bucket() {
    let stored = |view: &View, uid: &str| {
        stored(&BucketRecord { uid: crate::api::ClaimUid::new(uid), ..record(view) }.content(NAMESPACE))
    };
    let asked = |backend: BackendSeen, holder: &str| {
        let mut view = view();
        (view.claim.deleting, view.own_current) = (true, true);
        view.backends.insert("main".into(), backend);
        let name = record(&view).name().to_string();
        let mut reads = 0;
        for _ in 0..50 {
            let step = step(&view);
            let answer = match &step {
                Step::Look(Look::Own) => Answer::Secrets(Vec::new()),
                Step::Look(Look::Internal(asked)) if *asked == name => {
                    reads += 1;
                    Answer::Secret(Some(stored(&view, holder)))
                }
                Step::Look(_) => Answer::Secret(None),
                Step::Act(Act::Delete(secret)) if secret.name == name => return (reads, true),
                Step::Act(Act::RemoveFinalizer(_)) => return (reads, false),
                other => panic!("{other}"),
            };
            view.learn(&step, answer);
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
        let mut view = holding(change);
        (view.claim.deleting, view.claim.deletion) = (true, Deletion::Delete);
        for _ in 0..20 {
            let step = step(&view);
            let answer = match &step {
                Step::Look(Look::Bucket(_)) => Answer::Bucket(BucketSeen::Forbidden),
                Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
                Step::Look(_) => Answer::Secret(None),
                Step::Act(Act::Delete(_)) => return false,
                Step::Act(Act::WriteStatus(..)) => return verdict(&view) == "DeletionBlocked",
                Step::Act(_) => Answer::Done,
                Step::Rest(_) => panic!("no end"),
            };
            view.learn(&step, answer);
        }
        panic!("no end")
    };
    assert!(!refused(|_| {}), "nothing was ever asked of the store");
    assert!(refused(|record| record.absence = true), "it may be one that was made");
    assert!(refused(|record| record.settled = true), "it was bound, and our right to look was taken away");
}

// covers: 3.2.lateCall
#[test]
fn the_record_stays_while_a_create_without_an_answer_may_still_land() {
    let time = std::time::Duration::from_secs(7);
    let mut view = holding(|_| {});
    view.claim.deleting = true;
    view.own_lists = 1;
    view.unanswered = Some(time);
    for _ in 0..20 {
        let step = step(&view);
        let answer = match &step {
            Step::Look(_) => Answer::Secret(None),
            Step::Rest(rest) => return assert_eq!(rest.then, Then::Wait(time)),
            Step::Act(act) => panic!("{act}"),
        };
        view.learn(&step, answer);
    }
    panic!("no rest");
}

/// A claim whose deletion has read it and its Secrets live, among them a second credential.
fn with_two_credentials() -> View {
    deleting(|view| {
        view.fresh = true;
        view.own_lists = 1;
        view.own_current = true;
        let second = CredentialFacts { generation: 2, ..facts(view) };
        let second = stored(&second.content(NAMESPACE, Some(&SecretKey::new("x".into()))));
        view.own.insert(second.name().to_owned(), second);
    })
}

// covers: 1.credentialsProvisioned.Revoked, 4.event.Revoked
#[test]
fn that_credentials_are_revoked_is_told_once_none_is_left() {
    for refused in [true, false] {
        let mut view = with_two_credentials();
        let told = loop {
            let step = step(&view);
            let answer = match &step {
                Step::Look(_) => Answer::Secret(None),
                Step::Act(Act::Delete(_)) if refused && view.revoked == 1 => {
                    Answer::Failed(Failure::Refused("no right to".into()))
                }
                Step::Act(Act::Delete(secret)) if secret.name.starts_with("vc-") => Answer::Done,
                // The rest of the deletion is refused: that is told too.
                Step::Act(Act::Delete(_)) => Answer::Failed(Failure::Refused("no right to".into())),
                Step::Act(Act::WriteStatus(_, status)) => break status.clone(),
                other => panic!("{other}"),
            };
            view.learn(&step, answer);
        };
        assert_eq!(told.conditions.iter().any(|condition| condition.reason == "Revoked"), !refused);
        view.claim.status = *told;
        let Step::Rest(rest) = step(&view) else { panic!("no rest") };
        assert_eq!(rest.events.iter().any(|event| event.reason == "Revoked"), !refused);
    }
}

// covers: 3.4.order
#[test]
fn a_deletion_goes_on_with_the_generations_that_no_pass_has_asked_for() {
    let mut view = deleting(|view| {
        view.fresh = true;
        view.own_lists = 1;
        view.own_current = true;
        view.own = [stored(&BucketRecord { generation: 7, ..record(view) }.content(NAMESPACE))].into_iter().collect();
        view.revoked_through = 4;
    });
    let mut asked = Vec::new();
    while view.revoked_through < 7 {
        let step = step(&view);
        let Step::Look(Look::Internal(name)) = &step else { panic!("{step}") };
        asked.extend(name.starts_with("vc-").then(|| name.clone()));
        view.learn(&step, Answer::Secret(None));
    }
    let names = [5, 6, 7].map(|generation| AccessKeyId::of(&view.claim.uid, generation).secret_name());
    assert_eq!(asked, names);
}

/// Somebody took its labels off, so no list shows it; and the server answered from its past when it
/// was asked for by name.
// covers: 3.4.live
#[test]
fn a_credential_that_one_read_did_not_find_is_found_before_the_claim_goes() {
    let mut view = with_two_credentials();
    let hidden = view.own.remove(&AccessKeyId::of(&view.claim.uid, 1).secret_name()).expect("it has one");
    assert_found_by_a_second_read(view, &hidden);
}

/// The same where an operator that died has let go of the record: the status tells the generation.
// covers: 3.4.live
#[test]
fn a_credential_without_labels_is_found_by_an_operator_that_finds_no_record() {
    let mut view = with_two_credentials();
    let hidden = view.own.remove(&AccessKeyId::of(&view.claim.uid, 2).secret_name()).expect("it has two");
    view.status_before.rotation_generation = Some(2);
    view.own.clear();
    view.consumers.clear();
    let deleted = loop {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Internal(asked)) if *asked == hidden.name() => Answer::Secret(Some(hidden.clone())),
            Step::Look(Look::Own) => Answer::Secrets(Vec::new()),
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::Delete(secret)) => break secret.name.clone(),
            other => panic!("{other}"),
        };
        view.learn(&step, answer);
    };
    assert_eq!(deleted, hidden.name());
}

/// A record may have aimed beyond the credential that was told, and an older one be the one without
/// labels.
// covers: 3.4.live
#[test]
fn the_last_two_that_the_status_told_and_that_a_record_aimed_at_are_looked_for() {
    let mut view = with_two_credentials();
    let (record, _) = view.record().expect("it has one");
    view.let_go.push(LetGo { record: BucketRecord { generation: 7, ..record }, gone: true });
    view.status_before.rotation_generation = Some(2);
    view.own.clear();
    let asked = std::iter::from_fn(|| {
        let step = step(&view);
        let (asked, answer) = match &step {
            Step::Look(Look::Internal(name)) => (Some(name.clone()), Answer::Secret(None)),
            Step::Look(Look::Own) => (None, Answer::Secrets(Vec::new())),
            Step::Look(_) => (None, Answer::Secret(None)),
            Step::Act(_) | Step::Rest(_) => return None,
        };
        view.learn(&step, answer);
        Some(asked)
    });
    let asked: BTreeSet<String> = asked.flatten().filter(|name| name.starts_with("vc-")).collect();
    let names = [1, 2, 6, 7].map(|generation| AccessKeyId::of(&view.claim.uid, generation).secret_name());
    assert_eq!(asked, BTreeSet::from(names));
}

/// Nothing but this number leads to a key without labels once the record is gone, so the status of
/// a claim that goes, or whose key is lost, still tells it.
// covers: 3.4.live, 1.status.rotationGeneration
#[test]
fn a_status_goes_on_telling_the_generation_when_the_credential_is_gone() {
    for goes in [true, false] {
        let mut view = bound();
        view.claim.deleting = goes;
        view.failure = Some((Step::Look(Look::Own), Failure::Refused("no right to".into())));
        let told = |view: &View| {
            let Step::Act(Act::WriteStatus(_, status)) = step(view) else { panic!("{}", step(view)) };
            (status.access_key_id.is_some(), status.rotation_generation)
        };
        assert_eq!(told(&view), (true, Some(1)));
        view.own.retain(|name, _| !name.starts_with("vc-"));
        assert_eq!(told(&view), (false, Some(1)), "its key is gone");
        view.own.clear();
        assert_eq!(told(&view), (false, Some(1)), "so is its record");
    }
}

/// The same of what makes its bucket public.
// covers: 3.4.live
#[test]
fn a_binding_that_one_read_did_not_find_is_found_before_the_claim_goes() {
    let mut view = with_two_credentials();
    let desired = view.claim.desired.as_mut().expect("its spec can be read");
    desired.anonymous = Some(5);
    let hidden = AnonymousBinding {
        claim: view.claim.at.clone(),
        uid: view.claim.uid.clone(),
        backend: "main".into(),
        bucket: record(&view).bucket,
        per_source_ip_rps: 5,
    };
    assert_found_by_a_second_read(view, &stored(&hidden.content(NAMESPACE)));
}

/// The first read by its name does not show this Secret.
fn assert_found_by_a_second_read(mut view: View, hidden: &Stored) {
    let (mut reads, mut deleted) = (0, Vec::new());
    loop {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
            Step::Look(Look::Internal(asked)) if *asked == hidden.name() => {
                reads += 1;
                Answer::Secret((reads > 1).then(|| hidden.clone()))
            }
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::Delete(secret)) => {
                deleted.push(secret.name.clone());
                Answer::Done
            }
            Step::Act(Act::RemoveFinalizer(_)) => break,
            other => panic!("{other}"),
        };
        view.learn(&step, answer);
    }
    assert_eq!(deleted.iter().filter(|deleted| **deleted == hidden.name()).count(), 1, "{deleted:?}");
    assert_eq!(reads, 2, "what was deleted is not asked for again");
}

// covers: 4.event.BucketDeleted
#[test]
fn a_bucket_that_an_earlier_pass_deleted_is_told_of_whatever_the_policy_is_by_now() {
    let view = deleting(|view| {
        let record = BucketRecord { settled: true, ..record(view) };
        view.let_go.push(LetGo { record, gone: true });
        view.claim.deletion = Deletion::Retain;
        view.released = true;
    });
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    let told: Vec<&str> = rest.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(told, ["BucketDeleted"]);
}

// covers: 4.event.Revoked
#[test]
fn what_is_told_in_the_end_does_not_change_because_the_last_answer_came_late() {
    let mut view = with_two_credentials();
    loop {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::RemoveFinalizer(_)) => break view.learn_late(&step, Answer::Done),
            _ => Answer::Done,
        };
        view.learn(&step, answer);
    }
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    assert!(rest.events.iter().any(|event| event.reason == "Revoked"));
}
