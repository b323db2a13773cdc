//! Administrative access.

use std::collections::BTreeMap;

use super::super::Protection;
use super::*;

#[test]
fn the_admin_sees_and_changes_everything() {
    let store = store();
    assert!(store.put_bucket("rival", "photos"));
    assert!(!store.put_bucket("acme", "photos"));
    let tags = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    assert!(store.set_tags("photos", Some(tags.clone())));
    assert_eq!(store.put_object("photos", "cat", "meow").as_deref(), Some("null"));
    assert!(store.start_upload("photos", "film").is_some());
    let bucket = store.buckets().remove("photos").expect("the bucket");
    assert_eq!((bucket.owner.as_str(), bucket.tags), ("acme", Some(tags)));
    assert_eq!((bucket.objects, bucket.versions, bucket.delete_markers, bucket.uploads), (1, 1, 0, 1));
    assert!(store.remove_object("photos", "cat"));
    assert!(!store.remove_object("photos", "cat"));
    assert!(store.remove_bucket("photos"));
    assert_eq!(store.buckets(), BTreeMap::new());
}

#[test]
fn changes_to_what_is_missing_do_nothing() {
    let store = store();
    assert!(!store.set_tags("photos", None));
    assert!(!store.remove_bucket("photos"));
    assert_eq!(store.put_object("photos", "k", "data"), None);
    assert!(!store.protect("photos", "k", Protection::default()));
}

#[tokio::test(start_paused = true)]
async fn a_protected_object_cannot_be_removed_by_clients() {
    let (store, client) = with_bucket();
    store.put_object("photos", "k", "data");
    assert!(store.protect("photos", "k", Protection { retention: None, legal_hold: true }));
    let delete = client.delete_object().bucket("photos").key("k").version_id("null").send().await;
    assert_eq!(refused(delete), code("AccessDenied", 403));
    assert!(store.remove_bucket("photos"));
}

/// Equal calls get equal responses, including ids.
#[tokio::test(start_paused = true)]
async fn two_stores_agree() {
    let run = async || {
        let (store, client) = with_bucket();
        store.set_versioning("photos", super::super::Versioning::Enabled);
        for key in ["a", "b", "a"] {
            client.put_object().bucket("photos").key(key).body(body(key)).send().await.expect("a write");
        }
        let upload = client.create_multipart_upload().bucket("photos").key("c").send().await.expect("an upload");
        (store.versions("photos"), upload.upload_id().map(str::to_owned))
    };
    assert_eq!(run().await, run().await);
}
