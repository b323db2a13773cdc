//! Tests of I11, I13 and I16: the content of writes, their preconditions, and the truth of the
//! status.

use http::Method;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::What;

use super::super::{Promise, Shown};
use super::story::{ADMIN, By, Story, encode, key_name, key_secret};

const JSON_PATCH: &str = "application/json-patch+json";

#[rstest]
#[case(key_secret(1))]
#[case(encode(&key_secret(1)))]
#[case(ADMIN.to_owned())]
fn a_secret_key_in_a_status_is_seen(#[case] key: String) {
    let mut story = Story::bound("Retain");
    let body = json!([{"op": "add", "path": "/status", "value": {"message": format!("it was {key}!")}}]);
    story.ask(Method::PATCH, "bucketclaims", "photos", "application/merge-patch+json", &body);
    story.assert_broken(Promise::I11, "shown by bucketclaims team-a/photos");
}

#[test]
fn a_secret_key_in_a_label_a_wrong_field_or_a_log_is_seen() {
    let mut story = Story::bound("Retain");
    story.change(By::Operator, "secrets", "team-a", "photos-s3", |secret| {
        secret["metadata"]["labels"]["key"] = key_secret(1).into();
    });
    story.assert_broken(Promise::I11, "the metadata of Secret team-a/photos-s3");
    let mut story = Story::bound("Retain");
    story.change(By::Operator, "secrets", "team-a", "photos-s3", |secret| {
        secret["data"]["NOTE"] = encode(&key_secret(1)).into();
    });
    story.assert_broken(Promise::I11, "the data of Secret team-a/photos-s3");
    let mut story = Story::bound("Retain");
    story.shown.push(Shown { place: "the log".to_owned(), text: format!("made {}", key_secret(1)) });
    story.assert_broken_in_the_end(Promise::I11, "shown by the log");
}

#[test]
fn the_admins_key_in_a_tenants_secret_is_seen() {
    let mut story = Story::bound("Retain");
    story.change(By::Operator, "secrets", "team-a", "photos-s3", |secret| {
        secret["data"]["AWS_SECRET_ACCESS_KEY"] = encode(ADMIN).into();
    });
    story.assert_broken(Promise::I11, "the data of Secret team-a/photos-s3");
}

#[rstest]
#[case("ADMIN", "elsewhere.example", true)]
#[case("ADMIN", "thief.example", false)]
#[case("hunter2", "elsewhere.example", false)]
fn a_key_id_that_is_sent_where_its_owner_does_not_let_it_is_seen(
    #[case] id: &str,
    #[case] at: &str,
    #[case] let_it: bool,
) {
    let mut story = Story::bound("Retain");
    story.put(
        By::Other,
        "secrets",
        OPERATOR_NAMESPACE,
        "database",
        json!({"metadata": {}, "data": {"x": encode("hunter2")}}),
    );
    story.s3("GetBucketTagging", |_| {});
    story.amend_signer(id, at);
    if let_it {
        story.assert_kept();
    } else {
        story.assert_broken(Promise::I11, "is sent a key id that no owner of a Secret lets be sent there");
    }
}

fn patch(uid: bool, version: bool) -> Value {
    let mut operations = vec![json!({"op": "add", "path": "/data/x", "value": "eA=="})];
    if uid {
        operations.push(json!({"op": "test", "path": "/metadata/uid", "value": "u"}));
    }
    if version {
        operations.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
    }
    Value::Array(operations)
}

#[rstest]
#[case(Method::PATCH, JSON_PATCH, patch(true, true), true)]
#[case(Method::PATCH, JSON_PATCH, patch(false, true), false)]
#[case(Method::PATCH, JSON_PATCH, patch(true, false), false)]
#[case(Method::PATCH, "application/merge-patch+json", json!({"metadata": {"uid": "u", "resourceVersion": "7"}}), true)]
#[case(Method::PATCH, "application/merge-patch+json", json!({"metadata": {"uid": "u"}}), false)]
#[case(Method::PATCH, "application/apply-patch+yaml", json!({"metadata": {"uid": "u", "resourceVersion": "7"}}), false)]
#[case(Method::PUT, "application/json", json!({"metadata": {"uid": "u", "resourceVersion": "7"}}), true)]
#[case(Method::PUT, "application/json", json!({"metadata": {}}), false)]
#[case(Method::DELETE, "", json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}), true)]
#[case(Method::DELETE, "", json!({"preconditions": {"uid": "u"}}), false)]
#[case(Method::DELETE, "", json!({}), false)]
#[case(Method::POST, "application/json", json!({}), true)]
fn a_write_carries_what_it_was_decided_on(
    #[case] method: Method,
    #[case] content_type: &str,
    #[case] body: Value,
    #[case] good: bool,
) {
    let mut story = Story::bound("Retain");
    story.ask(method, "secrets", "photos-s3", content_type, &body);
    if good {
        story.assert_kept();
    } else {
        story.assert_broken(Promise::I13, "does not carry UID and resourceVersion");
    }
}

#[test]
fn a_whole_collection_is_never_deleted() {
    let mut story = Story::bound("Retain");
    let body = json!({"preconditions": {"uid": "u", "resourceVersion": "7"}});
    story.ask(Method::DELETE, "secrets", "", "", &body);
    story.assert_broken(Promise::I13, "DELETE secrets");
}

#[test]
fn a_strangers_secret_is_not_written() {
    let strangers = || json!({"metadata": {}, "data": {"theirs": "eA=="}});
    let mut story = Story::bound("Retain");
    story.put(By::Other, "secrets", "team-a", "theirs", strangers());
    story.change(By::Operator, "secrets", "team-a", "theirs", |secret| secret["data"]["ours"] = "eA==".into());
    story.assert_broken(Promise::I13, "which no claim controls");
    let mut story = Story::bound("Retain");
    story.put(By::Other, "secrets", "team-a", "theirs", strangers());
    story.remove(By::Operator, "secrets", "team-a", "theirs");
    story.assert_broken(Promise::I13, "which no claim controls");
    let mut story = Story::bound("Retain");
    story.put(By::Other, "secrets", OPERATOR_NAMESPACE, "vc-akia5", strangers());
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "vc-akia5", |secret| {
        secret["data"]["ours"] = "eA==".into();
    });
    story.assert_broken(Promise::I13, "which no claim controls");
}

#[test]
fn a_secret_stays_its_claims() {
    let mut story = Story::bound("Retain");
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), |key| {
        key["data"]["claim_uid"] = encode("another").into();
    });
    story.assert_broken(Promise::I13, "is given to another claim");
}

/// Returns a bound claim at rest, after this change.
fn at_rest(change: impl FnOnce(&mut Story)) -> Story {
    let mut story = Story::bound("Retain");
    story.wait(60);
    change(&mut story);
    story.note(What::AtRest);
    story
}

#[test]
fn a_claim_is_ready_only_if_a_tenant_can_work() {
    at_rest(|_| {}).assert_kept();
    let broken = |change: fn(&mut Story), words| at_rest(change).assert_broken_in_the_end(Promise::I16, words);
    broken(|story| story.bucket = None, "there is no bucket");
    broken(|story| story.remove(By::Other, "secrets", "team-a", "photos-s3"), "it has no Secret photos-s3");
    broken(|story| story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1)), "does not exist");
    broken(|story| story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1"), "it holds no bucket");
    let spoil = |story: &mut Story| {
        story.change(By::Other, "secrets", "team-a", "photos-s3", |secret| {
            secret["data"]["AWS_SECRET_ACCESS_KEY"] = encode("tampered").into();
        });
    };
    broken(spoil, "does not work");
    broken(|story| story.set_status(2), "its status has \"AKIA2\" as accessKeyId");
}

#[test]
fn a_claim_with_a_key_that_works_tells_of_it() {
    let told = |phase: &'static str, conditions: Value| {
        move |story: &mut Story| {
            story.change_claim(By::Operator, move |claim| {
                claim["status"]["phase"] = phase.into();
                claim["status"]["conditions"] = conditions;
            });
        }
    };
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "BackendError", "observedGeneration": 1});
    let untold = json!([condition("Ready", "False"), condition("BucketCreated", "True")]);
    let with = |change: fn(&mut Story), tells: &dyn Fn(&mut Story)| {
        let mut story = Story::bound("Retain");
        story.set_status(1);
        change(&mut story);
        tells(&mut story);
        story
    };
    let creating = told("Creating", untold.clone());
    with(|_| {}, &|story| creating.clone()(story)).assert_broken(Promise::I16, "has a key that works");
    let lost = |story: &mut Story| story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, &key_name(1));
    with(lost, &|story| creating.clone()(story)).assert_kept();
    let mut tells = untold;
    tells.as_array_mut().unwrap().push(condition("CredentialsProvisioned", "True"));
    with(|_| {}, &|story| told("Bound", tells.clone())(story)).assert_kept();
}

#[test]
fn conditions_and_phase_agree() {
    let failed = |stalled: &'static str, phase: &'static str| {
        at_rest(move |story| {
            story.change_claim(By::Operator, move |claim| {
                let condition = |kind: &str, status: &str, reason: &str| {
                    json!({"type": kind, "status": status, "reason": reason, "observedGeneration": 1})
                };
                let created = condition("BucketCreated", "False", "BucketExists");
                let ready = condition("Ready", "False", "BucketExists");
                claim["status"]["phase"] = phase.into();
                claim["status"]["conditions"] = json!([ready, created, condition(stalled, "True", "BucketExists")]);
            });
        })
    };
    failed("Stalled", "Failed").assert_kept();
    failed("Reconciling", "Failed").assert_broken_in_the_end(Promise::I16, "Stalled: false");
    failed("Stalled", "Bound").assert_broken_in_the_end(Promise::I16, "in phase \"Bound\"");
}

#[test]
fn a_backend_counts_its_claims() {
    let counting = |count: u32| {
        at_rest(move |story| {
            story.change_claim(By::Operator, |claim| claim["status"]["backend"] = json!({"name": "main"}));
            story.put(By::Operator, "s3backends", "", "main", json!({"status": {"bucketCount": count}}));
        })
    };
    counting(1).assert_kept();
    counting(2).assert_broken_in_the_end(Promise::I16, "and 1 are");
}
