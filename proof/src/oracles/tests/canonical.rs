//! Tests of D1: equal ends have the same canonical form, and different ones don't.

use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;

use super::super::canonical;
use super::story::{By, Story, encode, key, key_name};

/// Returns a bound claim with this UID, whose key has this number and was created at this time.
fn end(number: u32, uid: &str, time: &str) -> Story {
    let mut story = Story::bound("Retain");
    for later in 2..=number {
        story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(later - 1));
        story.mint(later);
        story.publish(later);
    }
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(number), |key| {
        key["data"]["claim_uid"] = encode(uid).into();
        key["metadata"]["labels"]["broker.stowage.io/claim-uid"] = uid.into();
        key["metadata"]["creationTimestamp"] = time.into();
        key["metadata"]["resourceVersion"] = number.to_string().into();
    });
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["claim_uid"] = encode(uid).into();
        record["data"]["generation"] = encode(&number.to_string()).into();
        record["metadata"]["labels"]["broker.stowage.io/claim-uid"] = uid.into();
    });
    story.set_status(number);
    story.change_claim(By::Operator, |claim| {
        claim["metadata"]["uid"] = uid.into();
        claim["status"]["rotationGeneration"] = number.into();
        claim["status"]["rotatedAt"] = time.into();
    });
    story
}

#[test]
fn chance_and_time_make_no_difference() {
    let one = canonical(&end(1, "uid-one", "2026-01-01T00:00:00Z").facts());
    let other = canonical(&end(3, "uid-other", "2026-02-02T00:00:00Z").facts());
    assert_eq!(one.difference(&other), None);
    assert_eq!(one, other);
    let text = one.to_string();
    assert!(text.contains("<id of key #1 of team-a/photos>") && !text.contains("uid-one"), "{text}");
    assert!(!text.contains("secret-of-key"), "{text}");
}

#[test]
fn everything_else_does_in_words() {
    let good = end(1, "uid-one", "2026-01-01T00:00:00Z");
    let differs = |change: fn(&mut Story), words: &str| {
        let mut story = end(1, "uid-one", "2026-01-01T00:00:00Z");
        change(&mut story);
        let difference = canonical(&good.facts()).difference(&canonical(&story.facts())).unwrap_or_default();
        assert!(difference.contains(words), "{words:?} is not in {difference}");
        assert!(!difference.contains("secret-of-key"), "{difference}");
    };
    differs(
        |story| story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2), key(2)),
        "+ secrets stowage-system/vc-",
    );
    differs(|story| story.bucket = None, "- bucket team-a-photos at s3.example:9000: 0 objects");
    differs(
        |story| story.change_claim(By::Operator, |claim| claim["status"]["phase"] = "Failed".into()),
        "- bucketclaims team-a/photos .status.phase = Bound\n+ bucketclaims team-a/photos .status.phase = Failed",
    );
    differs(|story| story.publish(2), "+ secrets team-a/photos-s3 .data.AWS_ACCESS_KEY_ID = AKIA2");
}

#[test]
fn events_definitions_and_versions_make_no_difference() {
    let good = end(1, "uid-one", "2026-01-01T00:00:00Z");
    let mut story = end(1, "uid-one", "2026-01-01T00:00:00Z");
    story.put(By::Operator, "events", "team-a", "photos.1", json!({"reason": "Bound"}));
    story.put(By::Other, "customresourcedefinitions", "", "bucketclaims.broker.stowage.io", json!({"spec": {}}));
    story.change_claim(By::Other, |claim| claim["metadata"]["resourceVersion"] = "77".into());
    assert_eq!(canonical(&good.facts()).difference(&canonical(&story.facts())), None);
}
