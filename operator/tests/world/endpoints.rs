//! A backend whose endpoint or bucket name template changes: bound claims keep their bucket (spec
//! §3.2).

use std::time::Duration;

use rstest::rstest;
use s3_sim::Store;
use serde_json::{Value, json};
use stowage_operator::api::{BucketName, Endpoint, RecordName};
use stowage_world::{ADMIN_ACCOUNT, BackendStore, OPERATOR_NAMESPACE, Options, World};

use crate::support::{
    Stage, claim, claim_with, condition, data, events, message, object, published, ready, secrets, tenant_can_work,
    twin,
};

const MINUTE: u64 = 60;
const RESYNC: Duration = Duration::from_secs(660);
const OLD: &str = "http://s3.example:9000";
const NEW: &str = "http://new.example:9000";

/// Runs `test` with `team-a/photos` bound on the backend `main`, and a second store that no backend
/// uses yet.
fn run<T: Send>(plan: &str, adoption: &str, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let elsewhere =
        BackendStore { name: "new".to_owned(), endpoint: Endpoint::parse(NEW).unwrap(), ..BackendStore::main() };
    let plan = plan.parse().unwrap();
    let options = Options { plan, backends: vec![BackendStore::main(), elsewhere], ..Options::default() };
    Stage::run_with(options, async |stage| {
        stage.set_adoption(adoption).await;
        if adoption == "Any" {
            stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        }
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(120)).await;
        test(stage).await
    })
}

async fn point_to(stage: &Stage, endpoint: &str) {
    stage.patch("s3backends", "", "main", json!({"spec": {"endpoint": endpoint}})).await;
}

fn new_store(world: &World) -> Store {
    world.store_at(&Endpoint::parse(NEW).unwrap()).expect("there is a store")
}

fn status(world: &World) -> Value {
    object(world, "bucketclaims", "team-a", "photos")["status"].clone()
}

/// Returns the endpoints of the records.
fn held_at(world: &World) -> Vec<String> {
    let names = secrets(world, OPERATOR_NAMESPACE, "bucket-record");
    names.iter().map(|name| data(world, OPERATOR_NAMESPACE, name)["endpoint"].clone()).collect()
}

fn is_ready_at(world: &World, endpoint: &str) -> bool {
    ready(world, "team-a", "photos") == "Bound"
        && status(world)["backend"]["endpoint"] == endpoint
        && held_at(world) == [endpoint]
}

/// Copies the bucket with its tags to the other store, like a migration of the store.
fn migrate(world: &World) {
    let tags = world.store.bucket("team-a-photos").unwrap().tags;
    new_store(world).put_bucket(ADMIN_ACCOUNT, "team-a-photos");
    new_store(world).set_tags("team-a-photos", tags);
}

// covers: 3.2.moved, 1.status.backend, 1.bucketCreated.BucketMissing
#[test]
fn where_the_bucket_is_not_it_is_missing_and_ready_again_when_the_edit_is_taken_back() {
    run("", "Owned", async |stage| {
        let world = &stage.world;
        let key = published(world);
        point_to(&stage, NEW).await;
        stage.soon("it is missed", MINUTE, |world| ready(world, "team-a", "photos") == "BucketMissing").await;
        assert_eq!(condition(&object(world, "bucketclaims", "team-a", "photos"), "BucketCreated"), "BucketMissing");
        assert_eq!(status(world)["backend"]["endpoint"], OLD, "the claim stays with its record");
        assert!(new_store(world).buckets().is_empty(), "and nothing is made there");
        let request = json!({"metadata": {"annotations": {"broker.stowage.io/rotate": "now"}}});
        stage.patch("bucketclaims", "team-a", "photos", request).await;
        stage.soon("rotation goes on", MINUTE, |world| published(world) != key).await;

        world.pass(RESYNC).await;
        let before = world.effects.trace().effects();
        world.pass(Duration::from_secs(3600)).await;
        let calls = world.effects.trace().counters_after(before).s3_calls;
        assert!(calls <= 14, "seven drift checks and seven probes an hour at most, not {calls} calls");
        point_to(&stage, OLD).await;
        stage.soon("it is Ready again", MINUTE, |world| is_ready_at(world, OLD)).await;
        tenant_can_work(world, "team-a", "photos-s3").await;
    });
}

// covers: 3.2.look.error
#[test]
fn a_store_that_does_not_answer_says_nothing_about_the_bucket() {
    run("", "Owned", async |stage| {
        point_to(&stage, "http://nowhere.example").await;
        stage.until_ready_is("team-a", "photos", "BackendNotReady").await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BackendNotReady");
        assert_eq!(status(&stage.world)["phase"], "Bound");
        point_to(&stage, OLD).await;
        stage.soon("it is Ready again", MINUTE, |world| is_ready_at(world, OLD)).await;
    });
}

// covers: 3.2.moved.found
#[test]
fn a_bucket_that_comes_to_the_new_endpoint_later_is_found() {
    run("", "Owned", async |stage| {
        point_to(&stage, NEW).await;
        stage.until_ready_is("team-a", "photos", "BucketMissing").await;
        new_store(&stage.world).put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketMissing", "an untagged one is not it");
        migrate(&stage.world);
        stage.soon("it is found", 11 * MINUTE, |world| is_ready_at(world, NEW)).await;
    });
}

// covers: 3.2.moved.found, 2.record.origin
#[rstest]
#[case("Owned", "Created")]
#[case("Any", "Adopted")]
fn an_origin_stays_what_it_was(#[case] adoption: &str, #[case] origin: &str) {
    run("", adoption, async |stage| {
        migrate(&stage.world);
        let uid = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        let tags = [("broker.stowage.io/claim-uid".to_owned(), uid.as_str().unwrap().to_owned())];
        new_store(&stage.world).set_tags("team-a-photos", Some(tags.into()));
        point_to(&stage, NEW).await;
        stage.soon("it is found there", MINUTE, |world| is_ready_at(world, NEW)).await;
        assert_eq!(status(&stage.world)["bucketOrigin"], origin);
    });
}

/// Claims of one namespace. The old and the new record of a bucket name the same generation, and
/// their names are hashes: for some claims the old one is first by name, for others the new one.
const SEVERAL: [&str; 4] = ["photos", "films", "songs", "books"];

fn record_at(endpoint: &str, claim: &str) -> String {
    let bucket = BucketName::parse(&format!("team-a-{claim}")).unwrap();
    RecordName::of(&Endpoint::parse(endpoint).unwrap(), &bucket).to_string()
}

fn binding_of(world: &World, claim: &str) -> Option<Value> {
    let names = secrets(world, OPERATOR_NAMESPACE, "anonymous-binding");
    let all = names.iter().map(|name| object(world, "secrets", OPERATOR_NAMESPACE, name));
    all.into_iter().find(|it| it["metadata"]["labels"]["broker.stowage.io/claim-name"] == claim)
}

/// Applies several claims with public access, whose buckets also exist at the new endpoint.
async fn bind_several(stage: &Stage) {
    for name in SEVERAL {
        stage.apply(&claim_with("team-a", name, "anonymousAccess: {mode: ReadOnly}")).await;
        stage.until_ready_is("team-a", name, "Bound").await;
    }
    stage.world.pass(Duration::from_secs(120)).await;
    for name in SEVERAL {
        let bucket = format!("team-a-{name}");
        let tags = stage.world.store.bucket(&bucket).unwrap().tags;
        new_store(&stage.world).put_bucket(ADMIN_ACCOUNT, &bucket);
        new_store(&stage.world).set_tags(&bucket, tags);
    }
    let made_first = SEVERAL.iter().filter(|name| record_at(NEW, name) < record_at(OLD, name)).count();
    assert!((1..SEVERAL.len()).contains(&made_first), "both orders are among them");
}

fn is_at(world: &World, claim: &str, endpoint: &str) -> bool {
    ready(world, "team-a", claim) == "Bound"
        && object(world, "bucketclaims", "team-a", claim)["status"]["backend"]["endpoint"] == endpoint
}

// covers: 3.2.moved.found
#[test]
fn a_bucket_that_is_found_elsewhere_stays_open_to_whom_it_was() {
    run("", "Owned", async |stage| {
        let world = &stage.world;
        bind_several(&stage).await;
        let uids = || SEVERAL.map(|name| binding_of(world, name).map(|it| it["metadata"]["uid"].clone()));
        let bindings = uids();
        assert!(bindings.iter().all(Option::is_some));
        point_to(&stage, NEW).await;
        stage.soon("all are bound there", 2 * MINUTE, |world| SEVERAL.iter().all(|name| is_at(world, name, NEW))).await;
        stage.soon("and there only", MINUTE, |world| held_at(world) == [NEW; SEVERAL.len()]).await;
        for name in SEVERAL {
            tenant_can_work(world, "team-a", &format!("{name}-s3")).await;
            let bucket = format!("team-a-{name}");
            assert!(new_store(world).objects(&bucket).contains_key("probe"), "the gateway goes there");
            assert!(!world.store.objects(&bucket).contains_key("probe"));
        }
        assert_eq!(uids(), bindings, "none was made anew");
        for role in ["virtual-credential", "anonymous-binding"] {
            let names = secrets(world, OPERATOR_NAMESPACE, role);
            assert!(names.iter().all(|name| data(world, OPERATOR_NAMESPACE, name)["endpoint"] == NEW), "{role}");
        }
    });
}

// covers: 3.2.moved.found, 3.4.order
#[test]
fn a_record_that_is_kept_at_the_endpoint_before_is_waited_for_and_keeps_nothing_else() {
    run("", "Owned", async |stage| {
        let world = &stage.world;
        bind_several(&stage).await;
        let kept = |on: bool| json!({"metadata": {"finalizers": if on { json!(["example.com/backup"]) } else { Value::Null }}});
        for name in SEVERAL {
            stage.patch("secrets", OPERATOR_NAMESPACE, &record_at(OLD, name), kept(true)).await;
        }
        point_to(&stage, NEW).await;
        let is_told = |world: &World, name: &str| message(world, "team-a", name).contains(&record_at(OLD, name));
        stage.soon("all say what they wait for", 2 * MINUTE, |world| SEVERAL.iter().all(|it| is_told(world, it))).await;
        let before = world.effects.trace().effects();
        world.pass(RESYNC).await;
        let writes = world.effects.trace().counters_after(before).kubernetes_writes;
        assert!(writes < 20, "{writes} writes\n{}", stage.trace());
        for name in SEVERAL {
            assert!(binding_of(world, name).is_some(), "{name} is still open to the public");
            stage.patch("secrets", OPERATOR_NAMESPACE, &record_at(OLD, name), kept(false)).await;
        }
        stage.soon("all are bound there", 2 * MINUTE, |world| SEVERAL.iter().all(|name| is_at(world, name, NEW))).await;
        assert_eq!(held_at(world), [NEW; SEVERAL.len()]);
    });
}

fn bucket_names(world: &World) -> Vec<String> {
    world.store.buckets().into_keys().collect()
}

async fn rename_buckets(stage: &Stage) {
    stage.patch("s3backends", "", "main", json!({"spec": {"bucketNameTemplate": "new-{{ .Name }}"}})).await;
}

// covers: 1.status.bucketName
#[test]
fn an_edited_template_never_moves_a_bound_claim() {
    run("", "Owned", async |stage| {
        let key = published(&stage.world);
        rename_buckets(&stage).await;
        stage.world.pass(RESYNC).await;
        assert!(is_ready_at(&stage.world, OLD));
        assert_eq!(
            (status(&stage.world)["bucketName"].as_str(), published(&stage.world)),
            (Some("team-a-photos"), key)
        );
        stage.apply(&claim("team-a", "later")).await;
        stage.until_ready_is("team-a", "later", "Bound").await;
        assert_eq!(bucket_names(&stage.world), ["new-later", "team-a-photos"], "a new claim uses the new one");
    });
}

/// A claim holds a record when the template is edited. The case decides which of the two names it
/// gets.
#[rstest]
#[case::not_created("s3:CreateBucket@1 access-denied", "new-photos")]
#[case::created("s3:PutBucketTagging@1 access-denied", "team-a-photos")]
#[case::created_without_answer(
    "s3:CreateBucket@1 lost-answer; s3:GetBucketTagging@2 internal-error; s3:GetBucketTagging@3 slow-down",
    "team-a-photos"
)]
fn a_claim_not_yet_bound_uses_the_new_template_unless_its_bucket_is_made(#[case] plan: &str, #[case] bucket: &str) {
    Stage::run(plan, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        rename_buckets(&stage).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_eq!(status(&stage.world)["bucketName"], bucket);
        assert_eq!(bucket_names(&stage.world), [bucket]);
        assert_eq!(held_at(&stage.world).len(), 1);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

#[test]
fn a_claim_kept_out_by_a_strangers_bucket_gets_one_under_the_new_template() {
    Stage::run("", async |stage| {
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        rename_buckets(&stage).await;
        stage.soon("it is bound", MINUTE, |world| ready(world, "team-a", "photos") == "Bound").await;
        assert_eq!(stage.world.store.bucket("team-a-photos").unwrap().tags, None);
        assert_eq!(held_at(&stage.world).len(), 1, "the stranger's name is let go");
    });
}

#[test]
fn a_claim_not_yet_bound_follows_its_backend_ref() {
    Stage::run("", async |stage| {
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&twin()).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"backendRef": {"name": "twin"}}})).await;
        stage.soon("it is bound", MINUTE, |world| ready(world, "team-a", "photos") == "Bound").await;
        let bound = (status(&stage.world)["backend"]["name"].clone(), status(&stage.world)["bucketName"].clone());
        assert_eq!(bound, (json!("twin"), json!("twin-photos")));
        assert_eq!(held_at(&stage.world).len(), 1);
        assert!(events(&stage.world, "photos").iter().all(|(_, reason)| reason != "DataNotMoved"));
    });
}
