//! Tests of revocations: what they excuse of I6 and I8, and how they can break I6, I7 and L3.

use seeded::VirtualClock;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::What;

use super::super::Promise;
use super::story::{By, Story, encode, key_name};

/// Returns a bound claim whose key has leaked and whose user requests a revocation.
fn asked() -> Story {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.change_claim(By::Other, |claim| {
        claim["metadata"]["annotations"]["broker.stowage.io/revoke"] = "leaked".into();
    });
    story
}

/// The record notes that keys up to this generation are revoked.
fn note(story: &mut Story, through: u32) {
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["generation"] = encode(&(through + 1).to_string()).into();
        record["data"]["revoked-through"] = encode(&through.to_string()).into();
        record["data"]["handled-revoke-request"] = encode("leaked").into();
    });
}

fn end(story: &mut Story, number: u32) {
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(number));
}

/// The next key is created, published and reported.
fn go_on(story: &mut Story, number: u32) {
    story.mint(number);
    story.publish(number);
    story.set_status(number);
}

#[test]
fn a_key_that_is_revoked_ends_before_its_time() {
    let mut story = asked();
    note(&mut story, 1);
    let mut kept = story.clone();
    end(&mut story, 1);
    go_on(&mut story, 2);
    story.note(What::AtRest);
    story.assert_kept();

    // If its Secret can't be deleted, it gets an expiry in the past.
    kept.stamp(1, 86_400);
    kept.stamp(1, -86_400);
    end(&mut kept, 1);
    go_on(&mut kept, 2);
    kept.assert_kept();
}

#[test]
fn nothing_is_revoked_that_nobody_asked_for() {
    let mut story = Story::bound("Retain");
    note(&mut story, 1);
    story.assert_broken(Promise::I6, "up to generation 1 are revoked, and nobody asked");
    let mut twice = asked();
    note(&mut twice, 1);
    end(&mut twice, 1);
    go_on(&mut twice, 2);
    twice.assert_kept();
    note(&mut twice, 2);
    twice.assert_broken(Promise::I6, "up to generation 2 are revoked, and nobody asked");
}

#[test]
fn a_key_above_those_that_are_revoked_keeps_its_time() {
    let mut story = asked();
    note(&mut story, 1);
    end(&mut story, 1);
    go_on(&mut story, 2);
    end(&mut story, 2);
    story.assert_broken(Promise::I6, "is revoked while its claim lives");
}

#[test]
fn no_key_is_made_beside_one_that_is_revoked() {
    let mut story = asked();
    note(&mut story, 1);
    story.mint(2);
    story.assert_broken(Promise::I7, "Secret vc-akia1, which is revoked, is still there");
    let mut other = asked();
    note(&mut other, 1);
    other.change(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1), |_| {});
    other.mint(2);
    other.assert_kept();
}

#[test]
fn at_rest_nothing_is_there_that_is_revoked() {
    let mut story = asked();
    note(&mut story, 1);
    story.note(What::AtRest);
    story.assert_broken_in_the_end(Promise::I7, "is revoked, and Secret vc-akia1 is still there");
}

/// A tenant uses its key, so that there is an event.
fn later(story: &mut Story, seconds: i64) {
    story.wait(seconds);
    story.used(1, true);
}

#[test]
fn a_revocation_does_not_come_late_whatever_the_claim_says() {
    let mut story = asked();
    story.change_claim(By::Operator, |claim| claim["status"]["conditions"][0]["status"] = "False".into());
    later(&mut story, 3600);
    story.assert_kept();
    story.get_claim();
    let began = story.now.duration_since(VirtualClock::epoch()).as_millis().try_into().expect("it is later");
    story.amend_last(|line| line.began_ms = began);
    later(&mut story, 60);
    story.assert_kept();
    let mut noted = story.clone();
    later(&mut story, 1);
    story.assert_broken(Promise::L3, "is not yet replaced, though \"leaked\" revokes it");
    note(&mut noted, 1);
    end(&mut noted, 1);
    noted.wait(10);
    noted.assert_kept();
}
