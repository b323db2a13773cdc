//! Tests of public access: I7, I12, I15 and I16 of anonymous bindings.

use serde_json::{Value, json};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::What;

use super::super::Promise;
use super::story::{BUCKET, By, Story, UID, encode, key_name, record};

const BINDING: &str = "ab-0a1b";

/// Returns the binding of a claim that requests a limit of five requests per second.
fn binding() -> Value {
    let labels = json!({"broker.stowage.io/role": "anonymous-binding", "broker.stowage.io/claim-uid": UID});
    let data = json!({
        "claim_uid": encode(UID), "bucket_name": encode(BUCKET), "backend": encode("main"),
        "anonymous_mode": encode("ReadOnly"), "anonymous_per_source_ip_rps": encode("5"),
    });
    json!({"metadata": {"labels": labels}, "data": data})
}

fn write(story: &mut Story, by: By, binding: Value) {
    story.put(by, "secrets", OPERATOR_NAMESPACE, BINDING, binding);
}

fn change(story: &mut Story, by: By, change: impl FnOnce(&mut Value)) {
    story.change(by, "secrets", OPERATOR_NAMESPACE, BINDING, change);
}

/// Returns a bound claim that requests public access, and has it.
fn open() -> Story {
    let mut story = Story::bound("Retain");
    story.change_claim(By::Other, |claim| {
        claim["spec"]["anonymousAccess"] = json!({"mode": "ReadOnly", "perSourceIPRPS": 5});
    });
    write(&mut story, By::Operator, binding());
    story.wait(60);
    story
}

/// Like [`open`], for a claim that is being deleted.
fn going() -> Story {
    let mut story = open();
    story.begin_deletion();
    story.end_accesses();
    story
}

fn revoke(story: &mut Story, by: By) {
    story.remove(by, "secrets", OPERATOR_NAMESPACE, &key_name(1));
}

#[test]
fn a_claim_is_ready_only_with_the_public_access_that_it_asks_for() {
    let at_rest = |spoil: &dyn Fn(&mut Story)| {
        let mut story = open();
        spoil(&mut story);
        story.note(What::AtRest);
        story
    };
    at_rest(&|_| {}).assert_kept();
    let broken = |spoil: &dyn Fn(&mut Story), words| at_rest(spoil).assert_broken_in_the_end(Promise::I16, words);
    broken(
        &|story| story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, BINDING),
        "nothing opens bucket team-a-photos",
    );
    broken(&|story| change(story, By::Other, |it| it["metadata"]["labels"] = Value::Null), "nothing opens bucket");
    for (field, value) in [
        ("bucket_name", "another"),
        ("backend", "second"),
        ("anonymous_mode", "ReadWrite"),
        ("anonymous_per_source_ip_rps", "6"),
    ] {
        let other = |story: &mut Story| change(story, By::Other, |it| it["data"][field] = encode(value).into());
        broken(&other, "and not bucket team-a-photos at main, ReadOnly, 5 a second");
        let missing = |story: &mut Story| change(story, By::Other, |it| it["data"][field] = Value::Null);
        broken(&missing, "opens nothing, and not");
    }
    let unreadable = |story: &mut Story| {
        change(story, By::Other, |it| it["data"]["anonymous_per_source_ip_rps"] = encode("5 or so").into());
    };
    broken(&unreadable, "opens nothing, and not");
}

#[test]
fn a_claim_that_is_not_ready_or_asks_for_nothing_needs_no_binding() {
    let mut story = open();
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, BINDING);
    story.change_claim(By::Operator, |claim| {
        claim["status"]["conditions"][0] = json!({"type": "Ready", "status": "False", "reason": "Paused"});
    });
    story.note(What::AtRest);
    story.assert_kept();
    let mut story = Story::bound("Retain");
    story.change_claim(By::Other, |claim| claim["spec"]["anonymousAccess"] = json!({"mode": "None"}));
    story.note(What::AtRest);
    story.assert_kept();
}

#[test]
fn only_a_bucket_that_the_claim_leaves_is_closed() {
    let closed = |besides: Option<&str>| {
        let mut story = open();
        if let Some(bucket) = besides {
            let mut held = record(UID);
            held["data"]["bucket_name"] = encode(bucket).into();
            story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-2", held);
        }
        story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, BINDING);
        story
    };
    closed(Some("another")).assert_kept();
    for besides in [None, Some(BUCKET)] {
        closed(besides).assert_broken(Promise::E3, "ab-0a1b is deleted while its claim lives and needs it");
    }
}

#[test]
fn only_a_bucket_that_the_claim_holds_is_opened() {
    for (field, value) in [("bucket_name", "another"), ("backend", "second")] {
        let mut story = open();
        change(&mut story, By::Operator, |it| it["data"][field] = encode(value).into());
        story.assert_broken(Promise::I15, "which it does not hold");
    }
    let mut story = Story::bound("Retain");
    story.change(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1", |record| record["data"]["absence"] = Value::Null);
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1");
    write(&mut story, By::Operator, binding());
    story.assert_kept();
}

#[test]
fn a_bucket_that_is_let_go_of_is_not_left_open() {
    let mut story = open();
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    story.assert_broken(Promise::I15, "which is still open to the public");
    // Its backend points elsewhere, and the bucket exists there: the binding keeps its name.
    let elsewhere = |bucket| {
        let mut record = record(UID);
        record["data"]["endpoint"] = encode("http://other.example:9000").into();
        record["data"]["bucket_name"] = encode(bucket).into();
        record
    };
    let mut story = open();
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-2", elsewhere(BUCKET));
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    story.assert_kept();
    let mut moved = open();
    moved.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-2", elsewhere("another"));
    let mut left_open = moved.clone();
    left_open.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    left_open.assert_broken(Promise::I15, "which is still open to the public");
    change(&mut moved, By::Other, |it| it["metadata"]["labels"] = Value::Null);
    moved.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    moved.assert_kept();
}

#[test]
fn public_access_is_withdrawn_before_a_key_is_revoked() {
    let mut story = going();
    revoke(&mut story, By::Operator);
    story.assert_broken(Promise::I12, "is revoked before public access of claim team-a/photos");
    let mut story = going();
    revoke(&mut story, By::Other);
    story.assert_kept();
    let mut story = going();
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, BINDING);
    revoke(&mut story, By::Operator);
    story.assert_kept();
    // Its binding is being deleted, and a foreign finalizer keeps it.
    let mut story = going();
    change(&mut story, By::Other, |it| it["metadata"]["finalizers"] = json!(["example.com/backup"]));
    change(&mut story, By::Operator, |it| it["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into());
    revoke(&mut story, By::Operator);
    story.assert_kept();
    // A key that has expired may be deleted for that reason.
    let mut story = open();
    story.ask_for_rotation();
    story.mint(2);
    story.publish(2);
    story.stamp(1, 60);
    story.wait(121);
    story.begin_deletion();
    revoke(&mut story, By::Operator);
    story.assert_kept();
}

#[test]
fn no_binding_is_made_for_a_claim_that_is_gone() {
    let mut story = Story::bound("Retain");
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    write(&mut story, By::Operator, binding());
    story.assert_broken(Promise::I7, "binding ab-0a1b is made for claim team-a/photos, which is gone");
}
