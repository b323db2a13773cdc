//! Decisions, each on a view made for it.

mod moves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api::{
    AddressingStyle, AdoptionPolicy, Backend, BucketClaim, BucketRecord, Claim, CredentialFacts, Endpoint, Gateway,
    Reason, S3Backend, SecretContent, SecretKey, wire,
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

// covers: 2.record.settled, 3.2.create.absence
#[test]
fn a_bucket_is_not_made_by_a_record_that_another_operator_may_have_written_since() {
    let mut view = holding(|record| record.absence = true);
    view.own_lists = 0;
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Bucket(_))));
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Internal(_))), "its key shows that the claim was bound");
    view.learn(&look, Answer::Secret(None));
    assert_eq!(step(&view), Step::Look(Look::Own));
    let mut newer = record(&view);
    (newer.absence, newer.settled) = (true, true);
    let mut noted = view.clone();
    noted.learn(&Step::Look(Look::Own), Answer::Secrets(vec![stored(&newer.content(NAMESPACE))]));
    let Step::Act(Act::Patch(patch)) = step(&noted) else { panic!("no patch") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair), "a claim that was bound gets its key back");
    let same = view.own.values().cloned().collect();
    view.learn(&Step::Look(Look::Own), Answer::Secrets(same));
    assert!(matches!(step(&view), Step::Act(Act::CreateBucket(_))));
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

// covers: 3.2.create.absence
#[test]
fn absence_is_in_the_record_before_the_bucket_is_created() {
    assert!(matches!(step(&holding(|_| {})), Step::Look(Look::Bucket(_))));
    let Step::Act(Act::Patch(patch)) = step(&about_to_create(|_| {})) else { panic!("no patch") };
    assert_eq!(patch.change, Change::NoteAbsence);
    let noted = about_to_create(|record| record.absence = true);
    assert!(matches!(step(&noted), Step::Act(Act::CreateBucket(_))));
}

// covers: 2.record.settled
#[test]
fn a_bucket_is_not_made_for_a_record_whose_key_is_there_without_its_labels() {
    let mut view = holding(|record| record.absence = true);
    view.bucket = Some(BucketSeen::Absent);
    let look = step(&view);
    let mut key = facts(&view).content(NAMESPACE, Some(&SecretKey::new("x".into())));
    key.labels.clear();
    view.learn(&look, Answer::Secret(Some(stored(&key))));
    view.fresh = true;
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("no patch") };
    assert_eq!(patch.change, Change::Settle, "the claim was bound, so its bucket is missing");
}

// covers: 3.2.create.success, 3.2.tags
#[test]
fn a_plain_success_in_the_pass_that_looked_is_ours_and_is_tagged_at_once() {
    let mut view = about_to_create(|record| record.absence = true);
    let create = step(&view);
    view.learn(&create, Answer::Created(CreateAnswer::Created));
    let Step::Act(Act::TagBucket(_, tags)) = step(&view) else { panic!("no tags") };
    assert_eq!(tags.get(wire::TAG_CLAIM_UID).map(String::as_str), Some("u-1"));
    assert_eq!(tags.get(wire::TAG_CLAIM).map(String::as_str), Some("team-a/photos"));
    assert_eq!(tags.get(wire::TAG_INSTALLATION).map(String::as_str), Some("cluster-1"));
}

// covers: 3.2.create.again
#[test]
fn a_bucket_that_is_there_already_is_looked_at_again() {
    let mut view = about_to_create(|record| record.absence = true);
    let create = step(&view);
    view.learn(&create, Answer::Created(CreateAnswer::AlreadyOwned));
    assert!(matches!(step(&view), Step::Look(Look::Bucket(_))));
}

const OURS: &[(&str, &str)] = &[(wire::TAG_CLAIM_UID, "u-1")];
const EARLIER_LIFE: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
const OTHER_CLUSTER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-2"), (wire::TAG_CLAIM, "team-a/photos"), (wire::TAG_CLAIM_UID, "u-0")];
const ANOTHER: &[(&str, &str)] =
    &[(wire::TAG_INSTALLATION, "cluster-1"), (wire::TAG_CLAIM, "team-b/x"), (wire::TAG_CLAIM_UID, "u-2")];
const STRANGERS: &[(&str, &str)] = &[("owner", "finance")];

/// What becomes of a bucket that is found there.
#[derive(Debug, PartialEq)]
enum Fate {
    Taken,
    Refused,
}

// covers: 3.2.adoption, 3.2.adoption.first
#[rstest]
#[case(AdoptionPolicy::Never, EARLIER_LIFE, Fate::Refused)]
#[case(AdoptionPolicy::Never, &[], Fate::Refused)]
#[case(AdoptionPolicy::Owned, EARLIER_LIFE, Fate::Taken)]
#[case(AdoptionPolicy::Owned, OTHER_CLUSTER, Fate::Refused)]
#[case(AdoptionPolicy::Owned, ANOTHER, Fate::Refused)]
#[case(AdoptionPolicy::Owned, STRANGERS, Fate::Refused)]
#[case(AdoptionPolicy::Owned, &[], Fate::Refused)]
#[case(AdoptionPolicy::Any, EARLIER_LIFE, Fate::Taken)]
#[case(AdoptionPolicy::Any, OTHER_CLUSTER, Fate::Refused)]
#[case(AdoptionPolicy::Any, ANOTHER, Fate::Refused)]
#[case(AdoptionPolicy::Any, STRANGERS, Fate::Taken)]
#[case(AdoptionPolicy::Any, &[], Fate::Taken)]
fn the_adoption_policy_decides_on_buckets_that_were_there(
    #[case] policy: AdoptionPolicy,
    #[case] found: &[(&str, &str)],
    #[case] fate: Fate,
) {
    let mut view = holding(|_| {});
    view.backends.insert("main".into(), backend(policy));
    view.bucket = Some(BucketSeen::Present(Some(tags(found))));
    view.rivals = Some(Vec::new());
    let seen = match step(&view) {
        Step::Act(Act::Patch(patch)) if patch.change == Change::Adopt => Fate::Taken,
        Step::Act(Act::WriteStatus(..)) if verdict(&view) == "BucketExists" => Fate::Refused,
        other => panic!("{other}"),
    };
    assert_eq!(seen, fate);
}

// covers: 3.2.rivals
#[test]
fn a_bucket_is_taken_over_only_if_a_live_list_shows_no_credential_of_another_claim() {
    let mut view = holding(|_| {});
    view.bucket = Some(BucketSeen::Present(Some(tags(EARLIER_LIFE))));
    assert!(matches!(step(&view), Step::Look(Look::CredentialsFor(_))));
    let mut facts = facts(&view);
    facts.uid = crate::api::ClaimUid::new("u-9");
    view.rivals = Some(vec![stored(&facts.content(NAMESPACE, Some(&SecretKey::new("x".into()))))]);
    assert_eq!(verdict(&view), "BucketNameConflict");
}

// covers: 3.2.create.untagged
#[test]
fn an_untagged_bucket_is_ours_only_if_it_was_absent_and_is_empty() {
    let mut view = holding(|record| record.absence = true);
    view.bucket = Some(BucketSeen::Present(Some(tags(&[]))));
    assert!(matches!(step(&view), Step::Look(Look::Contents(_))));
    view.bucket_empty = Some(true);
    assert!(matches!(step(&view), Step::Act(Act::TagBucket(..))));
    view.bucket_empty = Some(false);
    assert_eq!(verdict(&view), "BucketExists");
}

// covers: 3.2.create.tagged
#[test]
fn a_bucket_with_our_tags_needs_no_more_proof() {
    let mut view = holding(|_| {});
    view.backends.insert("main".into(), backend(AdoptionPolicy::Never));
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    assert!(matches!(step(&view), Step::Look(Look::Internal(_))), "on to the credential");
}

// covers: 3.2.look.forbidden
#[test]
fn a_bucket_of_somebody_else_is_never_taken() {
    let mut view = holding(|_| {});
    view.backends.insert("main".into(), backend(AdoptionPolicy::Any));
    view.bucket = Some(BucketSeen::Forbidden);
    assert_eq!(verdict(&view), "BucketExists");
}

// covers: 3.2.create.neverAgain
#[test]
fn an_adopted_bucket_that_is_gone_is_not_made_again() {
    let mut view = holding(|record| record.adopted = true);
    view.bucket = Some(BucketSeen::Absent);
    assert_eq!(verdict(&view), "BucketMissing");
}

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

// covers: 2.credential.once, 3.live.credential, 3.3.target.gone
#[test]
fn a_generation_is_minted_only_by_the_pass_that_made_it_the_target() {
    let mut view = holding(|_| {});
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    view.own_target = Some(1);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))));
    view.own_target = None;
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Internal(_))), "a cache is no proof of absence");
    view.learn(&look, Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("no patch") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
}

// covers: 2.internal.damaged
#[test]
fn a_damaged_credential_is_not_overwritten() {
    let mut view = holding(|_| {});
    let mut content = facts(&view).content(NAMESPACE, Some(&SecretKey::new("s3cr3t".into())));
    content.data.remove("secret_access_key");
    let secret = stored(&content);
    view.own.insert(secret.name().to_owned(), secret);
    assert_eq!(verdict(&view), "CreationInconsistent");
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

// covers: 3.2.missing
#[test]
fn a_bucket_that_vanished_is_missing_until_it_is_back_with_our_tags() {
    let mut view = bound();
    view.bucket = Some(BucketSeen::Absent);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("no patch") };
    assert_eq!(patch.change, Change::Settle, "the record knows it before it is told");
    let settled = BucketRecord { settled: true, ..record(&view) };
    let secret = stored(&settled.content(NAMESPACE));
    view.own.insert(secret.name().to_owned(), secret);
    assert_eq!(verdict(&view), "BucketMissing");
    view.missing_at = Some(super::bind::target(&record(&view)));
    view.bucket = Some(BucketSeen::Present(Some(tags(&[]))));
    assert_eq!(verdict(&view), "BucketMissing", "an untagged one in its place is not it");
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    assert!(matches!(step(&view), Step::Rest(_)));
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

fn deleting(change: impl FnOnce(&mut View)) -> View {
    let mut view = bound();
    view.claim.deleting = true;
    view.fresh = false;
    view.own_lists = 0;
    change(&mut view);
    view
}

// covers: 3.4.live
#[test]
fn deletion_begins_with_live_reads() {
    let view = deleting(|_| {});
    assert_eq!(step(&view), Step::Look(Look::Claim));
    assert_eq!(step(&deleting(|view| view.fresh = true)), Step::Look(Look::Own));
}

// covers: 3.4.live
#[test]
fn deletion_stops_when_the_live_claim_is_another_version() {
    let mut view = deleting(|_| {});
    let look = step(&view);
    let mut live = view.claim.clone();
    live.id.resource_version = "6".into();
    view.learn(&look, Answer::Claim(Some(Box::new(live))));
    assert!(matches!(step(&view), Step::Rest(_)));
}

// covers: 2.record.last, 3.4.order, 3.4.secondList
#[test]
fn deletion_revokes_before_it_lets_anything_else_go() {
    let mut view = deleting(|view| {
        view.fresh = true;
        view.own_lists = 1;
        view.own_current = true;
    });
    let mut deleted = Vec::new();
    for _ in 0..50 {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
            Step::Look(_) => Answer::Secret(None),
            Step::Act(Act::Delete(secret)) => {
                deleted.push(secret.name.chars().take(2).collect::<String>());
                Answer::Done
            }
            Step::Act(Act::RemoveFinalizer(_)) => break,
            other => panic!("{other}"),
        };
        view.learn(&step, answer);
    }
    assert_eq!(deleted, ["vc", "ph", "br"], "credential, consumer Secret, record");
    assert!(view.own_lists >= 2, "a second live list before the finalizer goes");
}

// covers: 3.2.lateCall
#[test]
fn the_record_stays_while_a_create_without_an_answer_may_still_land() {
    let time = std::time::Duration::from_secs(7);
    let mut view = holding(|_| {});
    view.claim.deleting = true;
    view.own_lists = 1;
    view.unanswered = Some(time);
    for _ in 0..20 {
        let step = step(&view);
        let answer = match &step {
            Step::Look(_) => Answer::Secret(None),
            Step::Rest(rest) => return assert_eq!(rest.then, Then::Wait(time)),
            Step::Act(act) => panic!("{act}"),
        };
        view.learn(&step, answer);
    }
    panic!("no rest");
}

// covers: 3.2.remade.adopted
#[test]
fn a_record_is_not_made_again_for_a_bucket_whose_tags_name_another_claim() {
    let mut view = view();
    view.claim.status.bucket_name = Some("team-a-photos".into());
    let endpoint = "http://s3.example".into();
    view.claim.status.backend = Some(crate::api::PinnedBackend { name: "main".into(), endpoint });
    view.claim.status.bucket_origin = Some(crate::api::BucketOrigin::Created);
    view.holder = Some((record(&view).name(), Holder::Unknown));
    view.rivals = Some(Vec::new());
    view.bucket = Some(BucketSeen::Present(Some(tags(ANOTHER))));
    assert_eq!(verdict(&view), "BucketExists");
    view.bucket = Some(BucketSeen::Present(Some(tags(EARLIER_LIFE))));
    let Step::Act(Act::CreateRecord(record)) = step(&view) else { panic!("no record") };
    assert!(record.adopted);
}

#[test]
fn a_stamp_at_the_end_of_time_is_waited_for_like_any_other() {
    let mut view = bound();
    let mut lower = stored(&facts(&view).content(NAMESPACE, Some(&SecretKey::new("old".into()))));
    let annotations = Arc::make_mut(&mut lower.0).metadata.annotations.get_or_insert_default();
    annotations.insert(wire::EXPIRES_AT.to_owned(), Timestamp::MAX.to_string());
    let mut raised = record(&view);
    raised.generation = 2;
    let second = stored(
        &CredentialFacts { generation: 2, ..facts(&view) }.content(NAMESPACE, Some(&SecretKey::new("new".into()))),
    );
    let record = stored(&raised.content(NAMESPACE));
    for secret in [lower, second, record] {
        view.own.insert(secret.name().to_owned(), secret);
    }
    for _ in 0..10 {
        let step = step(&view);
        match &step {
            Step::Act(Act::Patch(_)) => {
                let new = crate::api::Credential::read(&view.credential(2).unwrap().0, &view.claim.uid, 2);
                let facts = CredentialFacts { generation: 2, ..facts(&view) };
                let (credential, gateway) = (new.unwrap(), &view.setting.gateway.clone());
                let consumer =
                    crate::api::ConsumerContent { facts: &facts, credential: &credential, gateway, name: "photos-s3" };
                view.consumers.insert("photos-s3".into(), Some(stored(&consumer.content())));
            }
            Step::Act(Act::WriteStatus(_, status)) => view.claim.status = (**status).clone(),
            Step::Rest(rest) => return assert!(matches!(rest.then, Then::After(_)), "{:?}", rest.then),
            other => panic!("{other}"),
        }
    }
    panic!("no rest");
}

// covers: 3.2.create.alreadyExists
#[test]
fn a_bucket_that_exists_and_is_anothers_is_never_taken() {
    let mut view = about_to_create(|record| record.absence = true);
    view.backends.insert("main".into(), backend(AdoptionPolicy::Any));
    let create = step(&view);
    view.learn(&create, Answer::Created(CreateAnswer::AlreadyExists));
    assert_eq!(verdict(&view), "BucketExists");
}

/// The caches may show a Secret that is long gone, and say so for as long as a watch is silent.
#[test]
fn a_strangers_consumer_secret_is_read_before_it_is_refused() {
    let mut view = bound();
    let ours = view.consumers["photos-s3"].clone().unwrap();
    let mut theirs = (*ours.0).clone();
    theirs.metadata.owner_references = None;
    let theirs = Stored(Arc::new(theirs));
    view.consumers.insert("photos-s3".into(), Some(theirs.clone()));
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Consumer("photos-s3".into())));
    let mut gone = view.clone();
    gone.learn(&look, Answer::Secret(None));
    assert!(matches!(step(&gone), Step::Act(Act::CreateConsumer(_))));
    view.learn(&look, Answer::Secret(Some(theirs)));
    assert_eq!(verdict(&view), "SecretConflict");
}

/// The bucket may have been made between the look and the record, by whoever held it then.
#[test]
fn absence_that_was_seen_before_the_record_is_made_proves_nothing() {
    let mut view = view();
    let record = record(&view);
    let look = Step::Look(Look::Bucket(super::bind::target(&record)));
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    let made = stored(&record.content(NAMESPACE));
    view.learn(&Step::Act(Act::CreateRecord(record)), Answer::Secret(Some(made)));
    assert_eq!(step(&view), look);
}

/// An operator that is behind would take away what was asked for since.
#[test]
fn public_access_is_withdrawn_by_a_claim_read_live() {
    let mut view = bound();
    let binding = crate::api::AnonymousBinding {
        claim: view.claim.at.clone(),
        uid: view.claim.uid.clone(),
        backend: "main".into(),
        bucket: record(&view).bucket,
        per_source_ip_rps: 10,
    };
    let binding = stored(&binding.content(NAMESPACE));
    view.own.insert(binding.name().to_owned(), binding);
    view.fresh = false;
    assert_eq!(step(&view), Step::Look(Look::Claim));
    view.fresh = true;
    assert!(matches!(step(&view), Step::Act(Act::Delete(secret)) if secret.name.starts_with("ab-")));
}

/// A bound claim whose credential is old enough, and whose annotation asks for another.
fn asked() -> (View, Timestamp) {
    let mut view = bound();
    view.claim.rotate_request = Some("now".into());
    for secret in view.own.values_mut().filter(|secret| secret.name().starts_with("vc-")) {
        let made = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH);
        Arc::make_mut(&mut secret.0).metadata.creation_timestamp = Some(made);
    }
    (view, Timestamp::from_second(3600).unwrap())
}

// covers: 3.3.request.live, 3.3.twoKeys, 3.3.onePatch
#[test]
fn a_rotation_is_planned_on_a_claim_and_a_list_read_live_and_begins_with_one_patch() {
    let (mut view, now) = asked();
    view.fresh = false;
    assert_eq!(next(&view, now), Step::Look(Look::Claim), "an old list would ask twice");
    view.fresh = true;
    view.own_lists = 0;
    assert_eq!(next(&view, now), Step::Look(Look::Own), "a lower generation may live");
    view.own_lists = 1;
    let step = next(&view, now);
    let Step::Act(Act::Patch(patch)) = &step else { panic!("{step}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Request));
    let raised = BucketRecord { generation: 2, handled_rotate_request: Some("now".into()), ..record(&view) };
    view.learn(&step, Answer::Secret(Some(stored(&raised.content(NAMESPACE)))));
    let Step::Act(Act::Mint(minted)) = next(&view, now) else { panic!("the same pass mints it") };
    assert_eq!(minted.generation, 2);
}

// covers: 3.3.target.found
#[test]
fn a_target_that_only_a_live_read_finds_is_used() {
    let mut view = bound();
    let name = facts(&view).access_key_id().secret_name();
    let credential = view.own.remove(&name).unwrap();
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Internal(name)));
    view.learn(&look, Answer::Secret(Some(credential)));
    assert!(matches!(step(&view), Step::Rest(_) | Step::Act(Act::WriteStatus(..))), "no other one is made");
}
