//! Tests of I5 to I10, and of the scope of I15.

use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{Fault, KubeVerb, ProcessFault};
use stowage_world::history::What;

use super::super::Promise;
use super::story::{By, Story, consumer, encode, key, key_name};

/// Returns a correct rotation from key 1 to key 2, up to the expiry of key 1.
fn rotated() -> Story {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.ask_for_rotation();
    story.mint(2);
    story.publish(2);
    story.stamp(1, 60);
    story.set_status(2);
    story
}

#[test]
fn a_rotation_with_its_overlap_breaks_nothing() {
    let mut story = rotated();
    story.wait(120);
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.note(What::AtRest);
    story.assert_kept();
}

#[test]
fn a_third_key_is_one_too_many() {
    let mut story = rotated();
    story.mint(3);
    story.assert_broken(Promise::I5, "3 live keys");
    let mut story = rotated();
    story.change(By::Other, "secrets", "team-a", "photos-s3", |secret| secret["data"] = json!({}));
    story.mint(3);
    story.assert_kept();
}

#[test]
fn what_the_cluster_takes_of_a_claim_that_goes_excuses_no_third_key() {
    let mut story = rotated();
    story.begin_deletion();
    story.remove(By::Other, "secrets", "team-a", "photos-s3");
    story.assert_kept();
    story.mint(3);
    story.assert_broken(Promise::I5, "3 live keys");
}

#[test]
fn at_rest_a_bound_claim_has_one_key_without_an_end() {
    let mut story = Story::bound("Retain");
    story.mint(2);
    story.note(What::AtRest);
    story.assert_broken_in_the_end(Promise::I5, "2 keys without an end");
}

#[test]
fn a_published_key_is_not_revoked_before_its_end_and_a_minute() {
    let mut story = rotated();
    story.wait(119);
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.assert_broken(Promise::I6, "is revoked while its claim lives");
    let mut story = Story::bound("Retain");
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.assert_broken(Promise::I6, "it has no end");
}

#[test]
fn a_key_is_not_made_useless() {
    let mut story = Story::bound("Retain");
    story
        .change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), |key| key["metadata"]["labels"] = json!({}));
    story.assert_broken(Promise::I6, "so that the gateway refuses it");
}

#[test]
fn a_key_gets_no_end_while_it_is_published() {
    let mut story = Story::bound("Retain");
    story.mint(2);
    story.stamp(1, 600);
    story.assert_broken(Promise::I6, "while Secret team-a/photos-s3 holds it");

    // An operator that is behind publishes it under the former name: with two operators that is a
    // limit.
    let mut alone = Story::bound("Retain");
    alone.change_claim(By::Other, |claim| claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "renamed"}));
    alone.mint(2);
    let mut two = alone.clone();
    alone.stamp(1, 600);
    alone.assert_broken(Promise::I6, "while Secret team-a/photos-s3 holds it");
    two.setting.operators = 2;
    let mut behind = two.clone();
    behind.stamp(1, 600);
    behind.assert_broken(Promise::I6, "while Secret team-a/photos-s3 holds it");
    let mut both = two.clone();
    both.put(By::Operator, "secrets", "team-a", "renamed", consumer(1));
    both.stamp(1, 600);
    both.by_another();
    both.assert_broken(Promise::I6, "while Secret team-a/renamed holds it");
    two.stamp(1, 600);
    two.by_another();
    two.assert_limit(Promise::I6);
}

#[test]
fn a_claims_secret_is_not_given_another_claims_key() {
    let mut story = Story::bound("Retain");
    let mut others = key(2);
    others["data"]["claim_uid"] = encode("another").into();
    story.put(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(2), others);
    story.publish(2);
    story.assert_broken(Promise::I13, "which is another claim's");
}

#[test]
fn a_key_on_its_way_out_is_not_published_again() {
    let mut story = rotated();
    let mut two = story.clone();
    story.publish(1);
    story.assert_broken(Promise::I6, "on its way out");

    // An operator that is behind does so under the former name: with two operators that is a limit.
    two.change_claim(By::Other, |claim| claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "other"}));
    let mut alone = two.clone();
    alone.publish(1);
    alone.assert_broken(Promise::I6, "on its way out");
    two.setting.operators = 2;
    let mut same = two.clone();
    same.publish(1);
    same.assert_broken(Promise::I6, "on its way out");
    two.publish(1);
    two.by_another();
    two.assert_limit(Promise::I6);
}

#[test]
fn the_only_consumer_secret_is_not_deleted() {
    let mut story = Story::bound("Retain");
    story.remove(By::Operator, "secrets", "team-a", "photos-s3");
    story.assert_broken(Promise::I6, "no other holds a key that works");
}

#[test]
fn no_key_outlives_its_claim() {
    let mut story = Story::bound("Retain");
    story.begin_deletion();
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    story.assert_broken(Promise::I7, "Secret vc-akia1 is still there");
    story.mint(2);
    story.assert_broken(Promise::I7, "which is gone");
}

#[test]
fn nothing_tells_of_a_key_where_its_record_was_deleted_or_hidden_before_the_status_told() {
    let unlabelled = |story: &mut Story, name: &str| {
        story.change(By::Other, "secrets", OPERATOR_NAMESPACE, name, |secret| secret["metadata"]["labels"] = json!({}));
    };
    let untold = |story: &mut Story| story.change_claim(By::Other, |claim| claim["status"] = json!({}));
    let let_go = |story: &mut Story| {
        story.begin_deletion();
        story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    };

    let mut hidden = Story::bound("Retain");
    unlabelled(&mut hidden, &key_name(1));
    unlabelled(&mut hidden, "br-1");
    untold(&mut hidden);
    let_go(&mut hidden);
    hidden.assert_broken(Promise::I7, "Secret vc-akia1 is still there");
    let mut before_status = Story::bound("Retain");
    untold(&mut before_status);
    unlabelled(&mut before_status, &key_name(1));
    unlabelled(&mut before_status, "br-1");
    let_go(&mut before_status);
    before_status.assert_limits(&[Promise::I7, Promise::I12, Promise::I12]);

    let mut deleted = Story::bound("Retain");
    deleted.remove(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1");
    let mut labelled = deleted.clone();
    let_go(&mut labelled);
    labelled.assert_broken(Promise::I7, "Secret vc-akia1 is still there");
    unlabelled(&mut deleted, &key_name(1));
    let mut told = deleted.clone();
    told.change_claim(By::Operator, |claim| claim["status"] = json!({"rotationGeneration": 1}));
    let_go(&mut told);
    told.assert_broken(Promise::I7, "Secret vc-akia1 is still there");
    untold(&mut deleted);
    let_go(&mut deleted);
    deleted.assert_limits(&[Promise::I7, Promise::I12]);
}

#[test]
fn at_rest_a_claim_that_is_being_deleted_has_no_key() {
    let mut story = Story::bound("Delete");
    story.begin_deletion();
    story.note(What::AtRest);
    story.assert_broken_in_the_end(Promise::I7, "Secret vc-akia1 is still there");
}

#[test]
fn an_end_moves_neither_earlier_nor_away() {
    let mut story = rotated();
    story.stamp(1, 59);
    story.assert_broken(Promise::I8, "moves from");
    let mut story = rotated();
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), |key| {
        key["metadata"]["annotations"] = json!({});
    });
    story.assert_broken(Promise::I8, "vanishes");
    let mut story = rotated();
    story.change(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1), |key| {
        key["metadata"]["annotations"]["broker.stowage.io/expires-at"] = "soon".into();
    });
    story.stamp(1, 600);
    story.assert_broken(Promise::I8, "a damaged end");
}

#[test]
fn an_end_is_the_overlap_after_the_switch() {
    let mut story = Story::bound("Retain");
    story.mint(2);
    story.publish(2);
    story.wait(10);
    // Counted from the time before the switch.
    story.stamp(1, 49);
    story.assert_broken(Promise::I8, "sooner than 60 s after");
}

#[test]
fn what_is_published_is_a_key_that_works() {
    let mut story = Story::bound("Retain");
    story.publish(2);
    story.assert_broken(Promise::I9, "never made");
    let mut story = rotated();
    story.wait(300);
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.publish(1);
    story.assert_broken(Promise::I9, "does not work");
    let mut story = Story::bound("Retain");
    story.mint(2);
    let mut other = consumer(2);
    other["data"]["BUCKET_NAME"] = encode("other").into();
    story.put(By::Operator, "secrets", "team-a", "photos-s3", other);
    story.assert_broken(Promise::I9, "for bucket other");
}

#[test]
fn a_key_that_ended_while_one_of_two_operators_stood_still_is_published_at_a_limit() {
    // Reads the key, is paused, and publishes it after the other operator has processed the claim's
    // deletion.
    let late = |operators, stopped: bool, then: fn(&mut Story)| {
        let mut story = Story::bound("Retain");
        story.setting.operators = operators;
        story.mint(2);
        story.get_key(2);
        story.read(KubeVerb::Get, 0);
        if stopped {
            story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Twin)));
        }
        story.begin_deletion();
        story.end_accesses();
        if operators > 1 {
            story.by_another();
        }
        story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2));
        if operators > 1 {
            story.by_another();
        }
        then(&mut story);
        story.publish(2);
        story
    };
    late(2, true, |_| {}).assert_limit(Promise::I9);
    late(2, false, |_| {}).assert_broken(Promise::I9, "does not work");
    late(1, true, |_| {}).assert_broken(Promise::I9, "does not work");
    // After the pause it trusted its former knowledge.
    late(2, true, |story| story.get_key(2)).assert_broken(Promise::I9, "does not work");
    late(2, true, Story::get_claim).assert_broken(Promise::I9, "does not work");
}

#[test]
fn a_key_that_one_of_two_operators_made_and_deleted_is_made_again_at_a_limit() {
    // Is paused before it creates the key, and creates it after the other operator has created it
    // and processed the claim's deletion.
    let late = |operators, stopped: bool, goes: bool, by| {
        let mut story = Story::bound("Retain");
        story.setting.operators = operators;
        story.get_key(2);
        if stopped {
            story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Twin)));
        }
        let sent = story.calls();
        story.mint(2);
        if operators > 1 {
            story.by_another();
        }
        if goes {
            story.begin_deletion();
            story.end_accesses();
        }
        story.remove(by, "secrets", OPERATOR_NAMESPACE, &key_name(2));
        let mut again = key(2);
        again["data"]["secret_access_key"] = encode("secret-of-key-9-in-full").into();
        story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2), again);
        story.came_of(sent);
        story
    };
    late(2, true, true, By::Operator).assert_limit(Promise::I10);
    late(2, false, true, By::Operator).assert_broken(Promise::I10, "a second time");
    late(1, true, true, By::Operator).assert_broken(Promise::I10, "a second time");
    late(2, true, false, By::Operator).assert_broken(Promise::I10, "a second time");
    late(2, true, true, By::Other).assert_broken(Promise::I10, "a second time");
}

#[test]
fn an_id_has_one_secret() {
    let torn = || {
        let mut torn = consumer(2);
        torn["data"]["AWS_SECRET_ACCESS_KEY"] = encode("secret-of-key-1-in-full").into();
        torn
    };
    let mut story = Story::bound("Retain");
    story.mint(2);
    story.put(By::Operator, "secrets", "team-a", "photos-s3", torn());
    story.assert_broken(Promise::I10, "with another secret than its own");

    let mut again = key(1);
    again["data"]["secret_access_key"] = encode("secret-of-key-9-in-full").into();
    let mut story = Story::bound("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), again.clone());
    story.assert_broken(Promise::I10, "is overwritten");
    let mut story = Story::bound("Retain");
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), again);
    story.assert_broken(Promise::I10, "a second time");
}

#[test]
fn a_key_opens_its_bucket_alone() {
    let wide = || {
        let mut wide = key(2);
        let scopes = json!([{"bucket": "team-a-photos", "backend": "main"}, {"bucket": "other", "backend": "main"}]);
        wide["data"]["bucket_scopes"] = encode(&scopes.to_string()).into();
        wide
    };
    let mut story = Story::bound("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2), wide());
    story.assert_broken(Promise::I15, "a scope that is not bucket team-a-photos");
    let mut story = Story::bound("Retain");
    story.mint(2);
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2), wide());
    story.assert_broken(Promise::I15, "gets a scope");
}
