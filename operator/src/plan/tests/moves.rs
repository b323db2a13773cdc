//! Which record counts while a claim moves, and what a move waits for.

mod numbers;

use super::*;
use crate::api::{AccessKeyId, ConsumerContent, Credential, PinnedBackend};

/// Backend and bucket of the two places.
const OLD: (&str, &str) = ("main", "team-a-photos");
const NEW: (&str, &str) = ("second", "team-a-photos");

fn second() -> BackendSeen {
    let BackendSeen::Present { backend, allowed } = backend(AdoptionPolicy::Owned) else { panic!("it is there") };
    let endpoint = Endpoint::parse("http://second.example").unwrap();
    BackendSeen::Present {
        backend: Arc::new(Backend { name: "second".into(), endpoint, ..(*backend).clone() }),
        allowed,
    }
}

/// A claim that was bound on `main` and asks for `second`.
fn sent_on() -> View {
    let mut view = bound();
    view.claim =
        Claim { status: view.claim.status, ..claim_in("team-a", &json!({"backendRef": {"name": "second"}}), true) };
    view.backends.insert("second".into(), second());
    view
}

fn facts_at(view: &View, at: (&str, &str), generation: u64) -> CredentialFacts {
    let bucket = crate::api::BucketName::parse(at.1).unwrap();
    CredentialFacts { backend: at.0.into(), bucket, generation, ..facts(view) }
}

fn put(view: &mut View, secret: Stored) {
    view.live.insert(secret.name().to_owned());
    view.own.insert(secret.name().to_owned(), secret);
}

fn put_record(view: &mut View, at: (&str, &str), generation: u64) {
    let endpoint = if at.0 == "main" { "http://s3.example" } else { "http://second.example" };
    let record = BucketRecord {
        backend: at.0.into(),
        endpoint: Endpoint::parse(endpoint).unwrap(),
        generation,
        absence: true,
        ..record(view)
    };
    put(view, stored(&record.content(NAMESPACE)));
}

fn put_key(view: &mut View, at: (&str, &str), generation: u64) {
    let content = facts_at(view, at, generation).content(NAMESPACE, Some(&SecretKey::new("s3cr3t".into())));
    put(view, stored(&content));
}

fn remove_key(view: &mut View, generation: u64) {
    view.own.remove(&AccessKeyId::of(&view.claim.uid, generation).secret_name());
}

fn publish(view: &mut View, at: (&str, &str), generation: u64) {
    let facts = facts_at(view, at, generation);
    let credential = Credential {
        uid: facts.uid.clone(),
        id: facts.access_key_id(),
        secret: SecretKey::new("s3cr3t".into()),
        generation,
    };
    let gateway = &view.setting.gateway.clone();
    let content = ConsumerContent { facts: &facts, credential: &credential, gateway, name: "photos-s3" }.content();
    view.consumers.insert("photos-s3".into(), Some(stored(&content)));
}

fn current(view: &View) -> (String, u64) {
    view.record().map(|(record, _)| (record.backend, record.generation)).unwrap()
}

#[test]
fn a_record_that_is_only_held_does_not_count_however_high_it_aims() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    assert_eq!(current(&view), ("main".into(), 1));
    put_record(&mut view, OLD, 3);
    assert_eq!(current(&view), ("main".into(), 3), "nor does it while the old one is between two keys");
    put_record(&mut view, OLD, 1);
    put_key(&mut view, NEW, 2);
    assert_eq!(current(&view), ("second".into(), 2), "its first key decides");
}

#[test]
fn a_key_deleted_by_hand_does_not_send_the_claim_back_or_on() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    remove_key(&mut view, 1);
    assert_eq!(current(&view), ("main".into(), 1), "the status tells of that key");
    publish(&mut view, NEW, 2);
    assert_eq!(current(&view), ("main".into(), 1), "what a tenant can write proves nothing");
    view.claim.status = Default::default();
    assert_eq!(current(&view), ("second".into(), 2), "neither is proved: the one that is asked for");
}

#[test]
fn of_records_without_any_key_the_one_that_the_spec_asks_for_counts() {
    let mut view = sent_on();
    remove_key(&mut view, 1);
    view.consumers.clear();
    put_record(&mut view, OLD, 5);
    put_record(&mut view, NEW, 2);
    assert_eq!(current(&view), ("second".into(), 2));
}

/// Somebody took its labels off while the other aimed at the same generation.
#[test]
fn a_key_to_the_bucket_of_one_record_says_nothing_for_another_of_its_generation() {
    let mut view = sent_on();
    remove_key(&mut view, 1);
    put_record(&mut view, OLD, 2);
    put_key(&mut view, OLD, 2);
    put_record(&mut view, NEW, 2);
    assert_eq!(current(&view), ("main".into(), 2));
    let id = AccessKeyId::of(&view.claim.uid, 2).to_string();
    let (told, endpoint) = (&mut view.claim.status, "http://s3.example".into());
    told.access_key_id = Some(id);
    told.bucket_name = Some(NEW.1.into());
    told.backend = Some(PinnedBackend { name: OLD.0.into(), endpoint });
    assert_eq!(current(&view), ("main".into(), 2), "nor does a status that shows it at the other's bucket");
    publish(&mut view, OLD, 2);
    let look = step(&view);
    assert!(matches!(&look, Step::Look(Look::Bucket(at)) if at.backend == "second"), "{look}");
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    assert!(matches!(step(&view), Step::Act(Act::CreateBucket(at)) if at.backend == "second"));
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    view.live.remove(&key);
    assert_eq!(step(&view), Step::Look(Look::Internal(key)), "a cache is no proof");
}

/// Notes that the old bucket was left.
fn leave_old(view: &mut View) {
    let old = BucketRecord { adopted: true, absence: true, ..record(view) };
    put(view, stored(&old.content(NAMESPACE)));
}

/// The record of the new place.
fn held(view: &View) -> BucketRecord {
    let found = view.records().map(|(record, _)| record).find(|record| record.backend == "second");
    found.cloned().expect("it is held")
}

fn stamp(view: &mut View, generation: u64) {
    let name = AccessKeyId::of(&view.claim.uid, generation).secret_name();
    let annotations =
        Arc::make_mut(&mut view.own.get_mut(&name).unwrap().0).metadata.annotations.get_or_insert_default();
    annotations.insert(wire::EXPIRES_AT.to_owned(), "2030-01-01T00:00:00Z".to_owned());
}

#[test]
fn an_old_key_is_stamped_and_keeps_its_bucket() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    put_key(&mut view, NEW, 2);
    publish(&mut view, NEW, 2);
    leave_old(&mut view);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((patch.change, patch.target.name.as_str()), (Change::Retire, view.credential(1).unwrap().name()));
    let touched = patch.json().to_string();
    assert!(touched.contains("expires-at") && !touched.contains("/data"), "{touched}");
}

#[test]
fn a_record_that_was_left_is_marked_while_a_key_opens_its_bucket_and_goes_after_a_live_list() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    put_key(&mut view, NEW, 2);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::Leave, "before anything that may stop a pass");
    publish(&mut view, NEW, 2);
    stamp(&mut view, 1);
    remove_key(&mut view, 1);
    view.own_lists = 0;
    assert_eq!(step(&view), Step::Look(Look::Own));
    view.own_lists = 1;
    let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(secret.name, record(&view).name().to_string());
}

/// Nothing else would: what stops the way to the new bucket may stop it for good.
#[test]
fn a_bucket_that_is_open_to_the_public_is_closed_before_its_record_goes() {
    let mut view = sent_on();
    let public = json!({"backendRef": {"name": "second"}, "anonymousAccess": {"mode": "ReadOnly"}});
    // Nothing tells of a key any more.
    view.claim = claim_in("team-a", &public, true);
    put_record(&mut view, NEW, 2);
    remove_key(&mut view, 1);
    let old = record(&view);
    let open = |at: (&str, &str)| crate::api::AnonymousBinding {
        claim: old.claim.clone(),
        uid: old.uid.clone(),
        backend: at.0.into(),
        bucket: crate::api::BucketName::parse(at.1).unwrap(),
        per_source_ip_rps: 0,
    };
    put(&mut view, stored(&open(OLD).content(NAMESPACE)));
    view.own_lists = 1;
    let gone = |view: &View| match step(view) {
        Step::Act(Act::Delete(secret)) => secret.name,
        other => panic!("{other}"),
    };
    let binding = crate::api::AnonymousBinding::name(&old.uid);
    assert_eq!(gone(&view), binding);
    put(&mut view, stored(&open(NEW).content(NAMESPACE)));
    assert_eq!(gone(&view), old.name().to_string(), "that of the new bucket stays");
    view.own.remove(&binding);
    assert_eq!(gone(&view), old.name().to_string());
}

/// The claim was told of the new bucket, and has keys to the old one only.
fn without_the_record_of_the_old_bucket() -> View {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    let left = view.records().map(|(record, _)| record).find(|record| record.backend == "main").unwrap().name();
    view.own.remove(left.as_str());
    view.claim.status.bucket_name = Some(NEW.1.into());
    view.claim.status.access_key_id = None;
    view
}

/// The keys that there are open the bucket that was left: they say nothing of the other.
#[test]
fn a_bucket_is_looked_at_and_made_where_the_record_of_the_one_before_is_gone() {
    let mut view = without_the_record_of_the_old_bucket();
    let look = step(&view);
    assert!(matches!(&look, Step::Look(Look::Bucket(at)) if at.backend == "second"), "{look}");
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    let key = step(&view);
    assert!(matches!(&key, Step::Look(Look::Internal(name)) if name.starts_with("vc-")), "{key}");
    view.learn(&key, Answer::Secret(None));
    assert!(matches!(step(&view), Step::Act(Act::CreateBucket(at)) if at.backend == "second"));
}

/// A look that fails is told there: nothing else speaks of that bucket.
#[test]
fn an_error_at_a_bucket_that_is_not_yet_the_claims_is_no_drift_check() {
    let mut view = without_the_record_of_the_old_bucket();
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Bucket(_))), "{look}");
    view.learn(&look, Answer::Failed(Failure::Upstream("500".into())));
    assert_eq!(verdict(&view), "BackendError");
}

fn learn_live(view: &mut View, look: &Look, answer: Answer) {
    let next = step(view);
    assert_eq!(next, Step::Look(look.clone()));
    view.learn(&next, answer);
}

/// What is live says the same as the caches: the consumer Secret, the claim, and a list.
fn look_at_all_that_is_live(view: &mut View) {
    (view.fresh, view.own_lists) = (false, 0);
    let (consumer, claim) = (view.consumers["photos-s3"].clone(), view.claim.clone());
    learn_live(view, &Look::Consumer("photos-s3".into()), Answer::Secret(consumer));
    learn_live(view, &Look::Claim, Answer::Claim(Some(Box::new(claim))));
    let own = view.own.values().cloned().collect();
    learn_live(view, &Look::Own, Answer::Secrets(own));
}

/// Somebody took the labels off what the claim had moved to, and no list shows it any more.
#[test]
fn a_claim_that_has_moved_finds_its_key_and_its_record_by_their_names() {
    let mut view = sent_on();
    let mut moved = view.clone();
    put_record(&mut moved, NEW, 2);
    put_key(&mut moved, NEW, 2);
    let hidden = |name: &str| {
        let mut secret = (*moved.own[name].0).clone();
        secret.metadata.labels = None;
        Answer::Secret(Some(Stored(Arc::new(secret))))
    };
    publish(&mut view, NEW, 2);
    look_at_all_that_is_live(&mut view);
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    learn_live(&mut view, &Look::Internal(key.clone()), hidden(&key));
    let record = held(&moved).name().to_string();
    loop {
        let next = step(&view);
        let answer = match &next {
            Step::Look(Look::Holder(at)) if at.backend == "second" => Answer::Holder(Holder::Unknown),
            Step::Look(Look::CredentialsFor(at)) if at.backend == "second" => Answer::Secrets(Vec::new()),
            Step::Look(Look::Bucket(at)) if at.backend == "second" => {
                Answer::Bucket(BucketSeen::Present(Some(tags(OURS))))
            }
            Step::Act(Act::CreateRecord(made)) if made.name().as_str() == record => Answer::Exists,
            Step::Look(Look::Internal(name)) if *name == record => hidden(name),
            _ => break,
        };
        view.learn(&next, answer);
    }
    assert_eq!(current(&view), ("second".into(), 2));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((patch.change, patch.target.name), (Change::Repair, record), "its labels, by which deletion finds it");
}
