//! Tests of I16 for accesses: the status of a BucketAccess does not deny a key that works.

use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;

use super::super::Promise;
use super::story::{By, Story, encode};

const KEY: &str = "va-aksa1";

/// Returns a history with a BucketAccess, its credential Secret, and a status that names the key.
fn opened() -> Story {
    let mut story = Story::new();
    let access = json!({"metadata": {"uid": "a-1", "namespace": "team-b", "name": "reader"}, "spec": {"buckets": []}});
    story.put(By::Other, "bucketaccesses", "team-b", "reader", access);
    let labels = json!({"broker.stowage.io/role": "access-credential", "broker.stowage.io/rotation-generation": "1"});
    let data = json!({"access_uid": encode("a-1"), "access_key_id": encode("AKSA1"), "scopes": encode("[]")});
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, KEY, json!({"metadata": {"labels": labels}, "data": data}));
    tell(&mut story, By::Operator, true);
    story
}

fn tell(story: &mut Story, by: By, has_key: bool) {
    story.change(by, "bucketaccesses", "team-b", "reader", |access| {
        access["status"] = if has_key { json!({"accessKeyId": "AKSA1"}) } else { json!({}) };
    });
}

#[test]
fn an_access_whose_key_works_does_not_say_that_it_has_none() {
    let mut story = opened();
    story.assert_kept();
    tell(&mut story, By::Operator, false);
    story.assert_broken(Promise::I16, "access team-b/reader has a key that works, and says that it has none");
}

#[test]
fn an_access_says_that_it_has_no_key_once_none_works() {
    let mut deleted = opened();
    deleted.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, KEY);
    tell(&mut deleted, By::Operator, false);
    deleted.assert_kept();

    let mut ended = opened();
    ended.change(By::Operator, "secrets", OPERATOR_NAMESPACE, KEY, |key| {
        key["metadata"]["annotations"]["broker.stowage.io/expires-at"] = "2001-01-01T00:00:00Z".into();
    });
    tell(&mut ended, By::Operator, false);
    ended.assert_kept();
}

/// I16 covers the operator's own writes only. Once another client has changed the access or its
/// Secrets, the status is not judged.
#[test]
fn what_others_write_is_not_the_operators_word() {
    let mut story = opened();
    tell(&mut story, By::Other, false);
    story.assert_kept();

    let mut story = opened();
    story.put(By::Other, "secrets", "team-b", "reader-key", json!({"metadata": {}, "data": {}}));
    tell(&mut story, By::Operator, false);
    story.assert_kept();
}
