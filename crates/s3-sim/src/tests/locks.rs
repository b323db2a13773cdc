//! Object lock through the protocol. Its rules have unit tests next to the code.

use aws_sdk_s3::primitives::DateTime;
use aws_sdk_s3::types::{
    DefaultRetention, Delete, ObjectIdentifier, ObjectLockConfiguration, ObjectLockEnabled, ObjectLockLegalHold,
    ObjectLockLegalHoldStatus, ObjectLockRetention, ObjectLockRetentionMode, ObjectLockRule,
};

use super::super::Versioning;
use super::*;

const START: i64 = 1_800_000_000;

/// Returns the clock, a client and a version in a bucket with object lock.
async fn locked() -> (TestClock, Client, String) {
    let clock = TestClock::default();
    let store = Store::new(clock.clock(), Dialect::default());
    store.add_account("acme", "AKIAACME", "acme-secret");
    let client = client(&store, "acme");
    let create = client.create_bucket().bucket("photos").object_lock_enabled_for_bucket(true);
    create.send().await.expect("a bucket");
    let put = client.put_object().bucket("photos").key("k").body(body("data")).send().await.expect("a write");
    let version = put.version_id().expect("object lock needs versioning").to_owned();
    (clock, client, version)
}

async fn retain(client: &Client, mode: ObjectLockRetentionMode, seconds: i64) {
    let until = DateTime::from_secs(START + seconds);
    let retention = ObjectLockRetention::builder().mode(mode).retain_until_date(until).build();
    let put = client.put_object_retention().bucket("photos").key("k").retention(retention);
    put.send().await.expect("a retention");
}

#[tokio::test(start_paused = true)]
async fn a_retained_version_stays_until_its_date() {
    let (clock, client, version) = locked().await;
    retain(&client, ObjectLockRetentionMode::Compliance, 100).await;
    let delete = || client.delete_object().bucket("photos").key("k").version_id(&version).send();
    assert_eq!(refused(delete().await), code("AccessDenied", 403));
    client.delete_object().bucket("photos").key("k").send().await.expect("a marker removes nothing");
    clock.advance(100);
    delete().await.expect("the date has come");
}

#[tokio::test(start_paused = true)]
async fn deleting_many_refuses_locked_versions_one_by_one() {
    let (_, client, version) = locked().await;
    retain(&client, ObjectLockRetentionMode::Governance, 100).await;
    let free = client.put_object().bucket("photos").key("free").body(body("data")).send().await.expect("a write");
    let one = |key: &str, id: &str| ObjectIdentifier::builder().key(key).version_id(id).build().expect("complete");
    let objects = vec![one("k", &version), one("free", free.version_id().expect("an id"))];
    let delete = Delete::builder().set_objects(Some(objects)).build().expect("complete");
    let call = || client.delete_objects().bucket("photos").delete(delete.clone());
    let output = call().send().await.expect("an answer");
    assert_eq!(output.deleted().len(), 1);
    let error = output.errors().first().expect("one error");
    assert_eq!((error.key(), error.code(), error.version_id()), (Some("k"), Some("AccessDenied"), Some(&*version)));
    assert_eq!(error.message(), Some("Access Denied because object protected by object lock."));
    let bypassed = call().bypass_governance_retention(true).send().await.expect("an answer");
    assert_eq!(bypassed.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn a_legal_hold_holds_until_lifted() {
    let (_, client, version) = locked().await;
    let hold = async |status: ObjectLockLegalHoldStatus| {
        let hold = ObjectLockLegalHold::builder().status(status).build();
        let put = client.put_object_legal_hold().bucket("photos").key("k").legal_hold(hold);
        put.send().await.expect("an answer");
    };
    let delete = || client.delete_object().bucket("photos").key("k").version_id(&version).send();
    hold(ObjectLockLegalHoldStatus::On).await;
    let got = client.get_object_legal_hold().bucket("photos").key("k").send().await.expect("an answer");
    let status = got.legal_hold().and_then(|hold| hold.status());
    assert_eq!(status, Some(&ObjectLockLegalHoldStatus::On));
    assert_eq!(refused(delete().await), code("AccessDenied", 403));
    hold(ObjectLockLegalHoldStatus::Off).await;
    delete().await.expect("nothing holds it");
}

#[tokio::test(start_paused = true)]
async fn a_legal_hold_is_known_once_it_was_set() {
    let (_, client, _) = locked().await;
    let get = || client.get_object_legal_hold().bucket("photos").key("k").send();
    assert_eq!(refused(get().await), code("NoSuchObjectLockConfiguration", 404));
    let head = async || client.head_object().bucket("photos").key("k").send().await.expect("an object");
    assert_eq!(head().await.object_lock_legal_hold_status(), None);
    let off = ObjectLockLegalHold::builder().status(ObjectLockLegalHoldStatus::Off).build();
    client.put_object_legal_hold().bucket("photos").key("k").legal_hold(off).send().await.expect("an answer");
    assert_eq!(head().await.object_lock_legal_hold_status(), Some(&ObjectLockLegalHoldStatus::Off));
    get().await.expect("it is off");
}

#[tokio::test(start_paused = true)]
async fn a_delete_marker_has_no_lock() {
    let (_, client, _) = locked().await;
    client.delete_object().bucket("photos").key("k").send().await.expect("a marker");
    let until = DateTime::from_secs(START + 100);
    let mode = ObjectLockRetentionMode::Governance;
    let retention = ObjectLockRetention::builder().mode(mode).retain_until_date(until).build();
    let put = client.put_object_retention().bucket("photos").key("k").retention(retention).send().await;
    assert_eq!(refused(put), code("MethodNotAllowed", 405));
}

#[tokio::test(start_paused = true)]
async fn new_objects_get_the_default_retention() {
    let (_, client, _) = locked().await;
    let default = DefaultRetention::builder().mode(ObjectLockRetentionMode::Governance).days(1).build();
    let rule = ObjectLockRule::builder().default_retention(default).build();
    let configuration =
        ObjectLockConfiguration::builder().object_lock_enabled(ObjectLockEnabled::Enabled).rule(rule).build();
    let put = client.put_object_lock_configuration().bucket("photos");
    put.object_lock_configuration(configuration.clone()).send().await.expect("an answer");
    let got = client.get_object_lock_configuration().bucket("photos").send().await.expect("an answer");
    assert_eq!(got.object_lock_configuration(), Some(&configuration));
    let before = client.get_object_retention().bucket("photos").key("k").send().await;
    assert_eq!(refused(before), code("NoSuchObjectLockConfiguration", 404));
    client.put_object().bucket("photos").key("new").body(body("data")).send().await.expect("a write");
    let new = client.get_object_retention().bucket("photos").key("new").send().await.expect("an answer");
    let until = new.retention().and_then(|retention| retention.retain_until_date()).map(DateTime::secs);
    assert_eq!(until, Some(START + 86_400));
}

#[tokio::test(start_paused = true)]
async fn buckets_without_object_lock_say_so() {
    let (store, client) = with_bucket();
    store.put_object("photos", "k", "data");
    let get = client.get_object_lock_configuration().bucket("photos").send().await;
    assert_eq!(refused(get), code("ObjectLockConfigurationNotFoundError", 404));
    let retention = client.get_object_retention().bucket("photos").key("k").send().await;
    assert_eq!(refused(retention), code("InvalidRequest", 400));
    let configuration = ObjectLockConfiguration::builder().object_lock_enabled(ObjectLockEnabled::Enabled).build();
    let put = || {
        let put = client.put_object_lock_configuration().bucket("photos");
        put.object_lock_configuration(configuration.clone()).send()
    };
    assert_eq!(refused(put().await), code("InvalidBucketState", 409));
    store.set_versioning("photos", Versioning::Enabled);
    put().await.expect("a versioned bucket");
}
