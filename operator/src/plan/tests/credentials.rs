//! Keys: creation and replacement.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::SecretPatch;
use super::*;

// covers: 2.credential.once, 3.live.credential, 3.3.target.gone
#[test]
fn a_generation_is_minted_only_by_the_pass_that_made_it_the_target() {
    let mut aiming = just_held();
    find_ours(&mut aiming);
    assert!(matches!(step(&aiming), Step::Act(Act::Mint(_))));
    let given = holding(|_| {});
    let mut view = given.read();
    find_ours(&mut view);
    ask(&mut view, &Look::Internal(key_name(1)), &given); // A cache is no proof of absence,
    ask(&mut view, &Look::Internal(key_name(1)), &given); // nor is one read.
    assert_eq!(change(&view), Change::RaiseGeneration(Trigger::Repair));
}

// covers: 2.credential.once
/// Somebody deleted the key before the pass that created it was over.
#[test]
fn what_a_pass_has_minted_it_does_not_mint_again() {
    let given = holding(|_| {});
    let mut view = just_held();
    find_ours(&mut view);
    let Step::Act(Act::Mint(facts)) = step(&view) else { panic!("{}", step(&view)) };
    let minted = key_secret(&facts);
    view.learn(Answer::CredentialPosted(facts, Posted::Stored(minted)));
    view.learn(given.answer(Look::Own));
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    assert_eq!(change(&view), Change::RaiseGeneration(Trigger::Repair));
}

// covers: 2.internal.damaged
#[test]
fn a_damaged_credential_is_not_overwritten() {
    let mut given = holding(|_| {});
    given.put(edited(&key_secret(&facts(1)), |secret| {
        secret.data.get_or_insert_default().remove("secret_access_key");
    }));
    assert_eq!(verdict(&given.read()), "CreationInconsistent");
}

// covers: 3.3.damaged
#[test]
fn a_damaged_or_missing_target_is_replaced_while_a_lower_key_lives_the_damaged_one_on_request_only() {
    let mut given = bound();
    given.put(record_secret(&BucketRecord { generation: 2, ..record() }));
    given.put(edited(&key_secret(&facts(2)), |secret| {
        secret.data.get_or_insert_default().remove("secret_access_key");
    }));
    assert_eq!(verdict(&given.read()), "CreationInconsistent");
    given.claim.rotate_request = Some("now".into());
    assert_eq!(change(&given.read()), Change::RaiseGeneration(Trigger::Request));
    given.claim.rotate_request = None;
    given.take(&key_name(2));
    let mut view = given.read();
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    assert_eq!(change(&view), Change::RaiseGeneration(Trigger::Repair));
}

#[test]
fn a_stamp_at_the_end_of_time_is_waited_for_like_any_other() {
    let mut given = bound();
    given.put(expiring(&key_secret(&facts(1)), &Timestamp::MAX.to_string()));
    given.put(record_secret(&BucketRecord { generation: 2, ..record() }));
    given.put(key_secret(&facts(2)));
    given.put_consumer(consumer_secret(&facts(2)));
    let mut view = given.read();
    write_status(&mut view);
    let Step::Rest(rest) = step(&view) else { panic!("{}", step(&view)) };
    assert!(matches!(rest.then, Then::After(_)), "{:?}", rest.then);
}

/// Returns a bound claim with an old credential and a rotate request.
fn asked() -> (Given, Timestamp) {
    let mut given = bound();
    given.claim.rotate_request = Some("now".into());
    given.put(edited(&key_secret(&facts(1)), |secret| {
        secret.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    }));
    (given, Timestamp::from_second(3600).unwrap())
}

// covers: 3.3.request.live, 3.3.twoKeys, 3.3.onePatch
#[test]
fn a_rotation_is_planned_on_a_claim_read_live_and_begins_with_one_patch() {
    let (given, now) = asked();
    let mut view = given.cached();
    assert_eq!(next(&view, now), Step::Look(Look::Claim), "an old list would ask twice");
    view.learn(given.answer(Look::Claim));
    let step = next(&view, now);
    let Step::Act(Act::Patch(patch)) = &step else { panic!("{step}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Request));
    let raised = BucketRecord { generation: 2, handled_rotate_request: Some("now".into()), ..record() };
    view.learn(Answer::Patched(patch.change, record_secret(&raised)));
    let Step::Act(Act::Mint(minted)) = next(&view, now) else { panic!("the same pass mints it") };
    assert_eq!(minted.generation, 2);
}

/// Returns a claim at this generation with a rotate request.
fn asked_at(generation: u64, lowest: Option<u64>) -> (Given, Timestamp) {
    let (mut given, now) = asked();
    given.take(&key_name(1));
    given.put(record_secret(&BucketRecord { generation, lowest, ..record() }));
    given.put(edited(&key_secret(&facts(generation)), |secret| {
        secret.metadata.creation_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    }));
    given.put_consumer(consumer_secret(&facts(generation)));
    (given, now)
}

/// Returns the queries before a rotation, and the patch that starts it.
fn begin_rotation(given: &Given, now: Timestamp) -> (Vec<Look>, SecretPatch) {
    let (mut view, mut asked) = (given.claim_read(), Vec::new());
    loop {
        match next(&view, now) {
            Step::Look(look) => {
                asked.push(look.clone());
                view.learn(given.answer(look));
            }
            Step::Act(Act::Patch(patch)) => return (asked, patch),
            other => panic!("{other}"),
        }
    }
}

// covers: 3.3.twoKeys, 3.3.byName, 2.record.lowest
#[test]
fn before_a_rotation_the_names_of_lower_keys_are_looked_at_from_the_lowest_that_may_be_there() {
    let (given, now) = asked_at(7, Some(5));
    let (asked, patch) = begin_rotation(&given, now);
    assert_eq!(asked, [5, 6].map(|it| Look::Internal(key_name(it))));
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Request));
    let noted = data_encoding::BASE64.encode(b"7");
    assert!(patch.json().to_string().contains(&noted), "and nobody looks for those again: {}", patch.json());
    // A key that no list shows.
    let mut hidden = given;
    hidden.put(unlabelled(&expiring(&key_secret(&facts(6)), "2030-01-01T00:00:00Z")));
    assert_eq!(begin_rotation(&hidden, now).1.change, Change::Retire, "at most two keys");
}

// covers: 3.3.byName, 2.record.lowest
#[test]
fn of_a_record_of_an_older_version_all_names_are_looked_at_once_and_how_far_that_came_is_noted() {
    let (given, now) = asked_at(3, None);
    let (asked, patch) = begin_rotation(&given, now);
    assert_eq!(asked[0], Look::Own);
    assert!([1, 2].iter().all(|it| asked.contains(&Look::Internal(key_name(*it)))), "{asked:?}");
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Request));
    let (given, now) = asked_at(20_000, None);
    let (asked, patch) = begin_rotation(&given, now);
    assert!((1000..1100).contains(&asked.len()), "{}", asked.len());
    assert_eq!(patch.change, Change::NoteLowest);
    assert!(patch.json().to_string().contains(&data_encoding::BASE64.encode(b"1001")), "{}", patch.json());
}

// covers: 3.3.target.found
#[test]
fn a_target_that_only_a_live_read_finds_is_used() {
    let given = bound();
    let mut behind = given.clone();
    behind.take(&key_name(1));
    let mut view = behind.read();
    find_ours(&mut view);
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    assert!(matches!(step(&view), Step::Rest(_) | Step::Act(Act::WriteStatus(..))), "no other one is made");
}

/// A read by name may be stale.
#[test]
fn a_key_that_is_gone_is_passed_once_a_second_read_does_not_find_it_either() {
    let given = bound();
    let mut without = given.clone();
    without.take(&key_name(1));
    let mut view = without.claim_read();
    ask(&mut view, &Look::Internal(key_name(1)), &without);
    ask(&mut view, &Look::Internal(record().name().to_string()), &given);
    let mut gone = view.clone();
    ask(&mut gone, &Look::Internal(key_name(1)), &without);
    let Step::Act(Act::Patch(patch)) = step(&gone) else { panic!("{}", step(&gone)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let noted = patch.json().to_string().contains(&data_encoding::BASE64.encode(b"true"));
    assert!(noted, "that the claim was bound no key tells any more, and the status does not know the new number");
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
}

/// The read after the POST may be stale.
#[test]
fn a_key_whose_name_a_post_found_taken_is_looked_for_twice() {
    let mut given = holding(|_| {});
    let mut view = just_held();
    find_ours(&mut view);
    let Step::Act(Act::Mint(facts)) = step(&view) else { panic!("{}", step(&view)) };
    view.learn(Answer::CredentialPosted(facts.clone(), Posted::NameTaken));
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    given.put(key_secret(&facts));
    ask(&mut view, &Look::Internal(key_name(1)), &given); // No other number is aimed at yet.
    assert!(matches!(step(&view), Step::Act(Act::CreateConsumer(_))), "it is used: {}", step(&view));
}

/// A Secret with such a name is, for example, a backup copy. A pass that took it for the key of a
/// later generation would never end.
#[test]
fn a_secret_under_a_name_of_no_generation_is_told_of() {
    let mut given = bound();
    given.put(edited(&key_secret(&facts(1)), |secret| {
        secret.metadata.name = Some(format!("{}-backup", key_name(1)));
    }));
    assert_eq!(verdict(&given.read()), "CreationInconsistent");
}

/// Another operator may have bumped the generation meanwhile.
// covers: 3.live.doubt, 2.record.another
#[test]
fn after_a_slow_answer_a_key_is_made_by_what_the_record_aims_at_now() {
    let given = holding(|_| {});
    let mut view = just_held();
    find_ours(&mut view);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))));
    view.learn_slow(live(&given.claim));
    let mut alone = view.clone();
    let look = Look::Internal(record().name().to_string());
    ask(&mut alone, &look, &given);
    assert!(matches!(step(&alone), Step::Act(Act::Mint(_))), "it is slow, not wrong");
    let mut moving = view.clone();
    ask(&mut moving, &look, &holding(|record| record.another = true));
    assert_eq!(step(&moving), Step::Look(Look::Own), "the record does not tell of all");
    ask(&mut view, &look, &holding(|record| record.generation = 2));
    assert!(!matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
}

/// While this operator was stalled, another one may have continued with the same data.
#[test]
fn what_was_read_before_a_late_answer_is_read_again_before_a_key_is_published_or_passed() {
    let given = bound();
    let mut publishing = given.read();
    publishing.learn(Answer::Consumer(CONSUMER.into(), None));
    let without_key = holding(|_| {});
    let mut passing = without_key.read();
    find_ours(&mut passing);
    ask(&mut passing, &Look::Internal(key_name(1)), &without_key);
    ask(&mut passing, &Look::Internal(key_name(1)), &without_key);
    for (mut view, given) in [(publishing, given), (passing, without_key)] {
        let planned = step(&view);
        assert!(matches!(planned, Step::Act(Act::CreateConsumer(_) | Act::Patch(_))), "{planned}");
        view.learn_late(live(&given.claim));
        ask(&mut view, &Look::Claim, &given);
        ask(&mut view, &Look::Internal(key_name(1)), &given);
        while let Step::Look(look @ Look::Internal(_)) = step(&view) {
            view.learn(given.answer(look));
        }
        assert_eq!(step(&view), planned);
    }
}
