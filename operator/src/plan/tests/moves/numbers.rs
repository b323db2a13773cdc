//! Generation of the first key after a move, and generations that are skipped because they may have
//! been used.

use super::super::super::OwnerSeen;
use super::super::super::credentials::KeyHolder;
use super::*;

/// Answers that the new bucket exists and is tagged.
fn arrived(mut view: View) -> View {
    view.learn(Answer::Bucket(bucket_at(NEW), BucketSeen::Present(Some(tags(OURS)))));
    view.learn(Answer::Owner(bucket_at(NEW), OwnerSeen::Ours));
    view
}

/// Records that the pass has created this record.
fn made(mut view: View, record: BucketRecord) -> View {
    let stored = record_secret(&record);
    view.learn(Answer::RecordPosted(record, Posted::Stored(stored)));
    view
}

#[test]
fn the_first_key_for_the_new_bucket_is_minted_by_the_pass_that_aimed_at_it() {
    let mut given = sent_on();
    let aiming = arrived(made(given.read(), record_at(NEW, 2)));
    let Step::Act(Act::Mint(facts)) = step(&aiming) else { panic!("{}", step(&aiming)) };
    assert_eq!((facts.backend.as_str(), facts.generation), ("second", 2));
    given.put_record(NEW, 2);
    let mut view = arrived(given.read());
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    assert_eq!(change(&view), Change::RaiseGeneration(Trigger::Move));
}

#[test]
fn a_generation_that_a_rotation_has_passed_meanwhile_is_not_minted() {
    let mut given = sent_on();
    let mut view = arrived(made(given.read(), record_at(NEW, 2)));
    given.put_record(NEW, 2);
    given.put_record(OLD, 3);
    given.put_key(OLD, 3);
    given.take(&key_name(1));
    given.publish(OLD, 3);
    view.learn(given.answer(Look::Own));
    view.learn(given.answer(Look::Consumer(CONSUMER.into())));
    assert_eq!(patched(&view), (Change::RaiseGeneration(Trigger::Move), record_name(NEW)));
}

/// The request was handled for a key to the previous bucket, the annotation was removed since, and
/// that bucket's record was replaced.
#[test]
fn a_request_that_only_the_record_of_the_new_bucket_tells_of_raises_nothing() {
    let handled = BucketRecord { handled_rotate_request: Some("now".into()), ..record_at(NEW, 2) };
    let view = arrived(made(sent_on().read(), handled));
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
}

/// Both keys were deleted by hand. The record of the new bucket has generation 2, and lost its
/// labels.
#[test]
fn a_key_that_is_lost_while_a_claim_moves_is_not_replaced_by_one_of_the_number_that_the_move_aims_at() {
    let mut given = sent_on();
    given.take(&key_name(1));
    let raised_to = |given: &Given| {
        let mut view = given.read();
        for _ in 0..10 {
            match step(&view) {
                Step::Look(look) => view.learn(given.answer(look)),
                Step::Act(Act::Patch(patch)) if patch.change == Change::Repair => {
                    assert_eq!(patch.target.name, record_name(NEW), "its labels");
                    view.learn(Answer::Patched(patch.change, record_secret(&record_at(NEW, 2))));
                }
                Step::Act(Act::Patch(patch)) if patch.target.name == record_name(OLD) => {
                    return view.next_generation();
                }
                other => panic!("{other}"),
            }
        }
        panic!("no end")
    };
    assert_eq!(raised_to(&given), 2);
    given.put_record(NEW, 2);
    given.hide(&record_name(NEW));
    assert_eq!(raised_to(&given), 3);
}

// covers: 3.3.twoKeys
#[test]
fn nothing_is_minted_while_a_live_list_shows_a_key_besides_the_current_one() {
    let mut given = sent_on();
    given.put_record(OLD, 2);
    given.put_key(OLD, 2);
    given.publish(OLD, 2);
    let alone = {
        let mut given = given.clone();
        given.take(&key_name(1));
        given
    };
    let view = arrived(made(alone.read(), record_at(NEW, 3)));
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
    given.stamp(1);
    given.put_record(NEW, 3);
    // The cache has lost the expiring key.
    let mut view = arrived(made(alone.claim_read(), record_at(NEW, 3)));
    ask(&mut view, &Look::Own, &given);
    assert_eq!(verdict(&view), "BackendNotReady");
    assert_eq!(told(&view).phase, Some(Phase::Bound));
}

/// If the record of the old bucket is lost, that key would be taken for one to the new bucket.
#[test]
fn while_a_move_waits_its_record_aims_at_no_number_of_a_key_to_the_old_bucket() {
    let mut given = sent_on();
    given.put_record(OLD, 2);
    given.put_key(OLD, 2);
    given.publish(OLD, 2);
    given.stamp(1);
    given.put_record(NEW, 2);
    assert_eq!(patched(&given.read()), (Change::RaiseGeneration(Trigger::Move), record_name(NEW)));
    given.put_record(NEW, 3);
    assert_eq!(verdict(&given.read()), "BackendNotReady");

    // A bucket that the claim returns to is proved by its own key, so it would be the claim's at
    // once.
    given.put_record(NEW, 1);
    given.put_key(NEW, 1);
    given.stamp(1);
    assert_eq!(change(&given.read()), Change::Leave);
}

#[test]
fn a_key_of_a_later_generation_than_any_record_aims_at_is_passed_after_live_reads() {
    let mut given = bound();
    given.put_key(OLD, 4);
    let mut view = given.claim_read();
    ask(&mut view, &Look::Internal(record_name(OLD)), &given); // The record may be old,
    ask(&mut view, &Look::Internal(key_name(4)), &given); // and so may the key.
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let above = data_encoding::BASE64.encode(b"5");
    assert!(patch.json().to_string().contains(&above), "numbers are never used again");
}

/// A create request without an answer, whose record was released when `backendRef` was edited
/// again.
#[test]
fn a_key_between_the_number_of_the_record_and_that_of_a_move_is_passed() {
    let mut given = sent_on();
    given.put_record(NEW, 3);
    given.put_key(("third", "http://third.example"), 2);
    assert_eq!(patched(&given.read()), (Change::RaiseGeneration(Trigger::Repair), record_name(OLD)));
}

// covers: 3.3.consumer.neverBack
#[test]
fn a_consumer_secret_that_holds_a_later_credential_has_what_is_live_looked_at() {
    let mut given = bound();
    given.publish(OLD, 2);
    let mut view = doubting_what_is_published(&given);
    given.put_key(OLD, 2);
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let above = data_encoding::BASE64.encode(b"3");
    assert!(patch.json().to_string().contains(&above), "what was published is never used again, nor gone back from");
}
