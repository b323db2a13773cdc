//! Revocation of all keys of a deleted claim, and its reports.

use std::collections::BTreeSet;

use super::*;

/// Returns a claim that is being deleted and has a second credential.
fn with_two_credentials() -> Given {
    let mut given = deleting();
    given.put(key_secret(&facts(2)));
    given
}

// covers: 1.credentialsProvisioned.Revoked, 4.event.Revoked
#[test]
fn that_credentials_are_revoked_is_told_once_none_is_left() {
    for refused in [true, false] {
        let mut given = with_two_credentials();
        let mut view = given.read();
        let status = loop {
            let answer = match step(&view) {
                Step::Look(look) => given.answer(look),
                Step::Act(Act::Delete(secret))
                    if secret.name.starts_with("vc-") && !(refused && view.revoked() == 1) =>
                {
                    given.delete(secret)
                }
                // The rest of the deletion is refused, which is reported as well.
                delete @ Step::Act(Act::Delete(_)) => Answer::Failed(delete, Failure::Refused("no right to".into())),
                Step::Act(Act::WriteStatus(..)) => break write_status(&mut view),
                other => panic!("{other}"),
            };
            view.learn(answer);
        };
        assert_eq!(status.conditions.iter().any(|condition| condition.reason == "Revoked"), !refused);
        let Step::Rest(rest) = step(&view) else { panic!("no rest") };
        assert_eq!(rest.events.iter().any(|event| event.reason == "Revoked"), !refused);
    }
}

// covers: 3.3.byName, 2.record.lowest
#[test]
fn a_deletion_looks_at_the_names_of_keys_from_the_lowest_that_may_be_there() {
    let mut given = deleting();
    given.internal.clear();
    given.put(record_secret(&BucketRecord { generation: 30_000, lowest: Some(29_999), ..record() }));
    let mut view = given.read();
    let mut asked = BTreeSet::new();
    while let Step::Look(look) = step(&view) {
        if let Look::Internal(name) = &look {
            asked.insert(name.clone());
        }
        view.learn(given.answer(look));
    }
    let keys: BTreeSet<String> = asked.into_iter().filter(|name| name.starts_with("vc-")).collect();
    assert_eq!(keys, BTreeSet::from([29_999, 30_000].map(key_name)));
}

// covers: 3.4.order
#[test]
fn a_deletion_goes_on_with_the_generations_that_no_pass_has_asked_for() {
    let mut given = deleting();
    given.internal.clear();
    given.put(record_secret(&BucketRecord { generation: 7, ..record() }));
    let mut view = given.read_after(Remembered { revoked_through: 4, ..Remembered::default() });
    let mut asked = Vec::new();
    while view.remembered().revoked_through < 7 {
        let Step::Look(look @ Look::Internal(_)) = step(&view) else { panic!("{}", step(&view)) };
        asked.push(look.clone());
        view.learn(given.answer(look));
    }
    let names = [key_name(5), key_name(6), key_name(7)];
    assert_eq!(asked, names.map(Look::Internal));
}

/// The key lost its labels, so no list shows it, and the first read by name was stale.
// covers: 3.4.live
#[test]
fn a_credential_that_one_read_did_not_find_is_found_before_the_claim_goes() {
    let mut given = with_two_credentials();
    given.hide(&key_name(1));
    assert_found_by_a_second_read(given, &key_name(1));
}

/// A crashed operator has deleted the record already, so the generation comes from the status.
// covers: 3.4.live
#[test]
fn a_credential_without_labels_is_found_by_an_operator_that_finds_no_record() {
    let mut given = deleting();
    given.claim.status.rotation_generation = Some(2);
    given.consumers.clear();
    given.internal.clear();
    given.put(unlabelled(&key_secret(&facts(2))));
    let mut view = given.cached();
    let deleted = loop {
        match step(&view) {
            Step::Look(look) => view.learn(given.answer(look)),
            Step::Act(Act::Delete(secret)) => break secret.name,
            other => panic!("{other}"),
        }
    };
    assert_eq!(deleted, key_name(2));
}

/// A record may have had a later generation than the credential in the status, and an older
/// credential may be the one without labels.
// covers: 3.4.live
#[test]
fn the_last_two_that_the_status_told_and_that_a_record_aimed_at_are_looked_for() {
    let mut given = deleting();
    given.claim.status.rotation_generation = Some(2);
    given.internal.clear();
    let asked_after = |lowest: Option<u64>| {
        let let_go = vec![LetGo { record: BucketRecord { generation: 7, lowest, ..record() }, gone: true }];
        let mut given = given.clone();
        given.consumers.clear();
        let mut view = given.begin(Remembered { let_go, ..Remembered::default() });
        let mut asked = BTreeSet::new();
        while let Step::Look(look) = step(&view) {
            if let Look::Internal(name) = &look
                && name.starts_with("vc-")
            {
                asked.insert(name.clone());
            }
            view.learn(given.answer(look));
        }
        asked
    };
    assert_eq!(asked_after(None), BTreeSet::from([1, 2, 6, 7].map(key_name)));
    assert_eq!(asked_after(Some(2)), BTreeSet::from([6, 7].map(key_name)), "the record told of the others");
}

/// Once the record is gone, only this number leads to a key without labels. So it stays in the
/// status of a claim that is being deleted, or whose key is lost.
// covers: 3.4.live, 1.status.rotationGeneration
#[test]
fn a_status_goes_on_telling_the_generation_when_the_credential_is_gone() {
    for goes in [true, false] {
        let mut given = bound();
        given.claim.deleting = goes;
        let told = |given: &Given| {
            let mut view = given.read();
            view.learn(Answer::Failed(Step::Look(Look::Own), Failure::Refused("no right to".into())));
            let status = told(&view);
            (status.access_key_id.is_some(), status.rotation_generation)
        };
        assert_eq!(told(&given), (true, Some(1)));
        given.take(&key_name(1));
        assert_eq!(told(&given), (false, Some(1)), "its key is gone");
        given.internal.clear();
        assert_eq!(told(&given), (false, Some(1)), "so is its record");
    }
}

/// The anonymous binding lost its labels.
// covers: 3.4.live
#[test]
fn a_binding_that_one_read_did_not_find_is_found_before_the_claim_goes() {
    let mut given = with_two_credentials();
    given.claim.desired.as_mut().expect("its spec can be read").anonymous = Some(5);
    given.put(record_secret(&BucketRecord { public: true, ..record() }));
    let hidden = record().binding_fixture(5);
    given.put(unlabelled(&stored(&hidden.content(NAMESPACE))));
    assert_found_by_a_second_read(given, &binding_name());
}

/// Asserts that a Secret without labels is deleted, although the first read by name does not find
/// it.
fn assert_found_by_a_second_read(mut given: Given, hidden: &str) {
    let mut view = given.cached();
    let (mut reads, mut deleted) = (0, Vec::new());
    loop {
        let answer = match step(&view) {
            Step::Look(Look::Internal(asked)) if asked == hidden => {
                reads += 1;
                if reads == 1 { Answer::Internal(asked, None) } else { given.answer(Look::Internal(asked)) }
            }
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Delete(secret)) => {
                deleted.push(secret.name.clone());
                given.delete(secret)
            }
            Step::Act(Act::RemoveFinalizer(_)) => break,
            other => panic!("{other}"),
        };
        view.learn(answer);
    }
    assert_eq!(deleted.iter().filter(|deleted| *deleted == hidden).count(), 1, "{deleted:?}");
    assert_eq!(reads, 2, "what was deleted is not asked for again");
}

// covers: 4.event.Revoked, 4.event.BucketRetained
#[test]
fn what_is_told_in_the_end_does_not_change_because_the_last_answer_came_late() {
    let mut given = with_two_credentials();
    let mut view = given.cached();
    loop {
        let answer = match step(&view) {
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Delete(secret)) => given.delete(secret),
            Step::Act(Act::RemoveFinalizer(_)) => break view.learn_late(Answer::FinalizerRemoved),
            other => panic!("{other}"),
        };
        view.learn(answer);
    }
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    let told: Vec<&str> = rest.events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(told, ["BucketRetained"], "that the claim is gone says that its credentials are");
}
