//! One bucket shared by many accesses (spec §8).

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::support::{
    Stage, access_with, claim, claim_on, claim_with, condition, data, decoded, object, secrets, works,
};

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, test)
}

pub fn access(world: &World, namespace: &str) -> Value {
    object(world, "bucketaccesses", namespace, "reader")
}

pub fn reason(world: &World, namespace: &str) -> String {
    condition(&access(world, namespace), "Ready")
}

fn entry(world: &World, namespace: &str, at: usize) -> Value {
    access(world, namespace)["status"]["buckets"][at].clone()
}

/// Returns an access called `reader` with these entries.
fn reader(namespace: &str, entries: &str) -> String {
    access_with(namespace, "reader", &format!("buckets: [{entries}], rotationPolicy: {{overlapSeconds: 60}}"))
}

pub const OWN: &str = "{claimRef: {name: photos}}";
const THEIRS: &str = "{claimRef: {name: photos, namespace: team-a}}";
const SHARED: &str = "sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]";

/// Applies the claim `team-a/photos` until it is bound, and an access to it until it is open.
pub async fn open(stage: &Stage, spec: &str, namespace: &str, entries: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
    stage.apply(&reader(namespace, entries)).await;
    stage.until("the access is open", |world| reason(world, namespace) == "Open").await;
    stage.world.pass(Duration::from_secs(5)).await;
}

/// Returns a client with the key in the Secret of the access.
pub fn client(world: &World, namespace: &str) -> aws_sdk_s3::Client {
    let held = data(world, namespace, "reader-key");
    world.tenant(&held["AWS_ACCESS_KEY_ID"], &held["AWS_SECRET_ACCESS_KEY"], &held["AWS_REGION"])
}

async fn puts(client: &aws_sdk_s3::Client, bucket: &str, key: &str) -> bool {
    client.put_object().bucket(bucket).key(key).body(ByteStream::from_static(b"x")).send().await.is_ok()
}

pub fn keys(world: &World) -> Vec<BTreeMap<String, String>> {
    let names = secrets(world, OPERATOR_NAMESPACE, "access-credential");
    names.iter().map(|name| data(world, OPERATOR_NAMESPACE, name)).collect()
}

fn records(world: &World) -> Vec<BTreeMap<String, String>> {
    let names = secrets(world, OPERATOR_NAMESPACE, "bucket-record");
    names.iter().map(|name| data(world, OPERATOR_NAMESPACE, name)).collect()
}

/// Returns the writing calls after `before`, in short form.
fn writes(world: &World, before: u64) -> Vec<String> {
    let trace = world.effects.trace();
    let calls = trace.lines().iter().filter(|line| line.number > before).map(|line| line.call.to_string());
    calls
        .filter(|call| !call.starts_with("kube:get") && !call.starts_with("kube:list") && !call.contains("watch"))
        .collect()
}

// covers: 8.record.first, 8.key, 8.consumer, 8.status.ready, 8.status.entry, 8.status.claim, 8.map
#[test]
fn an_access_of_the_claims_own_namespace_opens_its_bucket() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        assert!(
            puts(&client(world, "team-a"), "team-a-photos", "a").await
                && works(&client(world, "team-a"), "team-a-photos").await
        );
        let [key] = keys(world).try_into().expect("there is one");
        let fields: Vec<&str> = key.keys().map(String::as_str).collect();
        assert_eq!(fields, ["access_key_id", "access_uid", "scopes", "secret_access_key"]);
        let held = data(world, "team-a", "reader-key");
        assert_eq!(
            (held["BUCKET_NAME"].as_str(), &held["AWS_ACCESS_KEY_ID"]),
            ("team-a-photos", &key["access_key_id"])
        );
        let namespace =
            object(world, "namespaces", "", "team-a")["metadata"]["uid"].as_str().expect("a UID").to_owned();
        let map: Value = serde_json::from_str(&records(world)[0]["accesses"]).expect("JSON");
        assert_eq!(map, json!({namespace: {"maxMode": "ReadWrite"}}));
        assert_eq!(entry(world, "team-a", 0)["state"], "Open");
        let claim = object(world, "bucketclaims", "team-a", "photos");
        assert_eq!(claim["status"]["accesses"], json!({"count": 1, "first": ["team-a/reader"]}));
        let version = |role: &str| {
            let name = secrets(world, OPERATOR_NAMESPACE, role).remove(0);
            let secret = object(world, "secrets", OPERATOR_NAMESPACE, &name);
            secret["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok())
        };
        assert!(version("access-record") < version("access-credential"), "the record is stored first");
    });
}

// covers: 8.sharing.silent, 8.entry
#[test]
fn without_consent_it_is_told_the_same_whether_there_is_such_a_claim_or_not() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.apply(&reader("team-b", &format!("{THEIRS}, {{claimRef: {{name: nobody, namespace: team-a}}}}"))).await;
        stage.until("it is told", |world| reason(world, "team-b") == "NotShared").await;
        world.pass(Duration::from_secs(30)).await;
        assert_eq!(entry(world, "team-b", 0), json!({"state": "Closed", "reason": "NotShared"}));
        assert_eq!(entry(world, "team-b", 0), entry(world, "team-b", 1));
        assert!(keys(world).is_empty() && secrets(world, OPERATOR_NAMESPACE, "access-record").is_empty());
        assert!(!records(world)[0].contains_key("accesses"));
    });
}

// covers: 8.map.narrow, 8.gateway.weaker, 8.mode
#[rstest]
#[case("{}")]
#[case(r#"{"metadata": {"annotations": {"broker.stowage.io/paused": "true"}}}"#)]
fn consent_lets_another_namespace_in_and_its_end_ends_that(#[case] first: &str) {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, SHARED, "team-b", THEIRS).await;
        let reader = client(world, "team-b");
        assert!(works(&reader, "team-a-photos").await);
        assert!(!puts(&reader, "team-a-photos", "a").await, "it asks for more than its consent");
        assert_eq!(entry(world, "team-b", 0)["mode"], "ReadOnly");
        stage.patch("bucketclaims", "team-a", "photos", serde_json::from_str(first).expect("JSON")).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"sharing": null}})).await;
        stage.until("the map is gone", |world| !records(world)[0].contains_key("accesses")).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&reader, "team-a-photos").await);
        assert_eq!(entry(world, "team-b", 0), json!({"state": "Closed", "reason": "NotShared"}));
    });
}

// covers: 8.map.nobody
#[test]
fn once_nobody_asks_the_record_lets_nobody_in() {
    run(async |stage| {
        open(&stage, "", "team-a", OWN).await;
        stage.delete("bucketaccesses", "team-a", "reader").await;
        stage.until("the map is gone", |world| !records(world)[0].contains_key("accesses")).await;
    });
}

// covers: 8.deleted, 8.record.last
#[test]
fn a_deleted_access_leaves_nothing() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let reader = client(world, "team-a");
        let before = world.effects.trace().effects();
        stage.delete("bucketaccesses", "team-a", "reader").await;
        stage.until("it is gone", |world| access(world, "team-a").is_null()).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(keys(world).is_empty() && secrets(world, OPERATOR_NAMESPACE, "access-record").is_empty());
        assert!(object(world, "secrets", "team-a", "reader-key").is_null());
        assert!(!works(&reader, "team-a-photos").await);
        let ended = writes(world, before);
        let at = |part: &str| ended.iter().position(|call| call.contains(part));
        assert!(at("/va-") < at("/ar-") && at("/ar-") < at("patch bucketaccesses team-a/reader"), "{ended:?}");
        assert!(world.store.buckets().contains_key("team-a-photos"));
    });
}

// covers: 8.sweep
#[test]
fn keys_of_an_access_whose_finalizer_was_stripped_are_swept() {
    run(async |mut stage| {
        let world = &stage.world;
        open(&stage, SHARED, "team-b", THEIRS).await;
        let reader = client(world, "team-b");
        assert!(works(&reader, "team-a-photos").await);
        stage.operator.stop();
        stage.patch("bucketaccesses", "team-b", "reader", json!({"metadata": {"finalizers": null}})).await;
        stage.delete("bucketaccesses", "team-b", "reader").await;
        assert!(access(world, "team-b").is_null() && !keys(world).is_empty());
        stage.operator = stage.world.start_operator();
        let world = &stage.world;
        stage.until("its keys are swept", |world| keys(world).is_empty()).await;
        stage.until("its record is", |world| secrets(world, OPERATOR_NAMESPACE, "access-record").is_empty()).await;
        stage.until("the bucket is closed to it", |world| !records(world)[0].contains_key("accesses")).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&reader, "team-a-photos").await);
        assert_eq!(condition(&object(world, "bucketclaims", "team-a", "photos"), "Ready"), "Bound");
    });
}

// covers: 8.ending, 8.ending.never
#[rstest]
#[case("deletionPolicy: Retain")]
#[case("deletionPolicy: Delete, forceDelete: true")]
fn one_write_ends_every_access_when_the_claim_goes(#[case] policy: &str) {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, policy, "team-a", OWN).await;
        let reader = client(world, "team-a");
        assert!(puts(&reader, "team-a-photos", "a").await);
        let before = world.effects.trace().effects();
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        world.pass(Duration::from_secs(10)).await;
        assert!(!works(&reader, "team-a-photos").await);
        let first = writes(world, before).into_iter().next().expect("there is one");
        assert!(first.contains("patch secrets") && first.contains("/br-"), "{first}");
        assert_eq!(entry(world, "team-a", 0)["reason"], "ClaimNotBound");
    });
}

// covers: 8.key.lives
#[test]
fn a_key_is_replaced_on_request_and_the_old_one_works_for_the_overlap() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        world.pass(Duration::from_secs(90)).await;
        let rotate = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketaccesses", "team-a", "reader", rotate).await;
        stage.until("there is another", |world| access(world, "team-a")["status"]["rotationGeneration"] == 2).await;
        world.pass(Duration::from_secs(5)).await;
        assert_eq!(keys(world).len(), 2);
        assert!(works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
        stage.until("the old one is gone", |world| keys(world).len() == 1).await;
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
    });
}

// covers: 8.key.lives
#[test]
fn a_revocation_ends_every_key_at_once() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let old = client(world, "team-a");
        let revoke = json!({"metadata": {"annotations": {"broker.stowage.io/revoke": "leaked"}}});
        stage.patch("bucketaccesses", "team-a", "reader", revoke).await;
        stage.until("there is another", |world| access(world, "team-a")["status"]["rotationGeneration"] == 2).await;
        world.pass(Duration::from_secs(5)).await;
        assert_eq!(keys(world).len(), 1);
        assert!(!works(&old, "team-a-photos").await && works(&client(world, "team-a"), "team-a-photos").await);
    });
}

// covers: 8.key.next, 8.key.inPlace, 8.consumer
#[test]
fn an_entry_that_comes_takes_another_key_and_one_that_goes_the_same() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&claim("team-a", "films")).await;
        open(&stage, "", "team-a", OWN).await;
        let id = |world: &World| data(world, "team-a", "reader-key")["AWS_ACCESS_KEY_ID"].clone();
        let first = id(world);
        let entries = |entries: Value| json!({"spec": {"buckets": entries}});
        let both = json!([{"claimRef": {"name": "photos"}}, {"claimRef": {"name": "films"}}]);
        stage.patch("bucketaccesses", "team-a", "reader", entries(both)).await;
        stage.until("the other opens", |world| entry(world, "team-a", 1)["state"] == "Open").await;
        world.pass(Duration::from_secs(5)).await;
        assert_ne!(id(world), first);
        let held = data(world, "team-a", "reader-key");
        assert_eq!((held["BUCKET_NAMES"].as_str(), held.get("BUCKET_NAME")), ("team-a-photos,team-a-films", None));
        assert!(works(&client(world, "team-a"), "team-a-films").await);
        let second = id(world);
        let one = json!([{"claimRef": {"name": "films"}, "mode": "ReadOnly", "prefix": "in/"}]);
        stage.patch("bucketaccesses", "team-a", "reader", entries(one)).await;
        stage.until("there is one", |world| data(world, "team-a", "reader-key").contains_key("BUCKET_NAME")).await;
        world.pass(Duration::from_secs(5)).await;
        assert_eq!(id(world), second);
        let now = client(world, "team-a");
        assert!(!works(&now, "team-a-photos").await && !puts(&now, "team-a-films", "in/a").await);
        assert!(now.list_objects_v2().bucket("team-a-films").prefix("in/").send().await.is_ok());
        assert!(!works(&now, "team-a-films").await, "a list of all");
    });
}

/// Two claims of the access's own namespace.
const BOTH: &str = "{claimRef: {name: photos}}, {claimRef: {name: films}}";

// covers: 8.key.first
#[test]
fn claims_that_come_soon_after_their_access_are_opened_by_its_first_key() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&reader("team-a", BOTH)).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        world.pass(Duration::from_secs(3)).await;
        assert_eq!((reason(world, "team-a"), keys(world).len()), ("ClaimNotBound".to_owned(), 0));
        let told = access(world, "team-a")["status"]["conditions"].to_string();
        assert!(told.contains("the first key waits for entry 1 of spec.buckets"), "{told}");
        stage.apply(&claim("team-a", "films")).await;
        stage.until("both are open", |world| reason(world, "team-a") == "Open").await;
        assert_eq!(access(world, "team-a")["status"]["rotationGeneration"], 1);
        assert_eq!(data(world, "team-a", "reader-key")["BUCKET_NAMES"], "team-a-photos,team-a-films");
    });
}

// covers: 8.key.first
#[test]
fn the_first_key_waits_for_ten_seconds_and_not_longer() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.apply(&reader("team-a", BOTH)).await;
        world.pass(Duration::from_secs(8)).await;
        assert!(keys(world).is_empty());
        world.pass(Duration::from_secs(4)).await;
        assert!(works(&client(world, "team-a"), "team-a-photos").await);
        assert_eq!(entry(world, "team-a", 1)["reason"], "ClaimNotBound");
    });
}

// covers: 8.entry.once
#[test]
fn two_entries_for_one_bucket_are_both_closed() {
    run(async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.apply(&reader("team-a", &format!("{OWN}, {THEIRS}"))).await;
        stage.until("it is told", |world| reason(world, "team-a") == "SameBucket").await;
        stage.world.pass(Duration::from_secs(30)).await;
        assert_eq!(entry(&stage.world, "team-a", 1)["reason"], "SameBucket");
        assert!(keys(&stage.world).is_empty());
    });
}

// covers: 8.conflict, 8.secretName
#[test]
fn a_secret_of_somebody_elses_is_left_alone() {
    run(async |stage| {
        stage
            .apply(
                "{apiVersion: v1, kind: Secret, metadata: {name: reader-key, namespace: team-a}, stringData: {a: b}}",
            )
            .await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.apply(&reader("team-a", OWN)).await;
        stage.until("it is told", |world| reason(world, "team-a") == "SecretConflict").await;
        stage.world.pass(Duration::from_secs(30)).await;
        let theirs = decoded(&object(&stage.world, "secrets", "team-a", "reader-key"));
        assert_eq!(theirs, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    });
}

// covers: 8.ending.kept
#[test]
fn a_key_that_somebody_keeps_keeps_no_other_from_its_end() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, "", "team-a", OWN).await;
        let [first] = secrets(world, OPERATOR_NAMESPACE, "access-credential").try_into().expect("there is one");
        let keep = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &first, keep).await;
        let rotate = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketaccesses", "team-a", "reader", rotate).await;
        stage.until("there are two keys", |world| keys(world).len() == 2).await;
        stage.delete("bucketaccesses", "team-a", "reader").await;
        stage.until("it is told", |world| reason(world, "team-a") == "DeletionBlocked").await;
        assert_eq!(secrets(world, OPERATOR_NAMESPACE, "access-credential"), std::slice::from_ref(&first));
        let free = json!({"metadata": {"finalizers": null}});
        stage.patch("secrets", OPERATOR_NAMESPACE, &first, free).await;
        stage.until("it is gone", |world| access(world, "team-a").is_null()).await;
        assert!(keys(world).is_empty());
    });
}

// covers: 8.shared.gateway, 8.shared.void, 8.shared.claim
#[test]
fn an_administrator_shares_a_bucket_that_no_claim_can_have_then() {
    run(async |stage| {
        let world = &stage.world;
        world.store.put_bucket(stowage_world::ADMIN_ACCOUNT, "archive");
        let shared = json!([{"name": "archive", "namespaces": ["team-b"], "maxMode": "ReadOnly"}]);
        stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": shared}})).await;
        stage.apply(&reader("team-b", "{bucketRef: {backend: main, name: archive}}")).await;
        stage.until("the access is open", |world| reason(world, "team-b") == "Open").await;
        world.pass(Duration::from_secs(5)).await;
        let reader = client(world, "team-b");
        assert!(works(&reader, "archive").await && !puts(&reader, "archive", "a").await);
        stage.apply(&claim_with("team-a", "photos", "bucketName: archive")).await;
        stage.until_ready_is("team-a", "photos", "BucketNameConflict").await;
        assert!(records(world).is_empty() && works(&reader, "archive").await);
        let mut other = object(world, "s3backends", "", "main");
        let endpoint = other["spec"]["endpoint"].clone();
        other["metadata"] = json!({"name": "other"});
        let credentials = other["spec"]["adminCredentialsSecretRef"].clone();
        other["spec"] = json!({"endpoint": endpoint, "adminCredentialsSecretRef": credentials});
        stage.apply(&other.to_string()).await;
        stage.apply(&claim_on("other", "team-a", "second", "bucketName: archive")).await;
        stage.until_ready_is("team-a", "second", "BucketNameConflict").await;
        assert!(records(world).is_empty() && works(&reader, "archive").await, "by another backend of the store");
        stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": null}})).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&reader, "archive").await);
        assert_eq!(entry(world, "team-b", 0)["reason"], "NotShared");
    });
}

// covers: 8.shared.refused, 8.shared.claim
#[test]
fn a_claim_that_was_refused_a_bucket_keeps_nobody_from_sharing_it() {
    run(async |stage| {
        let world = &stage.world;
        world.store.put_bucket(stowage_world::ADMIN_ACCOUNT, "archive");
        stage.apply(&claim_with("team-a", "photos", "bucketName: archive")).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        // While paused, the claim's passes can't release the name.
        let paused = |value: Value| json!({"metadata": {"annotations": {"broker.stowage.io/paused": value}}});
        stage.patch("bucketclaims", "team-a", "photos", paused(json!("true"))).await;
        let shared = json!([{"name": "archive", "namespaces": ["team-b"], "maxMode": "ReadOnly"}]);
        stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": shared}})).await;
        stage.apply(&reader("team-b", "{bucketRef: {backend: main, name: archive}}")).await;
        stage.until("the access is open", |world| reason(world, "team-b") == "Open").await;
        world.pass(Duration::from_secs(5)).await;
        let reader = client(world, "team-b");
        assert!(works(&reader, "archive").await);
        stage.patch("bucketclaims", "team-a", "photos", paused(Value::Null)).await;
        stage.until_ready_is("team-a", "photos", "BucketNameConflict").await;
        // An edit of the backend doesn't bind the claim either while the bucket is shared.
        stage.set_adoption("Any").await;
        world.pass(Duration::from_secs(1200)).await;
        stage.until_ready_is("team-a", "photos", "BucketNameConflict").await;
        assert!(works(&reader, "archive").await && !records(world)[0].contains_key("origin"));
        stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": null}})).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": shared}})).await;
        stage.until("it is the claim's", |world| entry(world, "team-b", 0)["reason"] == "HeldByClaim").await;
        assert!(!works(&reader, "archive").await);
    });
}

// covers: 8.map.raise
#[test]
fn nothing_is_written_at_rest_and_consent_is_written_once() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage, SHARED, "team-b", THEIRS).await;
        let written = writes(world, 0);
        let maps = written.iter().filter(|call| call.contains("patch secrets") && call.contains("/br-")).count();
        assert_eq!(maps, 2, "what was seen absent, and the consent: {written:?}");
        let before = world.effects.trace().effects();
        world.pass(Duration::from_secs(3600)).await;
        let later: Vec<String> = writes(world, before).into_iter().filter(|call| call.starts_with("kube:")).collect();
        assert!(later.is_empty(), "{later:?}");
    });
}

// covers: 8.upgrade
#[test]
fn a_cluster_without_the_kind_keeps_nobody_waiting_and_may_get_it_later() {
    Stage::run_with(Options { accesses: Accesses::Unknown, ..Options::default() }, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let definition = stowage_operator::api::bucket_access_crd();
        stage.world.cluster.install_crd(&definition).expect("it is valid");
        stage.apply(&reader("team-a", OWN)).await;
        stage.until("the access is open", |world| reason(world, "team-a") == "Open").await;
        assert!(works(&client(&stage.world, "team-a"), "team-a-photos").await);
    });
}
