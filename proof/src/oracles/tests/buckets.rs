//! Tests of I1, I12 and I14: buckets, records, and the order of changes.

use s3_sim::BucketSnapshot;
use serde_json::json;
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{CallFault, CallOutcome, CrashPoint, Fault, KubeVerb, ProcessFault, S3Fault};
use stowage_world::history::What;

use super::super::Promise;
use super::story::{By, Story, UID, empty_bucket, encode, record, tag, usurped};

fn full(bucket: &mut Option<BucketSnapshot>) {
    if let Some(bucket) = bucket {
        (bucket.objects, bucket.versions) = (2, 2);
    }
}

fn emptied(bucket: &mut Option<BucketSnapshot>) {
    if let Some(bucket) = bucket {
        (bucket.objects, bucket.versions) = (0, 0);
    }
}

#[test]
fn a_claim_that_is_bound_and_goes_with_its_bucket_breaks_nothing() {
    let mut story = Story::about_to_destroy("Force");
    full(&mut story.bucket);
    story.s3("DeleteObjects", emptied);
    story.get_claim();
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.remove(By::Operator, "secrets", "team-a", "photos-s3");
    story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    story.note(What::AtRest);
    story.assert_kept();
}

#[test]
fn an_adopted_bucket_is_never_destroyed() {
    let mut story = Story::about_to_destroy("Force");
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["origin"] = encode("Adopted").into();
    });
    story.s3("DeleteObjects", emptied);
    story.assert_broken(Promise::I1, "took that bucket over");
}

#[test]
fn a_bucket_that_was_anothers_when_looked_at_is_not_destroyed() {
    let mut story = Story::about_to_destroy("Force");
    story.bucket = Some(usurped(story.now));
    story.s3("GetBucketTagging", |_| {});
    story.get_claim();
    story.s3("DeleteObjects", emptied);
    story.assert_broken(Promise::I1, "is tagged for claim UID another");
}

#[test]
fn a_bucket_that_became_anothers_after_the_look_is_a_limit() {
    let mut story = Story::about_to_destroy("Force");
    story.bucket = Some(usurped(story.now));
    story.s3("DeleteObjects", emptied);
    story.assert_limit(Promise::I1);
}

#[test]
fn the_look_of_an_earlier_pass_proves_nothing() {
    let mut story = Story::about_to_destroy("Force");
    story.get_claim();
    story.get_claim();
    story.bucket = Some(usurped(story.now));
    story.s3("DeleteObjects", emptied);
    story.assert_broken(Promise::I1, "without a look");
}

#[test]
fn a_late_answer_has_the_claim_read_twice_more_in_the_same_pass() {
    let mut story = Story::about_to_destroy("Force");
    story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Pause { seconds: 20 })));
    story.get_claim();
    story.get_claim();
    let mut other = story.clone();
    for story in [&mut story, &mut other] {
        story.bucket = Some(usurped(story.now));
    }
    story.s3("DeleteObjects", emptied);
    story.assert_limit(Promise::I1);
    other.get_claim();
    other.s3("DeleteObjects", emptied);
    other.assert_broken(Promise::I1, "without a look");
}

#[test]
fn a_slice_has_a_late_answer_wherever_in_it_that_came() {
    let mut story = Story::about_to_destroy("Force");
    full(&mut story.bucket);
    story.s3("ListMultipartUploads", |_| {});
    story.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Pause { seconds: 20 })));
    story.s3("ListObjectVersions", |_| {});
    story.s3("DeleteObjects", emptied);
    story.get_claim();
    story.get_claim();
    story.bucket = Some(usurped(story.now));
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.assert_limit(Promise::I1);
}

#[test]
fn a_bucket_is_not_destroyed_without_any_look_since_the_deletion_began() {
    let mut story = Story::bound("Force");
    story.begin_deletion();
    story.get_claim();
    story.get_claim();
    story.s3("DeleteObjects", emptied);
    story.assert_broken(Promise::I1, "without a look");
}

#[test]
fn a_bucket_that_nobody_held_is_not_destroyed() {
    let mut story = Story::new();
    story.bucket = Some(empty_bucket(story.now));
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.assert_broken(Promise::I1, "no claim ever held");
    story.assert_broken(Promise::I12, "without a bucket record");
}

/// Returns a deleted claim that was never bound: an untagged bucket is deleted if the record notes
/// its absence.
fn unfinished(absence: bool) -> Story {
    let mut story = Story::new();
    story.make_claim("Delete");
    story.change_claim(By::Operator, |claim| {
        claim["metadata"]["finalizers"] = json!(["broker.stowage.io/bucketclaim-protection"]);
    });
    let mut held = record(UID);
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", held.clone());
    if absence {
        story.s3("GetBucketTagging", |_| {});
        held["data"]["absence"] = encode("true").into();
        story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", held);
    }
    story.begin_deletion();
    story.bucket = Some(empty_bucket(story.now));
    story.get_claim();
    story.s3("GetBucketTagging", |_| {});
    story.get_claim();
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story
}

#[test]
fn a_strangers_empty_bucket_is_a_limit_where_its_absence_was_seen_and_a_violation_elsewhere() {
    unfinished(true).assert_limit(Promise::I1);
    unfinished(false).assert_broken(Promise::I1, "carries no claim's tags");
}

#[test]
fn without_tagging_a_record_that_is_settled_is_proof() {
    let destroy = |settled: bool| {
        let mut story = Story::about_to_destroy("Force");
        if let Some(bucket) = &mut story.bucket {
            bucket.tags = None;
        }
        let value = if settled { "true" } else { "" };
        story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
            record["data"]["settled"] = encode(value).into();
        });
        story.s3("GetBucketTagging", |_| {});
        story.amend_last(|line| line.answer = CallOutcome::Status(501));
        story.get_claim();
        story.s3("DeleteObjects", emptied);
        story
    };
    destroy(true).assert_kept();
    destroy(false).assert_broken(Promise::I1, "carries no claim's tags");
}

#[test]
fn a_store_that_shows_its_past_is_a_limit() {
    let mut story = Story::about_to_destroy("Force");
    story.bucket = Some(usurped(story.now));
    story.s3("GetBucketTagging", |_| {});
    story.amend_last(|line| line.fault = Some(Fault::S3(S3Fault::StaleRead)));
    story.get_claim();
    story.s3("DeleteObjects", emptied);
    story.assert_limit(Promise::I1);
}

#[test]
fn the_slice_in_flight_goes_on_where_the_operator_stood_still_while_another_let_the_claim_go() {
    let late = |another: bool, fault: Option<Fault>| {
        let mut story = Story::about_to_destroy("Force");
        story.setting.operators = 2;
        story.s3("ListObjectVersions", |_| {});
        story.amend_last(|line| line.fault = fault);
        story.change_claim(By::Other, |claim| claim["spec"]["deletionPolicy"] = "Retain".into());
        for (plural, namespace, name) in [("secrets", OPERATOR_NAMESPACE, "br-1"), ("bucketclaims", "team-a", "photos")]
        {
            story.remove(By::Operator, plural, namespace, name);
            if another {
                story.by_another();
            }
        }
        story
    };
    let emptied_late = |another: bool, fault: Option<Fault>| {
        let mut story = late(another, fault);
        story.s3("DeleteObjects", emptied);
        story
    };
    emptied_late(true, None).assert_broken(Promise::I1, "no claim ever held that bucket");
    emptied_late(false, Some(Fault::Process(ProcessFault::Twin)))
        .assert_broken(Promise::I1, "no claim ever held that bucket");
    emptied_late(true, Some(Fault::Process(ProcessFault::Twin))).assert_limits(&[Promise::I1, Promise::I12]);

    let mut strangers = late(true, Some(Fault::Process(ProcessFault::Twin)));
    tag(&mut strangers.bucket, "another");
    strangers.s3("DeleteObjects", emptied);
    strangers.assert_broken(Promise::I1, "no claim ever held that bucket");

    // Deleting the bucket is a step of its own: the claim is read before it.
    let mut deleted = late(true, Some(Fault::Process(ProcessFault::Twin)));
    deleted.s3("DeleteBucket", |bucket| *bucket = None);
    deleted.assert_broken(Promise::I1, "no claim ever held that bucket");
    deleted.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Twin)));
    deleted.assert_limits(&[Promise::I1, Promise::I12]);
}

#[test]
fn a_bucket_is_made_without_its_record_only_where_the_operator_stood_still_while_another_let_the_claim_go() {
    let late = |fault: Option<Fault>| {
        let mut story = Story::about_to_destroy("Delete");
        story.setting.operators = 2;
        story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
        story.by_another();
        story.remove(By::Operator, "bucketclaims", "team-a", "photos");
        story.by_another();
        story.bucket = None;
        let now = story.now;
        story.s3("CreateBucket", |bucket| *bucket = Some(empty_bucket(now)));
        story.amend_last(|line| line.fault = fault);
        story
    };
    late(None).assert_broken(Promise::I12, "without a bucket record");
    let mut story = late(Some(Fault::Process(ProcessFault::Twin)));
    story.assert_limit(Promise::I12);
    story.s3("PutBucketTagging", |bucket| tag(bucket, UID));
    story.assert_limits(&[Promise::I12, Promise::I12]);
    story.s3("GetBucketTagging", |_| {});
    story.s3("PutBucketTagging", |bucket| tag(bucket, UID));
    story.assert_broken(Promise::I12, "without a bucket record");
}

#[test]
fn a_bucket_whose_record_was_lost_is_still_its_claims_who_ever_holds_the_name_since() {
    let held_by_another = |owner: &str| {
        let mut story = Story::about_to_destroy("Delete");
        story.remove(By::Other, "secrets", OPERATOR_NAMESPACE, "br-1");
        let metadata = json!({"uid": "another", "namespace": "team-b", "name": "photos", "generation": 1,
            "finalizers": ["broker.stowage.io/bucketclaim-protection"]});
        let claim = json!({"metadata": metadata, "spec": {"backendRef": {"name": "main"}, "deletionPolicy": "Retain"}});
        story.put(By::Other, "bucketclaims", "team-b", "photos", claim);
        story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record("another"));
        tag(&mut story.bucket, owner);
        story.s3("DeleteBucket", |bucket| *bucket = None);
        story
    };
    held_by_another(UID).assert_kept();
    held_by_another("another").assert_broken(Promise::I1, "nobody deletes claim team-b/photos, which holds it");
}

#[test]
fn a_bucket_of_others_is_not_tagged() {
    let foreign = |objects: usize, looked_at: bool| {
        let mut story = Story::bound("Retain");
        story.wait(1);
        story.s3("GetBucketTagging", |_| {});
        story.bucket = Some(BucketSnapshot { objects, versions: objects, ..empty_bucket(story.now) });
        if looked_at {
            story.s3("GetBucketTagging", |_| {});
        }
        story.s3("PutBucketTagging", |bucket| tag(bucket, UID));
        story
    };
    foreign(1, true).assert_broken(Promise::I1, "carries no claim's tags");
    foreign(1, false).assert_limit(Promise::I1);
    foreign(0, true).assert_limit(Promise::I1);
}

/// A read of the tags shows the owner of a bucket. HeadBucket, which follows it if there are no
/// tags, does not.
#[test]
fn a_bucket_that_became_anothers_between_two_looks_is_tagged_only_where_the_first_was_at_the_tags() {
    let taken_over = |first: &str, bucket: Option<BucketSnapshot>| {
        let mut story = Story::bound("Retain");
        story.bucket = bucket;
        story.wait(1);
        story.s3("GetBucketTagging", |_| {});
        let mut anothers = usurped(story.now);
        (anothers.objects, anothers.versions) = (0, 0);
        if first != "GetBucketTagging" {
            story.bucket = Some(anothers.clone());
            story.s3("GetBucketTagging", |_| {});
        }
        story.bucket = Some(anothers);
        story.s3("HeadBucket", |_| {});
        story.s3("PutBucketTagging", |bucket| tag(bucket, UID));
        story
    };
    let untagged = || Some(empty_bucket(Story::new().now));
    taken_over("GetBucketTagging", untagged()).assert_limit(Promise::I1);
    taken_over("GetBucketTagging", None).assert_limit(Promise::I1);
    taken_over("HeadBucket", untagged()).assert_broken(Promise::I1, "is tagged for claim UID another");
}

#[test]
fn nothing_is_made_before_finalizer_record_and_absence_are_stored() {
    let mut story = Story::new();
    story.make_claim("Retain");
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    story.s3("CreateBucket", |bucket| *bucket = None);
    story.assert_broken(Promise::I12, "has no finalizer");
    story.assert_broken(Promise::I12, "before its absence");
}

#[test]
fn absence_is_noted_of_a_bucket_that_was_seen_absent_under_the_record() {
    let mut story = Story::new();
    story.make_claim("Retain");
    story.s3("GetBucketTagging", |_| {});
    story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
    story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
        record["data"]["absence"] = encode("true").into();
    });
    story.assert_broken(Promise::I12, "is absent, unseen");
}

#[test]
fn nothing_is_destroyed_of_a_claim_that_nobody_deletes() {
    let mut story = Story::bound("Force");
    story.s3("GetBucketTagging", |_| {});
    story.get_claim();
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.assert_broken(Promise::I1, "nobody deletes claim team-a/photos");
}

#[test]
fn the_finalizer_goes_last() {
    let mut story = Story::about_to_destroy("Retain");
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    story.assert_broken(Promise::I12, "before record br-1 is gone");
    let mut story = Story::bound("Retain");
    story.change_claim(By::Operator, |claim| claim["metadata"]["finalizers"] = json!([]));
    story.assert_broken(Promise::I12, "while nobody deletes it");
}

#[test]
fn what_is_left_of_a_claim_is_an_orphan() {
    let mut story = Story::bound("Delete");
    story.begin_deletion();
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    story.note(What::AtRest);
    story.assert_broken_in_the_end(Promise::I14, "Secret stowage-system/br-1 is left");
    story.assert_broken_in_the_end(Promise::I14, "Secret stowage-system/vc-akia1 is left");
    story.assert_broken_in_the_end(Promise::I14, "Secret team-a/photos-s3 is left");
    story.assert_broken_in_the_end(Promise::I14, "bucket team-a-photos is left");
}

#[test]
fn a_consumer_secret_under_a_name_from_before_is_left_unless_the_name_of_now_is_anothers() {
    // A claim that is stopped reports the Secret that exists.
    let cases = [
        ("Bound", Some("before"), true),
        ("SecretConflict", Some("before"), false),
        ("SecretConflict", None, true),
        ("CreationInconsistent", Some("before"), false),
    ];
    for (reason, bound, is_left) in cases {
        let mut story = Story::bound("Delete");
        story.change_claim(By::Other, |claim| {
            claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "renamed"});
            claim["status"]["boundSecretName"] = bound.into();
            claim["status"]["conditions"] = json!([{"type": "Ready", "status": "False", "reason": reason}]);
        });
        story.note(What::AtRest);
        let left = "Secret team-a/photos-s3 is no longer that of claim team-a/photos";
        if is_left {
            story.assert_broken_in_the_end(Promise::I14, left);
        } else {
            let judgement = story.judge();
            assert!(!judgement.violations.iter().any(|found| found.message.contains(left)), "{judgement:?}");
        }
    }
}

/// A Secret with a deleted key gives no access, and is deleted once the claim proceeds.
#[test]
fn a_consumer_secret_whose_key_somebody_deleted_may_be_left_by_a_claim_that_can_not_go_on() {
    for (status, key_is_gone, is_left) in [("False", true, false), ("False", false, true), ("True", true, true)] {
        let mut story = Story::bound("Delete");
        story.change_claim(By::Other, |claim| {
            claim["spec"]["writeConnectionSecretToRef"] = json!({"name": "renamed"});
            claim["status"]["boundSecretName"] = json!(null);
            let generation = claim["metadata"]["generation"].clone();
            claim["status"]["conditions"] = json!([
                {"type": "Ready", "status": status, "reason": "BucketExists", "observedGeneration": generation}
            ]);
        });
        if key_is_gone {
            story.remove(By::Other, "secrets", "stowage-system", "vc-akia1");
        }
        story.note(What::AtRest);
        let left = "Secret team-a/photos-s3 is no longer that of claim team-a/photos";
        let told = story.judge().violations.iter().any(|found| found.message.contains(left));
        assert_eq!(told, is_left, "Ready={status}, key gone: {key_is_gone}");
    }
}

#[test]
fn a_bucket_may_stay_untold_only_where_that_pass_could_not_tell() {
    let left = "bucket team-a-photos is left";
    let mut story = Story::bound("Delete");
    story.begin_deletion();
    story.lose_event(0);
    story.remove(By::Operator, "bucketclaims", "team-a", "photos");
    story.note(What::AtRest);
    story.assert_broken_in_the_end(Promise::I14, left);
    let mut late = story.clone();
    late.lose_event(1);
    late.assert_broken_in_the_end(Promise::I14, left);
    let untold = |story: &Story| {
        let judgement = story.judge();
        assert!(!judgement.violations.iter().any(|found| found.message.contains(left)), "{judgement:?}");
    };
    let mut died = story.clone();
    died.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Crash(CrashPoint::AfterAnswer))));
    untold(&died);
    for (millis, began_ms, heard) in [(0, 0, false), (0, 1, true), (2000, 1_999, false), (2000, 2_001, true)] {
        let mut stood_still = story.clone();
        stood_still.amend_last(|line| line.fault = Some(Fault::Call(CallFault::Slow { millis })));
        stood_still.read(KubeVerb::List, began_ms);
        stood_still.amend_last(|line| line.fault = Some(Fault::Process(ProcessFault::Pause { seconds: 600 })));
        if heard {
            stood_still.assert_broken_in_the_end(Promise::I14, left);
        } else {
            untold(&stood_still);
        }
    }
    let mut unheard = story.clone();
    unheard.amend_last(|line| line.answer = CallOutcome::Broken);
    untold(&unheard);
    let mut denied = Story::about_to_destroy("Delete");
    denied.s3("DeleteBucket", |_| {});
    denied.remove(By::Operator, "bucketclaims", "team-a", "photos");
    denied.amend_last(|line| line.answer = CallOutcome::Broken);
    denied.note(What::AtRest);
    denied.assert_broken_in_the_end(Promise::I14, left);
    // A temporary policy Retain counts if the record was deleted under it, or after a read that
    // showed it.
    for (removed, is_kept) in [(1, true), (2, true), (3, false)] {
        let mut kept = Story::about_to_destroy("Delete");
        kept.s3("DeleteBucket", |_| {});
        let remove = |kept: &mut Story, when| {
            if when == removed {
                kept.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1");
            }
        };
        kept.change_claim(By::Other, |claim| claim["spec"]["deletionPolicy"] = "Retain".into());
        kept.get_claim();
        remove(&mut kept, 1);
        kept.change_claim(By::Other, |claim| claim["spec"]["deletionPolicy"] = "Delete".into());
        remove(&mut kept, 2);
        kept.s3("GetBucketTagging", |_| {});
        kept.get_claim();
        remove(&mut kept, 3);
        kept.remove(By::Operator, "bucketclaims", "team-a", "photos");
        kept.note(What::AtRest);
        if is_kept {
            untold(&kept);
        } else {
            kept.assert_broken_in_the_end(Promise::I14, left);
        }
    }
    // The first of two Events may take long to be answered.
    for (millis, told) in [(0, true), (2000, false)] {
        let mut second = story.clone();
        second.tell_event();
        second.amend_last(|line| line.fault = Some(Fault::Call(CallFault::Slow { millis })));
        second.lose_event(2000);
        if told {
            second.assert_broken_in_the_end(Promise::I14, left);
        } else {
            untold(&second);
        }
    }
    story.lose_event(0);
    untold(&story);
}
