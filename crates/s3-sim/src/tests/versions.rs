//! Versions and delete markers.

use aws_sdk_s3::operation::list_object_versions::ListObjectVersionsOutput;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};

use super::super::Versioning;
use super::*;

fn versioned() -> (Store, Client) {
    let (store, client) = with_bucket();
    store.set_versioning("photos", Versioning::Enabled);
    (store, client)
}

async fn put(client: &Client, text: &str) -> String {
    let output = client.put_object().bucket("photos").key("k").body(body(text)).send().await.expect("a write");
    output.version_id().unwrap_or_default().to_owned()
}

async fn read(client: &Client, version: &str) -> String {
    let got = client.get_object().bucket("photos").key("k").version_id(version).send().await.expect("a version");
    assert_eq!(got.version_id(), Some(version));
    String::from_utf8_lossy(&got.body.collect().await.expect("a body").into_bytes()).into_owned()
}

#[tokio::test(start_paused = true)]
async fn each_write_is_a_version() {
    let (_, client) = versioned();
    let (first, second) = (put(&client, "one").await, put(&client, "two").await);
    assert_ne!(first, second);
    assert_eq!(read(&client, &first).await, "one");
    assert_eq!(read(&client, &second).await, "two");
    let unknown = client.get_object().bucket("photos").key("k").version_id("v9").send().await;
    assert_eq!(refused(unknown), code("NoSuchVersion", 404));
}

#[tokio::test(start_paused = true)]
async fn a_delete_hides_and_its_removal_shows_again() {
    let (store, client) = versioned();
    put(&client, "one").await;
    let marker = client.delete_object().bucket("photos").key("k").send().await.expect("a marker");
    assert_eq!(marker.delete_marker(), Some(true));
    let get = || client.get_object().bucket("photos").key("k");
    assert_eq!(refused(get().send().await), code("NoSuchKey", 404));
    let id = marker.version_id().expect("the marker's id");
    assert_eq!(refused(get().version_id(id).send().await), code("MethodNotAllowed", 405));
    let head = client.head_object().bucket("photos").key("k").version_id(id).send().await;
    assert_eq!(refused(head).1, 405);
    let snapshot = store.bucket("photos").expect("the bucket");
    assert_eq!((snapshot.objects, snapshot.versions, snapshot.delete_markers), (0, 1, 1));
    let removed = client.delete_object().bucket("photos").key("k").version_id(id).send().await.expect("an answer");
    assert_eq!(removed.delete_marker(), Some(true));
    get().send().await.expect("the version below");
}

#[tokio::test(start_paused = true)]
async fn suspended_versioning_replaces_the_null_version() {
    let (store, client) = with_bucket();
    put(&client, "before").await;
    store.set_versioning("photos", Versioning::Enabled);
    let kept = put(&client, "during").await;
    store.set_versioning("photos", Versioning::Suspended);
    assert_eq!(put(&client, "after").await, "null");
    assert_eq!(read(&client, "null").await, "after");
    assert_eq!(read(&client, &kept).await, "during");
    let marker = client.delete_object().bucket("photos").key("k").send().await.expect("a marker");
    assert_eq!(marker.version_id(), Some("null"));
    let ids: Vec<_> = store.versions("photos")["k"].iter().map(|version| version.id.clone()).collect();
    assert_eq!(ids, [kept, "null".to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn deleting_many_tells_of_markers() {
    let (_, client) = versioned();
    let first = put(&client, "one").await;
    let delete = async |version: Option<&str>| {
        let one = ObjectIdentifier::builder().key("k").set_version_id(version.map(str::to_owned));
        let delete = Delete::builder().objects(one.build().expect("complete")).build().expect("complete");
        let output = client.delete_objects().bucket("photos").delete(delete).send().await.expect("an answer");
        output.deleted().first().cloned().expect("one entry")
    };
    let marker = delete(None).await;
    assert_eq!((marker.delete_marker(), marker.version_id()), (Some(true), None));
    let id = marker.delete_marker_version_id().expect("the marker's id");
    let removed = delete(Some(id)).await;
    assert_eq!((removed.delete_marker(), removed.version_id()), (Some(true), Some(id)));
    let version = delete(Some(&first)).await;
    assert_eq!((version.delete_marker(), version.version_id()), (None, Some(first.as_str())));
}

fn entries(page: &ListObjectVersionsOutput) -> Vec<(String, String)> {
    let versions = page.versions().iter().map(|version| (version.key(), version.version_id()));
    let markers = page.delete_markers().iter().map(|marker| (marker.key(), marker.version_id()));
    let entry = |(key, id): (Option<&str>, Option<&str>)| {
        (key.unwrap_or_default().to_owned(), id.unwrap_or_default().to_owned())
    };
    versions.chain(markers).map(entry).collect()
}

/// Lists page by page, and deletes each page before requesting the next, as when emptying a bucket.
#[tokio::test(start_paused = true)]
async fn a_bucket_can_be_emptied_page_by_page() {
    let store = store_with(Dialect { page_size: 2, ..Dialect::default() });
    store.put_bucket("acme", "photos");
    store.put_object("photos", "a", "null version");
    store.set_versioning("photos", Versioning::Enabled);
    for _ in 0..3 {
        store.put_object("photos", "a", "data");
    }
    store.put_object("photos", "b", "data");
    let client = client(&store, "acme");
    client.delete_object().bucket("photos").key("b").send().await.expect("a marker");
    let (mut key, mut version) = (None, None);
    for _ in 0..4 {
        let list = client.list_object_versions().bucket("photos");
        let page = list.set_key_marker(key).set_version_id_marker(version).send().await.expect("a page");
        for (key, id) in entries(&page) {
            client.delete_object().bucket("photos").key(key).version_id(id).send().await.expect("an answer");
        }
        (key, version) = (page.next_key_marker().map(str::to_owned), page.next_version_id_marker().map(str::to_owned));
        if page.is_truncated() != Some(true) {
            break;
        }
    }
    assert!(store.versions("photos").is_empty());
}

#[tokio::test(start_paused = true)]
async fn versions_are_listed_newest_first() {
    let (store, client) = versioned();
    for (key, text) in [("a", "1"), ("a", "2"), ("b/x", "3"), ("c", "4")] {
        store.put_object("photos", key, text);
    }
    let list = || client.list_object_versions().bucket("photos");
    let page = list().delimiter("/").send().await.expect("a page");
    let latest: Vec<_> = page.versions().iter().map(|version| version.is_latest()).collect();
    assert_eq!(latest, [Some(true), Some(false), Some(true)]);
    assert_eq!(page.common_prefixes().first().and_then(|prefix| prefix.prefix()), Some("b/"));
    let first = list().max_keys(1).send().await.expect("a page");
    assert_eq!(first.next_key_marker(), Some("a"));
    let marker = first.next_version_id_marker().expect("a marker");
    let second = list().max_keys(1).key_marker("a").version_id_marker(marker).send().await.expect("a page");
    assert_eq!(second.versions().first().and_then(|version| version.is_latest()), Some(false));
    let past = list().key_marker("a").send().await.expect("a page");
    assert_eq!(past.versions().first().and_then(|version| version.key()), Some("b/x"));
    assert_eq!(refused(list().version_id_marker("v1").send().await), code("InvalidArgument", 400));
}
