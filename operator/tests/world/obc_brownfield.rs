//! ObjectBucketClaims of classes that name an existing bucket (spec §9).

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_world::{ADMIN_ACCOUNT, Accesses, Foreign, OPERATOR_NAMESPACE, Options, World};

use crate::obc::{bucket, class, config_map, delete, obc, obc_with, phase, told, until_gone, writes};
use crate::support::{Stage, condition, data, events, object, secrets, tenant, tenant_can_work, works};

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    run_with(Options::default(), test)
}

/// Runs `test` in a world where bucket `archive` contains an object and belongs to no claim.
fn run_with<T: Send>(options: Options, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let foreign = options.foreign.or(Some(Foreign::Rook));
    Stage::run_with(Options { accesses: Accesses::Served, foreign, ..options }, async |stage| {
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "archive");
        stage.world.store.put_object("archive", "theirs", "data");
        test(stage).await
    })
}

async fn share(stage: &Stage, shared: Value) {
    stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": shared}})).await;
}

fn with_both(mode: &str) -> Value {
    json!([{"name": "archive", "namespaces": ["team-a", "team-b"], "maxMode": mode}])
}

fn shadow(world: &World) -> Value {
    object(world, "bucketaccesses", "team-a", "obc-photos")
}

const THERE: &str = "bucketName: archive";

/// Applies the claim `team-a/photos` of a class that names the bucket until it is Bound.
async fn bound(stage: &Stage, policy: &str) {
    share(stage, with_both("ReadWrite")).await;
    stage.apply(&class("buckets", policy, THERE)).await;
    stage.apply(&obc_with("team-a", "photos", "")).await;
    stage.until("it is Bound", |world| phase(world) == "Bound").await;
    stage.world.pass(Duration::from_secs(5)).await;
}

async fn puts(client: &Client, key: &str) -> bool {
    client.put_object().bucket("archive").key(key).body(ByteStream::from_static(b"x")).send().await.is_ok()
}

/// Asserts that nothing of the claim remains, and that the bucket has its content.
fn assert_only_the_bucket_is_left(world: &World) {
    let kinds = ["objectbuckets", "objectbucketclaims", "bucketaccesses", "bucketclaims"];
    let left = world.cluster.objects().into_iter().filter(|it| kinds.contains(&it.plural.as_str()));
    assert_eq!(left.map(|it| it.name).collect::<Vec<_>>(), Vec::<String>::new());
    for role in ["access-record", "access-credential", "bucket-record", "virtual-credential"] {
        assert_eq!(secrets(world, OPERATOR_NAMESPACE, role), Vec::<String>::new());
    }
    assert!(object(world, "secrets", "team-a", "photos").is_null());
    assert!(world.store.objects("archive").contains_key("theirs"));
}

// covers: 9.there, 9.there.names, 9.there.deletion
#[rstest]
fn a_bucket_that_is_there_is_opened_and_stays_when_the_claim_goes(
    #[values(Foreign::Rook, Foreign::NooBaa, Foreign::Own)] foreign: Foreign,
    #[values("Delete", "Retain")] policy: &str,
) {
    run_with(Options { foreign: Some(foreign), ..Options::default() }, async |stage| {
        let world = &stage.world;
        bound(&stage, policy).await;
        tenant_can_work(world, "team-a", "photos").await;
        let (held, name) = tenant(world, "team-a", "photos");
        assert_eq!((name.as_str(), &obc(world)["spec"]["bucketName"]), ("archive", &json!("archive")));
        assert_eq!(config_map(world)["data"]["BUCKET_NAME"], "archive");
        assert_eq!(bucket(world)["status"]["phase"], "Bound");
        assert_eq!(bucket(world)["spec"]["additionalState"]["accessUID"], shadow(world)["metadata"]["uid"]);
        let owner = object(world, "secrets", "team-a", "photos")["metadata"]["ownerReferences"][0]["uid"].clone();
        assert_eq!(owner, shadow(world)["metadata"]["uid"]);
        assert!(object(world, "bucketclaims", "team-a", "obc-photos").is_null());
        stage.delete("storageclasses", "", "buckets").await;
        delete(&stage).await;
        until_gone(&stage).await;
        world.pass(Duration::from_secs(5)).await;
        world.run_cluster_controllers();
        assert_only_the_bucket_is_left(world);
        assert!(config_map(world).is_null() && !works(&held, "archive").await);
        assert!(world.store.buckets()["archive"].tags.is_none());
    });
}

// covers: 9.there.consent
#[test]
fn what_is_not_shared_is_pending_until_it_is_and_again_once_it_is_not() {
    run(async |stage| {
        let world = &stage.world;
        stage.apply(&class("buckets", "Delete", THERE)).await;
        stage.apply(&obc_with("team-a", "photos", "")).await;
        stage.until("it is told", |world| told(world, "NotShared")).await;
        assert_eq!(phase(world), "Pending");
        assert!(config_map(world).is_null());
        let mut part = with_both("ReadWrite");
        part[0]["prefixes"] = json!(["public/"]);
        share(&stage, part).await;
        stage.until("it is told", |world| told(world, "BeyondConsent") && phase(world) == "Pending").await;
        share(&stage, with_both("ReadWrite")).await;
        stage.soon("it is Bound", 10, |world| phase(world) == "Bound").await;
        world.pass(Duration::from_secs(5)).await;
        let (held, _) = tenant(world, "team-a", "photos");
        assert!(works(&held, "archive").await);
        share(&stage, Value::Null).await;
        stage.soon("it is Pending", 10, |world| phase(world) == "Pending").await;
        world.pass(Duration::from_secs(5)).await;
        assert!(!works(&held, "archive").await);
        share(&stage, with_both("ReadWrite")).await;
        stage.until("it is Bound again", |world| phase(world) == "Bound").await;
        world.pass(Duration::from_secs(5)).await;
        tenant_can_work(world, "team-a", "photos").await;
    });
}

// covers: 9.there.mode
#[rstest]
#[case("mode: ReadOnly", "ReadWrite")]
#[case("", "ReadOnly")]
fn of_what_the_class_says_and_what_is_shared_the_weaker_counts(#[case] parameters: &str, #[case] shared: &str) {
    run(async |stage| {
        let world = &stage.world;
        share(&stage, with_both(shared)).await;
        stage.apply(&class("buckets", "Delete", &format!("{THERE}, {parameters}"))).await;
        stage.apply(&obc_with("team-a", "photos", "")).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        world.pass(Duration::from_secs(5)).await;
        let (held, _) = tenant(world, "team-a", "photos");
        assert!(works(&held, "archive").await && !puts(&held, "a").await);
    });
}

// covers: 9.there
#[test]
fn several_claims_of_one_class_have_one_bucket_and_a_key_each() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete").await;
        stage.apply(&obc_with("team-b", "photos", "generateBucketName: other")).await;
        let other = |world: &World| object(world, "objectbucketclaims", "team-b", "photos");
        stage.until("it is Bound", |world| other(world)["status"]["phase"] == "Bound").await;
        world.pass(Duration::from_secs(5)).await;
        let key = |namespace: &str| data(world, namespace, "photos")["AWS_ACCESS_KEY_ID"].clone();
        assert_ne!(key("team-a"), key("team-b"));
        delete(&stage).await;
        until_gone(&stage).await;
        world.pass(Duration::from_secs(5)).await;
        tenant_can_work(world, "team-b", "photos").await;
        assert_eq!(other(world)["status"]["phase"], "Bound");
    });
}

// covers: 9.there.config, 9.there.names
#[rstest]
#[case("additionalConfig: {maxSize: 1Gi}", "UnsupportedConfig")]
#[case("bucketName: another", "InvalidConfig")]
fn what_can_not_be_given_is_refused_by_name(#[case] spec: &str, #[case] reason: &str) {
    run(async |stage| {
        let world = &stage.world;
        share(&stage, with_both("ReadWrite")).await;
        stage.apply(&class("buckets", "Delete", THERE)).await;
        stage.apply(&obc_with("team-a", "photos", spec)).await;
        stage.until("it has failed", |world| phase(world) == "Failed" && told(world, reason)).await;
        world.pass(Duration::from_secs(60)).await;
        assert!(shadow(world).is_null() && world.store.buckets().len() == 1);
        delete(&stage).await;
        until_gone(&stage).await;
        assert_only_the_bucket_is_left(world);
    });
}

// covers: 9.there.repaired
#[test]
fn what_somebody_does_to_the_access_is_undone_at_once() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete").await;
        let before = shadow(world);
        let elsewhere = json!({"spec": {"buckets": [{"bucketRef": {"backend": "main", "name": "theirs"}}]}});
        stage.patch("bucketaccesses", "team-a", "obc-photos", elsewhere).await;
        stage.soon("it is undone", 5, |world| shadow(world)["spec"] == before["spec"]).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        stage.delete("bucketaccesses", "team-a", "obc-photos").await;
        let is_new = |world: &World| {
            let now = shadow(world);
            !now.is_null() && now["metadata"]["uid"] != before["metadata"]["uid"]
        };
        stage.soon("it is made again", 10, is_new).await;
        let is_open = |world: &World| condition(&shadow(world), "Ready") == "Open" && phase(world) == "Bound";
        stage.until("it is Bound", is_open).await;
        world.pass(Duration::from_secs(5)).await;
        assert!(told(world, "BucketAccessRemade"));
        tenant_can_work(world, "team-a", "photos").await;
    });
}

// covers: 9.secret.foreign
#[test]
fn a_secret_of_somebody_else_is_left_alone() {
    run(async |stage| {
        let world = &stage.world;
        let theirs = "{apiVersion: v1, kind: Secret, metadata: {name: photos, namespace: team-a}, \
                      stringData: {theirs: x}}";
        stage.apply(theirs).await;
        let before = object(world, "secrets", "team-a", "photos");
        share(&stage, with_both("ReadWrite")).await;
        stage.apply(&class("buckets", "Delete", THERE)).await;
        stage.apply(&obc_with("team-a", "photos", "")).await;
        stage.until("it has failed", |world| phase(world) == "Failed" && told(world, "SecretConflict")).await;
        assert_eq!(object(world, "secrets", "team-a", "photos"), before);
        stage.delete("secrets", "team-a", "photos").await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
    });
}

// covers: 9.rest
#[test]
fn at_rest_nothing_is_written() {
    run(async |stage| {
        let world = &stage.world;
        bound(&stage, "Delete").await;
        let (before, told) = (world.effects.trace().effects(), events(world, "photos"));
        world.pass(Duration::from_secs(3 * 3600)).await;
        assert_eq!(writes(world, before), [] as [&str; 0]);
        assert_eq!((phase(world), events(world, "photos")), ("Bound".to_owned(), told));
    });
}

// covers: 9.there.unknown
#[rstest]
#[case(Accesses::Unknown)]
#[case(Accesses::Absent)]
fn a_cluster_without_accesses_serves_all_other_classes(#[case] accesses: Accesses) {
    Stage::run_with(Options { accesses, foreign: Some(Foreign::Rook), ..Options::default() }, async |stage| {
        let world = &stage.world;
        stage.apply(&class("buckets", "Retain", "")).await;
        stage.apply(&class("there", "Retain", THERE)).await;
        stage
            .apply(
                &obc_with("team-a", "photos", "")
                    .replace("storageClassName: buckets", "storageClassName: buckets, bucketName: team-a-photos"),
            )
            .await;
        stage
            .apply(&obc_with("team-b", "waiting", "").replace("storageClassName: buckets", "storageClassName: there"))
            .await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        world.pass(Duration::from_secs(60)).await;
        let waiting = object(world, "objectbucketclaims", "team-b", "waiting");
        assert_eq!((&waiting["status"], &waiting["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
        let buckets = world.cluster.objects().into_iter().filter(|it| it.plural == "objectbuckets").count();
        assert_eq!((buckets, events(world, "waiting")), (1, Vec::new()));
        delete(&stage).await;
        until_gone(&stage).await;
    });
}

// covers: 9.crash
#[test]
fn a_crash_after_each_call_leaves_one_of_everything() {
    for call in 1..70 {
        let plan = format!("#{call} crash(after-effect)");
        let Ok(plan) = plan.parse() else { panic!("{plan} is no plan") };
        run_with(Options { plan, ..Options::default() }, async |stage| {
            let world = &stage.world;
            bound(&stage, "Delete").await;
            tenant_can_work(world, "team-a", "photos").await;
            let of = |plural: &str| world.cluster.objects().iter().filter(|it| it.plural == plural).count();
            assert_eq!((of("objectbuckets"), of("bucketaccesses"), of("bucketclaims")), (1, 1, 0));
            delete(&stage).await;
            until_gone(&stage).await;
            world.pass(Duration::from_secs(30)).await;
            world.run_cluster_controllers();
            assert_only_the_bucket_is_left(world);
        });
    }
}
