//! Tests of I6 and I7: the history of each key as tenants see it.

use std::time::Duration;

use serde_json::{Value, json};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::{Tried, What};

use super::super::Promise;
use super::story::{BUCKET, By, Story, encode, key, key_id, key_name};

/// Returns a story in which key 1 ends in two minutes.
fn ending() -> Story {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.ask_for_rotation();
    story.mint(2);
    story.publish(2);
    story.stamp(1, 120);
    story
}

#[test]
fn a_key_is_accepted_to_its_end_and_denied_from_then_on() {
    let mut story = ending();
    story.used(1, true);
    story.wait(119);
    story.used(1, true);
    story.wait(1);
    story.assert_kept();
    story.used(1, true);
    // The lag is no excuse: the operator set the end long ago.
    story.assert_broken(Promise::I7, "which is over");
}

#[test]
fn a_good_key_is_not_refused() {
    let mut story = ending();
    story.wait(119);
    story.used(1, false);
    story.assert_broken(Promise::I6, "which is good");
}

#[test]
fn who_reads_a_spoilt_key_is_refused() {
    let mut story = Story::bound("Retain");
    story.change(By::Other, "secrets", "team-a", "photos-s3", |secret| {
        secret["data"]["AWS_SECRET_ACCESS_KEY"] = encode("tampered").into();
    });
    story.wait(10);
    story.used(1, false);
    story.assert_kept();
}

#[test]
fn within_its_lag_the_gateway_may_do_either() {
    for allowed in [true, false] {
        let mut story = ending();
        story.wait(1);
        story.used(2, allowed);
        story.assert_kept();
        let mut story = Story::bound("Retain");
        story.wait(600);
        story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1));
        story.wait(2);
        story.used(1, allowed);
        story.assert_kept();
    }
}

#[test]
fn after_its_lag_the_gateway_knows() {
    let mut story = ending();
    story.wait(3);
    story.used(2, false);
    story.assert_broken(Promise::I6, "which is good");
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.wait(3);
    story.used(1, false);
    story.assert_kept();
    story.used(1, true);
    story.assert_broken(Promise::I7, "which is over");
}

/// Sets the endpoints of key 1's backend.
fn pointed(story: &mut Story, endpoint: &str, former: &[&str]) {
    let spec = json!({"endpoint": endpoint, "formerEndpoints": former});
    story.put(By::Other, "s3backends", "", "main", json!({"spec": spec}));
    story.wait(10);
}

#[test]
fn a_key_is_good_where_its_store_is_and_nowhere_else() {
    const HERE: &str = "http://s3.example:9000";
    const THERE: &str = "http://other.example";
    let at_a_store = || {
        let mut story = Story::bound("Retain");
        pointed(&mut story, HERE, &[]);
        story
    };
    let mut refused_there = at_a_store();
    pointed(&mut refused_there, THERE, &[]);
    let mut opened_there = refused_there.clone();
    refused_there.used(1, false);
    refused_there.assert_kept();
    opened_there.used(1, true);
    opened_there.assert_broken(Promise::I15, "at a store that it is not for");
    let mut moved = at_a_store();
    pointed(&mut moved, THERE, &[HERE]);
    let mut refused = moved.clone();
    moved.used(1, true);
    moved.assert_kept();
    refused.used(1, false);
    refused.assert_broken(Promise::I6, "which is good");
    let mut gone = at_a_store();
    gone.remove(By::Other, "s3backends", "", "main");
    gone.wait(10);
    gone.used(1, false);
    gone.assert_kept();
}

#[test]
fn a_key_that_is_made_notes_a_store_where_its_claim_holds_the_bucket() {
    for (endpoint, words) in [(None, "notes no store"), (Some("http://other.example"), "holds no bucket")] {
        let mut story = Story::bound("Retain");
        story.wait(600);
        story.ask_for_rotation();
        let mut made = key(2);
        made["data"]["endpoint"] = endpoint.map_or(Value::Null, |endpoint| encode(endpoint).into());
        story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2), made);
        story.assert_broken(Promise::I15, words);
    }
}

#[test]
fn a_key_that_never_was_opens_nothing() {
    let mut story = Story::bound("Retain");
    story.used(7, false);
    story.assert_kept();
    story.used(7, true);
    story.assert_broken(Promise::I7, "which is over");
}

#[test]
fn what_a_key_is_not_for_is_refused() {
    for allowed in [false, true] {
        let mut story = Story::bound("Retain");
        let (access_key_id, operation, bucket) = (key_id(1), "DeleteBucket".to_owned(), BUCKET.to_owned());
        story.note(What::Tried(Tried { access_key_id, operation, bucket, allowed }));
        if allowed {
            story.assert_broken(Promise::I15, "is let do DeleteBucket");
        } else {
            story.assert_kept();
        }
    }
}

/// Each gateway is judged by its own lag.
#[test]
fn a_gateway_that_is_late_may_be_so_and_no_other() {
    let mut story = ending();
    story.setting.further_lags = vec![Duration::ZERO, Duration::from_secs(20)];
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.wait(10);
    let mut first = story.clone();
    first.used_at(0, 1, true);
    first.assert_broken(Promise::I7, "which is over");
    story.used_at(1, 1, true);
    story.assert_kept();
    story.wait(15);
    story.used_at(1, 1, true);
    story.assert_broken(Promise::I7, "which is over");
}
