//! Current record during a move, and conditions that a move waits for.

mod numbers;

use super::*;
use crate::api::{AnonymousBinding, PinnedBackend};

/// Backend and endpoint of both buckets.
const OLD: (&str, &str) = ("main", "http://s3.example");
const NEW: (&str, &str) = ("second", "http://second.example");

/// Returns the bucket at one of them.
fn bucket_at((backend, endpoint): (&str, &str)) -> Target {
    Target { backend: backend.into(), endpoint: Endpoint::parse(endpoint).unwrap(), ..at() }
}

/// Returns a claim that was bound on `main` and whose spec names `second`.
fn sent_on() -> Given {
    let mut given = bound();
    given.claim =
        Claim { status: given.claim.status, ..claim_in("team-a", &json!({"backendRef": {"name": "second"}}), true) };
    let second = edited_backend(AdoptionPolicy::Owned, |backend| {
        (backend.name, backend.endpoint) = (NEW.0.into(), bucket_at(NEW).endpoint);
    });
    given.backends.insert("second".into(), second);
    given.put(record_secret(&BucketRecord { another: true, ..record() }));
    given
}

fn record_at(place: (&str, &str), generation: u64) -> BucketRecord {
    let Target { backend, endpoint, .. } = bucket_at(place);
    BucketRecord { backend, endpoint, generation, absence: true, another: true, ..record() }
}

fn facts_at(place: (&str, &str), generation: u64) -> CredentialFacts {
    let Target { backend, endpoint, .. } = bucket_at(place);
    CredentialFacts { backend, endpoint, ..facts(generation) }
}

fn record_name(place: (&str, &str)) -> String {
    bucket_at(place).record().to_string()
}

impl Given {
    fn put_record(&mut self, place: (&str, &str), generation: u64) {
        self.put(record_secret(&record_at(place, generation)));
    }

    fn put_key(&mut self, place: (&str, &str), generation: u64) {
        self.put(key_secret(&facts_at(place, generation)));
    }

    fn publish(&mut self, place: (&str, &str), generation: u64) {
        self.put_consumer(consumer_secret(&facts_at(place, generation)));
    }

    /// Records that the claim left the old bucket.
    fn leave_old(&mut self) {
        self.put(record_secret(&BucketRecord { adopted: true, ..record_at(OLD, 1) }));
    }

    fn stamp(&mut self, generation: u64) {
        let key = self.take(&key_name(generation));
        self.put(expiring(&key, "2030-01-01T00:00:00Z"));
    }
}

/// Returns backend and generation of the current record.
fn current(given: &Given) -> (String, u64) {
    let view = given.read();
    view.record().map(|(record, _)| (record.backend.clone(), record.generation)).unwrap()
}

/// Returns purpose and target of the next step, which is a patch.
fn patched(view: &View) -> (Change, String) {
    match step(view) {
        Step::Act(Act::Patch(patch)) => (patch.change, patch.target.name),
        other => panic!("expected a patch, got {other}"),
    }
}

/// Returns the Secret that the next step deletes.
fn deleted(view: &View) -> String {
    match step(view) {
        Step::Act(Act::Delete(secret)) => secret.name,
        other => panic!("expected a deletion, got {other}"),
    }
}

#[test]
fn a_record_that_is_only_held_does_not_count_however_high_it_aims() {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    assert_eq!(current(&given), ("main".into(), 1));
    given.put_record(OLD, 3);
    assert_eq!(current(&given), ("main".into(), 3), "nor does it while the old one is between two keys");
    given.put_record(OLD, 1);
    given.put_key(NEW, 2);
    assert_eq!(current(&given), ("second".into(), 2), "its first key decides");
}

#[test]
fn a_key_deleted_by_hand_does_not_send_the_claim_back_or_on() {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    given.take(&key_name(1));
    assert_eq!(current(&given), ("main".into(), 1), "the status tells of that key");
    given.publish(NEW, 2);
    assert_eq!(current(&given), ("main".into(), 1), "what a tenant can write proves nothing");
    given.claim.status = BucketClaimStatus::default();
    assert_eq!(current(&given), ("second".into(), 2), "neither is proved: the one that is asked for");
}

#[test]
fn of_records_without_any_key_the_one_that_the_spec_asks_for_counts() {
    let mut given = sent_on();
    given.take(&key_name(1));
    given.consumers.clear();
    given.put_record(OLD, 5);
    given.put_record(NEW, 2);
    assert_eq!(current(&given), ("second".into(), 2));
}

/// Somebody removed the labels of one record while the other was bumped to the same generation.
#[test]
fn a_key_to_the_bucket_of_one_record_says_nothing_for_another_of_its_generation() {
    let mut given = sent_on();
    given.take(&key_name(1));
    given.put_record(OLD, 2);
    given.put_key(OLD, 2);
    given.put_record(NEW, 2);
    assert_eq!(current(&given), ("main".into(), 2));
    let shown = &mut given.claim.status;
    shown.access_key_id = Some(facts(2).access_key_id().to_string());
    shown.bucket_name = Some(record().bucket.to_string());
    shown.backend = Some(PinnedBackend { name: OLD.0.into(), endpoint: OLD.1.into() });
    assert_eq!(current(&given), ("main".into(), 2), "nor does a status that shows it at the other's bucket");
    given.publish(OLD, 2);
    for (mut view, is_live) in [(given.read(), true), (given.claim_read(), false)] {
        assert_eq!(step(&view), Step::Look(Look::Bucket(bucket_at(NEW))));
        view.learn(Answer::Bucket(bucket_at(NEW), BucketSeen::Absent));
        if !is_live {
            ask(&mut view, &Look::Internal(key_name(2)), &given); // A cache is no proof.
        }
        ask(&mut view, &Look::Internal(key_name(1)), &given);
        if !is_live {
            ask(&mut view, &Look::Internal(record_name(NEW)), &given);
            ask(&mut view, &Look::Own, &given);
        }
        assert_eq!(step(&view), Step::Act(Act::CreateBucket(bucket_at(NEW))));
    }
}

#[test]
fn an_old_key_is_stamped_and_keeps_its_bucket() {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    given.put_key(NEW, 2);
    given.publish(NEW, 2);
    given.leave_old();
    let Step::Act(Act::Patch(patch)) = step(&given.read()) else { panic!("{}", step(&given.read())) };
    assert_eq!((patch.change, patch.target.name.as_str()), (Change::Retire, key_name(1).as_str()));
    let touched = patch.json().to_string();
    assert!(touched.contains("expires-at") && !touched.contains("/data"), "{touched}");
}

#[test]
fn a_record_that_was_left_is_marked_while_a_key_opens_its_bucket_and_goes_after_a_live_list() {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    given.put_key(NEW, 2);
    assert_eq!(patched(&given.read()).0, Change::Leave, "before anything that may stop a pass");
    given.publish(NEW, 2);
    given.take(&key_name(1));
    let mut view = given.claim_read();
    ask(&mut view, &Look::Own, &given);
    assert_eq!(deleted(&view), record_name(OLD));
}

/// A stop on the way to the new bucket may be permanent, and then nothing else would remove public
/// access.
#[test]
fn a_bucket_that_is_open_to_the_public_is_closed_before_its_record_goes() {
    let mut given = sent_on();
    let public = json!({"backendRef": {"name": "second"}, "anonymousAccess": {"mode": "ReadOnly"}});
    // The status does not show a key either.
    given.claim = claim_in("team-a", &public, true);
    given.put_record(NEW, 2);
    given.take(&key_name(1));
    let open = |place: (&str, &str)| {
        let (backend, endpoint) = (place.0.into(), bucket_at(place).endpoint);
        let binding = BucketRecord { backend, endpoint, ..record() }.binding_fixture(0);
        stored(&binding.content(NAMESPACE))
    };
    given.put(open(OLD));
    let binding = AnonymousBinding::name(&record().uid);
    assert_eq!(deleted(&given.read()), binding);
    given.put(open(NEW));
    assert_eq!(deleted(&given.read()), record_name(OLD), "that of the new bucket stays");
    given.take(&binding);
    assert_eq!(deleted(&given.read()), record_name(OLD));
}

/// Returns a claim whose status names the new bucket, and that has keys only to the old one.
fn without_the_record_of_the_old_bucket() -> Given {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    given.take(&record_name(OLD));
    given.claim.status.bucket_name = Some(record().bucket.to_string());
    given.claim.status.access_key_id = None;
    given
}

/// The existing keys open the old bucket and say nothing about the new one.
#[test]
fn a_bucket_is_looked_at_and_made_where_the_record_of_the_one_before_is_gone() {
    let given = without_the_record_of_the_old_bucket();
    let mut view = given.read();
    assert_eq!(step(&view), Step::Look(Look::Bucket(bucket_at(NEW))));
    view.learn(Answer::Bucket(bucket_at(NEW), BucketSeen::Absent));
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    assert_eq!(step(&view), Step::Act(Act::CreateBucket(bucket_at(NEW))));
}

/// A failed look is reported here, because nothing else reports about that bucket.
#[test]
fn an_error_at_a_bucket_that_is_not_yet_the_claims_is_no_drift_check() {
    let mut view = without_the_record_of_the_old_bucket().read();
    let look = step(&view);
    assert!(matches!(look, Step::Look(Look::Bucket(_))), "{look}");
    view.learn(Answer::Failed(look, Failure::Upstream("500".into())));
    assert_eq!(verdict(&view), "BackendError");
}

/// Returns a pass that has read live everything its caches have shown: the consumer Secret, the
/// claim, and the record.
fn doubting_what_is_published(given: &Given) -> View {
    let mut view = given.cached();
    ask(&mut view, &Look::Consumer(CONSUMER.into()), given);
    ask(&mut view, &Look::Claim, given);
    ask(&mut view, &Look::Internal(record_name(OLD)), given);
    if step(&view) == Step::Look(Look::Own) {
        view.learn(given.answer(Look::Own));
    }
    view
}

/// Somebody removed the labels of the new record and key, so no list shows them.
#[test]
fn a_claim_that_has_moved_finds_its_key_and_its_record_by_their_names() {
    let mut given = sent_on();
    given.put_record(NEW, 2);
    given.put_key(NEW, 2);
    given.publish(NEW, 2);
    let record = record_name(NEW);
    given.hide(&record);
    given.hide(&key_name(2));
    let mut view = doubting_what_is_published(&given);
    ask(&mut view, &Look::Internal(key_name(2)), &given);
    loop {
        let answer = match step(&view) {
            Step::Look(Look::Bucket(at)) if at == bucket_at(NEW) => {
                Answer::Bucket(at, BucketSeen::Present(Some(tags(OURS))))
            }
            Step::Look(look @ (Look::Holder(_) | Look::CredentialsFor(_))) => given.answer(look),
            Step::Look(Look::Internal(name)) if name == record => given.answer(Look::Internal(name)),
            Step::Act(Act::CreateRecord(made)) if made.name().as_str() == record => {
                Answer::RecordPosted(*made, Posted::NameTaken)
            }
            Step::Look(_) | Step::Act(_) | Step::Rest(_) => break,
        };
        view.learn(answer);
    }
    assert_eq!(view.record().map(|(record, _)| (record.backend.as_str(), record.generation)), Some(("second", 2)));
    assert_eq!(patched(&view), (Change::Repair, record), "its labels, by which deletion finds it");
}
