//! Which generation the key of a claim that moves gets, and what is passed because somebody may
//! have used it.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;

/// A view in which the new bucket is there and tagged, seen in this pass.
fn arrived() -> View {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    let held = held(&view);
    view.bucket_at = Some(crate::plan::bind::target(&held));
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    view
}

#[test]
fn the_first_key_for_the_new_bucket_is_minted_by_the_pass_that_aimed_at_it() {
    let mut view = arrived();
    view.own_target = Some(2);
    let Step::Act(Act::Mint(facts)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((facts.backend.as_str(), facts.generation), ("second", 2));
    view.own_target = None;
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Internal(_))), "{look}");
    view.learn(&look, Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Move));
}

#[test]
fn a_generation_that_a_rotation_has_passed_meanwhile_is_not_minted() {
    let mut view = arrived();
    put_record(&mut view, OLD, 3);
    put_key(&mut view, OLD, 3);
    remove_key(&mut view, 1);
    publish(&mut view, OLD, 3);
    view.own_target = Some(2);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Move));
    assert_eq!(patch.target.name, held(&view).name().to_string());
}

/// It was handled for a key to the bucket before, the annotation was taken away since, and the
/// record of that bucket is another now.
#[test]
fn a_request_that_only_the_record_of_the_new_bucket_tells_of_raises_nothing() {
    let mut view = arrived();
    let handled = BucketRecord { handled_rotate_request: Some("now".into()), ..held(&view) };
    put(&mut view, stored(&handled.content(NAMESPACE)));
    view.own_target = Some(2);
    let minted = step(&view);
    assert!(matches!(minted, Step::Act(Act::Mint(_))), "{minted}");
}

/// Both keys were deleted by hand, and the labels taken off the record of the new bucket, which
/// aims at the second.
#[test]
fn a_key_that_is_lost_while_a_claim_moves_is_not_replaced_by_one_of_the_number_that_the_move_aims_at() {
    let mut view = sent_on();
    remove_key(&mut view, 1);
    let old = record(&view);
    put_record(&mut view, NEW, 2);
    let hidden = held(&view).name().to_string();
    let taken_off = view.own.remove(&hidden);
    let found = |known: Option<Stored>| {
        let mut view = view.clone();
        for _ in 0..10 {
            let step = step(&view);
            let answer = match &step {
                Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
                Step::Look(Look::Internal(name)) if *name == hidden => Answer::Secret(known.clone()),
                Step::Look(Look::Internal(_)) => Answer::Secret(None),
                Step::Act(Act::Patch(patch)) if patch.target.name == old.name().to_string() => {
                    return view.next_generation();
                }
                other => panic!("{other}"),
            };
            view.learn(&step, answer);
        }
        panic!("no end")
    };
    assert_eq!(found(taken_off), 3);
    assert_eq!(found(None), 2);
}

// covers: 3.3.twoKeys
#[test]
fn nothing_is_minted_while_a_live_list_shows_a_key_besides_the_current_one() {
    let mut view = arrived();
    put_record(&mut view, OLD, 2);
    put_record(&mut view, NEW, 3);
    put_key(&mut view, OLD, 2);
    publish(&mut view, OLD, 2);
    stamp(&mut view, 1);
    let live = view.own.values().cloned().collect();
    // The cache has lost the key on its way out.
    remove_key(&mut view, 1);
    view.own_target = Some(3);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
    view.own_lists = 0;
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Own));
    view.learn(&look, Answer::Secrets(live));
    assert_eq!(verdict(&view), "BackendNotReady");
    let Step::Act(Act::WriteStatus(_, status)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(status.phase, Some(crate::api::Phase::Bound));
}

/// Should the record of the old bucket be lost, that key would pass for one to the new bucket.
#[test]
fn while_a_move_waits_its_record_aims_at_no_number_of_a_key_to_the_old_bucket() {
    let mut view = sent_on();
    put_record(&mut view, OLD, 2);
    put_key(&mut view, OLD, 2);
    publish(&mut view, OLD, 2);
    stamp(&mut view, 1);
    put_record(&mut view, NEW, 2);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(
        (patch.change, patch.target.name),
        (Change::RaiseGeneration(Trigger::Move), held(&view).name().to_string())
    );
    put_record(&mut view, NEW, 3);
    assert_eq!(verdict(&view), "BackendNotReady");

    // One that the claim comes back to is proved by its own key, and would be the claim's at once.
    put_record(&mut view, NEW, 1);
    put_key(&mut view, NEW, 1);
    stamp(&mut view, 1);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::Leave);
}

#[test]
fn a_key_of_a_later_generation_than_any_record_aims_at_is_passed_after_a_live_list() {
    let mut view = bound();
    put_key(&mut view, OLD, 4);
    view.own_lists = 0;
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Own), "the record may be old");
    view.learn(&look, Answer::Secrets(view.own.values().cloned().collect()));
    let raise = step(&view);
    let Step::Act(Act::Patch(patch)) = &raise else { panic!("{raise}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    assert!(
        format!("{:?}", patch.json()).contains(&data_encoding::BASE64.encode(b"5")),
        "numbers are never used again"
    );
}

/// A mint without an answer, whose record was let go of when the claim was sent on.
#[test]
fn a_key_between_the_number_of_the_record_and_that_of_a_move_is_passed() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 3);
    let mut stray = view.clone();
    put_key(&mut stray, ("third", "team-a-photos"), 2);
    let Step::Act(Act::Patch(patch)) = step(&stray) else { panic!("{}", step(&stray)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    assert_eq!(patch.target.name, record(&view).name().to_string());
}

// covers: 3.3.consumer.neverBack
#[test]
fn a_consumer_secret_that_holds_a_later_credential_has_what_is_live_looked_at() {
    let mut view = bound();
    publish(&mut view, OLD, 2);
    look_at_all_that_is_live(&mut view);
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    learn_live(&mut view, &Look::Internal(key), Answer::Secret(None));
    let raise = step(&view);
    let Step::Act(Act::Patch(patch)) = &raise else { panic!("{raise}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let above = data_encoding::BASE64.encode(b"3");
    assert!(patch.json().to_string().contains(&above), "what was published is never used again, nor gone back from");
}

/// Each edit of a tenant would have another key made otherwise.
#[test]
fn a_later_generation_that_nobody_has_a_key_of_is_passed_a_minute_after_the_last_key() {
    let mut view = bound();
    publish(&mut view, OLD, 2);
    look_at_all_that_is_live(&mut view);
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    learn_live(&mut view, &Look::Internal(key), Answer::Secret(None));
    let made = |view: &mut View, ago: i64| {
        let name = AccessKeyId::of(&view.claim.uid, 1).secret_name();
        let secret = Arc::make_mut(&mut view.own.get_mut(&name).unwrap().0);
        secret.metadata.creation_timestamp = Some(Time(Timestamp::from_second(-ago).unwrap()));
    };
    made(&mut view, 10);
    let rest = step(&view);
    assert!(matches!(&rest, Step::Rest(rest) if rest.then == Then::Wait(Duration::from_secs(50))), "{rest}");
    let mut third = view.clone();
    put_key(&mut third, OLD, 4);
    put_record(&mut third, OLD, 4);
    publish(&mut third, OLD, 5);
    let key = AccessKeyId::of(&view.claim.uid, 5).secret_name();
    learn_live(&mut third, &Look::Internal(key), Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&third) else { panic!("{}", step(&third)) };
    assert_eq!(patch.change, Change::Repair, "with two keys none is made for what a tenant writes");
    made(&mut view, -10);
    assert!(matches!(step(&view), Step::Act(Act::Patch(_))), "nothing waits for a clock that is behind");
    made(&mut view, 60);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
}
