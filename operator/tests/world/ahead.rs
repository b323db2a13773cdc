//! `plan` and `why` (spec §5): they report what the operator then does, and change nothing.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;
use rstest::rstest;
use serde_json::{Value, json};
use stowage_operator::Clock;
use stowage_operator::api::wire::CLAIM_NAME;
use stowage_operator::api::{ClaimRef, Unlabelled};
use stowage_operator::plan::{Act, Reach};
use stowage_operator::preview::{self, GivenGateway, Line, Means, Next, Object, Paint, Plan, Scope, Setup, Why};
use stowage_operator::upstream::Limits;
use stowage_world::effects::{Call, KubeVerb};
use stowage_world::fixtures::access_with;
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};
use tower::ServiceExt;

use crate::support::{OneStore, Stage, claim, claim_on, claim_with, object, ready, secrets, twin};
use crate::troubles::{RESYNC, Trouble};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Returns the configuration of the world's operator. `plan` is given only the namespace.
pub(crate) fn setup() -> Setup {
    Setup {
        operator_namespace: OPERATOR_NAMESPACE.to_owned(),
        usage_namespace: None,
        reach: Reach::Cluster,
        trusted_namespaces: std::collections::BTreeSet::new(),
        unlabelled_credentials: Unlabelled::Refused,
        installation: None,
        gateway: GivenGateway::default(),
        publishing: stowage_operator::api::Publishing::default(),
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 10_000,
        obc: None,
        at_once: 16,
        look_at_buckets: false,
    }
}

/// The requests of one preview: method, path and query of each.
pub(crate) type Asked = Arc<Mutex<Vec<(Method, String)>>>;

pub(crate) fn means(world: &World) -> (Means, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let service = world.cluster.service().map_request(move |request: Request<Body>| {
        log.lock().push((request.method().clone(), request.uri().to_string()));
        request
    });
    let clock = world.clock.clock();
    let means = Means {
        client: kube::Client::new(service, "default"),
        connect: Arc::new(OneStore(world.store.clone())),
        clock: Clock::new(move || clock()),
    };
    (means, asked)
}

/// Runs a preview, and asserts that it changes nothing.
pub(crate) async fn plan_of(world: &World, setup: &Setup, scope: &Scope) -> (Plan, Vec<String>) {
    let (means, asked) = means(world);
    let before = (world.cluster.resource_version(), world.store.buckets());
    let plan = preview::plan(setup, means, scope, |_, _| {}).await.expect("everything can be read");
    assert!((world.cluster.resource_version(), world.store.buckets()) == before, "asking changes nothing");
    let asked = asked.lock().clone();
    assert!(asked.iter().all(|(method, _)| method == Method::GET), "{asked:?}");
    (plan, asked.into_iter().map(|(_, path)| path).collect())
}

async fn plan(world: &World) -> Plan {
    plan_of(world, &setup(), &Scope::default()).await.0
}

async fn why(world: &World) -> Why {
    let (means, asked) = means(world);
    let before = world.cluster.resource_version();
    let why = preview::why(&setup(), means, &photos()).await.expect("there is such a claim");
    assert_eq!(world.cluster.resource_version(), before);
    assert!(asked.lock().iter().all(|(method, _)| method == Method::GET));
    why
}

fn photos() -> ClaimRef {
    ClaimRef { namespace: "team-a".to_owned(), name: "photos".to_owned() }
}

pub(crate) fn line_of<'a>(plan: &'a Plan, object: &Object) -> &'a Line {
    plan.lines.iter().find(|line| line.object == *object).unwrap_or_else(|| panic!("no line of {object}: {plan:?}"))
}

/// Converts a call for comparison: the operation, the resource or bucket, and the name, if the
/// request has one. Skips calls about backends and about the claim `team-b/films`.
fn written(call: &Call) -> Option<(String, String, Option<String>)> {
    match call {
        Call::Kube(call)
            if call.verb.is_write()
                && !["events", "s3backends"].contains(&&*call.resource)
                && call.name.as_deref() != Some("films") =>
        {
            let resource = call.subresource.as_ref().map_or_else(String::new, |it| format!("/{it}"));
            Some((call.verb.name().to_owned(), format!("{}{resource}", call.resource), call.name.clone()))
        }
        Call::S3(call) if !call.operation.is_read() => {
            Some((call.operation.name().to_owned(), call.bucket.clone().unwrap_or_default(), None))
        }
        Call::Kube(_) | Call::S3(_) => None,
    }
}

/// Returns the first call that carries out an effect.
fn call_of(act: &Act) -> (String, String, Option<String>) {
    let kube = |verb: KubeVerb, resource: &str, name: Option<&str>| {
        (verb.name().to_owned(), resource.to_owned(), name.map(str::to_owned))
    };
    let s3 = |operation: &str, bucket: &dyn ToString| (operation.to_owned(), bucket.to_string(), None);
    match act {
        Act::AddFinalizer(_) | Act::RemoveFinalizer(_) => kube(KubeVerb::Patch, "bucketclaims", Some("photos")),
        Act::WriteStatus(..) => kube(KubeVerb::Patch, "bucketclaims/status", Some("photos")),
        Act::CreateRecord(_) | Act::Mint(_) | Act::CreateConsumer(_) | Act::CreateBinding(_) => {
            kube(KubeVerb::Create, "secrets", None)
        }
        Act::Patch(patch) => kube(KubeVerb::Patch, "secrets", Some(&patch.target.name)),
        Act::Delete(secret) => kube(KubeVerb::Delete, "secrets", Some(&secret.name)),
        Act::CreateBucket(at) => s3("CreateBucket", &at.bucket),
        Act::TagBucket(at, _) => s3("PutBucketTagging", &at.bucket),
        Act::SetVersioning(at, _) => s3("PutBucketVersioning", &at.bucket),
        Act::DeleteBucket(at) => s3("DeleteBucket", &at.bucket),
        Act::Purge(at, _) => s3("DeleteObjects", &at.bucket),
    }
}

/// A change by users, or by time, while the operator is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Claim,
    ClaimOnNoBackend,
    NameThatIsTaken,
    RotateRequest,
    RotationIsDue,
    OverlapIsOver,
    RevokeRequest,
    SecretDeleted,
    SecretEdited,
    KeyDeleted,
    RecordDeleted,
    Quota,
    Versioning,
    Opened,
    Closed,
    SecretRenamed,
    BackendRef,
    Paused,
    NamespaceShutOut,
    BackendGone,
    BucketGone,
    Deleted,
    DeletedEmpty,
    DeletedWithObjects,
    ForeignSecret,
}

impl Edit {
    /// Returns the spec of the claim that is bound before the edit; `None` if there is none.
    fn spec(self) -> Option<&'static str> {
        match self {
            Self::Claim | Self::ClaimOnNoBackend | Self::NameThatIsTaken | Self::ForeignSecret => None,
            Self::RotationIsDue => Some("rotationPolicy: {mode: TimeBased, intervalDays: 7}"),
            Self::OverlapIsOver => Some("rotationPolicy: {overlapSeconds: 600}"),
            Self::Closed => Some("anonymousAccess: {mode: ReadOnly}"),
            Self::DeletedEmpty => Some("deletionPolicy: Delete"),
            Self::DeletedWithObjects => Some("deletionPolicy: Delete, forceDelete: true"),
            _ => Some(""),
        }
    }

    async fn make(self, stage: &Stage) {
        let spec = async |spec: Value| stage.patch("bucketclaims", "team-a", "photos", json!({ "spec": spec })).await;
        let annotate = async |key: &str, value: &str| {
            let annotations = json!({ format!("broker.stowage.io/{key}"): value });
            stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"annotations": annotations}})).await;
        };
        let internal = |role: &str| {
            let of_whom = |name: &str| {
                object(&stage.world, "secrets", OPERATOR_NAMESPACE, name)["metadata"]["labels"][CLAIM_NAME].clone()
            };
            let mut all = secrets(&stage.world, OPERATOR_NAMESPACE, role).into_iter();
            all.find(|name| of_whom(name) == "photos").expect("the claim has one")
        };
        match self {
            Self::Claim => stage.apply(&claim("team-a", "photos")).await,
            Self::ClaimOnNoBackend => stage.apply(&claim_on("nowhere", "team-a", "photos", "")).await,
            Self::NameThatIsTaken => {
                stage.apply(&claim_with("team-a", "photos", "bucketName: team-b-films")).await;
            }
            Self::RotateRequest => annotate("rotate", "now").await,
            Self::RotationIsDue => stage.world.pass(7 * 25 * 60 * MINUTE).await,
            Self::OverlapIsOver => stage.world.pass(20 * MINUTE).await,
            Self::RevokeRequest => annotate("revoke", "now").await,
            Self::SecretDeleted => stage.delete("secrets", "team-a", "photos-s3").await,
            Self::SecretEdited => {
                stage.patch("secrets", "team-a", "photos-s3", json!({"data": {"BUCKET_NAME": "eA=="}})).await;
            }
            Self::KeyDeleted => stage.delete("secrets", OPERATOR_NAMESPACE, &internal("virtual-credential")).await,
            Self::RecordDeleted => stage.delete("secrets", OPERATOR_NAMESPACE, &internal("bucket-record")).await,
            Self::Quota => spec(json!({"quota": {"hard": "1Gi"}})).await,
            Self::Versioning => spec(json!({"versioning": "Enabled"})).await,
            Self::Opened => spec(json!({"anonymousAccess": {"mode": "ReadOnly"}})).await,
            Self::Closed => spec(json!({"anonymousAccess": {"mode": "None"}})).await,
            Self::SecretRenamed => spec(json!({"writeConnectionSecretToRef": {"name": "other"}})).await,
            Self::BackendRef => spec(json!({"backendRef": {"name": "twin"}})).await,
            Self::Paused => annotate("paused", "true").await,
            Self::NamespaceShutOut => {
                stage.patch("s3backends", "", "main", json!({"spec": {"allowedNamespaces": {}}})).await;
            }
            Self::BackendGone => stage.delete("s3backends", "", "main").await,
            Self::BucketGone => assert!(stage.world.store.remove_bucket("team-a-photos"), "it was there"),
            Self::Deleted | Self::DeletedEmpty => stage.delete("bucketclaims", "team-a", "photos").await,
            Self::DeletedWithObjects => {
                stage.world.store.put_object("team-a-photos", "a", "x");
                stage.delete("bucketclaims", "team-a", "photos").await;
            }
            Self::ForeignSecret => {
                let theirs = "{apiVersion: v1, kind: Secret, metadata: {name: photos-s3, namespace: team-a}, stringData: {a: b}}";
                stage.apply(theirs).await;
                stage.apply(&claim("team-a", "photos")).await;
            }
        }
    }
}

/// Sets up the claim before the edit, waits for the operator to settle, and stops it.
async fn before(stage: &Stage, edit: Edit) {
    stage.apply(&twin()).await;
    stage.apply(&claim("team-b", "films")).await;
    stage.until_ready_is("team-b", "films", "Bound").await;
    stage.world.pass(5 * MINUTE).await;
    if let Some(spec) = edit.spec() {
        stage.apply(&claim_with("team-a", "photos", spec)).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(5 * MINUTE).await;
    }
    if edit == Edit::OverlapIsOver {
        Edit::RotateRequest.make(stage).await;
        stage.world.pass(MINUTE).await;
    }
    stage.operator.stop();
    stage.world.pass(MINUTE).await;
}

// covers: 5.plan.next, 5.plan.readOnly
#[rstest]
#[case(Edit::Claim, "begin to serve the claim: bucket team-a-photos at S3Backend main")]
#[case(Edit::ClaimOnNoBackend, "begin to serve the claim, and wait: there is no S3Backend nowhere")]
#[case(Edit::NameThatIsTaken, "begin to serve the claim: bucket team-b-films at S3Backend main")]
#[case(Edit::ForeignSecret, "begin to serve the claim: bucket team-a-photos at S3Backend main")]
#[case(Edit::RotateRequest, "rotate the key: annotation broker.stowage.io/rotate asks for it")]
#[case(Edit::RotationIsDue, "rotate the key: it is older than rotationPolicy.intervalDays, 7")]
#[case(Edit::OverlapIsOver, "delete the key of generation 1, which has expired")]
#[case(Edit::RevokeRequest, "revoke every key, and make another: annotation broker.stowage.io/revoke asks for it")]
#[case(Edit::SecretDeleted, "write the connection into Secret photos-s3, which is not there")]
#[case(Edit::SecretEdited, "mend Secret photos-s3: it is not as it should be")]
#[case(Edit::KeyDeleted, "replace the key: the current one is gone, or can't be told from a later one")]
#[case(Edit::RecordDeleted, "hold bucket team-a-photos at S3Backend main for the claim")]
#[case(Edit::Quota, "bring the key of generation 1 up to date with the spec")]
#[case(Edit::Versioning, "set versioning of bucket team-a-photos at S3Backend main to Enabled, as the spec asks")]
#[case(Edit::Opened, "open bucket team-a-photos at S3Backend main for reading without a key, which is noted first")]
#[case(Edit::Closed, "close bucket team-a-photos to readers without a key")]
#[case(Edit::SecretRenamed, "write the connection into Secret other, which is not there")]
#[case(Edit::BackendRef, "hold a second bucket for the claim, which is noted first")]
#[case(Edit::Paused, "tell in the status: Ready=False Paused: paused by annotation")]
#[case(
    Edit::NamespaceShutOut,
    "tell in the status: Ready=False BackendNotAllowed: S3Backend main does not allow namespace team-a"
)]
#[case(Edit::BackendGone, "tell in the status: Ready=False BackendNotReady: there is no S3Backend main")]
#[case(Edit::BucketGone, "note that the claim was bound to bucket team-a-photos at S3Backend main")]
#[case(Edit::Deleted, "end every access to bucket team-a-photos at S3Backend main: the claim is deleted")]
#[case(Edit::DeletedEmpty, "end every access to bucket team-a-photos at S3Backend main: the claim is deleted")]
#[case(Edit::DeletedWithObjects, "end every access to bucket team-a-photos at S3Backend main: the claim is deleted")]
fn what_plan_says_comes_next_is_what_the_operator_then_does(#[case] edit: Edit, #[case] words: &str) {
    Stage::run("", async |mut stage| {
        before(&stage, edit).await;
        assert_eq!(plan(&stage.world).await.to_do(), 0, "it was at rest");
        edit.make(&stage).await;
        let setup = Setup { look_at_buckets: true, ..setup() };
        let (plan, _) = plan_of(&stage.world, &setup, &Scope::of(photos())).await;
        let [line] = plan.lines.as_slice() else { panic!("{plan:?}") };
        let Next::Act(deed) = &line.next else { panic!("{line:?}") };
        assert_eq!(deed.words, words);

        let number = stage.world.effects.trace().effects();
        stage.operator = stage.world.start_operator();
        stage.world.pass(RESYNC).await;
        let trace = stage.world.effects.trace();
        let mut later = trace.lines().iter().filter(|line| line.number > number);
        let first = later.find_map(|line| written(&line.call));
        let act = deed.act.as_ref().expect("it is of a claim");
        assert_eq!(first, Some(call_of(act)), "{}\n{}", deed.step, stage.trace());
    });
}

// covers: 5.plan.next
#[test]
fn what_comes_next_is_told_in_text_and_in_a_document() {
    Stage::run("", async |stage| {
        stage.operator.stop();
        stage.world.pass(MINUTE).await;
        stage.apply(&claim("team-a", "photos")).await;
        let next = plan(&stage.world).await;
        assert_eq!(next.to_do(), 1);
        let text = next.text(Paint(false), true);
        assert!(
            text.contains("team-a/photos  begin to serve the claim: bucket team-a-photos at S3Backend main\n"),
            "{text}"
        );
        assert!(text.ends_with("Something to do about 1 of these: 1 claim and 1 backend.\n"), "{text}");
        let document = next.json();
        assert_eq!((&document["to_do"], &document["claims"][0]["next"]), (&json!(1), &json!("act")));
        assert_eq!(document["claims"][0]["step"], "add the finalizer");
    });
}

/// At rest, a preview reads a page of each list and the admin Secret for the probe, and no single
/// claim.
// covers: 5.plan.readOnly, 5.plan.lists
#[test]
fn at_rest_there_is_nothing_to_do_and_no_claim_is_asked_for() {
    const CLAIMS: usize = 120;
    Stage::run("", async |stage| {
        for number in 0..CLAIMS {
            let quota = if number % 2 == 0 { "quota: {hard: 1Gi}" } else { "" };
            stage.apply(&claim_with("team-a", &format!("c{number:04}"), quota)).await;
        }
        let last = format!("c{:04}", CLAIMS - 1);
        stage.until("all are bound", |world| ready(world, "team-a", &last) == "Bound").await;
        stage.world.pass(RESYNC).await;
        let (plan, asked) = plan_of(&stage.world, &setup(), &Scope::default()).await;
        assert_eq!(plan.lines.len(), CLAIMS + 1);
        let nothing = |line: &Line| matches!(line.next, Next::Nothing(_));
        let others: Vec<&Line> = plan.lines.iter().filter(|line| !nothing(line)).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!((plan.to_do(), plan.waiting(), plan.unknown()), (0, 0, 0));
        let summary = format!("Nothing to do about {CLAIMS} claims and 1 backend.\n");
        assert_eq!(plan.text(Paint(true), true), summary);
        // Pages of 100: two each of claims and consumer Secrets, three of internal Secrets; one
        // each of kube-system, namespaces, backends, accesses, ConfigMaps and the admin Secret.
        assert!(asked.len() <= 13, "{asked:#?}");
        assert!(!asked.iter().any(|path| path.contains("watch")), "{asked:#?}");

        let some = Scope { namespace: Some("team-b".to_owned()), ..Scope::default() };
        let (plan, _) = plan_of(&stage.world, &setup(), &some).await;
        assert!(plan.lines.is_empty(), "{plan:?}");
    });
}

// covers: 5.plan.gateway
#[test]
fn a_gateway_that_is_not_given_is_the_one_that_claims_have_and_another_shows_what_it_would_change() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(MINUTE).await;
        let told = plan(&stage.world).await;
        assert_eq!(told.to_do(), 0);
        assert!(told.assumed[0].contains("--gateway-endpoint is not given, and taken to be http://gateway.example"));
        let endpoint = stowage_operator::api::Endpoint::parse("http://other.example").ok();
        let other = Setup { gateway: GivenGateway { endpoint, ..GivenGateway::default() }, ..setup() };
        let (told, _) = plan_of(&stage.world, &other, &Scope::default()).await;
        assert_eq!(
            line_of(&told, &Object::Claim(photos())).next.to_string(),
            "mend Secret photos-s3: it is not as it should be"
        );
        assert_eq!(told.assumed, [] as [&str; 0]);
    });
}

// covers: 5.plan.gateway, 10.ca
#[test]
fn other_authorities_show_which_secrets_they_would_change() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(MINUTE).await;
        let gateway = GivenGateway { ca: Some("-----BEGIN CERTIFICATE-----".into()), ..GivenGateway::default() };
        let (told, _) = plan_of(&stage.world, &Setup { gateway, ..setup() }, &Scope::default()).await;
        let line = line_of(&told, &Object::Claim(photos()));
        assert_eq!(line.next.to_string(), "mend Secret photos-s3: it is not as it should be");
    });
}

// covers: 5.plan.others
#[test]
fn what_another_operator_serves_is_left_alone_and_said_to_be() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let another = Setup { installation: Some("elsewhere".to_owned()), ..setup() };
        let (told, _) = plan_of(&stage.world, &another, &Scope::default()).await;
        assert_eq!(told.to_do(), 0);
        for object in [Object::Claim(photos()), Object::Backend("main".to_owned())] {
            let says = line_of(&told, &object).next.to_string();
            assert!(says.contains("serves it, and this operator is stowage-system/elsewhere"), "{says}");
        }
    });
}

// covers: 5.plan.unknown
#[test]
fn what_is_named_and_not_there_can_not_be_told() {
    Stage::run("", async |stage| {
        let scope = Scope { backends: ["nowhere".to_owned(), "main".to_owned()].into(), ..Scope::of(photos()) };
        let (told, _) = plan_of(&stage.world, &setup(), &scope).await;
        assert_eq!((told.lines.len(), told.unknown(), told.to_do()), (3, 2, 0));
        assert!(told.text(Paint(false), false).contains("s3backend/nowhere  can't tell: there is none of this name"));
        let (means, _) = means(&stage.world);
        let why = preview::why(&setup(), means, &photos()).await.expect_err("there is none");
        assert_eq!(why, "there is no BucketClaim team-a/photos");
    });
}

/// The finalizer of the claim was removed by hand.
// covers: 5.plan.next
#[test]
fn what_is_left_of_a_claim_that_is_gone_is_told_as_well() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.operator.stop();
        stage.world.pass(MINUTE).await;
        stage.patch("bucketclaims", "team-a", "photos", json!({"metadata": {"finalizers": null}})).await;
        stage.delete("bucketclaims", "team-a", "photos").await;
        let told = plan(&stage.world).await;
        let says = line_of(&told, &Object::Left(photos())).next.to_string();
        let record = secrets(&stage.world, OPERATOR_NAMESPACE, "bucket-record").remove(0);
        assert_eq!(says, format!("end every access by record {record}, which is left of a claim that is gone"));
    });
}

/// The expected explanations of `why`.
// covers: 5.why
#[rstest]
#[case(Trouble::BackendNotReady, "wait: there is no S3Backend nowhere", "S3Backend nowhere is made")]
#[case(
    Trouble::BackendNotAllowed,
    "wait: S3Backend main does not allow",
    "allowedNamespaces of S3Backend main lets namespace team-a in"
)]
#[case(
    Trouble::TemplateInvalid,
    "wait: the template of S3Backend main",
    "bucketNameTemplate of S3Backend main is mended"
)]
#[case(
    Trouble::BucketNameConflict,
    "wait: bucket team-a-photos is held by",
    "the claim that holds the bucket is deleted"
)]
#[case(Trouble::BucketExists, "wait: bucket team-a-photos exists", "adoptionPolicy of the backend")]
#[case(
    Trouble::BucketMissing,
    "wait: bucket team-a-photos was there and is gone",
    "bucket team-a-photos is there again"
)]
#[case(Trouble::SecretConflict, "wait: Secret photos-s3 exists", "Secret photos-s3 is deleted")]
#[case(Trouble::CreationInconsistent, "wait: the current credential is damaged", "annotation broker.stowage.io/rotate")]
#[case(
    Trouble::ServedByAnother,
    "wait: annotation broker.stowage.io/served-by names",
    "annotation broker.stowage.io/served-by is"
)]
#[case(Trouble::BackendError, "create bucket team-a-photos at S3Backend main", "the operator does what comes next")]
#[case(Trouble::BucketNotEmpty, "wait: bucket team-a-photos is not empty", "bucket team-a-photos is emptied")]
#[case(
    Trouble::DeletionBlocked,
    "delete up to 10000 objects of bucket team-a-photos",
    "the operator does what comes next"
)]
fn why_tells_for_each_reason_since_when_and_what_would_change_it(
    #[case] trouble: Trouble,
    #[case] next: &str,
    #[case] changes: &str,
) {
    Stage::run("", async |stage| {
        trouble.make(&stage).await;
        stage.world.pass(5 * MINUTE).await;
        let why = why(&stage.world).await;
        assert!(why.next.to_string().starts_with(next), "{}", why.next);
        assert!(why.changes.iter().any(|it| it.starts_with(changes)), "{:?}", why.changes);
        let clock = stage.world.clock.clock();
        let text = why.text(Paint(false), clock());
        let ready = text.lines().find(|line| line.starts_with("Ready")).unwrap_or_else(|| panic!("{text}"));
        assert!(ready.contains(&format!("False {}, since ", trouble.reason())), "{text}");
        assert!(ready.contains(" min)"), "{text}");
        let document = why.json();
        assert_eq!(document["conditions"][0]["reason"], trouble.reason());
        assert!(document["conditions"][0]["since"].is_string());
    });
}

// covers: 5.why
#[test]
fn why_tells_of_a_pause_of_a_bound_claim_and_of_what_its_store_says() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let bound = why(&stage.world).await;
        assert_eq!(
            (bound.next, bound.heard.as_slice()),
            (Next::Nothing(None), &["bucket team-a-photos is there, with the tags of this claim".to_owned()][..],)
        );
        let backend = bound.backend.expect("the spec names one");
        assert_eq!(backend.ready.map(|ready| ready.reason).as_deref(), Some("EndpointReachable"));
        Edit::Paused.make(&stage).await;
        stage.until_ready_is("team-a", "photos", "Paused").await;
        let paused = why(&stage.world).await;
        assert_eq!(paused.next, Next::Wait("paused by annotation".to_owned(), None));
        assert_eq!(paused.changes, ["annotation broker.stowage.io/paused is taken off the claim"]);
        assert!(object(&stage.world, "bucketclaims", "team-a", "photos").is_object());
    });
}

// covers: 5.plan.uninstall
#[test]
fn what_hangs_without_the_operator_is_told_with_the_end_of_its_bucket() {
    let options = Options { accesses: Accesses::Served, ..Options::default() };
    Stage::run_with(options, async |stage| {
        for (name, more) in
            [("kept", ""), ("emptied", "deletionPolicy: Delete"), ("gone", "deletionPolicy: Delete, forceDelete: true")]
        {
            stage.apply(&claim_with("team-a", name, more)).await;
            stage.until_ready_is("team-a", name, "Bound").await;
        }
        let another = "metadata: {annotations: {broker.stowage.io/served-by: a/b}, \
                       finalizers: [broker.stowage.io/bucketclaim-protection], ";
        stage.apply(&claim("team-b", "theirs").replace("metadata: {", another)).await;
        let kept = "buckets: [{claimRef: {namespace: team-a, name: kept}, mode: ReadOnly}]";
        stage.apply(&access_with("team-a", "reader", kept)).await;
        stage.world.pass(MINUTE).await;
        let (means, asked) = means(&stage.world);
        let plan = preview::departure(&setup(), means, &Scope::default()).await.expect("everything can be read");
        assert!(asked.lock().iter().all(|(method, _)| method == Method::GET));
        let told: Vec<String> = plan.lines.iter().map(|line| format!("{}: {}", line.object, line.next)).collect();
        let hangs = "wait: it hangs without the operator, so delete it before;";
        let expected = [
            format!("team-a/emptied: {hangs} bucket team-a-emptied is deleted, once it is empty"),
            format!("team-a/gone: {hangs} bucket team-a-gone is deleted with all that is in it"),
            format!("team-a/kept: {hangs} bucket team-a-kept is kept"),
            format!("bucketaccess/team-a/reader: {hangs} its key ends with it"),
        ];
        assert_eq!(told, expected);
    });
}
