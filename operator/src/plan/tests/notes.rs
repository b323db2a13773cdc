//! The annotation of another operator, and its effects.

use super::*;

fn another() -> ServedBy {
    ServedBy::operator("nobody", "nothing")
}

/// Returns a bound claim with the annotation of another operator.
fn disputed() -> Given {
    let mut given = bound();
    given.claim.served_by = Some(another());
    given
}

/// Returns a disputed claim whose S3Backend has the annotation as well.
fn handed_over() -> Given {
    let mut given = disputed();
    let seen = edited_backend(AdoptionPolicy::Owned, |backend| backend.served_by = Some(another()));
    given.backends.insert("main".into(), seen);
    given
}

fn silence() -> Rest {
    Rest { then: Then::AwaitChange, events: vec![], waits_for: None }
}

/// Runs passes until one rests or removes the finalizer. Each effect is carried out, and the
/// process restarts after each effect if `crashes`. Returns the effects in short form, and the end.
fn run(given: &mut Given, crashes: bool) -> (Vec<String>, Option<Rest>) {
    let (mut view, mut done) = (given.cached(), Vec::new());
    for _ in 0..100 {
        let answer = match step(&view) {
            Step::Look(look) => {
                view.learn(given.answer(look));
                continue;
            }
            Step::Act(Act::Delete(secret)) => {
                done.push(secret.name.chars().take(2).collect());
                given.delete(secret)
            }
            Step::Act(Act::AddFinalizer(_)) => {
                done.push("note".to_owned());
                given.claim.served_by = Some(view.setting().operator());
                Answer::FinalizerAdded(Box::new(given.claim.clone()))
            }
            Step::Act(Act::Patch(patch)) => {
                done.push(format!("{:?}", patch.change));
                return (done, None);
            }
            Step::Act(Act::RemoveFinalizer(_)) => {
                done.push("finalizer".to_owned());
                return (done, None);
            }
            Step::Rest(rest) => return (done, Some(rest)),
            Step::Act(other) => panic!("{other}"),
        };
        view.learn(answer);
        if crashes {
            view = given.cached();
        }
    }
    panic!("no end: {done:?}")
}

// covers: 1.claim.servedBy
#[test]
fn a_claim_without_secrets_here_is_left_alone() {
    for deleting in [false, true] {
        let mut given = unbound();
        given.claim.deleting = deleting;
        given.claim.served_by = Some(another());
        assert_eq!(step(&given.cached()), Step::Rest(silence()));
        given.claim.served_by = Some(given.cached().setting().operator());
        assert_ne!(step(&given.cached()), Step::Rest(silence()));
    }
}

// covers: 1.claim.servedBy.overruled, 1.ready.ServedByAnother
#[test]
fn a_note_beside_our_secrets_changes_nothing_and_is_told() {
    let mut view = disputed().read();
    let status = write_status(&mut view);
    assert_eq!(status.phase, Some(Phase::Bound));
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ServedByAnother"));
    assert!(ready.message.contains("nobody/nothing"), "{}", ready.message);
    assert!(status.conditions.iter().any(|it| it.type_ == "Stalled" && it.reason == ready.reason));
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(rest.events.iter().map(|it| (it.warning, &*it.reason)).collect::<Vec<_>>(), [(true, "ServedByAnother")]);
}

// covers: 1.claim.servedBy.overruled, 3.3.revoke.atOnce
#[test]
fn a_note_keeps_no_revocation_from_being_done() {
    for mut given in [disputed(), handed_over()] {
        given.claim.revoke_request = Some("leaked".into());
        assert_eq!(change(&given.claim_read()), Change::RaiseGeneration(Trigger::Revocation));
    }
}

// covers: 1.claim.servedBy.overruled
#[test]
fn a_note_keeps_no_consent_that_was_withdrawn() {
    let consent = (crate::api::NamespaceUid::new("n-1"), crate::api::Consent::full());
    for mut given in [disputed(), handed_over()] {
        given.put(record_secret(&BucketRecord { ending: false, accesses: [consent.clone()].into(), ..record() }));
        let mut view = given.asked(crate::plan::Asking::default());
        view.learn(live(&given.claim));
        assert_eq!(change(&view), Change::Consent);
    }
}

// covers: 1.claim.servedBy.overruled, 3.4.order
#[test]
fn a_deletion_notes_us_again_before_the_last_secret_goes() {
    for crashes in [false, true] {
        let mut given = disputed();
        given.claim.deleting = true;
        let (done, _) = run(&mut given, crashes);
        assert_eq!(done, ["vc", "ph", "note", "br", "finalizer"], "crashes: {crashes}");
        let mut given = disputed();
        given.claim.deleting = true;
        given.take(record().name().as_str());
        let (done, _) = run(&mut given, crashes);
        assert_eq!(done, ["note", "vc", "ph", "finalizer"], "without a record, crashes: {crashes}");
    }
}

// covers: 1.claim.servedBy.handedOver
#[test]
fn a_claim_that_was_handed_over_loses_its_keys_here_and_is_left_alone_else() {
    assert_eq!(step(&handed_over().cached()), Step::Rest(silence()));
    for crashes in [false, true] {
        let mut given = handed_over();
        given.claim.deleting = true;
        let (done, rest) = run(&mut given, crashes);
        assert_eq!((done, rest), (vec!["vc".to_owned()], Some(silence())), "crashes: {crashes}");
    }
    let mut view = handed_over().read();
    let failed = Step::Look(Look::Claim);
    view.learn(Answer::Failed(failed, Failure::Refused("no right to".into())));
    assert_eq!(step(&view), Step::Rest(silence()), "its status is the other's to write");
}
