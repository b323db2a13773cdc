//! Operations on buckets.

use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, Tag, Tagging, VersioningConfiguration,
};

use super::super::{ExistingOwnBucket, Versioning};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_bucket_belongs_to_who_made_it() {
    let store = store();
    let acme = client(&store, "acme");
    acme.create_bucket().bucket("photos").send().await.expect("a new name");
    acme.head_bucket().bucket("photos").send().await.expect("an own bucket");
    let listed = acme.list_buckets().send().await.expect("an answer");
    let names: Vec<_> = listed.buckets().iter().filter_map(|bucket| bucket.name()).collect();
    assert_eq!(names, ["photos"]);
    assert_eq!(store.bucket("photos").map(|bucket| bucket.owner).as_deref(), Some("acme"));
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_among_all_accounts() {
    let (store, acme) = with_bucket();
    let again = acme.create_bucket().bucket("photos").send().await;
    assert_eq!(refused(again), code("BucketAlreadyOwnedByYou", 409));
    let other = client(&store, "rival").create_bucket().bucket("photos").send().await;
    assert_eq!(refused(other), code("BucketAlreadyExists", 409));
}

#[tokio::test(start_paused = true)]
async fn some_stores_say_ok_to_an_own_bucket() {
    let existing_own_bucket = ExistingOwnBucket::Ok;
    let store = store_with(Dialect { existing_own_bucket, ..Dialect::default() });
    store.put_bucket("acme", "photos");
    store.put_object("photos", "cat", "meow");
    client(&store, "acme").create_bucket().bucket("photos").send().await.expect("ok on existing");
    assert_eq!(store.objects("photos").len(), 1);
    let other = client(&store, "rival").create_bucket().bucket("photos").send().await;
    assert_eq!(refused(other), code("BucketAlreadyExists", 409));
}

#[tokio::test(start_paused = true)]
async fn names_are_checked() {
    let client = client(&store(), "acme");
    for name in ["ab", "Photos", "a..b", "192.168.0.1", "photos-"] {
        let result = client.create_bucket().bucket(name).send().await;
        assert_eq!(refused(result), code("InvalidBucketName", 400), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_region_is_named_or_implied() {
    let store = store_with(Dialect { region: "eu-west-1".to_owned(), ..Dialect::default() });
    let client = client(&store, "acme");
    let unspecified = client.create_bucket().bucket("photos").send().await;
    assert_eq!(refused(unspecified), code("IllegalLocationConstraintException", 400));
    let named = |region| CreateBucketConfiguration::builder().location_constraint(region).build();
    let create = |region| client.create_bucket().bucket("photos").create_bucket_configuration(named(region)).send();
    let elsewhere = create(BucketLocationConstraint::EuCentral1).await;
    assert_eq!(refused(elsewhere), code("IllegalLocationConstraintException", 400));
    create(BucketLocationConstraint::EuWest1).await.expect("the endpoint's own region");
    let location = client.get_bucket_location().bucket("photos").send().await.expect("an answer");
    assert_eq!(location.location_constraint(), Some(&BucketLocationConstraint::EuWest1));
    let head = client.head_bucket().bucket("photos").send().await.expect("an answer");
    assert_eq!(head.bucket_region(), Some("eu-west-1"));
}

#[tokio::test(start_paused = true)]
async fn the_first_region_has_no_name() {
    let (_, client) = with_bucket();
    let location = client.get_bucket_location().bucket("photos").send().await.expect("an answer");
    assert_eq!(location.location_constraint().map(BucketLocationConstraint::as_str).unwrap_or_default(), "");
}

#[tokio::test(start_paused = true)]
async fn missing_buckets_are_missing() {
    let client = client(&store(), "acme");
    // A HEAD response has no body for the error code, so the SDK derives it from the status.
    assert_eq!(refused(client.head_bucket().bucket("photos").send().await), code("NotFound", 404));
    let missing = code("NoSuchBucket", 404);
    assert_eq!(refused(client.delete_bucket().bucket("photos").send().await), missing);
    assert_eq!(refused(client.get_bucket_tagging().bucket("photos").send().await), missing);
    assert_eq!(refused(client.list_objects_v2().bucket("photos").send().await), missing);
    assert_eq!(refused(client.put_object().bucket("photos").key("k").send().await), missing);
}

#[tokio::test(start_paused = true)]
async fn head_of_anothers_bucket_is_forbidden_without_a_body() {
    let (store, _) = with_bucket();
    let head = client(&store, "rival").head_bucket().bucket("photos").send().await;
    assert_eq!(refused(head).1, 403);
}

#[tokio::test(start_paused = true)]
async fn only_empty_buckets_are_deleted() {
    let (store, client) = with_bucket();
    store.put_object("photos", "cat", "meow");
    let delete = || client.delete_bucket().bucket("photos").send();
    assert_eq!(refused(delete().await), code("BucketNotEmpty", 409));
    store.remove_object("photos", "cat");
    delete().await.expect("an empty bucket");
    assert!(store.bucket("photos").is_none());
}

#[tokio::test(start_paused = true)]
async fn versions_and_markers_keep_a_bucket() {
    let (store, client) = with_bucket();
    store.set_versioning("photos", Versioning::Enabled);
    store.put_object("photos", "cat", "meow");
    client.delete_object().bucket("photos").key("cat").send().await.expect("a delete marker");
    let error = client.delete_bucket().bucket("photos").send().await;
    let message = error.as_ref().err().and_then(ProvideErrorMetadata::message);
    assert!(message.is_some_and(|message| message.contains("You must delete all versions")));
    assert_eq!(refused(error), code("BucketNotEmpty", 409));
}

#[tokio::test(start_paused = true)]
async fn unfinished_uploads_vanish_with_the_bucket() {
    let (store, client) = with_bucket();
    store.start_upload("photos", "film");
    client.delete_bucket().bucket("photos").send().await.expect("nothing but an upload");
    let strict = store_with(Dialect { uploads_block_bucket_deletion: true, ..Dialect::default() });
    strict.put_bucket("acme", "photos");
    strict.start_upload("photos", "film");
    let delete = super::client(&strict, "acme").delete_bucket().bucket("photos").send().await;
    assert_eq!(refused(delete), code("BucketNotEmpty", 409));
}

fn tagging(tags: &[(&str, &str)]) -> Tagging {
    let tag = |(key, value): &(&str, &str)| Tag::builder().key(*key).value(*value).build().expect("complete");
    Tagging::builder().set_tag_set(Some(tags.iter().map(tag).collect())).build().expect("complete")
}

#[tokio::test(start_paused = true)]
async fn tag_sets_are_replaced_whole() {
    let (_, client) = with_bucket();
    let get = || client.get_bucket_tagging().bucket("photos").send();
    let put = |tags| client.put_bucket_tagging().bucket("photos").tagging(tagging(tags)).send();
    assert_eq!(refused(get().await), code("NoSuchTagSet", 404));
    put(&[("a", "1"), ("broker.stowage.io/claim", "ns/name")]).await.expect("valid tags");
    put(&[("b", "2")]).await.expect("valid tags");
    let tags = get().await.expect("a tag set");
    assert_eq!(tags.tag_set(), tagging(&[("b", "2")]).tag_set());
    assert_eq!(refused(put(&[("a", "1"), ("a", "2")]).await), code("InvalidTag", 400));
    client.delete_bucket_tagging().bucket("photos").send().await.expect("an answer");
    assert_eq!(refused(get().await), code("NoSuchTagSet", 404));
}

#[tokio::test(start_paused = true)]
async fn an_empty_set_of_tags_is_one() {
    let (_, client) = with_bucket();
    client.put_bucket_tagging().bucket("photos").tagging(tagging(&[])).send().await.expect("an empty set");
    let tags = client.get_bucket_tagging().bucket("photos").send().await.expect("a tag set");
    assert_eq!(tags.tag_set(), []);
}

#[tokio::test(start_paused = true)]
async fn stores_without_tagging_or_versioning_say_so() {
    let store = store_with(Dialect { tagging: false, versioning: false, ..Dialect::default() });
    store.put_bucket("acme", "photos");
    let client = client(&store, "acme");
    let absent = code("NotImplemented", 501);
    assert_eq!(refused(client.get_bucket_tagging().bucket("photos").send().await), absent);
    let put = client.put_bucket_tagging().bucket("photos").tagging(tagging(&[("a", "1")])).send();
    assert_eq!(refused(put.await), absent);
    assert_eq!(refused(client.get_bucket_versioning().bucket("photos").send().await), absent);
    client.head_bucket().bucket("photos").send().await.expect("all else works");
}

#[tokio::test(start_paused = true)]
async fn versioning_is_off_until_set() {
    let (_, client) = with_bucket();
    let get = async || {
        let answer = client.get_bucket_versioning().bucket("photos").send().await;
        answer.expect("an answer").status().cloned()
    };
    assert_eq!(get().await, None);
    for status in [BucketVersioningStatus::Enabled, BucketVersioningStatus::Suspended] {
        let configuration = VersioningConfiguration::builder().status(status.clone()).build();
        let put = client.put_bucket_versioning().bucket("photos").versioning_configuration(configuration);
        put.send().await.expect("an answer");
        assert_eq!(get().await, Some(status));
    }
}

#[tokio::test(start_paused = true)]
async fn listings_of_buckets_come_in_pages() {
    let store = store();
    for name in ["aaa", "bbb", "ccc"] {
        store.put_bucket("acme", name);
    }
    store.put_bucket("rival", "bbc");
    let client = client(&store, "acme");
    let mut names = Vec::new();
    let mut pages = client.list_buckets().max_buckets(2).into_paginator().send();
    while let Some(page) = pages.next().await {
        let page = page.expect("an answer");
        names.push(page.buckets().iter().filter_map(|bucket| bucket.name().map(str::to_owned)).collect::<Vec<_>>());
    }
    assert_eq!(names, [vec!["aaa", "bbb"], vec!["ccc"]]);
}
