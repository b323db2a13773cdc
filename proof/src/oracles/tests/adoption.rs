//! Tests of I4: a bucket is taken over only if it may be.

use std::collections::BTreeMap;

use rstest::rstest;
use serde_json::json;
use stowage_operator::api::wire;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{Fault, S3Fault};

use super::super::Promise;
use super::story::{By, Story, UID, empty_bucket, encode, record};

/// The owner in a bucket's tags: installation, claim and UID.
type Tags = [&'static str; 3];

const NOBODYS: Tags = ["", "", ""];
const ITS_OWN: Tags = ["here", "team-a/photos", UID];
const OF_ITS_LIFE_BEFORE: Tags = ["here", "team-a/photos", "before"];
const ELSEWHERE: Tags = ["elsewhere", "team-a/photos", "before"];
const ANOTHERS: Tags = ["here", "team-b/photos", "another"];
const HALF: Tags = ["", "", "another"];

/// Returns the story of a claim that has found and read an existing bucket with these tags, at a
/// backend with this policy.
fn found(policy: &str, tags: Tags) -> Story {
    let mut story = Story::new();
    story.put(By::Other, "s3backends", "", "main", json!({"metadata": {}, "spec": {"adoptionPolicy": policy}}));
    story.put(By::Other, "namespaces", "", "kube-system", json!({"metadata": {"uid": "here"}}));
    story.make_claim("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    let mut bucket = empty_bucket(story.now);
    let named = [wire::TAG_INSTALLATION, wire::TAG_CLAIM, wire::TAG_CLAIM_UID].into_iter().zip(tags);
    let tags = named.filter(|(_, value)| !value.is_empty());
    bucket.tags = Some(tags.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<BTreeMap<_, _>>());
    story.bucket = Some(bucket);
    story.s3("GetBucketTagging", |_| {});
    story
}

fn adopt(story: &mut Story) {
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["origin"] = encode("Adopted").into();
    });
}

#[rstest]
#[case("Never", NOBODYS, false)]
#[case("Never", OF_ITS_LIFE_BEFORE, false)]
#[case("Never", ITS_OWN, true)]
#[case("Owned", NOBODYS, false)]
#[case("Owned", OF_ITS_LIFE_BEFORE, true)]
#[case("Owned", ELSEWHERE, false)]
#[case("Owned", ANOTHERS, false)]
#[case("Any", NOBODYS, true)]
#[case("Any", OF_ITS_LIFE_BEFORE, true)]
#[case("Any", ELSEWHERE, false)]
#[case("Any", ANOTHERS, false)]
#[case("Any", HALF, false)]
fn policy_and_tags_decide_what_is_taken_over(#[case] policy: &str, #[case] tags: Tags, #[case] allowed: bool) {
    let mut story = found(policy, tags);
    adopt(&mut story);
    if allowed {
        story.assert_kept();
    } else {
        story.assert_broken(Promise::I4, "is taken over for claim team-a/photos");
    }
}

#[test]
fn an_operator_is_of_the_cluster_as_it_is_now() {
    let mut story = found("Owned", ["there", "team-a/photos", "before"]);
    story.change(By::Other, "namespaces", "", "kube-system", |namespace| namespace["metadata"]["uid"] = "there".into());
    adopt(&mut story);
    story.assert_kept();
    let mut story = found("Owned", OF_ITS_LIFE_BEFORE);
    story.change(By::Other, "namespaces", "", "kube-system", |namespace| namespace["metadata"]["uid"] = "there".into());
    adopt(&mut story);
    story.assert_broken(Promise::I4, "is taken over");
}

#[test]
fn a_bucket_is_looked_at_before_it_is_taken_over() {
    let mut story = found("Any", NOBODYS);
    story.amend_last(|line| line.instance = 2);
    adopt(&mut story);
    story.assert_broken(Promise::I4, "was not looked at");
}

#[test]
fn whom_a_store_showed_in_its_past_is_a_limit() {
    let mut story = found("Any", ANOTHERS);
    story.amend_last(|line| line.fault = Some(Fault::S3(S3Fault::StaleRead)));
    adopt(&mut story);
    story.assert_limit(Promise::I4);
    // The bucket that the stale read showed may be gone by then.
    let mut story = found("Owned", OF_ITS_LIFE_BEFORE);
    story.bucket = None;
    story.s3("GetBucketTagging", |_| {});
    story.amend_last(|line| line.fault = Some(Fault::S3(S3Fault::StaleRead)));
    adopt(&mut story);
    story.assert_limit(Promise::I4);
}

#[test]
fn a_bucket_that_a_claim_moves_away_from_is_not_taken_over() {
    let mut story = Story::bound("Retain");
    story.put(By::Other, "s3backends", "", "main", json!({"metadata": {}, "spec": {"adoptionPolicy": "Never"}}));
    adopt(&mut story);
    story.assert_kept();
}
