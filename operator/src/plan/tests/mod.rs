//! Decisions on prepared views: binding a claim, and keeping it bound.

mod buckets;
mod causes;
mod consumers;
mod credentials;
mod deletion;
mod emergency;
mod given;
mod moves;
mod notes;
mod places;
mod unasked;

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde_json::json;

use crate::api::{
    AdoptionPolicy, Backend, BucketClaimStatus, BucketRecord, Claim, ClaimRef, ClaimUid, CredentialFacts, Endpoint,
    Phase, Reason, ServedBy, wire,
};

use super::{
    Act, Answer, BackendSeen, BucketSeen, Change, CreateAnswer, Failure, Holder, Look, Posted, Remembered, Rest, Step,
    Stored, Target, Then, Trigger, View, next,
};

use given::{
    CONSUMER, Given, NAMESPACE, OURS, absent, at, backend, begun, bound, claim_in, consumer_secret, edited,
    edited_backend, expiring, facts, find_ours, holding, just_held, key_name, key_secret, live, rechecking, record,
    record_secret, stored, tagged, tags, unbound, unlabelled,
};

fn step(view: &View) -> Step {
    next(view, Timestamp::UNIX_EPOCH)
}

/// Returns the purpose of the next step, which patches a Secret.
fn change(view: &View) -> Change {
    match step(view) {
        Step::Act(Act::Patch(patch)) => patch.change,
        other => panic!("expected a patch, got {other}"),
    }
}

/// Returns the status that the next step writes.
fn told(view: &View) -> BucketClaimStatus {
    match step(view) {
        Step::Act(Act::WriteStatus(_, status)) => *status,
        other => panic!("expected a status, got {other}"),
    }
}

/// Returns the reason of `Ready` in the status that the next step writes.
fn verdict(view: &View) -> String {
    let status = told(view);
    status.conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.reason.clone()).unwrap_or_default()
}

/// Carries out the next step, which writes the status. Returns the status.
fn write_status(view: &mut View) -> BucketClaimStatus {
    let status = told(view);
    let claim = Claim { status: status.clone(), ..view.claim().clone() };
    view.learn(Answer::StatusWritten(Box::new(claim)));
    status
}

/// Answers the next step, which is this query, from the given objects.
fn ask(view: &mut View, look: &Look, given: &Given) {
    assert_eq!(step(view), Step::Look(look.clone()));
    view.learn(given.answer(look.clone()));
}

// covers: 3.1.finalizer
#[test]
fn the_finalizer_comes_before_anything_else() {
    let given = Given::new(claim_in("team-a", &json!({}), false));
    assert!(matches!(step(&given.cached()), Step::Act(Act::AddFinalizer(_))));
}

// covers: 2.namespaces
#[rstest]
#[case(NAMESPACE)]
#[case("vault")]
fn a_claim_in_a_namespace_of_secrets_is_refused_and_not_touched(#[case] namespace: &str) {
    let view = begun(claim_in(namespace, &json!({}), false));
    assert_eq!(verdict(&view), "BackendNotAllowed");
}

// covers: 3.live.claim
#[test]
fn a_record_is_made_only_after_a_live_list_unless_the_claim_is_newborn() {
    let given = unbound();
    let mut known = given.cached();
    ask(&mut known, &Look::Holder(at()), &given); // It costs nothing to know.
    ask(&mut known, &Look::Claim, &given);
    ask(&mut known, &Look::Own, &given);
    assert!(matches!(step(&known), Step::Act(Act::CreateRecord(_))));
    let mut newborn = Given::new(claim_in("team-a", &json!({}), false)).cached();
    newborn.learn(Answer::FinalizerAdded(Box::new(given.claim.clone())));
    ask(&mut newborn, &Look::Holder(at()), &given);
    assert!(matches!(step(&newborn), Step::Act(Act::CreateRecord(_))));
}

// covers: 3.2.record.decides
#[test]
fn a_name_that_another_claim_holds_is_a_conflict_and_is_waited_for() {
    let mut view = unbound().read();
    let holder = ClaimRef { namespace: "team-b".into(), name: "secret-plans".into() };
    view.learn(Answer::Holder(at(), Holder::Other(holder)));
    let status = write_status(&mut view);
    assert!(status.conditions.iter().any(|c| c.reason == Reason::BucketNameConflict.to_string()));
    assert!(!format!("{status:?}").contains("secret-plans"), "a tenant learns nothing of other namespaces");
    let Step::Rest(rest) = step(&view) else { panic!("no rest") };
    assert_eq!(rest.waits_for, Some(record().name()));
    assert_eq!(rest.then, Then::AwaitChange);
}

// covers: 3.idle
#[test]
fn planning_again_on_a_bound_claim_gives_rest() {
    for view in [bound().cached(), bound().read()] {
        let Step::Rest(rest) = step(&view) else { panic!("not at rest") };
        assert_eq!((rest.then, rest.events.len()), (Then::AwaitChange, 0));
    }
}

// covers: 1.phase.Bound, 1.bound.impaired
#[test]
fn a_bound_claim_keeps_its_keys_whatever_becomes_of_the_backend() {
    for (seen, reason) in [
        (BackendSeen::Missing, "BackendNotReady"),
        (BackendSeen::Invalid("bad".into()), "BackendNotReady"),
        (
            match backend(AdoptionPolicy::Owned) {
                BackendSeen::Present { backend, .. } => {
                    BackendSeen::Present { backend, allowed: false, spellings: Vec::new(), shared: BTreeSet::new() }
                }
                other => other,
            },
            "BackendNotAllowed",
        ),
    ] {
        let mut given = bound();
        given.backends.insert("main".into(), seen);
        let status = told(&given.read());
        assert_eq!(status.phase, Some(Phase::Bound));
        let ready = status.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", reason));
    }
}

// covers: 1.phase.Creating, 3.2.look.error
#[test]
fn an_error_is_never_absence() {
    let mut view = holding(|record| record.absence = true).read();
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Bucket(at())));
    view.learn(Answer::Failed(look, Failure::Upstream("GetBucketTagging: the store failed (InternalError)".into())));
    assert_eq!(write_status(&mut view).phase, Some(Phase::Creating));
    assert!(matches!(step(&view), Step::Rest(rest) if matches!(rest.then, Then::Retry(_))));
}

/// The operator that adds the finalizer serves the claim from then on.
// covers: 1.claim.servedBy
#[test]
fn a_claim_on_another_operators_backend_is_not_begun_with() {
    let mut given = Given::new(claim_in("team-a", &json!({}), false));
    let served = |by: &str| {
        edited_backend(AdoptionPolicy::Owned, |backend| backend.served_by = Some(ServedBy::operator(by, "cluster-1")))
    };
    given.backends.insert("main".into(), served("other-system"));
    assert!(matches!(step(&given.cached()), Step::Rest(rest) if rest.then == Then::AwaitChange));
    given.backends.insert("main".into(), served(NAMESPACE));
    assert!(matches!(step(&given.cached()), Step::Act(Act::AddFinalizer(_))));
}

// covers: 3.5.server
#[test]
fn that_the_api_server_fails_is_told_where_it_lasts() {
    let tells = |setbacks| {
        let given = unbound();
        let mut view = given.begin(Remembered { setbacks, ..Remembered::default() });
        while let Step::Look(look) = step(&view) {
            view.learn(given.answer(look));
        }
        let failed = step(&view);
        view.learn(Answer::Failed(failed, Failure::Kubernetes("the API server answered 500".into())));
        match step(&view) {
            Step::Act(Act::WriteStatus(_, status)) => {
                assert_eq!(status.conditions[0].reason, "BackendError");
                true
            }
            Step::Rest(rest) => {
                assert!(matches!(rest.then, Then::Retry(_)));
                false
            }
            other => panic!("{other}"),
        }
    };
    assert_eq!([0, 1, 2, 3, 4].map(tells), [false, false, false, true, true]);
}

// covers: 1.annotation.paused
#[test]
fn a_paused_claim_is_left_alone_visibly() {
    let mut given = unbound();
    given.claim.paused = true;
    assert_eq!(verdict(&given.read()), "Paused");
}

/// Returns a paused bound claim, the rechecks of its Secrets, and a pass whose caches show none of
/// them.
fn missed_while_paused() -> (Given, Vec<Look>, View) {
    let mut given = bound();
    given.claim.paused = true;
    let missed = vec![
        Look::Internal(record().name().to_string()),
        Look::Internal(key_name(1)),
        Look::Consumer(CONSUMER.to_owned()),
    ];
    let view = rechecking(given.claim.clone(), missed.clone());
    (given, missed, view)
}

/// Returns the queries that a pass makes before it reports its status. None of them finds anything.
fn asked_in_vain(mut view: View) -> Vec<Look> {
    let mut asked = Vec::new();
    while let Step::Look(look) = step(&view) {
        let name = match &look {
            Look::Internal(name) | Look::Consumer(name) => name.clone(),
            other => panic!("{other}"),
        };
        view.learn(if matches!(look, Look::Internal(_)) {
            Answer::Internal(name, None)
        } else {
            Answer::Consumer(name, None)
        });
        assert!(!asked.contains(&look), "what is gone is not asked for again");
        asked.push(look);
    }
    assert_eq!(verdict(&view), "Paused");
    asked
}

// covers: 1.annotation.paused
#[test]
fn a_paused_claim_asks_for_what_an_earlier_read_missed_before_its_status_tells_that_it_is_gone() {
    let (given, missed, lost) = missed_while_paused();
    let mut found = lost.clone();
    for look in &missed {
        ask(&mut found, look, &given);
    }
    let status = told(&found);
    assert_eq!(status.access_key_id, given.claim.status.access_key_id);
    assert_eq!(status.bound_secret_name, given.claim.status.bound_secret_name);

    assert_eq!(asked_in_vain(lost.clone()), missed);
    let mut listed = lost.clone();
    listed.learn(given.answer(Look::Own));
    assert_eq!(asked_in_vain(listed), missed[2..], "a list tells of the internal ones");
    let mut deleted = lost;
    deleted.learn(Answer::Deleted(given.internal[&key_name(1)].reference(), None));
    let others = [missed[0].clone(), missed[2].clone()];
    assert_eq!(asked_in_vain(deleted), others, "nor is what this pass deleted or wrote asked for");
}

// covers: 1.annotation.paused
#[test]
fn what_an_earlier_read_missed_is_not_asked_for_where_that_is_refused_or_another_has_its_name() {
    let (_, missed, lost) = missed_while_paused();
    let mut refused = lost.clone();
    for look in &missed {
        assert_eq!(step(&refused), Step::Look(look.clone()));
        refused.learn(Answer::Failed(Step::Look(look.clone()), Failure::Refused("no right to".into())));
    }
    assert_eq!(verdict(&refused), "BackendError", "nor what can't be");
    let mut taken = lost;
    let of_another = BucketRecord { uid: ClaimUid::new("u-2"), ..record() };
    taken.learn(Answer::Internal(record().name().to_string(), Some(record_secret(&of_another))));
    assert_eq!(asked_in_vain(taken), missed[1..], "nor is what is another claim's by now");
}

// covers: 3.4.namespace
#[test]
fn only_the_claims_own_namespace_ends_all_when_it_goes() {
    let mut view = bound().read();
    let mut elsewhere = view.clone();
    elsewhere.learn(Answer::Failed(Step::Act(Act::Mint(facts(1))), Failure::NamespaceTerminating));
    let verdict = verdict(&elsewhere);
    assert_eq!(verdict, "BackendError", "where the operator keeps its Secrets, that is trouble like any other");
    view.learn(Answer::Consumer(CONSUMER.into(), None));
    let publish = step(&view);
    assert!(matches!(publish, Step::Act(Act::CreateConsumer(_))), "{publish}");
    view.learn(Answer::Failed(publish, Failure::NamespaceTerminating));
    let rest = step(&view);
    assert!(matches!(&rest, Step::Rest(rest) if rest.then == Then::AwaitChange), "{rest}");
}

/// The next probe judges an edit of a backend. Until then the edit counts as fine.
#[test]
fn an_edit_of_the_backend_alone_turns_no_bound_claim_not_ready() {
    let on_edited = |mut given: Given, was_ready: bool, endpoint: &str| {
        let endpoint = Endpoint::parse(endpoint).unwrap();
        let edit = |backend: &mut Backend| {
            (backend.ready, backend.was_ready, backend.endpoint) = (false, was_ready, endpoint);
        };
        given.backends.insert("main".into(), edited_backend(AdoptionPolicy::Owned, edit));
        given.read()
    };
    let view = on_edited(bound(), true, "http://s3.example");
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
    let elsewhere = on_edited(bound(), true, "http://elsewhere.example");
    assert_eq!(verdict(&elsewhere), "BackendNotReady", "it points to another store");
    let failing = on_edited(bound(), false, "http://s3.example");
    assert_eq!(verdict(&failing), "BackendNotReady", "the last probe failed");
    let new = on_edited(unbound(), true, "http://s3.example");
    assert_eq!(verdict(&new), "BackendNotReady", "nothing is begun on what nobody has looked at");
}

// covers: 3.5.wake.secret
#[test]
fn an_annotation_names_a_claim_only_as_what_its_label_is_short_for() {
    let named = |label: &str, annotation: &str| {
        let mut content = record().content(NAMESPACE);
        content.labels.insert(wire::CLAIM_NAME.into(), label.into());
        content.annotations.insert(wire::CLAIM_NAME.into(), annotation.into());
        stored(&content).claim().unwrap().name
    };
    assert_eq!(named("photos", "somebody-elses"), "photos");
    let long = "a".repeat(80);
    assert_eq!(named(&wire::label_value(&long), &long), long);
}
