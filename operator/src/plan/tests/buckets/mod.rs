//! Ownership of buckets: created, adopted, refused or missing.

mod adoption;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::api::Versioning;

use super::super::{OwnerSeen, VersioningSeen};
use super::*;

/// Returns a pass that found no bucket and has looked up the key that the record may have.
fn about_to_create(given: &Given, mut view: View) -> View {
    view.learn(absent());
    ask(&mut view, &Look::Internal(key_name(1)), given);
    view
}

/// Like [`about_to_create`], with a record that notes the absence.
fn about_to_create_as_noted() -> View {
    let given = holding(|record| record.absence = true);
    let view = about_to_create(&given, given.read());
    assert_eq!(step(&view), Step::Act(Act::CreateBucket(at())));
    view
}

// covers: 2.record.settled, 3.2.create.absence
#[test]
fn a_bucket_is_not_made_by_a_record_that_another_operator_may_have_written_since() {
    let given = holding(|record| record.absence = true);
    let mut view = given.claim_read();
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
    view.learn(absent());
    ask(&mut view, &Look::Internal(key_name(1)), &given); // It shows that the claim was bound.
    let name = record().name().to_string();
    assert_eq!(step(&view), Step::Look(Look::Internal(name.clone())));
    let newer = BucketRecord { absence: true, settled: true, ..record() };
    let mut noted = view.clone();
    noted.learn(Answer::Internal(name.clone(), Some(record_secret(&newer))));
    ask(&mut noted, &Look::Internal(key_name(1)), &given);
    let raise = Change::RaiseGeneration(Trigger::Repair);
    assert_eq!(change(&noted), raise, "a claim that was bound gets its key back");
    view.learn(given.answer(Look::Internal(name)));
    assert!(matches!(step(&view), Step::Act(Act::CreateBucket(_))));
}

// covers: 3.2.create.absence
#[test]
fn absence_is_in_the_record_before_the_bucket_is_created() {
    let given = holding(|_| {});
    let mut view = given.read();
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
    view = about_to_create(&given, view);
    assert_eq!(change(&view), Change::NoteAbsence);
    let noted = BucketRecord { absence: true, ..record() };
    view.learn(Answer::Patched(Change::NoteAbsence, record_secret(&noted)));
    assert_eq!(step(&view), Step::Act(Act::CreateBucket(at())));
    assert_eq!(step(&about_to_create_as_noted()), Step::Act(Act::CreateBucket(at())));
}

// covers: 2.record.settled
#[test]
fn a_bucket_is_not_made_for_a_record_whose_key_is_there_without_its_labels() {
    let mut given = holding(|record| record.absence = true);
    given.put(unlabelled(&key_secret(&facts(1))));
    let view = about_to_create(&given, given.read());
    assert_eq!(change(&view), Change::Settle, "the claim was bound, so its bucket is missing");
}

/// Tenants can write any labels and owner references.
#[test]
fn a_forged_consumer_secret_opens_no_strangers_bucket() {
    let mut given = holding(|_| {});
    given.put_consumer(consumer_secret(&facts(1)));
    given.backends.insert("main".into(), backend(AdoptionPolicy::Never));
    for tags in [Some(BTreeMap::new()), None] {
        let mut view = given.read();
        assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
        view.learn(Answer::Bucket(at(), BucketSeen::Present(tags)));
        assert_eq!(verdict(&view), "BucketExists");
    }
}

// covers: 3.2.create.success, 3.2.tags
#[test]
fn a_plain_success_in_the_pass_that_looked_is_ours_and_is_tagged_at_once() {
    let mut view = about_to_create_as_noted();
    view.learn(Answer::BucketCreated(at(), CreateAnswer::Created));
    let Step::Act(Act::TagBucket(_, tags)) = step(&view) else { panic!("no tags") };
    assert_eq!(tags.get(wire::TAG_CLAIM_UID).map(String::as_str), Some("u-1"));
    assert_eq!(tags.get(wire::TAG_CLAIM).map(String::as_str), Some("team-a/photos"));
    assert_eq!(tags.get(wire::TAG_INSTALLATION).map(String::as_str), Some("cluster-1"));
}

/// Somebody may have tagged the bucket in the time since it was created.
// covers: 3.2.tags.merged
#[rstest]
#[case::slow(View::learn_slow)]
#[case::late(View::learn_late)]
fn tags_of_others_are_read_and_kept_where_the_create_took_long(#[case] learn: fn(&mut View, Answer)) {
    let mut view = about_to_create_as_noted();
    learn(&mut view, Answer::BucketCreated(at(), CreateAnswer::Created));
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
    let seen = |view: &View, tags: &[(&str, &str)]| {
        let mut view = view.clone();
        view.learn(tagged(tags));
        view
    };
    let Step::Act(Act::TagBucket(_, tags)) = step(&seen(&view, &[("cost-centre", "7")])) else { panic!("no tags") };
    assert_eq!(tags.get("cost-centre").map(String::as_str), Some("7"));
    assert_eq!(tags.get(wire::TAG_CLAIM_UID).map(String::as_str), Some("u-1"));
    assert_eq!(verdict(&seen(&view, &[(wire::TAG_CLAIM_UID, "u-2")])), "BucketExists");
    view.learn(absent());
    assert_eq!(verdict(&view), "BackendError", "the store contradicts itself, and makes no second one");
}

/// Adds another spelling of the backend's endpoint. Returns another claim's record of the bucket
/// under that spelling.
fn spelled_otherwise(given: &mut Given) -> BucketRecord {
    let there = Endpoint::parse("http://s3.example.").unwrap();
    let seen = match backend(AdoptionPolicy::Owned) {
        BackendSeen::Present { backend, allowed, .. } => {
            BackendSeen::Present { backend, allowed, spellings: vec![there.clone()], shared: BTreeSet::new() }
        }
        other => other,
    };
    given.backends.insert("main".into(), seen);
    let claim = ClaimRef { namespace: "team-b".into(), name: "films".into() };
    BucketRecord { endpoint: there, uid: ClaimUid::new("u-2"), claim, ..record() }
}

// covers: 3.2.record.aliases
#[test]
fn records_of_other_spellings_are_read_before_the_own_is_made_and_again_after() {
    let mut given = unbound();
    let other = spelled_otherwise(&mut given);
    let look = Look::Internal(other.name().to_string());
    let mut view = given.cached();
    ask(&mut view, &look, &given);
    let mut seen = given.cached();
    assert_eq!(step(&seen), Step::Look(look.clone()));
    seen.learn(Answer::Internal(other.name().to_string(), Some(record_secret(&other))));
    assert_eq!(verdict(&seen), "BucketNameConflict");
    ask(&mut view, &Look::Holder(at()), &given);
    ask(&mut view, &Look::Claim, &given);
    ask(&mut view, &Look::Own, &given);
    let Step::Act(Act::CreateRecord(made)) = step(&view) else { panic!("{}", step(&view)) };
    view.learn(Answer::RecordPosted((*made).clone(), Posted::Stored(record_secret(&made))));
    let mut alone = view.clone();
    ask(&mut alone, &look, &given);
    assert_eq!(step(&alone), Step::Look(Look::Bucket(at())));
    view.learn(Answer::Internal(other.name().to_string(), Some(record_secret(&other))));
    if made.name() < other.name() {
        assert_eq!(verdict(&view), "BucketNameConflict");
        let mut given = holding(|record| record.absence = true);
        spelled_otherwise(&mut given);
        assert_eq!(step(&given.read()), Step::Look(Look::Bucket(at())), "it is noted that it went on alone");
    } else {
        let Step::Act(Act::Delete(left)) = step(&view) else { panic!("{}", step(&view)) };
        assert_eq!(left.name, made.name().to_string());
        view.learn(Answer::Deleted(left, None));
        assert_eq!(verdict(&view), "BucketNameConflict");
    }
}

// covers: 3.2.create.again
#[test]
fn a_bucket_that_is_there_already_is_looked_at_again() {
    let mut view = about_to_create_as_noted();
    view.learn(Answer::BucketCreated(at(), CreateAnswer::AlreadyOwned));
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
}

// covers: 3.2.create.alreadyExists
#[test]
fn a_bucket_that_the_store_calls_anothers_is_not_ours_for_having_been_absent() {
    let refused = || Answer::BucketCreated(at(), CreateAnswer::AlreadyExists);
    let mut view = about_to_create_as_noted();
    view.learn(refused());
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::ForgetAbsence);
    assert_eq!(patch.json()[2], json!({"op": "remove", "path": "/data/absence"}));
    let given = holding(|record| record.absence = true);
    let unanswered = Some(Duration::from_secs(7));
    let mut interrupted = given.read_after(Remembered { unanswered, ..Remembered::default() });
    interrupted = about_to_create(&given, interrupted);
    interrupted.learn(refused());
    assert_eq!(verdict(&interrupted), "BucketExists", "it may be the fruit of a call that had no answer");
    let mut late = about_to_create_as_noted();
    late.learn_late(refused());
    late.learn(live(&given.claim));
    late.learn(tagged(&[]));
    assert_eq!(change(&late), Change::ForgetAbsence, "whatever a look shows after it");
    view.learn(Answer::Backend("main".into(), backend(AdoptionPolicy::Any)));
    view.learn(Answer::Patched(Change::ForgetAbsence, record_secret(&record())));
    assert_eq!(verdict(&view), "BucketExists", "whatever the policy is");
    let mut later = holding(|_| {}).read();
    later.learn(tagged(&[]));
    later.learn(Answer::Contents(at(), true));
    assert_eq!(verdict(&later), "BucketExists", "its owner lets us see it");
}

// covers: 3.2.create.untagged
#[test]
fn an_untagged_bucket_is_ours_only_if_it_was_absent_and_is_empty() {
    let mut view = holding(|record| record.absence = true).read();
    view.learn(tagged(&[]));
    assert_eq!(step(&view), Step::Look(Look::Contents(at())));
    let mut empty = view.clone();
    empty.learn(Answer::Contents(at(), true));
    empty.learn(Answer::Owner(at(), OwnerSeen::Ours));
    assert!(matches!(step(&empty), Step::Act(Act::TagBucket(..))));
    view.learn(Answer::Contents(at(), false));
    assert_eq!(verdict(&view), "BucketExists");
}

// covers: 3.2.create.tagged
#[test]
fn a_bucket_with_our_tags_needs_no_more_proof() {
    let mut given = holding(|_| {});
    given.backends.insert("main".into(), backend(AdoptionPolicy::Never));
    let mut view = given.read();
    find_ours(&mut view);
    assert_eq!(step(&view), Step::Look(Look::Internal(key_name(1))), "on to the credential");
}

// covers: 3.2.create.neverAgain
#[test]
fn an_adopted_bucket_that_is_gone_is_not_made_again() {
    let mut view = holding(|record| record.adopted = true).read();
    view.learn(absent());
    assert_eq!(verdict(&view), "BucketMissing");
}

// covers: 3.2.missing
#[test]
fn a_bucket_that_vanished_is_missing_until_it_is_back_with_our_tags() {
    let mut given = bound();
    let mut view = given.read();
    view.learn(absent());
    assert_eq!(change(&view), Change::Settle, "the record knows it before it is told");
    given.put(record_secret(&BucketRecord { settled: true, ..record() }));
    view.learn(Answer::Patched(Change::Settle, given.internal[record().name().as_str()].clone()));
    assert_eq!(verdict(&view), "BucketMissing");
    let mut replaced = given.read_after(view.remembered());
    replaced.learn(tagged(&[]));
    assert_eq!(verdict(&replaced), "BucketMissing", "an untagged one in its place is not it");
    let mut back = given.read_after(replaced.remembered());
    back.learn(tagged(OURS));
    assert!(matches!(step(&back), Step::Rest(_)), "{}", step(&back));
}

/// The previous holder may have created the bucket between the look and the creation of the record.
#[test]
fn absence_that_was_seen_before_the_record_is_made_proves_nothing() {
    let look = Step::Look(Look::Bucket(at()));
    let made = || record_secret(&record());
    for answer in [
        Answer::RecordPosted(record(), Posted::Stored(made())),
        // Another operator created the record.
        Answer::Internal(record().name().to_string(), Some(made())),
        Answer::Own(vec![made()]),
    ] {
        let mut view = unbound().read();
        view.learn(absent());
        view.learn(answer.clone());
        assert_eq!(step(&view), look, "after {answer:?}");
    }
    // A record that was known before does not count as another one.
    let given = holding(|_| {});
    let mut view = given.read();
    view.learn(absent());
    view.learn(given.answer(Look::Own));
    assert_ne!(step(&view), look);
}

/// The bucket of a claim that was bound is looked at again when its record is recreated, because it
/// may be gone and no later look of the pass would find that out.
#[test]
fn the_bucket_of_a_record_that_is_made_anew_is_looked_at_again() {
    let mut given = bound();
    given.take(record().name().as_str());
    let mut view = given.read();
    view.learn(absent());
    let remade = BucketRecord { adopted: true, generation: 2, ..record() };
    let made = record_secret(&remade);
    view.learn(Answer::RecordPosted(remade, Posted::Stored(made)));
    assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
}

/// The template was edited before the claim was bound, and another claim has a credential for the
/// new name.
// covers: 2.record.another
#[test]
fn what_a_claim_knows_of_two_buckets_does_not_make_it_ask_in_circles() {
    let mut given = holding(|_| {});
    given.claim = claim_in("team-a", &json!({"bucketName": "another"}), true);
    let mut view = given.cached();
    let mut asked = Vec::new();
    let end = loop {
        let answer = match step(&view) {
            Step::Look(Look::Bucket(at)) => Answer::Bucket(at, BucketSeen::Absent),
            Step::Look(Look::Holder(at)) => Answer::Holder(at, Holder::Suspect),
            Step::Look(look) => given.answer(look),
            Step::Act(Act::Patch(patch)) => {
                assert_eq!(patch.change, Change::NoteAnother, "whoever reads the first knows that there may be two");
                Answer::Patched(patch.change, record_secret(&BucketRecord { another: true, ..record() }))
            }
            other => break other,
        };
        asked.push(step(&view).to_string());
        assert!(asked.len() < 20, "{asked:?}");
        view.learn(answer);
    };
    let Step::Act(Act::CreateRecord(made)) = end else { panic!("{end}") };
    assert_eq!((made.bucket.as_str(), made.another), ("another", true));
}

#[test]
fn that_a_bucket_is_absent_is_seen_again_after_a_late_answer_unless_the_claim_was_bound_to_it() {
    for (given, kept) in [(holding(|_| {}), false), (bound(), true)] {
        let mut view = given.read();
        view.learn(absent());
        view.learn_late(live(&given.claim));
        if !kept {
            assert_eq!(step(&view), Step::Look(Look::Bucket(at())));
            view.learn(absent());
        }
        assert_eq!(step(&view), Step::Look(Look::Claim), "a late answer is not one of now");
    }
}

#[test]
fn a_record_that_changes_after_it_was_asked_for_is_read_anew() {
    let generation = |view: &View| view.record().map(|(record, _)| record.generation);
    let mut view = holding(|_| {}).read();
    assert_eq!(generation(&view), Some(1));
    let before = view.clone();
    let raised = record_secret(&BucketRecord { generation: 2, ..record() });
    view.learn(Answer::Patched(Change::RaiseGeneration(Trigger::Repair), raised));
    assert_eq!((generation(&view), generation(&before)), (Some(2), Some(1)));
    view.learn(Answer::Own(Vec::new()));
    assert_eq!(generation(&view), None);
}

#[test]
fn the_versioning_of_a_bound_bucket_is_asked_after_an_edit_and_not_at_rest() {
    let mut given = bound();
    let versioned = claim_in("team-a", &json!({"versioning": "Enabled"}), true);
    given.claim = Claim { status: given.claim.status, ..versioned };
    assert!(matches!(step(&given.read()), Step::Rest(_)), "{}", step(&given.read()));
    given.claim.generation = 2;
    let mut view = given.read();
    assert_eq!(step(&view), Step::Look(Look::Versioning(at())));
    view.learn(Answer::Versioning(at(), VersioningSeen::Unset));
    assert_eq!(step(&view), Step::Act(Act::SetVersioning(at(), Versioning::Enabled)));
    view.learn(Answer::VersioningSet(at(), Versioning::Enabled));
    assert!(matches!(step(&view), Step::Act(Act::WriteStatus(..))), "{}", step(&view));
}

/// A rotation has bumped the generation without creating the key, record and key lost their labels,
/// and somebody deleted the bucket.
// covers: 2.record.settled
#[test]
fn before_a_bucket_is_made_the_keys_before_the_one_aimed_at_are_looked_for() {
    for (shown, aimed) in [(None, 2), (Some(1), 5)] {
        let mut given = holding(|record| (record.generation, record.absence) = (aimed, true));
        given.put(unlabelled(&key_secret(&facts(1))));
        given.claim.status.rotation_generation = shown;
        let mut view = given.read();
        view.learn(absent());
        let settle = loop {
            match step(&view) {
                Step::Look(look @ Look::Internal(_)) => view.learn(given.answer(look)),
                other => break other,
            }
        };
        let Step::Act(Act::Patch(patch)) = &settle else { panic!("{settle}") };
        assert_eq!(patch.change, Change::Settle, "it was bound, and is not made anew");
    }
}

/// Somebody deleted the record and another operator recreated it while this one was stalled.
// covers: 3.2.create.absence
#[test]
fn a_bucket_is_not_tagged_by_a_record_that_may_be_another_by_now() {
    let mut view = holding(|record| record.absence = true).claim_read();
    view.learn(tagged(&[]));
    view.learn(Answer::Contents(at(), true));
    view.learn(Answer::Owner(at(), OwnerSeen::Ours));
    let name = record().name().to_string();
    assert_eq!(step(&view), Step::Look(Look::Internal(name.clone())));
    view.learn(Answer::Internal(name, Some(record_secret(&record()))));
    assert_eq!(verdict(&view), "BucketExists");
}
