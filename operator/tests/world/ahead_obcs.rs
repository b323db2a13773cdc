//! `plan` and `why` of ObjectBucketClaims (spec §5): the next step, and what the object that does
//! the work waits for.

use serde_json::json;
use stowage_operator::api::ClaimRef;
use stowage_operator::preview::{self, Next, Object, Paint, Scope, Setup, WhyObc, Worker};
use stowage_world::{Accesses, Foreign, Options, PROVISIONER, World};

use crate::ahead::{MINUTE, line_of, means, plan_of, setup};
use crate::ahead_accesses::row;
use crate::support::{Stage, claim, condition, object};

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    let foreign = Some(Foreign::Rook);
    Stage::run_with(Options { accesses: Accesses::Served, foreign, ..Options::default() }, test)
}

/// Returns the configuration of an operator with `--obc`.
fn with_obcs() -> Setup {
    Setup { obc: Some(PROVISIONER.to_owned()), ..setup() }
}

fn class(parameters: &str) -> String {
    format!(
        "{{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {{name: buckets}}, \
         provisioner: {PROVISIONER}, reclaimPolicy: Delete, parameters: {{{parameters}}}}}"
    )
}

const OBC: &str = "{apiVersion: objectbucket.io/v1alpha1, kind: ObjectBucketClaim, \
                   metadata: {name: charts, namespace: team-a}, \
                   spec: {storageClassName: buckets, generateBucketName: charts}}";

fn charts() -> ClaimRef {
    ClaimRef { namespace: "team-a".to_owned(), name: "charts".to_owned() }
}

fn phase(world: &World) -> String {
    let obc = object(world, "objectbucketclaims", "team-a", "charts");
    obc["status"]["phase"].as_str().unwrap_or_default().to_owned()
}

async fn why_obc(world: &World) -> WhyObc {
    let (means, asked) = means(world);
    let before = world.cluster.resource_version();
    let why = preview::why_obc(&with_obcs(), means, &charts()).await.expect("there is such an ObjectBucketClaim");
    assert_eq!(world.cluster.resource_version(), before);
    assert!(asked.lock().iter().all(|(method, _)| method == http::Method::GET));
    why
}

async fn says(world: &World) -> String {
    let (plan, _) = plan_of(world, &with_obcs(), &Scope::default()).await;
    line_of(&plan, &Object::Obc(charts())).next.to_string()
}

// covers: 5.plan.obcs, 5.why.obc
#[test]
fn an_object_bucket_claim_waits_for_its_class_then_is_begun_and_then_is_bound() {
    run(async |mut stage| {
        stage.apply(OBC).await;
        stage.world.pass(MINUTE).await;
        assert_eq!(says(&stage.world).await, "wait: there is no storage class buckets");
        let why = why_obc(&stage.world).await;
        assert_eq!(why.changes, [format!("storage class buckets is made, of provisioner {PROVISIONER}")]);
        assert!(why.worker.is_none() && why.phase.is_none(), "{why:?}");

        stage.operator.stop();
        stage.apply(&class("backend: main")).await;
        let begins = "begin to serve the ObjectBucketClaim, of storage class buckets";
        assert_eq!(says(&stage.world).await, begins);
        let number = stage.world.effects.trace().effects();
        stage.operator = stage.world.start_operator();
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        let trace = stage.world.effects.trace();
        let mut later = trace.lines().iter().filter(|line| line.number > number).map(|line| line.call.to_string());
        let first =
            later.find(|call| (call.contains("patch") || call.contains("create")) && call.contains("objectbucket"));
        assert!(first.as_deref().is_some_and(|call| call.contains("patch objectbucketclaims")), "{first:?}");

        stage.world.pass(5 * MINUTE).await;
        let (plan, asked) = plan_of(&stage.world, &with_obcs(), &Scope::default()).await;
        assert_eq!(plan.to_do() + plan.waiting() + plan.unknown(), 0, "{plan:?}");
        let text = plan.text(Paint(false), false);
        assert!(
            text.contains("obc/team-a/charts") && text.contains("1 claim, 1 ObjectBucketClaim and 1 backend."),
            "{text}"
        );
        assert_eq!(plan.json()["obcs"][0]["kind"], "ObjectBucketClaim");
        assert!(!asked.iter().any(|path| path.contains("objectbucketclaims/")), "{asked:?}");
        let why = why_obc(&stage.world).await;
        assert_eq!((&why.next, why.phase.as_deref()), (&Next::Nothing(None), Some("Bound")));
        let text = why.text(Paint(false), stage.world.clock.clock()());
        assert!(
            row(&text, "Phase").contains("Bound, made ") && row(&text, "BucketClaim").ends_with("  team-a/obc-charts"),
            "{text}"
        );
        let document = why.json();
        assert_eq!((&document["kind"], &document["phase"]), (&json!("ObjectBucketClaim"), &json!("Bound")));
        assert_eq!(
            (&document["worker"]["kind"], &document["worker"]["phase"]),
            (&json!("BucketClaim"), &json!("Bound"))
        );
    });
}

// covers: 5.plan.obcs
#[test]
fn without_the_flag_none_is_asked_for_and_one_that_is_named_is_refused() {
    run(async |stage| {
        stage.apply(&class("backend: main")).await;
        stage.apply(OBC).await;
        stage.until("it is Bound", |world| phase(world) == "Bound").await;
        let (plan, asked) = plan_of(&stage.world, &setup(), &Scope::default()).await;
        assert!(plan.lines.iter().all(|line| !matches!(line.object, Object::Obc(_))), "{plan:?}");
        assert!(
            !asked.iter().any(|path| path.contains("objectbucket") || path.contains("storageclasses")),
            "{asked:?}"
        );
        let why = preview::why_obc(&setup(), means(&stage.world).0, &charts()).await.expect_err("none are served");
        assert!(why.contains("--obc"), "{why}");
        let none = ClaimRef { name: "none".to_owned(), ..charts() };
        let why = preview::why_obc(&with_obcs(), means(&stage.world).0, &none).await.expect_err("there is none");
        assert_eq!(why, "there is no ObjectBucketClaim team-a/none");
        let (plan, _) = plan_of(&stage.world, &with_obcs(), &Scope::of_obc(none)).await;
        assert_eq!((plan.lines.len(), plan.unknown()), (1, 1));
    });
}

// covers: 5.plan.obcs
#[test]
fn one_of_another_provisioner_is_left_alone_and_said_to_be() {
    run(async |stage| {
        stage.apply(&class("backend: main").replace(PROVISIONER, "rook-ceph.ceph.rook.io/bucket")).await;
        stage.apply(OBC).await;
        stage.world.pass(MINUTE).await;
        let expected = format!(
            "nothing to do: rook-ceph.ceph.rook.io/bucket serves its class, and this operator serves {PROVISIONER}"
        );
        assert_eq!(says(&stage.world).await, expected);
        assert_eq!(why_obc(&stage.world).await.changes, [] as [&str; 0]);
    });
}

// covers: 5.why.obc
#[test]
fn why_of_an_object_bucket_claim_tells_what_does_its_work_waits_for() {
    run(async |stage| {
        stage.apply(&class("backend: nowhere")).await;
        stage.apply(OBC).await;
        let waits = |world: &World| {
            condition(&object(world, "bucketclaims", "team-a", "obc-charts"), "Ready") == "BackendNotReady"
        };
        stage.until("it waits", waits).await;
        stage.world.pass(5 * MINUTE).await;
        assert_eq!(says(&stage.world).await, "wait: there is no S3Backend nowhere");
        let why = why_obc(&stage.world).await;
        assert_eq!(why.changes, ["what BucketClaim obc-charts waits for is done: see below"]);
        let Some(Worker::Claim(claim)) = &why.worker else { panic!("{why:?}") };
        assert!(claim.changes.contains(&"S3Backend nowhere is made".to_owned()), "{:?}", claim.changes);
        let text = why.text(Paint(false), stage.world.clock.clock()());
        assert!(row(&text, "Ready").contains("False BackendNotReady, since "), "{text}");
    });
}

// covers: 5.why.obc
#[test]
fn one_whose_class_names_a_bucket_that_is_there_tells_of_its_access() {
    run(async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.apply(&class("backend: main, bucketName: archive")).await;
        stage.apply(&OBC.replace(", generateBucketName: charts", "")).await;
        let waits =
            |world: &World| condition(&object(world, "bucketaccesses", "team-a", "obc-charts"), "Ready") == "NotShared";
        stage.until("it waits", waits).await;
        stage.world.pass(5 * MINUTE).await;
        let expected = "wait: spec.sharedBuckets of S3Backend main does not share bucket archive with team-a";
        assert_eq!(says(&stage.world).await, expected);
        let why = why_obc(&stage.world).await;
        let Some(Worker::Access(access)) = &why.worker else { panic!("{why:?}") };
        assert_eq!(access.entries[0].status.reason.as_deref(), Some("NotShared"));
        assert_eq!(why.json()["worker"]["entries"][0]["reason"], "NotShared");
        let text = why.text(Paint(false), stage.world.clock.clock()());
        assert!(row(&text, "BucketAccess").ends_with("  team-a/obc-charts"), "{text}");
        assert!(
            row(&text, "Entry 0").contains("bucket archive at S3Backend main, ReadWrite: closed, NotShared"),
            "{text}"
        );
    });
}
