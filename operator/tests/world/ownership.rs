//! Ownership of a bucket (spec §3.2): between claims, and between claims and the store's existing
//! buckets.

use std::collections::BTreeMap;
use std::time::Duration;

use rstest::rstest;
use s3_sim::{Dialect, ExistingOwnBucket, InProcess, Versioning};
use serde_json::json;
use stowage_operator::api::Endpoint;
use stowage_world::{
    ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, BackendStore, OPERATOR_NAMESPACE, Options, World,
};

use crate::support::{
    Stage, assert_bound_once, backend, claim, claim_on, claim_with, condition, data, events, internal_of, message,
    object, ready, secrets, tenant_can_work,
};

const MINUTE: u64 = 60;
/// Longer than the interval of drift checks and resyncs, including jitter.
const RESYNC: Duration = Duration::from_secs(700);

fn installation(world: &World) -> String {
    object(world, "namespaces", "", "kube-system")["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Returns the ownership tags of a claim of this installation.
fn tags_of(world: &World, claim: &str, uid: &str) -> BTreeMap<String, String> {
    let tags = [("installation", installation(world)), ("claim", claim.to_owned()), ("claim-uid", uid.to_owned())];
    tags.into_iter().map(|(key, value)| (format!("broker.stowage.io/{key}"), value)).collect()
}

fn assert_has_nothing(world: &World, namespace: &str, name: &str) {
    assert_eq!(internal_of(world, name), Vec::<String>::new());
    assert!(object(world, "secrets", namespace, &format!("{name}-s3")).is_null());
}

/// Returns the one of the two that is bound, then the other, as namespace and name.
fn winner_and_loser<'a>(world: &World, pair: [(&'a str, &'a str); 2]) -> [(&'a str, &'a str); 2] {
    let [one, other] = pair;
    if ready(world, one.0, one.1) == "Bound" { [one, other] } else { [other, one] }
}

async fn settle(stage: &Stage, pair: [(&str, &str); 2]) {
    stage
        .until("one claim is bound and the other in conflict", |world| {
            let mut reasons = pair.map(|(namespace, name)| ready(world, namespace, name));
            reasons.sort();
            reasons == ["Bound", "BucketNameConflict"]
        })
        .await;
}

// covers: 1.phase.Failed, 1.ready.BucketNameConflict, 2.record.createOnly, 3.2.record.decides
// covers: 3.2.record.woken
// covers: 3.5.wake.name
#[rstest]
#[case("Owned")]
#[case("Any")]
#[case("Never")]
fn of_two_claims_to_one_bucket_the_loser_gets_nothing_and_is_woken_when_the_holder_goes(#[case] policy: &str) {
    Stage::run("", async |stage| {
        stage.set_adoption(policy).await;
        let pair = [("team-a", "one"), ("team-b", "two")];
        let both = pair.map(|(namespace, name)| claim_with(namespace, name, "bucketName: shared"));
        stage.apply(&both.join("\n---\n")).await;
        settle(&stage, pair).await;
        let [winner, loser] = winner_and_loser(&stage.world, pair);
        assert_has_nothing(&stage.world, loser.0, loser.1);
        assert_eq!(object(&stage.world, "bucketclaims", loser.0, loser.1)["status"]["phase"], "Failed");
        assert!(!message(&stage.world, loser.0, loser.1).contains(winner.1), "tenants don't learn who is elsewhere");
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").len(), 1);
        // The tags of the retained bucket name its former claim: no policy gives it to another one.
        stage.delete("bucketclaims", winner.0, winner.1).await;
        stage
            .soon("the loser sees the retained bucket", MINUTE, |world| {
                ready(world, loser.0, loser.1) == "BucketExists"
            })
            .await;
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
        stage.world.store.remove_bucket("shared");
        stage.until_ready_is(loser.0, loser.1, "Bound").await;
        tenant_can_work(&stage.world, loser.0, &format!("{}-s3", loser.1)).await;
    });
}

// covers: 3.2.record.template
#[test]
fn claims_whose_default_names_render_alike_collide() {
    Stage::run("", async |stage| {
        let pair = [("a-b", "c"), ("a", "b-c")];
        for (namespace, name) in pair {
            stage.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")).await;
            stage.apply(&claim(namespace, name)).await;
        }
        settle(&stage, pair).await;
        let [_, loser] = winner_and_loser(&stage.world, pair);
        assert_has_nothing(&stage.world, loser.0, loser.1);
    });
}

// covers: 2.record.createOnly, 3.2.record.endpoint
#[test]
fn two_backends_with_one_endpoint_are_one_name_space_of_buckets() {
    Stage::run("", async |stage| {
        stage.apply(&backend("twin", "http://S3.Example:9000", "")).await;
        let pair = [("team-a", "one"), ("team-b", "two")];
        stage.apply(&claim_with("team-a", "one", "bucketName: shared")).await;
        stage.apply(&claim_with("team-b", "two", "bucketName: shared").replace("name: main", "name: twin")).await;
        settle(&stage, pair).await;
        let [_, loser] = winner_and_loser(&stage.world, pair);
        assert_has_nothing(&stage.world, loser.0, loser.1);
    });
}

/// The owner of a bucket that exists before the claim.
#[derive(Clone, Copy, Debug)]
enum Before {
    Untagged,
    TaggedByUser,
    OfAnotherClaim,
    OfAnotherInstallation,
    OfThisClaimsEarlierLife,
    OfAnotherAccount,
    OfAnotherAccountThatLetsUsIn,
}

// covers: 1.claim.versioning.adopted, 1.status.bucketOrigin, 1.ready.BucketExists
// covers: 3.2.look.forbidden, 3.2.adoption, 3.2.adoption.account
// covers: 3.2.adoption.brownfield
#[rstest]
fn a_bucket_that_is_there_is_taken_as_the_adoption_policy_says(
    #[values(
        Before::Untagged,
        Before::TaggedByUser,
        Before::OfAnotherClaim,
        Before::OfAnotherInstallation,
        Before::OfThisClaimsEarlierLife,
        Before::OfAnotherAccount,
        Before::OfAnotherAccountThatLetsUsIn
    )]
    before: Before,
    #[values("Never", "Owned", "Any")] policy: &str,
) {
    let taken = match before {
        Before::OfThisClaimsEarlierLife => policy != "Never",
        Before::Untagged | Before::TaggedByUser => policy == "Any",
        Before::OfAnotherClaim
        | Before::OfAnotherInstallation
        | Before::OfAnotherAccount
        | Before::OfAnotherAccountThatLetsUsIn => false,
    };
    Stage::run("", async |stage| {
        stage.set_adoption(policy).await;
        let store = &stage.world.store;
        let theirs = matches!(before, Before::OfAnotherAccount | Before::OfAnotherAccountThatLetsUsIn);
        store.put_bucket(if theirs { "stranger" } else { ADMIN_ACCOUNT }, "team-a-photos");
        if matches!(before, Before::OfAnotherAccountThatLetsUsIn) {
            store.let_in("team-a-photos", ADMIN_ACCOUNT);
        }
        store.put_object("team-a-photos", "theirs", "data");
        let mut tags = tags_of(&stage.world, "team-a/photos", "an-earlier-uid");
        let tags = match before {
            Before::Untagged | Before::OfAnotherAccount => None,
            Before::TaggedByUser => Some(BTreeMap::from([("cost-centre".to_owned(), "7".to_owned())])),
            Before::OfAnotherClaim => Some(tags_of(&stage.world, "team-b/photos", "u")),
            Before::OfAnotherInstallation => {
                tags.insert("broker.stowage.io/installation".to_owned(), "elsewhere".to_owned());
                Some(tags)
            }
            Before::OfThisClaimsEarlierLife | Before::OfAnotherAccountThatLetsUsIn => Some(tags),
        };
        store.set_tags("team-a-photos", tags.clone());
        stage.apply(&claim_with("team-a", "photos", "versioning: Enabled")).await;
        stage.until_ready_is("team-a", "photos", if taken { "Bound" } else { "BucketExists" }).await;
        let bucket = store.bucket("team-a-photos").unwrap();
        // Adoption leaves settings and tags untouched.
        assert_eq!((bucket.tags, bucket.versioning), (tags, Versioning::default()));
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        if taken {
            assert_eq!(claim["status"]["bucketOrigin"], "Adopted");
            let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record");
            assert_eq!(data(&stage.world, OPERATOR_NAMESPACE, &record[0])["origin"], "Adopted");
            tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        } else {
            assert_eq!(claim["status"]["phase"], "Failed");
            assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
            assert!(object(&stage.world, "secrets", "team-a", "photos-s3").is_null());
        }
    });
}

// covers: 3.2.adoption, 3.2.tags.neverRepaired
#[rstest]
#[case("Owned", "Bound")]
#[case("Never", "BucketExists")]
fn a_retained_bucket_comes_back_to_a_claim_of_its_name(#[case] policy: &str, #[case] reason: &str) {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        stage.until_gone("team-a", "photos").await;
        stage.set_adoption(policy).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", reason).await;
        assert!(stage.world.store.objects("team-a-photos").contains_key("probe"));
        // The tags still name the first life: they are never repaired.
        let second = object(&stage.world, "bucketclaims", "team-a", "photos")["metadata"]["uid"].clone();
        let tags = stage.world.store.bucket("team-a-photos").unwrap().tags.unwrap();
        assert_ne!(second, tags["broker.stowage.io/claim-uid"].as_str());
        if reason == "Bound" {
            tenant_can_work(&stage.world, "team-a", "photos-s3").await;
        }
    });
}

// covers: 1.status.bucketOrigin, 3.2.create.untagged
#[rstest]
#[case("before")]
#[case("after-effect")]
fn a_bucket_made_by_an_interrupted_pass_is_ours_while_it_is_empty(#[case] point: &str) {
    Stage::run(&format!("s3:PutBucketTagging@1 crash({point})"), async |stage| {
        stage.set_adoption("Never").await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_eq!(stage.operator.crashes(), 1);
        assert_bound_once(&stage).await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        assert_eq!(claim["status"]["bucketOrigin"], "Created");
    });
}

#[derive(Clone, Copy, Debug)]
enum Trace {
    Object,
    DeleteMarkerOnly,
    Upload,
}

// covers: 3.2.create.untagged
#[rstest]
fn a_bucket_made_by_an_interrupted_pass_and_used_since_is_for_the_adoption_policy(
    #[values(("Never", false), ("Owned", false), ("Any", true))] policy: (&str, bool),
    #[values(Trace::Object, Trace::DeleteMarkerOnly, Trace::Upload)] trace: Trace,
) {
    Stage::run("s3:PutBucketTagging@1 crash(before)", async |stage| {
        stage.set_adoption(policy.0).await;
        stage.apply(&claim("team-a", "photos")).await;
        stage.until("the operator crashed", |_| stage.operator.crashes() == 1).await;
        let store = &stage.world.store;
        match trace {
            Trace::Object => {
                store.put_object("team-a-photos", "theirs", "data");
            }
            Trace::DeleteMarkerOnly => {
                store.set_versioning("team-a-photos", Versioning::Enabled);
                store.put_object("team-a-photos", "theirs", "data");
                let stranger = InProcess::new(store.http()).client(ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, "us-east-1");
                let version = store.versions("team-a-photos")["theirs"][0].id.clone();
                stranger.delete_object().bucket("team-a-photos").key("theirs").send().await.unwrap();
                let exact = stranger.delete_object().bucket("team-a-photos").key("theirs").version_id(version);
                exact.send().await.unwrap();
                let bucket = store.bucket("team-a-photos").unwrap();
                assert_eq!((bucket.versions, bucket.delete_markers), (0, 1));
            }
            Trace::Upload => {
                store.start_upload("team-a-photos", "theirs");
            }
        }
        stage.until_ready_is("team-a", "photos", if policy.1 { "Bound" } else { "BucketExists" }).await;
        if policy.1 {
            let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
            assert_eq!(claim["status"]["bucketOrigin"], "Adopted");
        }
    });
}

/// Runs `test` with a second backend, whose endpoint is another spelling of that of `main`.
fn spelled_twice<T: Send>(plan: &str, test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    const ALIAS: &str = "http://s3.example.:9000";
    let main = BackendStore::main();
    let alias =
        BackendStore { name: "alias".to_owned(), endpoint: Endpoint::parse(ALIAS).unwrap(), ..BackendStore::main() };
    let both = format!("{} {ALIAS}", main.endpoint);
    let options = Options { plan: plan.parse().unwrap(), backends: vec![main, alias], ..Options::default() };
    Stage::run_with(options, async |stage| {
        let endpoints = json!({"metadata": {"annotations": {"broker.stowage.io/endpoints": both}}});
        stage.patch("secrets", OPERATOR_NAMESPACE, "s3-admin", endpoints).await;
        stage.apply(&backend("alias", ALIAS, "")).await;
        let is_ready = |world: &World| condition(&object(world, "s3backends", "", "alias"), "Ready");
        stage.until("the alias is Ready", |world| is_ready(world) == "EndpointReachable").await;
        stage.world.pass(Duration::from_secs(5)).await;
        test(stage).await
    })
}

// covers: 3.2.record.aliases
#[test]
fn who_comes_to_a_bucket_by_another_spelling_of_its_endpoint_gets_nothing_until_it_is_let_go() {
    spelled_twice("", async |stage| {
        stage.apply(&claim_with("team-a", "one", "bucketName: shared")).await;
        stage.until_ready_is("team-a", "one", "Bound").await;
        stage.apply(&claim_on("alias", "team-b", "two", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "two", "BucketNameConflict").await;
        assert!(!message(&stage.world, "team-b", "two").contains("one"));
        assert_has_nothing(&stage.world, "team-b", "two");
        stage.delete("bucketclaims", "team-a", "one").await;
        let is_woken = |world: &World| ready(world, "team-b", "two") == "BucketExists";
        stage.soon("the other sees the retained bucket", MINUTE, is_woken).await;
    });
}

/// Each claim creates its record before it has read the record of the other.
// covers: 3.2.record.aliases
#[rstest]
#[case("")]
#[case("kube:create secrets slow(500)")]
#[case("kube:create secrets@1 slow(500)")]
#[case("kube:create secrets@2 slow(500)")]
fn of_two_that_come_at_once_by_two_spellings_one_gets_the_bucket(#[case] plan: &str) {
    spelled_twice(plan, async |stage| {
        let pair = [("team-a", "one"), ("team-b", "two")];
        let one = claim_with("team-a", "one", "bucketName: shared");
        let two = claim_on("alias", "team-b", "two", "bucketName: shared");
        stage.apply(&format!("{one}\n---\n{two}")).await;
        settle(&stage, pair).await;
        let [winner, loser] = winner_and_loser(&stage.world, pair);
        assert_eq!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").len(), 1);
        tenant_can_work(&stage.world, winner.0, &format!("{}-s3", winner.1)).await;
        stage.delete("bucketclaims", loser.0, loser.1).await;
        stage.until_gone(loser.0, loser.1).await;
        tenant_can_work(&stage.world, winner.0, &format!("{}-s3", winner.1)).await;
    });
}

// covers: 3.2.look.untaggable, 3.2.create.again
#[rstest]
fn every_dialect_of_stores_binds_a_claim_whatever_happens_to_the_create(
    #[values(ExistingOwnBucket::Ok, ExistingOwnBucket::AlreadyOwnedByYou)] existing_own_bucket: ExistingOwnBucket,
    #[values(true, false)] tagging: bool,
    #[values("", "s3:CreateBucket@1 lost-answer", "s3:CreateBucket@1 crash(after-effect)")] plan: &str,
) {
    let dialect = Dialect { existing_own_bucket, tagging, versioning: tagging, ..Dialect::default() };
    Stage::run_with(Options { dialect, plan: plan.parse().unwrap(), ..Options::default() }, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let claim = object(&stage.world, "bucketclaims", "team-a", "photos");
        assert_eq!(claim["status"]["bucketOrigin"], "Created");
        assert_eq!(stage.world.store.bucket("team-a-photos").unwrap().tags.is_some(), tagging);
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

/// The store applies a CreateBucket early and answers late. Meanwhile another process, which tags
/// new buckets, may have tagged the bucket.
// covers: 3.2.tags.merged
#[test]
fn tags_that_somebody_put_while_the_create_took_long_are_kept() {
    let dialect = Dialect { existing_own_bucket: ExistingOwnBucket::Ok, ..Dialect::default() };
    let plan = "s3:CreateBucket@1 slow(5000)".parse().unwrap();
    Stage::run_with(Options { dialect, plan, ..Options::default() }, async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until("the bucket is asked for", |_| stage.trace().contains("s3:CreateBucket")).await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.world.store.set_tags("team-a-photos", Some([("cost-centre".to_owned(), "7".to_owned())].into()));
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let tags = stage.world.store.bucket("team-a-photos").unwrap().tags.expect("it is tagged");
        assert_eq!(tags.get("cost-centre").map(String::as_str), Some("7"), "{}", stage.trace());
        assert_bound_once(&stage).await;
    });
}

// covers: 3.2.look.untaggable
#[rstest]
#[case("Owned", "BucketExists")]
#[case("Any", "Bound")]
fn without_tagging_a_bucket_with_data_is_nobodys(#[case] policy: &str, #[case] reason: &str) {
    let dialect = Dialect { tagging: false, ..Dialect::default() };
    Stage::run_with(Options { dialect, ..Options::default() }, async |stage| {
        stage.set_adoption(policy).await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", reason).await;
    });
}

// covers: 1.claim.versioning
#[test]
fn versioning_is_set_on_a_bucket_that_is_made() {
    Stage::run("s3:PutBucketVersioning@1 lost-answer", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "versioning: Enabled")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        assert_eq!(stage.world.store.bucket("team-a-photos").unwrap().versioning, Versioning::Enabled);
    });
}

#[test]
fn versioning_that_the_store_does_not_have_is_told_and_gives_no_credential() {
    let dialect = Dialect { versioning: false, ..Dialect::default() };
    Stage::run_with(Options { dialect, ..Options::default() }, async |stage| {
        stage.apply(&claim_with("team-a", "photos", "versioning: Enabled")).await;
        stage.until_ready_is("team-a", "photos", "BackendError").await;
        assert!(message(&stage.world, "team-a", "photos").contains("versioning"));
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
    });
}

// covers: 2.credential.neverReused, 3.2.remade
#[test]
fn a_record_deleted_by_hand_is_remade_with_the_next_generation_and_a_warning() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
        stage
            .soon("the record is back and the consumer Secret switched", MINUTE, |world| {
                data(world, OPERATOR_NAMESPACE, &record).get("generation").is_some_and(|g| g == "2")
                    && object(world, "bucketclaims", "team-a", "photos")["status"]["rotationGeneration"] == 2
            })
            .await;
        let remade = data(&stage.world, OPERATOR_NAMESPACE, &record);
        assert_eq!(remade.get("origin"), None, "the tags carry this UID");
        let warnings: Vec<_> =
            events(&stage.world, "photos").into_iter().filter(|(type_, _)| type_ == "Warning").collect();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 3.2.remade.adopted
#[test]
fn a_record_remade_over_a_bucket_without_our_tags_says_adopted() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.set_tags("team-a-photos", None);
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
        stage
            .soon("the record is back", MINUTE, |world| {
                data(world, OPERATOR_NAMESPACE, &record).get("origin").is_some_and(|origin| origin == "Adopted")
            })
            .await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
    });
}

// covers: 3.2.remade.refused
#[test]
fn a_record_deleted_by_hand_gives_a_refused_claim_no_right_to_the_bucket() {
    Stage::run("", async |stage| {
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.world.store.put_object("team-a-photos", "theirs", "data");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "BucketExists").await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketExists");
        assert!(secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").is_empty());
    });
}

// covers: 3.2.rivals
#[test]
fn nobody_takes_a_bucket_that_another_claim_has_credentials_for() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "holder", "bucketName: shared")).await;
        stage.until_ready_is("team-a", "holder", "Bound").await;
        let pause = |on| json!({"metadata": {"annotations": {"broker.stowage.io/paused": on}}});
        stage.patch("bucketclaims", "team-a", "holder", pause(json!("true"))).await;
        stage.until_ready_is("team-a", "holder", "Paused").await;
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        stage.delete("secrets", OPERATOR_NAMESPACE, &record).await;
        // The same holds without tags, and with a policy that adopts everything.
        stage.world.store.set_tags("shared", None);
        stage.set_adoption("Any").await;
        stage.apply(&claim_with("team-b", "thief", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "thief", "BucketNameConflict").await;
        assert_has_nothing(&stage.world, "team-b", "thief");
        stage.patch("bucketclaims", "team-a", "holder", pause(json!(null))).await;
        stage.until_ready_is("team-a", "holder", "Bound").await;
        stage.world.pass(Duration::from_secs(5)).await;
        assert_eq!(ready(&stage.world, "team-b", "thief"), "BucketNameConflict");
        stage.delete("bucketclaims", "team-a", "holder").await;
        stage.soon("the other claim is woken", MINUTE, |world| ready(world, "team-b", "thief") == "Bound").await;
    });
}

// covers: 3.2.record.woken
#[test]
fn a_claim_that_learns_of_the_holder_while_it_lets_go_is_woken() {
    // Publishing the loser's events is slow, and the holder is deleted meanwhile.
    Stage::run("kube:create events@2 slow(20000)", async |stage| {
        stage.apply(&claim_with("team-a", "holder", "bucketName: shared")).await;
        stage.until_ready_is("team-a", "holder", "Bound").await;
        stage.apply(&claim_with("team-b", "waiting", "bucketName: shared")).await;
        stage.until_ready_is("team-b", "waiting", "BucketNameConflict").await;
        stage.delete("bucketclaims", "team-a", "holder").await;
        stage.until_gone("team-a", "holder").await;
        stage
            .soon("the waiting claim is woken", MINUTE, |world| ready(world, "team-b", "waiting") == "BucketExists")
            .await;
    });
}

// covers: 1.ready.BucketMissing, 3.2.create.neverAgain, 3.2.missing
#[test]
fn a_bound_bucket_that_vanishes_is_missing_and_ready_again_when_it_is_back() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let tags = stage.world.store.bucket("team-a-photos").unwrap().tags;
        stage.world.store.remove_bucket("team-a-photos");
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketMissing");
        assert_eq!(stage.world.store.bucket("team-a-photos"), None, "never replaced by an empty one");
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketMissing", "a stranger's bucket is not ours");
        stage.world.store.set_tags("team-a-photos", tags);
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound");
        tenant_can_work(&stage.world, "team-a", "photos-s3").await;
    });
}

// covers: 3.2.create.neverAgain
#[test]
fn an_adopted_bucket_that_is_gone_is_not_made_again() {
    Stage::run("", async |stage| {
        stage.set_adoption("Any").await;
        stage.world.store.put_bucket(ADMIN_ACCOUNT, "team-a-photos");
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.remove_bucket("team-a-photos");
        // The same holds if only the record shows that the claim was bound.
        let credential = secrets(&stage.world, OPERATOR_NAMESPACE, "virtual-credential").remove(0);
        stage.delete("secrets", OPERATOR_NAMESPACE, &credential).await;
        stage.world.pass(RESYNC).await;
        assert_eq!(ready(&stage.world, "team-a", "photos"), "BucketMissing");
        assert_eq!(stage.world.store.bucket("team-a-photos"), None);
    });
}

// covers: 3.2.look.error
#[test]
fn a_failed_drift_check_is_made_again_and_finds_the_bucket_missing() {
    // One look when the claim is bound, and one at the next drift check, which fails.
    Stage::run("s3:GetBucketTagging@2 internal-error", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.store.remove_bucket("team-a-photos");
        let looks = |world: &World| {
            world.effects.trace().lines().iter().filter(|l| l.to_string().contains("GetBucketTagging")).count()
        };
        stage.world.until(|world| looks(world) == 2).await.unwrap();
        assert_eq!(ready(&stage.world, "team-a", "photos"), "Bound", "a failure to look says nothing about the bucket");
        stage.soon("the check is repeated", MINUTE, |world| ready(world, "team-a", "photos") == "BucketMissing").await;
    });
}
