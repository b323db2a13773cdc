//! In which order a claim that is deleted lets go.

use super::*;
use crate::api::{AnonymousBinding, Deletion};

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
