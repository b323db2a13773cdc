//! Tests of I4: one bucket, one claim.

use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{Fault, ProcessFault};

use super::super::Promise;
use super::story::{By, Story, UID, empty_bucket, encode, key, record, tag};

#[test]
fn one_bucket_is_not_held_by_two_claims() {
    let mut story = Story::bound("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-2", record("another"));
    story.assert_broken(Promise::I4, "held by two claims");
}

#[test]
fn a_claim_without_the_bucket_gets_no_key() {
    let mut story = Story::new();
    story.make_claim("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "vc-akia1", key(1));
    story.assert_broken(Promise::I4, "does not hold");

    // Decided before another operator released the claim: a POST carries no such precondition.
    story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Twin)));
    story.assert_broken(Promise::I4, "does not hold");
    story.setting.operators = 2;
    story.assert_limit(Promise::I4);
}

#[test]
fn what_proves_a_bucket_that_was_there_is_not_its_tenants_to_write() {
    let mut found = Story::new();
    found.make_claim("Retain");
    found.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    found.bucket = Some(empty_bucket(found.now));
    found.s3("GetBucketTagging", |_| {});

    let mut story = found.clone();
    story.mint(1);
    story.assert_broken(Promise::I4, "was not made for its claim");

    let mut story = found.clone();
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["origin"] = encode("Adopted").into();
    });
    story.mint(1);
    story.assert_kept();

    let mut story = found.clone();
    tag(&mut story.bucket, UID);
    story.s3("GetBucketTagging", |_| {});
    story.mint(1);
    story.assert_kept();

    // A store without tagging may confirm the creation of a bucket that existed before.
    let mut story = found;
    let there = story.bucket.take();
    story.s3("GetBucketTagging", |_| {});
    story.bucket = there;
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["absence"] = encode("true").into();
    });
    story.mint(1);
    story.assert_limit(Promise::I4);
}

#[test]
fn a_key_is_not_made_while_another_claim_has_one_for_the_bucket() {
    let mut story = Story::bound("Retain");
    story.put(
        By::Other,
        "bucketclaims",
        "team-b",
        "photos",
        json!({"metadata": {"uid": "another", "namespace": "team-b", "name": "photos"}, "spec": {}}),
    );
    let mut other = key(2);
    other["data"]["claim_uid"] = encode("another").into();
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "vc-akia2", other);
    story.assert_broken(Promise::I4, "of another claim opens it");
}
