//! Which record counts while a claim moves, and what a move waits for.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

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

/// A view in which the new bucket is there and tagged, seen in this pass.
fn arrived() -> View {
    let mut view = sent_on();
    put_record(&mut view, NEW, 2);
    let held = held(&view);
    view.bucket_at = Some(crate::plan::bind::target(&held));
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    view
}

#[test]
fn the_first_key_for_the_new_bucket_is_minted_by_the_pass_that_aimed_at_it() {
    let mut view = arrived();
    view.own_target = Some(2);
    let Step::Act(Act::Mint(facts)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((facts.backend.as_str(), facts.generation), ("second", 2));
    view.own_target = None;
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Internal(_))), "{look}");
    view.learn(&look, Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Move));
}

#[test]
fn a_generation_that_a_rotation_has_passed_meanwhile_is_not_minted() {
    let mut view = arrived();
    put_record(&mut view, OLD, 3);
    put_key(&mut view, OLD, 3);
    remove_key(&mut view, 1);
    publish(&mut view, OLD, 3);
    view.own_target = Some(2);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Move));
    assert_eq!(patch.target.name, held(&view).name().to_string());
}

/// Both keys were deleted by hand, and the labels taken off the record of the new bucket, which aims at the second.
#[test]
fn a_key_that_is_lost_while_a_claim_moves_is_not_replaced_by_one_of_the_number_that_the_move_aims_at() {
    let mut view = sent_on();
    remove_key(&mut view, 1);
    let old = record(&view);
    put_record(&mut view, NEW, 2);
    let hidden = held(&view).name().to_string();
    let taken_off = view.own.remove(&hidden);
    let found = |known: Option<Stored>| {
        let mut view = view.clone();
        for _ in 0..10 {
            let step = step(&view);
            let answer = match &step {
                Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
                Step::Look(Look::Internal(name)) if *name == hidden => Answer::Secret(known.clone()),
                Step::Look(Look::Internal(_)) => Answer::Secret(None),
                Step::Act(Act::Patch(patch)) if patch.target.name == old.name().to_string() => {
                    return view.next_generation();
                }
                other => panic!("{other}"),
            };
            view.learn(&step, answer);
        }
        panic!("no end")
    };
    assert_eq!(found(taken_off), 3);
    assert_eq!(found(None), 2);
}

fn stamp(view: &mut View, generation: u64) {
    let name = AccessKeyId::of(&view.claim.uid, generation).secret_name();
    let annotations =
        Arc::make_mut(&mut view.own.get_mut(&name).unwrap().0).metadata.annotations.get_or_insert_default();
    annotations.insert(wire::EXPIRES_AT.to_owned(), "2030-01-01T00:00:00Z".to_owned());
}

// covers: 3.3.twoKeys
#[test]
fn nothing_is_minted_while_a_live_list_shows_a_key_besides_the_current_one() {
    let mut view = arrived();
    put_record(&mut view, OLD, 2);
    put_record(&mut view, NEW, 3);
    put_key(&mut view, OLD, 2);
    publish(&mut view, OLD, 2);
    stamp(&mut view, 1);
    let live = view.own.values().cloned().collect();
    // The cache has lost the key on its way out.
    remove_key(&mut view, 1);
    view.own_target = Some(3);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
    view.own_lists = 0;
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Own));
    view.learn(&look, Answer::Secrets(live));
    assert_eq!(verdict(&view), "BackendNotReady");
    let Step::Act(Act::WriteStatus(_, status)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(status.phase, Some(crate::api::Phase::Bound));
}

/// Should the record of the old bucket be lost, that key would pass for one to the new bucket.
#[test]
fn while_a_move_waits_its_record_aims_at_no_number_of_a_key_to_the_old_bucket() {
    let mut view = sent_on();
    put_record(&mut view, OLD, 2);
    put_key(&mut view, OLD, 2);
    publish(&mut view, OLD, 2);
    stamp(&mut view, 1);
    put_record(&mut view, NEW, 2);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(
        (patch.change, patch.target.name),
        (Change::RaiseGeneration(Trigger::Move), held(&view).name().to_string())
    );
    put_record(&mut view, NEW, 3);
    assert_eq!(verdict(&view), "BackendNotReady");

    // One that the claim comes back to is proved by its own key, and would be the claim's at once.
    put_record(&mut view, NEW, 1);
    put_key(&mut view, NEW, 1);
    stamp(&mut view, 1);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::Leave);
}

#[test]
fn a_key_of_a_later_generation_than_any_record_aims_at_is_passed_after_a_live_list() {
    let mut view = bound();
    put_key(&mut view, OLD, 4);
    view.own_lists = 0;
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Own), "the record may be old");
    view.learn(&look, Answer::Secrets(view.own.values().cloned().collect()));
    let raise = step(&view);
    let Step::Act(Act::Patch(patch)) = &raise else { panic!("{raise}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    assert!(
        format!("{:?}", patch.json()).contains(&data_encoding::BASE64.encode(b"5")),
        "numbers are never used again"
    );
}

/// A mint without an answer, whose record was let go of when the claim was sent on.
#[test]
fn a_key_between_the_number_of_the_record_and_that_of_a_move_is_passed() {
    let mut view = sent_on();
    put_record(&mut view, NEW, 3);
    let mut stray = view.clone();
    put_key(&mut stray, ("third", "team-a-photos"), 2);
    let Step::Act(Act::Patch(patch)) = step(&stray) else { panic!("{}", step(&stray)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    assert_eq!(patch.target.name, record(&view).name().to_string());
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

#[test]
fn the_versioning_of_a_bound_bucket_is_asked_after_an_edit_and_not_at_rest() {
    let mut view = bound();
    let versioned = claim_in("team-a", &json!({"versioning": "Enabled"}), true);
    view.claim = Claim { status: view.claim.status, ..versioned };
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
    view.claim.generation = 2;
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Versioning(_))), "{look}");
    view.learn(&look, Answer::Versioning(super::super::VersioningSeen::Unset));
    let set = step(&view);
    assert!(matches!(set, Step::Act(Act::SetVersioning(..))), "{set}");
    view.learn(&set, Answer::Done);
    assert!(matches!(step(&view), Step::Act(Act::WriteStatus(..))), "{}", step(&view));
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

// covers: 3.3.consumer.neverBack
#[test]
fn a_consumer_secret_that_holds_a_later_credential_has_what_is_live_looked_at() {
    let mut view = bound();
    publish(&mut view, OLD, 2);
    look_at_all_that_is_live(&mut view);
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    learn_live(&mut view, &Look::Internal(key), Answer::Secret(None));
    let raise = step(&view);
    let Step::Act(Act::Patch(patch)) = &raise else { panic!("{raise}") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let above = data_encoding::BASE64.encode(b"3");
    assert!(patch.json().to_string().contains(&above), "what was published is never used again, nor gone back from");
}

/// Each edit of a tenant would have another key made otherwise.
#[test]
fn a_later_generation_that_nobody_has_a_key_of_is_passed_a_minute_after_the_last_key() {
    let mut view = bound();
    publish(&mut view, OLD, 2);
    look_at_all_that_is_live(&mut view);
    let key = AccessKeyId::of(&view.claim.uid, 2).secret_name();
    learn_live(&mut view, &Look::Internal(key), Answer::Secret(None));
    let made = |view: &mut View, ago: i64| {
        let name = AccessKeyId::of(&view.claim.uid, 1).secret_name();
        let secret = Arc::make_mut(&mut view.own.get_mut(&name).unwrap().0);
        secret.metadata.creation_timestamp = Some(Time(Timestamp::from_second(-ago).unwrap()));
    };
    made(&mut view, 10);
    let rest = step(&view);
    assert!(matches!(&rest, Step::Rest(rest) if rest.then == Then::Wait(Duration::from_secs(50))), "{rest}");
    let mut third = view.clone();
    put_key(&mut third, OLD, 4);
    put_record(&mut third, OLD, 4);
    publish(&mut third, OLD, 5);
    let key = AccessKeyId::of(&view.claim.uid, 5).secret_name();
    learn_live(&mut third, &Look::Internal(key), Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&third) else { panic!("{}", step(&third)) };
    assert_eq!(patch.change, Change::Repair, "with two keys none is made for what a tenant writes");
    made(&mut view, -10);
    assert!(matches!(step(&view), Step::Act(Act::Patch(_))), "nothing waits for a clock that is behind");
    made(&mut view, 60);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
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
