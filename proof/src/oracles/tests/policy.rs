//! Tests of I2 and I3: data that is to be kept is kept.

use s3_sim::BucketSnapshot;
use stowage_world::effects::{CallFault, Fault, KubeFault};

use super::super::Promise;
use super::story::{By, Story};

#[test]
fn nothing_is_destroyed_by_a_pass_that_read_the_policy_retain() {
    let mut story = Story::about_to_destroy("Force");
    story.change_claim(By::Other, |claim| {
        claim["spec"]["deletionPolicy"] = "Retain".into();
        claim["spec"]["forceDelete"] = false.into();
    });
    // This call was confirmed before the edit, and is in flight.
    story.s3("DeleteObjects", |_| {});
    story.assert_kept();
    story.get_claim();
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.assert_broken(Promise::I2, "whose policy is Retain");
}

#[test]
fn a_read_excuses_what_follows_only_where_it_showed_the_past() {
    let read_with = |fault| {
        let mut story = Story::about_to_destroy("Force");
        story.change_claim(By::Other, |claim| claim["spec"]["deletionPolicy"] = "Retain".into());
        story.s3("GetBucketTagging", |_| {});
        story.get_claim();
        story.amend_last(|line| line.fault = Some(fault));
        story.s3("DeleteBucket", |bucket| *bucket = None);
        story
    };
    read_with(Fault::Kube(KubeFault::Stale { changes: 1 })).assert_limit(Promise::I2);
    read_with(Fault::Call(CallFault::LostAnswer)).assert_broken(Promise::I2, "whose policy is Retain");
    read_with(Fault::Call(CallFault::Slow { millis: 100 })).assert_broken(Promise::I2, "whose policy is Retain");
}

#[test]
fn nothing_is_destroyed_without_reading_an_edited_claim_again() {
    let mut story = Story::about_to_destroy("Force");
    story.s3("GetBucketTagging", |_| {});
    story.change_claim(By::Other, |claim| claim["spec"]["deletionPolicy"] = "Retain".into());
    story.s3("DeleteBucket", |bucket| *bucket = None);
    story.assert_broken(Promise::I2, "without reading it again");
}

#[test]
fn nothing_is_emptied_by_a_pass_that_read_that_it_is_not_forced() {
    let mut story = Story::about_to_destroy("Force");
    story.change_claim(By::Other, |claim| claim["spec"]["forceDelete"] = false.into());
    story.s3("DeleteObjects", |_| {});
    story.assert_kept();
    story.s3("GetBucketTagging", |_| {});
    story.get_claim();
    story.s3("AbortMultipartUpload", |_| {});
    story.assert_broken(Promise::I3, "does not force it");
}

#[test]
fn no_slice_follows_another_without_reading_the_claim_again() {
    let with = |versions: usize| {
        move |bucket: &mut Option<BucketSnapshot>| {
            if let Some(bucket) = bucket {
                bucket.versions = versions;
            }
        }
    };
    let mut story = Story::about_to_destroy("Force");
    story.setting.purge_slice = 2;
    with(5)(&mut story.bucket);
    story.s3("DeleteObjects", with(4));
    story.change_claim(By::Other, |claim| claim["spec"]["forceDelete"] = false.into());
    // It finishes the slice that it began before the edit.
    story.s3("DeleteObjects", with(3));
    story.assert_kept();
    story.s3("DeleteObjects", with(2));
    story.assert_broken(Promise::I3, "without reading it again");
}
