//! A bound claim moves to another backend, and back (spec §3.7).

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use s3_sim::Store;
use serde_json::{Value, json};
use stowage_operator::api::Endpoint;
use stowage_world::{
    ADMIN_ACCOUNT, BackendStore, GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, Options, STORE_ENDPOINT, World,
};

use crate::support::{
    Stage, backend, claim_with, condition, data, events, internal_of, keys, message, object, published, ready, secrets,
    tenant, tenant_can_work, works,
};

const MINUTE: u64 = 60;
const OVERLAP: u64 = 300;
const RESYNC: Duration = Duration::from_secs(660);
const SECOND: &str = "http://second.example:9000";

/// Returns two more backends: another store with its own template, and a second backend of the
/// first store.
fn more() -> String {
    let second = backend("second", SECOND, "bucketNameTemplate: 'second-{{ .Name }}'");
    format!("{second}\n---\n{}", backend("twin", STORE_ENDPOINT, ""))
}

fn options(plan: &str) -> Options {
    let second = |name: &str, endpoint: &str| BackendStore {
        name: name.to_owned(),
        endpoint: Endpoint::parse(endpoint).unwrap(),
        ..BackendStore::main()
    };
    let main = BackendStore::main();
    let twin = second("twin", main.endpoint.as_str());
    Options { plan: plan.parse().unwrap(), backends: vec![main, second("second", SECOND), twin], ..Options::default() }
}

/// Runs `test` in a world with three backends and `team-a/photos` bound on the first for two
/// minutes.
fn run<T: Send>(plan: &str, spec: &str, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(options(plan), async |stage| {
        stage.apply(&more()).await;
        stage.apply(&claim_with("team-a", "photos", spec)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(120)).await;
        test(stage).await
    })
}

async fn move_to(stage: &Stage, backend: &str) {
    stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"backendRef": {"name": backend}}})).await;
}

fn second(world: &World) -> Store {
    world.store_at(&Endpoint::parse(SECOND).unwrap()).expect("there is a store")
}

fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}

/// Returns the names of the backend and of the bucket in the status.
fn bound_to(world: &World) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&status(world)["backend"]["name"]), text(&status(world)["bucketName"]))
}

fn is_at(world: &World, backend: &str, bucket: &str) -> bool {
    bound_to(world) == (backend.to_owned(), bucket.to_owned()) && ready(world, "team-a", "photos") == "Bound"
}

fn records(world: &World) -> Vec<BTreeMap<String, String>> {
    let names = secrets(world, OPERATOR_NAMESPACE, "bucket-record");
    names.iter().map(|name| data(world, OPERATOR_NAMESPACE, name)).collect()
}

fn settled(world: &World) -> bool {
    keys(world).len() == 1 && records(world).len() == 1
}

async fn anonymous(stage: &Stage, path: &str) -> u16 {
    let request = http::Request::builder().uri(format!("{GATEWAY_ENDPOINT}/{path}"));
    stage.world.send_to_gateway(request.body(s3s::Body::empty()).unwrap()).await.as_u16()
}

// covers: 3.7.backendRef, 3.7.backendRef.event
#[test]
fn a_claim_moves_with_a_new_key_and_the_old_one_opens_the_old_bucket_for_the_overlap() {
    run("", "anonymousAccess: {mode: ReadOnly}", async |stage| {
        let world = &stage.world;
        world.store.put_object("team-a-photos", "page", "old");
        let old = published(world);
        let (old_client, old_bucket) = tenant(world, "team-a", "photos-s3");
        move_to(&stage, "second").await;
        stage.soon("it is bound there", 10, |world| is_at(world, "second", "second-photos")).await;
        stage.soon("the old key is stamped", 10, |world| keys(world)[&old].is_some()).await;
        assert_eq!(status(world)["bucketOrigin"], "Created");
        assert_eq!(status(world)["rotationGeneration"], 2);
        tenant_can_work(world, "team-a", "photos-s3").await;
        let (client, bucket) = tenant(world, "team-a", "photos-s3");
        assert_eq!(bucket, "second-photos");
        assert!(second(world).objects("second-photos").contains_key("probe"), "it is the other store's bucket");
        assert!(works(&old_client, &old_bucket).await);
        assert!(!works(&old_client, &bucket).await && !works(&client, &old_bucket).await, "each key opens one bucket");
        assert_eq!(
            (anonymous(&stage, "team-a-photos/page").await, anonymous(&stage, "second-photos/probe").await),
            (403, 200)
        );
        let told = events(world, "photos");
        let warnings = told.iter().filter(|(kind, reason)| kind == "Warning" && reason == "DataNotMoved");
        assert_eq!(warnings.count(), 1, "{told:?}");

        world.pass(Duration::from_secs(OVERLAP + 20)).await;
        assert!(!works(&old_client, &old_bucket).await, "the gateway enforces the stamp");
        stage.soon("key and record of the old bucket are gone", 2 * MINUTE, settled).await;
        assert_eq!(records(world)[0]["backend"], "second");
        assert!(world.store.objects("team-a-photos").contains_key("page"), "the old bucket is left alone");
        assert!(works(&client, &bucket).await);
        let before = world.effects.trace().effects();
        world.pass(Duration::from_secs(60)).await;
        let calls = world.effects.trace().counters_after(before);
        assert_eq!((calls.kubernetes_writes, calls.s3_calls), (0, 0), "{}", stage.trace());
    });
}

// covers: 1.backend.status.bucketCount
#[test]
fn the_count_of_buckets_follows_a_claim() {
    run("", "", async |stage| {
        let count = |world: &World, name: &str| object(world, "s3backends", "", name)["status"]["bucketCount"].clone();
        stage.soon("it is counted", MINUTE, |world| count(world, "main") == 1).await;
        move_to(&stage, "second").await;
        stage.soon("it is counted there", MINUTE, |world| count(world, "second") == 1).await;
        stage.soon("it is counted there alone", 10, |world| count(world, "main") == 0).await;
        // The move back waits for a key to expire, so it happens long after the edit of the spec.
        move_to(&stage, "main").await;
        stage.until("it is back", |world| is_at(world, "main", "team-a-photos")).await;
        stage.soon("it is counted here", 10, |world| count(world, "main") == 1 && count(world, "second") == 0).await;
    });
}

/// Obstacles to a move, and their remedies.
// covers: 3.7.backendRef.held
#[rstest]
#[case::no_backend(json!({}), "BackendNotReady")]
#[case::not_ready(json!({"endpoint": "http://nowhere.example"}), "BackendNotReady")]
#[case::not_allowed(json!({"allowedNamespaces": {"names": ["team-b"]}}), "BackendNotAllowed")]
#[case::no_name(json!({"bucketNameTemplate": "x-{{ .Namespace }}-..-{{ .Name }}"}), "TemplateInvalid")]
#[case::held(json!({"bucketNameTemplate": "held"}), "BucketNameConflict")]
#[case::strangers(json!({"bucketNameTemplate": "strangers"}), "BucketExists")]
fn a_claim_that_can_not_move_stays_bound_and_its_keys_go_on(#[case] spec: Value, #[case] reason: &str) {
    run("", "rotationPolicy: {overlapSeconds: 0}", async |stage| {
        let world = &stage.world;
        second(world).put_bucket(ADMIN_ACCOUNT, "strangers");
        stage.apply(&claim_with("team-b", "holder", "bucketName: held").replace("name: main", "name: second")).await;
        stage.until_ready_is("team-b", "holder", "Bound").await;
        let target = if spec == json!({}) { "nowhere" } else { "second" };
        if target == "second" {
            stage.patch("s3backends", "", "second", json!({ "spec": spec })).await;
            world.pass(Duration::from_secs(5)).await;
        }
        let (old, before) = (published(world), bound_to(world));
        move_to(&stage, target).await;
        stage.until_ready_is("team-a", "photos", reason).await;
        assert_eq!((&status(world)["phase"], bound_to(world)), (&json!("Bound"), before.clone()));
        assert_eq!(condition(&object(world, "bucketclaims", "team-a", "photos"), "BucketCreated"), "CreatedOnBackend");
        assert_eq!(published(world), old);
        tenant_can_work(world, "team-a", "photos-s3").await;

        let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketclaims", "team-a", "photos", request).await;
        stage.soon("rotation goes on", MINUTE, |world| published(world) != old).await;
        world.pass(RESYNC).await;
        assert_eq!((ready(world, "team-a", "photos").as_str(), bound_to(world)), (reason, before.clone()));
        assert_eq!(keys(world).len(), 2, "the holder's and its own: nothing is minted for where it can't go");

        let current = published(world);
        move_to(&stage, "main").await;
        stage.soon("editing back makes it Ready", 10, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert_eq!((published(world), bound_to(world)), (current, before));
        stage.soon("it holds what it held", 2 * MINUTE, |world| internal_of(world, "photos").len() == 2).await;
        assert!(second(world).bucket("strangers").unwrap().tags.is_none(), "nobody's bucket is touched");
    });
}

/// Both names that the claim looks up are held: the current one by itself, the wanted one by
/// another claim.
// covers: 3.2.remade
#[test]
fn a_record_that_is_lost_is_made_again_while_the_claim_wants_what_another_holds() {
    run("", "rotationPolicy: {overlapSeconds: 0}", async |stage| {
        let world = &stage.world;
        stage.apply(&claim_with("team-b", "holder", "bucketName: held").replace("name: main", "name: second")).await;
        stage.until_ready_is("team-b", "holder", "Bound").await;
        stage.patch("s3backends", "", "second", json!({"spec": {"bucketNameTemplate": "held"}})).await;
        move_to(&stage, "second").await;
        stage.until_ready_is("team-a", "photos", "BucketNameConflict").await;
        let record = internal_of(world, "photos").into_iter().find(|name| name.starts_with("br-")).unwrap();
        stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
        stage.soon("it is made again", 10, |world| internal_of(world, "photos").contains(&record)).await;
        stage.soon("it is settled", MINUTE, |world| ready(world, "team-a", "photos") == "BucketNameConflict").await;
        let old = published(world);
        let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketclaims", "team-a", "photos", request).await;
        stage.soon("rotation goes on", 3 * MINUTE, |world| published(world) != old).await;
        tenant_can_work(world, "team-a", "photos-s3").await;
    });
}

#[test]
fn a_claim_moves_when_what_kept_it_is_out_of_the_way_and_a_rotation_meanwhile_counts() {
    run("", "rotationPolicy: {overlapSeconds: 0}", async |stage| {
        second(&stage.world).put_bucket(ADMIN_ACCOUNT, "second-photos");
        move_to(&stage, "second").await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketclaims", "team-a", "photos", request).await;
        stage.until("the request is handled", |world| status(world)["handledRotateRequest"] == "now").await;
        stage.patch("s3backends", "", "second", json!({"spec": {"adoptionPolicy": "Any"}})).await;
        stage.soon("it moves", 3 * MINUTE, |world| is_at(world, "second", "second-photos")).await;
        assert_eq!(status(&stage.world)["bucketOrigin"], "Adopted");
        stage.until("it is done", settled).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(status(&stage.world)["rotationGeneration"], 4, "2 was never minted, 3 asked for, 4 the move's");
    });
}

// covers: 3.7.backendRef.back, 3.3.twoKeys
#[test]
fn a_second_move_waits_for_the_first_ones_old_key() {
    run("", "", async |stage| {
        move_to(&stage, "second").await;
        stage.until("it is there", |world| is_at(world, "second", "second-photos")).await;
        move_to(&stage, "main").await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        assert!(message(&stage.world, "team-a", "photos").contains("expired"));
        while bound_to(&stage.world).0 == "second" {
            assert!(keys(&stage.world).len() <= 2, "two keys at most");
            tenant_can_work(&stage.world, "team-a", "photos-s3").await;
            stage.world.pass(Duration::from_secs(20)).await;
        }
        stage.until("it is back", |world| is_at(world, "main", "team-a-photos")).await;
        assert_eq!(status(&stage.world)["bucketOrigin"], "Adopted", "it was left meanwhile");
        stage.until("it is done", settled).await;
    });
}

// covers: 3.7.backendRef.back
#[test]
fn a_claim_that_goes_back_later_finds_its_bucket_and_adopts_it() {
    run("", "rotationPolicy: {overlapSeconds: 0}, versioning: Enabled", async |stage| {
        stage.world.store.put_object("team-a-photos", "page", "old");
        move_to(&stage, "second").await;
        stage.until("it has moved", |world| is_at(world, "second", "second-photos") && settled(world)).await;
        stage.set_adoption("Never").await;
        move_to(&stage, "main").await;
        stage.until("it is back", |world| is_at(world, "main", "team-a-photos") && settled(world)).await;
        assert_eq!(status(&stage.world)["bucketOrigin"], "Adopted");
        let (client, bucket) = tenant(&stage.world, "team-a", "photos-s3");
        client.get_object().bucket(bucket).key("page").send().await.expect("the data is there");
    });
}

#[test]
fn a_claim_that_is_sent_on_in_the_middle_of_a_move_goes_to_the_last_place() {
    run("s3:CreateBucket@2 access-denied", "bucketName: shared", async |stage| {
        move_to(&stage, "second").await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert_eq!(records(&stage.world).len(), 2);
        stage.patch("s3backends", "", "twin", json!({"spec": {"endpoint": "http://third.example"}})).await;
        stage.patch("s3backends", "", "second", json!({"spec": {"allowedNamespaces": {"names": []}}})).await;
        move_to(&stage, "twin").await;
        stage.until("it waits for the last place", |world| records(world).len() == 1).await;
        assert_eq!(records(&stage.world)[0]["backend"], "main", "what it won't have it does not hold");
        stage.patch("s3backends", "", "twin", json!({"spec": {"endpoint": SECOND}})).await;
        stage.until("it is there", |world| is_at(world, "twin", "shared")).await;
        stage.until("it is done", settled).await;
    });
}

// covers: 3.2.record.endpoint
#[test]
fn two_backends_with_one_endpoint_are_one_bucket_and_nothing_is_moved() {
    run("", "", async |stage| {
        let world = &stage.world;
        let key = published(world);
        move_to(&stage, "twin").await;
        stage.soon("it is there", 10, |world| is_at(world, "twin", "team-a-photos")).await;
        assert_eq!(
            (published(world), keys(world).len(), &status(world)["rotationGeneration"]),
            (key.clone(), 1, &json!(1))
        );
        assert_eq!(status(world)["bucketOrigin"], "Created");
        assert_eq!(records(world).iter().map(|record| record["backend"].as_str()).collect::<Vec<_>>(), ["twin"]);
        assert!(events(world, "photos").iter().all(|(_, reason)| reason != "DataNotMoved"));
        let credential = secrets(world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        assert!(data(world, OPERATOR_NAMESPACE, &credential)["bucket_scopes"].contains("twin"));
        stage.delete("s3backends", "", "main").await;
        world.pass(RESYNC).await;
        assert!(is_at(world, "twin", "team-a-photos"));
        assert_eq!(published(world), key);
        tenant_can_work(world, "team-a", "photos-s3").await;
    });
}

#[test]
fn nobody_takes_the_old_bucket_while_an_old_key_reaches_it() {
    run("", "bucketName: shared", async |stage| {
        move_to(&stage, "second").await;
        stage.until("it has moved", |world| is_at(world, "second", "shared")).await;
        assert!(stage.world.store.remove_bucket("shared"), "the store's own people remove the old bucket");
        stage.apply(&claim_with("team-b", "next", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "next", "BucketNameConflict").await;
        stage.until("the next one has it", |world| ready(world, "team-b", "next") == "Bound").await;
        let ours = |name: &String| {
            object(&stage.world, "secrets", OPERATOR_NAMESPACE, name)["metadata"]["labels"]["broker.stowage.io/claim-name"]
                == "photos"
        };
        let left = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").into_iter().filter(ours).count();
        assert_eq!(left, 1, "the old key went first");
    });
}

#[test]
fn a_claim_that_goes_in_the_middle_of_a_move_leaves_nothing_but_the_buckets() {
    for plan in ["", "s3:CreateBucket@2 access-denied"] {
        run(plan, "anonymousAccess: {mode: ReadOnly}", async |stage| {
            move_to(&stage, "second").await;
            stage.until("it has begun", |world| records(world).len() == 2).await;
            stage.world.pass(Duration::from_secs(5)).await;
            stage.delete("bucketclaims", "team-a", "photos").await;
            stage.until_gone("team-a", "photos").await;
            assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
            assert!(stage.world.store.bucket("team-a-photos").is_some());
        });
    }
}

// covers: 3.7.backendRef.deleting
#[test]
fn a_claim_on_its_way_out_does_not_move() {
    run("", "", async |stage| {
        let paused = json!({"metadata": {"annotations": {"broker.stowage.io/paused": "true"}}});
        stage.patch("bucketclaims", "team-a", "photos", paused).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        move_to(&stage, "second").await;
        stage.world.pass(RESYNC).await;
        assert_eq!(records(&stage.world).iter().map(|r| r["backend"].as_str()).collect::<Vec<_>>(), ["main"]);
        assert!(second(&stage.world).buckets().is_empty());
    });
}
