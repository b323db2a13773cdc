//! Decisions, each on a view made for it: what the views are made of, and how a claim comes to be
//! bound and stays so.

mod buckets;
mod credentials;
mod deletion;
mod moves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::{
    AddressingStyle, AdoptionPolicy, Backend, BucketClaim, BucketRecord, Claim, ClaimUid, CredentialFacts, Endpoint,
    Gateway, Reason, S3Backend, SecretContent, SecretKey, wire,
};

use super::{
    Act, Answer, BackendSeen, BucketSeen, Change, CreateAnswer, Failure, Holder, Look, Setting, Step, Stored, Then,
    Trigger, View, next,
};

const NAMESPACE: &str = "stowage-system";

fn setting() -> Arc<Setting> {
    Arc::new(Setting {
        operator_namespace: NAMESPACE.into(),
        trusted_namespaces: BTreeSet::from(["vault".to_owned()]),
        gateway: Gateway {
            endpoint: Endpoint::parse("http://gateway.example").unwrap(),
            region: "us-east-1".into(),
            addressing_style: AddressingStyle::Path,
        },
        installation: "cluster-1".into(),
        purge_slice: 10_000,
    })
}

fn claim_in(namespace: &str, spec: &Value, finalizer: bool) -> Claim {
    let mut raw = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
        "metadata": {"name": "photos", "namespace": namespace, "uid": "u-1", "resourceVersion": "5", "generation": 1,
                     "finalizers": if finalizer { vec![crate::api::FINALIZER] } else { vec![] }},
        "spec": {"backendRef": {"name": "main"}},
    });
    raw["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Claim::parse(&serde_json::from_value::<BucketClaim>(raw).unwrap())
}

fn backend(adoption: AdoptionPolicy) -> BackendSeen {
    let raw: S3Backend = serde_json::from_value(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend",
        "metadata": {"name": "main", "uid": "b-1", "generation": 1},
        "spec": {"endpoint": "http://s3.example", "adoptionPolicy": adoption,
                 "adminCredentialsSecretRef": {"name": "admin", "namespace": NAMESPACE}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "EndpointReachable", "message": "",
                                   "observedGeneration": 1, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
    }))
    .unwrap();
    BackendSeen::Present { backend: Arc::new(Backend::parse(&raw).unwrap()), allowed: true }
}

fn record(view: &View) -> BucketRecord {
    BucketRecord {
        claim: view.claim.at.clone(),
        uid: view.claim.uid.clone(),
        backend: "main".into(),
        endpoint: Endpoint::parse("http://s3.example").unwrap(),
        bucket: crate::api::BucketName::parse("team-a-photos").unwrap(),
        absence: false,
        adopted: false,
        settled: false,
        generation: 1,
        handled_rotate_request: None,
    }
}

fn stored(content: &SecretContent) -> Stored {
    let mut secret: Secret = content.to_secret();
    secret.metadata.uid = Some(format!("uid-of-{}", content.name));
    secret.metadata.resource_version = Some("9".into());
    Stored(Arc::new(secret))
}

/// A claim with its finalizer, read live, on a Ready backend.
fn view() -> View {
    let mut view = View::new(setting(), claim_in("team-a", &json!({}), true), Vec::new(), Vec::new());
    view.fresh = true;
    view.own_lists = 1;
    view.backends.insert("main".into(), backend(AdoptionPolicy::Owned));
    view
}

/// The same, holding this record.
fn holding(change: impl FnOnce(&mut BucketRecord)) -> View {
    let mut view = view();
    let mut record = record(&view);
    change(&mut record);
    let secret = stored(&record.content(NAMESPACE));
    view.own.insert(secret.name().to_owned(), secret);
    view
}

/// The same in a pass that saw no bucket, after a look for the key that the record may have.
fn about_to_create(change: impl FnOnce(&mut BucketRecord)) -> View {
    let mut view = holding(change);
    view.bucket = Some(BucketSeen::Absent);
    let look = step(&view);
    assert!(matches!(&look, Step::Look(Look::Internal(name)) if name.starts_with("vc-")), "{look}");
    view.learn(&look, Answer::Secret(None));
    view.fresh = true;
    view
}

fn step(view: &View) -> Step {
    next(view, Timestamp::UNIX_EPOCH)
}

/// Reason of `Ready` in the status that the next step writes.
fn verdict(view: &View) -> String {
    match step(view) {
        Step::Act(Act::WriteStatus(_, status)) => {
            status.conditions.iter().find(|c| c.type_ == "Ready").map(|c| c.reason.clone()).unwrap_or_default()
        }
        other => panic!("expected a status, got {other}"),
    }
}

fn tags(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

// covers: 3.1.finalizer
#[test]
fn the_finalizer_comes_before_anything_else() {
    let view = View::new(setting(), claim_in("team-a", &json!({}), false), Vec::new(), Vec::new());
    assert!(matches!(step(&view), Step::Act(Act::AddFinalizer(_))));
}

// covers: 2.namespaces
#[rstest]
#[case(NAMESPACE)]
#[case("vault")]
fn a_claim_in_a_namespace_of_secrets_is_refused_and_not_touched(#[case] namespace: &str) {
    let view = View::new(setting(), claim_in(namespace, &json!({}), false), Vec::new(), Vec::new());
    assert_eq!(verdict(&view), "BackendNotAllowed");
}

// covers: 3.live.claim
#[test]
fn a_record_is_made_only_after_a_live_list_unless_the_claim_is_newborn() {
    let mut known = view();
    known.own_lists = 0;
    assert!(matches!(step(&known), Step::Look(Look::Holder(_))), "who holds it costs nothing to know");
    known.holder = Some((record(&known).name(), Holder::Unknown));
    assert_eq!(step(&known), Step::Look(Look::Own));
    known.newborn = true;
    assert!(matches!(step(&known), Step::Act(Act::CreateRecord(_))));
}

// covers: 3.2.record.decides
#[test]
fn a_name_that_another_claim_holds_is_a_conflict_and_is_waited_for() {
    let mut view = view();
    let holder = crate::api::ClaimRef { namespace: "team-b".into(), name: "secret-plans".into() };
    view.holder = Some((record(&view).name(), Holder::Other(holder)));
    let Step::Act(Act::WriteStatus(_, status)) = step(&view) else { panic!("no status") };
    assert!(status.conditions.iter().any(|c| c.reason == Reason::BucketNameConflict.to_string()));
    assert!(!format!("{status:?}").contains("secret-plans"), "a tenant learns nothing of other namespaces");
    view.claim.status = *status;
    let Step::Rest(rest) = step(&view) else { panic!("no rest") };
    assert_eq!(rest.waits_for, Some(record(&view).name()));
    assert_eq!(rest.then, Then::AwaitChange);
}

const OURS: &[(&str, &str)] = &[(wire::TAG_CLAIM_UID, "u-1")];
const EARLIER_LIFE: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
const OTHER_CLUSTER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-2"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
const ANOTHER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-b/x"), (wire::TAG_CLAIM_UID, "u-2")];
const STRANGERS: &[(&str, &str)] = &[("owner", "finance")];

fn facts(view: &View) -> CredentialFacts {
    let record = record(view);
    CredentialFacts {
        claim: record.claim,
        uid: record.uid,
        backend: record.backend,
        bucket: record.bucket,
        generation: 1,
        quota_soft: None,
        quota_hard: None,
    }
}

/// A claim that has everything.
fn bound() -> View {
    let mut view = holding(|_| {});
    let facts = facts(&view);
    let secret = stored(&facts.content(NAMESPACE, Some(&SecretKey::new("s3cr3t".into()))));
    let credential = crate::api::Credential::read(&secret.0, &facts.uid, 1).unwrap();
    view.own.insert(secret.name().to_owned(), secret);
    let gateway = &view.setting.gateway;
    let consumer = crate::api::ConsumerContent { facts: &facts, credential: &credential, gateway, name: "photos-s3" };
    let consumer = stored(&consumer.content());
    view.consumers.insert("photos-s3".into(), Some(consumer));
    if let Step::Act(Act::WriteStatus(_, status)) = step(&view) {
        view.claim.status = (*status).clone();
        view.status_before = *status;
    }
    view.live = view.own.keys().cloned().collect();
    view
}

// covers: 3.idle
#[test]
fn planning_again_on_a_bound_claim_gives_rest() {
    let Step::Rest(rest) = step(&bound()) else { panic!("not at rest") };
    assert_eq!((rest.then, rest.events.len()), (Then::AwaitChange, 0));
}

// covers: 1.phase.Bound, 1.bound.impaired
#[test]
fn a_bound_claim_keeps_its_keys_whatever_becomes_of_the_backend() {
    for (seen, reason) in [
        (BackendSeen::Missing, "BackendNotReady"),
        (BackendSeen::Invalid("bad".into()), "BackendNotReady"),
        (
            match backend(AdoptionPolicy::Owned) {
                BackendSeen::Present { backend, .. } => BackendSeen::Present { backend, allowed: false },
                other => other,
            },
            "BackendNotAllowed",
        ),
    ] {
        let mut view = bound();
        view.backends.insert("main".into(), seen);
        let Step::Act(Act::WriteStatus(_, status)) = step(&view) else { panic!("no status") };
        assert_eq!(status.phase, Some(crate::api::Phase::Bound));
        let ready = status.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
        assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", reason));
    }
}

// covers: 1.phase.Creating, 3.2.look.error
#[test]
fn an_error_is_never_absence() {
    let mut view = holding(|record| record.absence = true);
    let look = step(&view);
    view.learn(&look, Answer::Failed(Failure::Upstream("GetBucketTagging: the store failed (InternalError)".into())));
    let Step::Act(Act::WriteStatus(id, status)) = step(&view) else { panic!("no status") };
    assert_eq!(status.phase, Some(crate::api::Phase::Creating));
    view.learn(
        &Step::Act(Act::WriteStatus(id, status.clone())),
        Answer::Claim(Some(Box::new(Claim { status: *status, ..view.claim.clone() }))),
    );
    assert!(matches!(step(&view), Step::Rest(rest) if matches!(rest.then, Then::Retry(_))));
}

// covers: 1.annotation.paused
#[test]
fn a_paused_claim_is_left_alone_visibly() {
    let mut view = view();
    view.claim.paused = true;
    assert_eq!(verdict(&view), "Paused");
}

// covers: 1.annotation.paused
#[test]
fn a_paused_claim_asks_for_what_an_earlier_read_missed_before_its_status_tells_that_it_is_gone() {
    let whole = bound();
    let (name, record_secret) = whole.record().map(|(record, kept)| (record.name().to_string(), kept)).unwrap();
    let key = whole.credential(1).unwrap().clone();
    let consumer = whole.consumers["photos-s3"].clone().unwrap();
    let missed = [
        (Look::Internal(name.clone()), record_secret),
        (Look::Internal(key.name().to_owned()), key),
        (Look::Consumer("photos-s3".to_owned()), consumer),
    ];
    let mut lost = whole.clone();
    lost.claim.paused = true;
    lost.own.clear();
    lost.live.clear();
    lost.consumers.clear();
    lost.doubted = missed.iter().map(|(look, _)| look.clone()).collect();

    let mut found = lost.clone();
    for (look, secret) in &missed {
        assert_eq!(step(&found), Step::Look(look.clone()));
        found.learn(&Step::Look(look.clone()), Answer::Secret(Some(secret.clone())));
    }
    let Step::Act(Act::WriteStatus(_, status)) = step(&found) else { panic!("{}", step(&found)) };
    assert_eq!(status.access_key_id, whole.claim.status.access_key_id);
    assert_eq!(status.bound_secret_name, whole.claim.status.bound_secret_name);

    let mut listed = lost.clone();
    listed.learn(&Step::Look(Look::Own), Answer::Secrets(whole.own.values().cloned().collect()));
    assert_eq!(listed.doubted, [Look::Consumer("photos-s3".to_owned())], "a list tells of the internal ones");
    let deleted = Act::Delete(whole.credential(1).unwrap().reference());
    listed.doubted = missed.iter().map(|(look, _)| look.clone()).collect();
    listed.learn(&Step::Act(deleted), Answer::Done);
    assert_eq!(listed.doubted.len(), 2, "nor is what this pass deleted or wrote asked for");

    let mut gone = lost.clone();
    while let look @ Step::Look(_) = step(&gone) {
        gone.learn(&look, Answer::Secret(None));
    }
    assert_eq!(verdict(&gone), "Paused", "what is gone is not asked for again");
    let mut refused = lost.clone();
    for _ in &missed {
        let Step::Look(look) = step(&refused) else { break };
        refused.learn(&Step::Look(look), Answer::Failed(Failure::Refused("no right to".into())));
    }
    assert!(matches!(step(&refused), Step::Act(Act::WriteStatus(..))), "nor what can't be: {}", step(&refused));
    let mut taken = lost;
    let of_another = BucketRecord { uid: ClaimUid::new("u-2"), ..record(&whole) };
    taken.doubted.truncate(1);
    taken.learn(&Step::Look(Look::Internal(name)), Answer::Secret(Some(stored(&of_another.content(NAMESPACE)))));
    assert_eq!(verdict(&taken), "Paused", "nor is what is another claim's by now");
}

// covers: 3.4.namespace
#[test]
fn only_the_claims_own_namespace_ends_all_when_it_goes() {
    let mut view = bound();
    let facts = facts(&view);
    let mint = Step::Act(Act::Mint(facts));
    view.learn(&mint, Answer::Failed(Failure::NamespaceTerminating));
    assert_eq!(verdict(&view), "BackendError", "where the operator keeps its Secrets, that is trouble like any other");
    view.failure = None;
    let Some(Some(consumer)) = view.consumers.values().next().cloned() else { panic!("it is published") };
    let gone = Step::Look(Look::Consumer(consumer.name().to_owned()));
    view.learn(&gone, Answer::Secret(None));
    let publish = step(&view);
    assert!(matches!(publish, Step::Act(Act::CreateConsumer(_))), "{publish}");
    view.learn(&publish, Answer::Failed(Failure::NamespaceTerminating));
    let rest = step(&view);
    assert!(matches!(&rest, Step::Rest(rest) if rest.then == Then::AwaitChange), "{rest}");
}

/// An edit of a backend is looked at by its next probe; until then nothing is wrong with it.
#[test]
fn an_edit_of_the_backend_alone_turns_no_bound_claim_not_ready() {
    let edited = |ready_before: bool, endpoint: &str| {
        let BackendSeen::Present { backend, allowed } = backend(AdoptionPolicy::Owned) else { panic!("it is there") };
        let endpoint = Endpoint::parse(endpoint).unwrap();
        let edited = Backend { ready: false, was_ready: ready_before, endpoint, ..(*backend).clone() };
        BackendSeen::Present { backend: Arc::new(edited), allowed }
    };
    let mut view = bound();
    view.backends.insert("main".into(), edited(true, "http://s3.example"));
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
    view.backends.insert("main".into(), edited(true, "http://elsewhere.example"));
    assert_eq!(verdict(&view), "BackendNotReady", "it points to another store");
    view.backends.insert("main".into(), edited(false, "http://s3.example"));
    assert_eq!(verdict(&view), "BackendNotReady", "the last probe failed");
    let mut new = self::view();
    new.backends.insert("main".into(), edited(true, "http://s3.example"));
    assert_eq!(verdict(&new), "BackendNotReady", "nothing is begun on what nobody has looked at");
}

// covers: 3.5.wake.secret
#[test]
fn an_annotation_names_a_claim_only_as_what_its_label_is_short_for() {
    let named = |label: &str, annotation: &str| {
        let mut content = record(&view()).content(NAMESPACE);
        content.labels.insert(wire::CLAIM_NAME.into(), label.into());
        content.annotations.insert(wire::CLAIM_NAME.into(), annotation.into());
        stored(&content).claim().unwrap().name
    };
    assert_eq!(named("photos", "somebody-elses"), "photos");
    let long = "a".repeat(80);
    assert_eq!(named(&wire::label_value(&long), &long), long);
}
