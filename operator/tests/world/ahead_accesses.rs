//! `plan` and `why` of accesses (spec §5): they report what the operator then does, and for each
//! entry what would open it.

use rstest::rstest;
use serde_json::{Value, json};
use stowage_operator::api::{AccessRef, ClaimRef};
use stowage_operator::preview::{self, Next, Object, Paint, Scope, Setup, WhyAccess};
use stowage_world::effects::{Call, KubeVerb};
use stowage_world::{Accesses, OPERATOR_NAMESPACE, Options, World};

use crate::ahead::{MINUTE, line_of, means, plan_of, setup};
use crate::support::{Stage, access_with, claim_with, condition, object, secrets};
use crate::troubles::RESYNC;

fn run<T: Send>(test: impl AsyncFnOnce(Stage) -> T + Send) -> T {
    Stage::run_with(Options { accesses: Accesses::Served, ..Options::default() }, test)
}

const OWN: &str = "{claimRef: {name: photos}}";
const THEIRS: &str = "{claimRef: {name: photos, namespace: team-a}}";

/// Returns an access called `reader` with these entries.
fn reader(namespace: &str, entries: &str) -> String {
    access_with(namespace, "reader", &format!("buckets: [{entries}], rotationPolicy: {{overlapSeconds: 600}}"))
}

fn reader_of(namespace: &str) -> AccessRef {
    AccessRef { namespace: namespace.to_owned(), name: "reader".to_owned() }
}

fn reason(world: &World, namespace: &str) -> String {
    condition(&object(world, "bucketaccesses", namespace, "reader"), "Ready")
}

/// Applies the claim `team-a/photos` with this spec until it is bound.
async fn bound(stage: &Stage, spec: &str) {
    stage.apply(&claim_with("team-a", "photos", spec)).await;
    stage.until_ready_is("team-a", "photos", "Bound").await;
}

/// Applies the access `reader` in team-a until it is open, and waits for the operator to settle.
async fn open(stage: &Stage) {
    bound(stage, "").await;
    stage.apply(&reader("team-a", OWN)).await;
    stage.until("the access is open", |world| reason(world, "team-a") == "Open").await;
    stage.world.pass(5 * MINUTE).await;
}

async fn why_access(world: &World, namespace: &str) -> WhyAccess {
    let (means, asked) = means(world);
    let before = world.cluster.resource_version();
    let why = preview::why_access(&setup(), means, &reader_of(namespace)).await.expect("there is such an access");
    assert_eq!(world.cluster.resource_version(), before);
    assert!(asked.lock().iter().all(|(method, _)| method == http::Method::GET));
    why
}

/// Returns the row of a text that begins with this name.
pub(crate) fn row<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no row {name} in\n{text}"))
}

/// A change by users while the operator is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Another,
    AnotherOfNothing,
    RotateRequest,
    RevokeRequest,
    SecretDeleted,
    SecretEdited,
    SecretRenamed,
    KeyDeleted,
    Mode,
    Paused,
    Deleted,
}

impl Edit {
    async fn make(self, stage: &Stage) {
        let patch = async |patch: Value| stage.patch("bucketaccesses", "team-a", "reader", patch).await;
        let annotate = async |key: &str, value: &str| {
            patch(json!({"metadata": {"annotations": { format!("broker.stowage.io/{key}"): value }}})).await;
        };
        match self {
            Self::Another => stage.apply(&access_with("team-a", "other", &format!("buckets: [{OWN}]"))).await,
            Self::AnotherOfNothing => {
                stage.apply(&access_with("team-a", "other", "buckets: [{claimRef: {name: nobody}}]")).await;
            }
            Self::RotateRequest => annotate("rotate", "now").await,
            Self::RevokeRequest => annotate("revoke", "now").await,
            Self::SecretDeleted => stage.delete("secrets", "team-a", "reader-key").await,
            Self::SecretEdited => {
                stage.patch("secrets", "team-a", "reader-key", json!({"data": {"BUCKET_NAME": "eA=="}})).await;
            }
            Self::SecretRenamed => {
                patch(json!({"spec": {"writeConnectionSecretToRef": {"name": "another-key"}}})).await;
            }
            Self::KeyDeleted => {
                let key = secrets(&stage.world, OPERATOR_NAMESPACE, "access-credential").remove(0);
                stage.delete("secrets", OPERATOR_NAMESPACE, &key).await;
            }
            Self::Mode => {
                patch(json!({"spec": {"buckets": [{"claimRef": {"name": "photos"}, "mode": "ReadOnly"}]}})).await;
            }
            Self::Paused => annotate("paused", "true").await,
            Self::Deleted => stage.delete("bucketaccesses", "team-a", "reader").await,
        }
    }

    /// Returns the access whose next step changes.
    fn of(self) -> AccessRef {
        let name = if matches!(self, Self::Another | Self::AnotherOfNothing) { "other" } else { "reader" };
        AccessRef { namespace: "team-a".to_owned(), name: name.to_owned() }
    }
}

/// Returns verb, resource and name of the first write about an access or its Secrets after call
/// `number`.
fn first_write(world: &World, number: u64) -> Option<(KubeVerb, String, String)> {
    let trace = world.effects.trace();
    let mut later = trace.lines().iter().filter(|line| line.number > number);
    later.find_map(|line| match &line.call {
        Call::Kube(call) if call.verb.is_write() => {
            let name = call.name.clone().unwrap_or_default();
            let is_its = call.resource.starts_with("bucketaccesses")
                || (*call.resource == *"secrets" && !name.starts_with("br-"));
            is_its.then(|| (call.verb, call.resource.to_string(), name))
        }
        Call::Kube(_) | Call::S3(_) => None,
    })
}

// covers: 5.plan.next, 5.plan.accesses
#[rstest]
#[case(
    Edit::Another,
    "begin to serve the access: bucket team-a-photos at S3Backend main",
    "patch bucketaccesses other"
)]
#[case(
    Edit::AnotherOfNothing,
    "begin to serve the access, and wait: no entry opens a bucket yet: the claim has no bucket yet",
    "patch bucketaccesses other"
)]
#[case(Edit::RotateRequest, "rotate the key: annotation broker.stowage.io/rotate asks for it", "patch secrets ar-")]
#[case(
    Edit::RevokeRequest,
    "revoke every key, and make another: annotation broker.stowage.io/revoke asks for it",
    "patch secrets ar-"
)]
#[case(Edit::SecretDeleted, "write the connection into Secret reader-key, which is not there", "create secrets ")]
#[case(Edit::SecretEdited, "mend Secret reader-key: it is not as it should be", "patch secrets reader-key")]
#[case(Edit::SecretRenamed, "write the connection into Secret another-key, which is not there", "create secrets ")]
#[case(
    Edit::KeyDeleted,
    "replace the key: the current one is gone, or can't be told from a later one",
    "patch secrets ar-"
)]
#[case(Edit::Mode, "bring the key of generation 1 up to date with the entries", "patch secrets va-")]
#[case(
    Edit::Paused,
    "tell in the status: Ready=False Paused: annotation broker.stowage.io/paused is \"true\"",
    "patch bucketaccesses reader"
)]
#[case(Edit::Deleted, "revoke the key of generation 1: the access is deleted", "delete secrets va-")]
fn what_plan_says_comes_next_of_an_access_is_what_the_operator_then_does(
    #[case] edit: Edit,
    #[case] words: &str,
    #[case] call: &str,
) {
    run(async |mut stage| {
        open(&stage).await;
        stage.operator.stop();
        stage.world.pass(MINUTE).await;
        let (rests, _) = plan_of(&stage.world, &setup(), &Scope::default()).await;
        assert_eq!(rests.to_do(), 0, "it was at rest: {rests:?}");
        edit.make(&stage).await;
        let (plan, _) = plan_of(&stage.world, &setup(), &Scope::of_access(edit.of())).await;
        let [line] = plan.lines.as_slice() else { panic!("{plan:?}") };
        assert_eq!((&line.object, line.next.to_string().as_str()), (&Object::Access(edit.of()), words));

        let number = stage.world.effects.trace().effects();
        stage.operator = stage.world.start_operator();
        stage.world.pass(RESYNC).await;
        let (verb, resource, name) = first_write(&stage.world, number).expect("the operator does something");
        let did = format!("{} {resource} {name}", verb.name());
        assert!(did.starts_with(call), "{did}, and not {call}\n{}", stage.trace());
    });
}

/// At rest, accesses cost one more list, and no single access is read.
// covers: 5.plan.accesses, 5.plan.lists
#[test]
fn of_an_access_at_rest_nothing_is_asked_and_the_document_says_what_it_is() {
    run(async |stage| {
        open(&stage).await;
        let (plan, asked) = plan_of(&stage.world, &setup(), &Scope::default()).await;
        let text = plan.text(Paint(false), false);
        assert!(text.contains("bucketaccess/team-a/reader  nothing to do\n"), "{text}");
        assert!(text.ends_with("Nothing to do about 1 claim, 1 access and 1 backend.\n"), "{text}");
        let of_kind: Vec<&String> = asked.iter().filter(|path| path.contains("bucketaccesses")).collect();
        assert!(of_kind.len() == 1 && !of_kind[0].contains("bucketaccesses/"), "{asked:?}");
        assert!(!asked.iter().any(|path| path.contains("/secrets/ar-") || path.contains("/secrets/va-")), "{asked:?}");
        let document = plan.json();
        let access = json!({"kind": "BucketAccess", "namespace": "team-a", "name": "reader", "next": "nothing",
            "words": "nothing to do", "step": null, "until": null, "doubt": null});
        assert_eq!((&document["accesses"], &document["obcs"]), (&json!([access]), &json!([])));
        assert_eq!(document["claims"][0]["kind"], "BucketClaim");
        assert_eq!(document["backends"][0]["kind"], "S3Backend");

        let some = Scope { namespace: Some("team-a".to_owned()), ..Scope::default() };
        assert_eq!(plan_of(&stage.world, &setup(), &some).await.0.lines.len(), 2, "the claim, and the access");
        let none = Scope { namespace: Some("team-b".to_owned()), ..Scope::default() };
        assert!(plan_of(&stage.world, &setup(), &none).await.0.lines.is_empty());
        let missing = Scope::of_access(reader_of("team-b"));
        assert_eq!(plan_of(&stage.world, &setup(), &missing).await.0.unknown(), 1);
    });
}

/// The planner of claims knows the accesses as well: it opens the record of the bucket first.
// covers: 5.plan.accesses
#[test]
fn the_claim_is_said_to_let_an_access_in_before_that_gets_its_key() {
    run(async |stage| {
        bound(&stage, "").await;
        stage.apply(&reader("team-b", THEIRS)).await;
        stage.until("it is told", |world| reason(world, "team-b") == "NotShared").await;
        stage.operator.stop();
        stage.world.pass(MINUTE).await;
        let sharing = json!([{"namespaces": {"names": ["team-b"]}, "maxMode": "ReadOnly"}]);
        stage.patch("bucketclaims", "team-a", "photos", json!({"spec": {"sharing": sharing}})).await;
        let photos = ClaimRef { namespace: "team-a".to_owned(), name: "photos".to_owned() };
        for scope in
            [Scope::default(), Scope { claims: [photos.clone()].into(), ..Scope::of_access(reader_of("team-b")) }]
        {
            let (plan, _) = plan_of(&stage.world, &setup(), &scope).await;
            assert_eq!(
                line_of(&plan, &Object::Claim(photos.clone())).next.to_string(),
                "let accesses at bucket team-a-photos at S3Backend main as far as its owner consents"
            );
            let access = line_of(&plan, &Object::Access(reader_of("team-b"))).next.to_string();
            assert!(access.starts_with("tell in the status: Ready=False ConsentPending"), "{access}");
        }
        let why = why_access(&stage.world, "team-b").await;
        assert_eq!(why.entries[0].status.reason.as_deref(), Some("ConsentPending"));
        assert!(why.entries[0].remedies[0].contains("next pass over claim team-a/photos"), "{why:?}");
    });
}

/// A reason for a closed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    NotShared,
    NotSharedByBackend,
    ClaimNotBound,
    BeyondConsent,
    HeldByClaim,
    SameBucket,
    SpecInvalid,
    BackendNotReady,
}

impl Closed {
    async fn make(self, stage: &Stage) {
        let share = "sharing: [{namespaces: {names: [team-b]}, maxMode: ReadOnly}]";
        bound(stage, if matches!(self, Self::NotShared) { "" } else { share }).await;
        let entries = match self {
            Self::NotShared => THEIRS.to_owned(),
            Self::NotSharedByBackend => "{bucketRef: {backend: main, name: archive}}".to_owned(),
            Self::ClaimNotBound => {
                stage.apply(&claim_with("team-a", "films", &format!("{share}, bucketName: team-a-photos"))).await;
                stage.until_ready_is("team-a", "films", "BucketNameConflict").await;
                "{claimRef: {name: films, namespace: team-a}}".to_owned()
            }
            Self::BeyondConsent => "{claimRef: {name: photos, namespace: team-a}, mode: WriteOnly}".to_owned(),
            Self::HeldByClaim => {
                let shared = json!([{"name": "team-a-photos", "namespaces": ["team-b"], "maxMode": "ReadWrite"}]);
                stage.patch("s3backends", "", "main", json!({"spec": {"sharedBuckets": shared}})).await;
                "{bucketRef: {backend: main, name: team-a-photos}}".to_owned()
            }
            Self::SameBucket => format!("{THEIRS}, {THEIRS}"),
            Self::SpecInvalid => "{bucketRef: {backend: main, name: Archive}}".to_owned(),
            Self::BackendNotReady => {
                stage.delete("s3backends", "", "main").await;
                THEIRS.to_owned()
            }
        };
        stage.apply(&reader("team-b", &entries)).await;
    }
}

// covers: 5.why.access
#[rstest]
#[case(Closed::NotShared, "there is a claim team-a/photos, and its spec.sharing lets namespace team-b in")]
#[case(Closed::NotSharedByBackend, "sharedBuckets of S3Backend main share bucket archive with namespace team-b")]
#[case(Closed::ClaimNotBound, "claim team-a/films is there and is bound")]
#[case(Closed::BeyondConsent, "spec.sharing of claim team-a/photos consents to WriteOnly of the whole bucket")]
#[case(Closed::HeldByClaim, "the claim that holds bucket team-a-photos is deleted")]
#[case(Closed::SameBucket, "the other entry for this bucket")]
#[case(Closed::SpecInvalid, "the entry is mended: ")]
#[case(Closed::BackendNotReady, "the S3Backend of claim team-a/photos is there")]
fn why_tells_of_each_entry_that_is_closed_what_would_open_it(#[case] closed: Closed, #[case] remedy: &str) {
    run(async |stage| {
        closed.make(&stage).await;
        let expected = format!("{closed:?}").replace("ByBackend", "");
        stage.until("it is told", |world| reason(world, "team-b") == expected).await;
        stage.world.pass(5 * MINUTE).await;
        let why = why_access(&stage.world, "team-b").await;
        let entry = &why.entries[0];
        assert_eq!((entry.status.state.as_str(), entry.status.reason.as_deref()), ("Closed", Some(expected.as_str())));
        assert!(entry.remedies.iter().any(|it| it.starts_with(remedy)), "{:?}", entry.remedies);
        assert!(why.next.to_string().starts_with("wait: no entry opens a bucket yet: "), "{}", why.next);
        assert_eq!(why.changes, ["an entry opens: see below"]);

        let text = why.text(Paint(false), stage.world.clock.clock()());
        let ready = row(&text, "Ready");
        assert!(ready.contains(&format!("False {expected}, since ")) && ready.contains(" min)"), "{text}");
        let told = row(&text, "Entry 0");
        assert!(told.contains(&format!("closed, {expected}: ")), "{text}");
        assert!(row(&text, "opens if").contains(remedy), "{text}");
        let document = why.json();
        assert_eq!((&document["kind"], &document["next"]), (&json!("BucketAccess"), &json!("wait")));
        assert_eq!(document["entries"][0]["reason"], expected);
        assert!(document["conditions"][0]["since"].is_string());
        assert!(document["entries"][0]["changes"][0].as_str().is_some_and(|it| it.starts_with(remedy)));
    });
}

// covers: 5.why.access
#[test]
fn why_tells_of_an_entry_that_is_open_how_far_and_of_the_one_beside_it_why_it_is_not() {
    run(async |stage| {
        bound(&stage, "").await;
        let writer = "{claimRef: {name: photos}, mode: WriteOnly, prefix: in/}, {claimRef: {name: films}}";
        stage.apply(&reader("team-a", writer)).await;
        stage.until("the other waits", |world| reason(world, "team-a") == "ClaimNotBound").await;
        stage.world.pass(5 * MINUTE).await;
        let why = why_access(&stage.world, "team-a").await;
        let [open, closed] = why.entries.as_slice() else { panic!("{why:?}") };
        assert_eq!(open.asks, "claim team-a/photos, WriteOnly under in/");
        assert_eq!((open.status.state.as_str(), open.status.mode.as_deref()), ("Open", Some("WriteOnly")));
        assert!(open.why.is_none() && open.remedies.is_empty(), "{open:?}");
        assert_eq!(closed.status.reason.as_deref(), Some("ClaimNotBound"));
        assert!(why.next.to_string().starts_with("wait: entry 1 of spec.buckets is closed"), "{}", why.next);
        let text = why.text(Paint(false), stage.world.clock.clock()());
        let expected =
            "claim team-a/photos, WriteOnly under in/: open, bucket team-a-photos at S3Backend main, WriteOnly";
        assert!(row(&text, "Entry 0").ends_with(expected), "{text}");
        assert!(row(&text, "Key").contains("generation 1 in Secret reader-key, made "), "{text}");
        let document = why.json();
        assert_eq!(document["entries"][0]["mode"], "WriteOnly");
        let id = object(&stage.world, "bucketaccesses", "team-a", "reader")["status"]["accessKeyId"].clone();
        assert!(!document.to_string().contains(id.as_str().expect("there is a key")), "{document}");
    });
}

// covers: 5.why.access
#[test]
fn why_tells_of_an_access_that_is_paused_or_deleted_or_whose_secret_is_anothers() {
    run(async |stage| {
        let world = &stage.world;
        open(&stage).await;
        let rests = why_access(world, "team-a").await;
        assert_eq!((rests.next, rests.entries[0].status.state.as_str()), (Next::Nothing(None), "Open"));
        Edit::Paused.make(&stage).await;
        stage.until("it is told", |world| reason(world, "team-a") == "Paused").await;
        let paused = why_access(world, "team-a").await;
        let message = "annotation broker.stowage.io/paused is \"true\"".to_owned();
        assert_eq!(paused.next, Next::Wait(message, None));
        assert_eq!(paused.changes, ["annotation broker.stowage.io/paused is taken off the access"]);
        Edit::Deleted.make(&stage).await;
        stage
            .until("its keys are gone", |world| secrets(world, OPERATOR_NAMESPACE, "access-credential").is_empty())
            .await;
        world.pass(MINUTE).await;
        let deleted = why_access(world, "team-a").await;
        assert!(deleted.deleted.is_some() && deleted.entries.is_empty(), "{deleted:?}");
        assert!(deleted.next.to_string().contains("the rest waits for the pause to end"), "{}", deleted.next);
        assert!(row(&deleted.text(Paint(false), world.clock.clock()()), "Deleted").contains(" s)"));

        stage.apply("{apiVersion: v1, kind: Secret, metadata: {name: second-key, namespace: team-a}}").await;
        stage.apply(&access_with("team-a", "second", &format!("buckets: [{OWN}]"))).await;
        let second = AccessRef { namespace: "team-a".to_owned(), name: "second".to_owned() };
        let told = |world: &World| condition(&object(world, "bucketaccesses", "team-a", "second"), "Ready");
        stage.until("it is told", |world| told(world) == "SecretConflict").await;
        world.pass(MINUTE).await;
        let why = preview::why_access(&setup(), means(world).0, &second).await.expect("it is there");
        assert_eq!(why.changes, ["Secret second-key is deleted", "spec.writeConnectionSecretToRef names another"]);
        let none = preview::why_access(&setup(), means(world).0, &reader_of("team-b")).await;
        assert_eq!(none.expect_err("there is none"), "there is no BucketAccess team-b/reader");
    });
}

// covers: 5.plan.others
#[test]
fn an_access_that_another_operator_serves_is_left_alone_and_said_to_be() {
    run(async |stage| {
        open(&stage).await;
        let another = Setup { installation: Some("elsewhere".to_owned()), ..setup() };
        let served = json!({"metadata": {"annotations": {"broker.stowage.io/served-by": "stowage-system/here"}}});
        stage.patch("bucketaccesses", "team-a", "reader", served).await;
        stage.world.pass(MINUTE).await;
        let (told, _) = plan_of(&stage.world, &another, &Scope::of_access(reader_of("team-a"))).await;
        let says = told.lines[0].next.to_string();
        assert!(says.contains("serves it, and this operator is stowage-system/elsewhere"), "{says}");
    });
}

/// The finalizer of the access was removed by hand.
// covers: 5.plan.accesses
#[test]
fn what_is_left_of_an_access_that_is_gone_is_told_as_well() {
    run(async |stage| {
        open(&stage).await;
        stage.operator.stop();
        stage.world.pass(MINUTE).await;
        stage.patch("bucketaccesses", "team-a", "reader", json!({"metadata": {"finalizers": null}})).await;
        stage.delete("bucketaccesses", "team-a", "reader").await;
        let (plan, _) = plan_of(&stage.world, &setup(), &Scope::default()).await;
        let key = secrets(&stage.world, OPERATOR_NAMESPACE, "access-credential").remove(0);
        let line = line_of(&plan, &Object::LeftAccess(reader_of("team-a")));
        assert_eq!(line.next.to_string(), format!("delete Secret {key}, which is left of an access that is gone"));
        assert_eq!(plan.json()["left"][0]["kind"], "BucketAccess");
        assert!(plan.text(Paint(false), true).contains("bucketaccess/team-a/reader (gone)  delete Secret "));
    });
}
