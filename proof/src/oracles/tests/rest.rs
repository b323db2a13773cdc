//! Tests of E1, E3 and L3: no changes at rest, no repeated and no futile changes.

use http::Method;
use seeded::VirtualClock;
use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{Actor, Fault, KubeFault, KubeVerb, ProcessFault, Rival};
use stowage_world::history::What;

use super::super::Promise;
use super::story::{By, Story, UID, empty_bucket, key_name, record};

fn at_rest() -> Story {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.s3("GetBucketTagging", |_| {});
    story.note(What::AtRest);
    story
}

#[test]
fn at_rest_nothing_is_written_and_a_bucket_is_looked_at_once_in_ten_minutes() {
    let mut story = at_rest();
    story.wait(541);
    story.s3("GetBucketTagging", |_| {});
    story.assert_kept();
    story.wait(539);
    story.s3("GetBucketTagging", |_| {});
    story.assert_broken(Promise::E1, "GetBucketTagging team-a-photos is called");
    let mut story = at_rest();
    story.ask(Method::POST, "events", "", "application/json", &json!({}));
    story.assert_broken(Promise::E1, "POST events");
    let mut story = at_rest();
    story.wait(6000);
    story.s3("PutBucketTagging", |_| {});
    story.assert_broken(Promise::E1, "PutBucketTagging");
}

#[test]
fn each_of_two_operators_looks_by_itself() {
    let mut story = at_rest();
    for _ in 0..2 {
        story.wait(270);
        story.s3("GetBucketTagging", |_| {});
        story.by_another();
        story.wait(270);
        story.s3("GetBucketTagging", |_| {});
    }
    story.assert_kept();
}

/// A gateway has measured a bucket, and both operators learn of it at once.
#[test]
fn each_of_two_operators_tells_once_what_a_bucket_holds() {
    let told = |story: &mut Story| {
        let mut status = json!(null);
        story.change_claim(By::Other, |claim| status = claim["status"].clone());
        status["usage"] = json!({"bytes": 5, "objects": 1, "measuredAt": "2030-01-01T00:10:13Z"});
        let patch = json!([
            {"op": "test", "path": "/metadata/uid", "value": UID},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/status", "value": status},
        ]);
        story.ask(Method::PATCH, "bucketclaims", "photos", "application/json-patch+json", &patch);
        status
    };
    let mut story = at_rest();
    let status = told(&mut story);
    story.by_another();
    story.change_claim(By::Operator, |claim| claim["status"] = status);
    told(&mut story);
    story.assert_kept();
    told(&mut story);
    story.assert_broken(Promise::E1, "PATCH bucketclaims team-a/photos");
    let mut alone = at_rest();
    let status = told(&mut alone);
    alone.change_claim(By::Operator, |claim| claim["status"] = status);
    told(&mut alone);
    alone.assert_broken(Promise::E1, "PATCH bucketclaims team-a/photos");
}

/// Returns a bound claim at rest; the operator sends these reads, each this many seconds later.
fn reads_at_rest(verb: KubeVerb, seconds: &[u64]) -> Story {
    let mut story = at_rest();
    for second in seconds {
        story.read(verb, (600 + second) * 1000);
    }
    story
}

#[test]
fn at_rest_a_watch_is_made_anew_when_its_time_is_over_a_secret_read_for_a_probe_and_nothing_listed() {
    reads_at_rest(KubeVerb::Watch, &[290, 290, 290, 580, 580, 580]).assert_kept();
    let again = reads_at_rest(KubeVerb::Watch, &[1, 80, 160, 239]);
    again.assert_broken_in_the_end(
        Promise::E1,
        "watch secrets stowage-system/s3-admin is asked for more than 3 times in 240 s",
    );
    reads_at_rest(KubeVerb::Get, &[1, 2, 601, 602]).assert_kept();
    let again = reads_at_rest(KubeVerb::Get, &[1, 2, 500]);
    again.assert_broken_in_the_end(
        Promise::E1,
        "get secrets stowage-system/s3-admin is asked for more than 2 times in 540 s",
    );
    reads_at_rest(KubeVerb::List, &[0]).assert_kept();
    reads_at_rest(KubeVerb::List, &[1]).assert_broken_in_the_end(Promise::E1, "is asked for more than 0 times");
}

#[test]
fn what_nobody_deleted_is_not_made_again() {
    let mut story = Story::bound("Retain");
    story.s3("GetBucketTagging", |_| {});
    story.bucket = None;
    let now = story.now;
    story.s3("CreateBucket", |bucket| *bucket = Some(empty_bucket(now)));
    story.assert_broken(Promise::E3, "for a claim that had it already");
}

#[test]
fn a_key_that_nobody_asked_for_is_not_made() {
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.mint(2);
    story.assert_broken(Promise::E3, "its 2., and asked for 1");
    let mut story = Story::bound("Retain");
    story.wait(600);
    story.ask_for_rotation();
    story.mint(2);
    story.assert_kept();
}

#[test]
fn an_own_attempt_that_landed_is_nobody_elses_key() {
    let refused = |rival| {
        let mut story = Story::bound("Retain");
        story.wait(600);
        story.mint(2);
        story.amend_last(|line| {
            (line.world, line.fault) = (Some(409), Some(Fault::Kube(KubeFault::AlreadyExists(rival))));
        });
        story
    };
    refused(Rival::Own).assert_broken(Promise::E3, "its 2., and asked for 1");
    refused(Rival::Foreign).assert_kept();
}

#[test]
fn what_somebody_deleted_is_made_again() {
    let mut story = Story::bound("Retain");
    story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    story.assert_kept();
}

#[test]
fn nothing_is_deleted_that_is_needed() {
    let mut story = Story::bound("Retain");
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    story.assert_broken(Promise::E3, "Secret stowage-system/br-1 is deleted");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    story.assert_broken(Promise::E3, "Secret stowage-system/br-1 is made a second time");
    let mut story = Story::bound("Retain");
    story.ask_for_rotation();
    story.mint(2);
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(2));
    story.assert_broken(Promise::E3, "Secret stowage-system/vc-akia2 is deleted");
}

#[test]
fn a_consumer_secret_goes_that_is_not_named_in_the_claim_as_it_was_read_last() {
    let removed = |reads_again: bool| {
        let mut story = Story::bound("Retain");
        let rename = |story: &mut Story, name: &str| {
            story.change_claim(By::Other, |claim| claim["spec"]["writeConnectionSecretToRef"]["name"] = name.into());
        };
        rename(&mut story, "other");
        story.get_claim();
        rename(&mut story, "photos-s3");
        if reads_again {
            story.s3("GetBucketTagging", |_| {});
            story.get_claim();
        }
        story.remove(By::Operator, "secrets", "team-a", "photos-s3");
        story
    };
    let judgement = removed(false).judge();
    assert!(judgement.violations.iter().all(|found| found.promise != Promise::E3), "{judgement:#?}");
    removed(true).assert_broken(Promise::E3, "Secret team-a/photos-s3 is deleted");
}

#[test]
fn nothing_is_written_over_and_over() {
    let mut story = Story::bound("Retain");
    let touch = |story: &mut Story, wait| {
        for round in 0..300 {
            story.wait(wait);
            story.change_claim(By::Operator, |claim| claim["status"]["round"] = json!(round));
        }
    };
    touch(&mut story, 60);
    story.assert_kept();
    touch(&mut story, 2);
    let broken: Vec<String> = story.judge().violations.into_iter().map(|it| it.message).collect();
    let [once] = broken.as_slice() else { panic!("{broken:?}") };
    assert!(once.contains("bucketclaims team-a/photos was changed more than 240 times within an hour"), "{once}");
}

#[test]
fn a_claim_that_is_made_again_is_another_to_write_about() {
    let is_too_fast = |remade: bool| {
        let mut story = Story::bound("Retain");
        for round in 0..400 {
            story.wait(2);
            if remade && round == 200 {
                story.change_claim(By::Other, |claim| claim["metadata"]["uid"] = json!("another"));
            }
            story.change_claim(By::Operator, |claim| claim["status"]["round"] = json!(round));
        }
        story.judge().violations.iter().any(|it| it.promise == Promise::E2)
    };
    assert!(is_too_fast(false) && !is_too_fast(true));
}

#[test]
fn two_operators_do_not_count_against_each_other() {
    let mut story = Story::bound("Retain");
    let count = |story: &mut Story, count: usize| {
        let backend = json!({"metadata": {"name": "main", "uid": "b"}, "status": {"bucketCount": count}});
        story.put(By::Operator, "s3backends", "", "main", backend);
    };
    for round in 0..40 {
        count(&mut story, round % 2);
        story.wait(2);
    }
    story.assert_kept();
    for round in 0..4 {
        count(&mut story, round % 2);
    }
    story.assert_broken(Promise::E2, "bucketCount of backend main goes to and fro");
}

/// Returns a claim whose key was created just now.
fn with_a_new_key() -> Story {
    let mut story = Story::bound("Retain");
    let now = story.now.to_string();
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1), |key| {
        key["metadata"]["creationTimestamp"] = now.into();
    });
    story
}

#[test]
fn a_rotation_that_is_asked_for_comes_within_its_bound() {
    let mut story = with_a_new_key();
    story.ask_for_rotation();
    story.wait(119);
    story.note(What::AtRest);
    story.assert_kept();
    story.wait(2);
    story.assert_broken_in_the_end(Promise::L3, "is not replaced, as \"now\" asks for");
    story.change_claim(By::Operator, |claim| claim["status"]["handledRotateRequest"] = "now".into());
    story.assert_kept();
}

/// The operator reads the claim, so that it is known to be working.
fn is_there(story: &mut Story) {
    story.get_claim();
    let began = story.now.duration_since(VirtualClock::epoch()).as_millis().try_into().expect("it is later");
    story.amend_last(|line| line.began_ms = began);
}

/// A tenant uses its key, so that there is an event.
fn later(story: &mut Story, seconds: i64) {
    story.wait(seconds);
    story.used(1, true);
}

#[test]
fn a_rotation_that_was_asked_for_does_not_come_late() {
    let mut story = with_a_new_key();
    story.wait(600);
    story.ask_for_rotation();
    later(&mut story, 3600);
    story.assert_kept();
    is_there(&mut story);
    later(&mut story, 60);
    story.assert_kept();
    let mut behind = story.clone();
    behind.note(What::ClockOff { actor: Actor::Operator, ahead: -45 });
    later(&mut behind, 45);
    behind.assert_kept();
    later(&mut behind, 1);
    behind.assert_broken(Promise::L3, "of claim team-a/photos is not yet replaced, as \"now\" asks for");
    later(&mut story, 1);
    story.assert_broken(Promise::L3, "of claim team-a/photos is not yet replaced, as \"now\" asks for");
    later(&mut story, 3600);
    assert_eq!(story.judge().violations.len(), 1, "it is told once");
}

/// A rotation is delayed by trouble, by an old key, and by a request made a moment ago.
#[test]
fn nobody_waits_too_long_for_a_rotation_that_something_keeps() {
    let mut story = with_a_new_key();
    story.wait(600);
    is_there(&mut story);
    story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Pause { seconds: 100 })));
    story.ask_for_rotation();
    is_there(&mut story);
    later(&mut story, 1060);
    story.assert_kept();
    let mut late = story.clone();
    later(&mut late, 1);
    late.assert_broken(Promise::L3, "is not yet replaced");
    story.change_claim(By::Operator, |claim| claim["status"]["conditions"][0]["status"] = "False".into());
    later(&mut story, 3600);
    story.change_claim(By::Operator, |claim| claim["status"]["conditions"][0]["status"] = "True".into());
    is_there(&mut story);
    later(&mut story, 60);
    story.assert_kept();
}

#[test]
fn a_rotation_by_time_does_not_come_late() {
    let mut story = with_a_new_key();
    story.change_claim(By::Other, |claim| {
        claim["spec"]["rotationPolicy"] = json!({"mode": "TimeBased", "intervalDays": 7, "overlapSeconds": 60});
    });
    later(&mut story, 7 * 24 * 3600);
    is_there(&mut story);
    later(&mut story, 60);
    story.assert_kept();
    later(&mut story, 1);
    story.assert_broken(Promise::L3, "is not yet replaced, and is older than 7 days");
}

#[test]
fn a_rotation_by_time_comes_within_its_bound() {
    const DAY: i64 = 24 * 3600;
    let mut story = with_a_new_key();
    story.change_claim(By::Other, |claim| {
        claim["spec"]["rotationPolicy"] = json!({"mode": "TimeBased", "intervalDays": 7, "overlapSeconds": 60});
    });
    story.note(What::AtRest);
    story.wait(7 * DAY);
    story.assert_kept();
    story.wait(61);
    story.assert_broken_in_the_end(Promise::L3, "is not replaced, and is older than 7 days");
    story.note(What::ClockOff { actor: Actor::Operator, ahead: -3600 });
    story.assert_kept();
}
