//! Whose a bucket is: made, adopted, refused, missing.

use super::super::bind::target;
use super::*;
use crate::api::AccessKeyId;

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

/// Tenants write labels and owner references as they like.
#[test]
fn a_forged_consumer_secret_opens_no_strangers_bucket() {
    let mut view = holding(|_| {});
    let facts = facts(&view);
    let secret = stored(&facts.content(NAMESPACE, Some(&SecretKey::new("forged".into()))));
    let credential = crate::api::Credential::read(&secret.0, &facts.uid, 1).unwrap();
    let gateway = &view.setting.gateway.clone();
    let forged = crate::api::ConsumerContent { facts: &facts, credential: &credential, gateway, name: "photos-s3" };
    view.consumers.insert("photos-s3".into(), Some(stored(&forged.content())));
    for tags in [Some(BTreeMap::new()), None] {
        let mut view = view.clone();
        view.backends.insert("main".into(), backend(AdoptionPolicy::Never));
        let look = step(&view);
        assert!(matches!(look, Step::Look(Look::Bucket(_))), "{look}");
        view.learn(&look, Answer::Bucket(BucketSeen::Present(tags)));
        assert_eq!(verdict(&view), "BucketExists");
    }
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

// covers: 3.2.create.alreadyExists
#[test]
fn a_bucket_that_the_store_calls_anothers_is_not_ours_for_having_been_absent() {
    let mut view = about_to_create(|record| record.absence = true);
    let create = step(&view);
    view.learn(&create, Answer::Created(CreateAnswer::AlreadyExists));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(patch.change, Change::ForgetAbsence);
    assert_eq!(patch.json()[2], json!({"op": "remove", "path": "/data/absence"}));
    let mut interrupted = view.clone();
    interrupted.unanswered = Some(std::time::Duration::from_secs(7));
    assert_eq!(verdict(&interrupted), "BucketExists", "it may be the fruit of a call that had no answer");
    let mut late = about_to_create(|record| record.absence = true);
    late.learn_late(&create, Answer::Created(CreateAnswer::AlreadyExists));
    late.fresh = true;
    late.bucket = Some(BucketSeen::Present(Some(tags(&[]))));
    let Step::Act(Act::Patch(patch)) = step(&late) else { panic!("{}", step(&late)) };
    assert_eq!(patch.change, Change::ForgetAbsence, "whatever a look shows after it");
    let mut noted = about_to_create(|_| {});
    noted.backends.insert("main".into(), backend(AdoptionPolicy::Any));
    noted.created = Some(CreateAnswer::AlreadyExists);
    assert_eq!(verdict(&noted), "BucketExists");
    let mut later = holding(|_| {});
    later.bucket = Some(BucketSeen::Present(Some(tags(&[]))));
    later.bucket_empty = Some(true);
    assert_eq!(verdict(&later), "BucketExists", "its owner lets us see it");
}

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
    view.rivals = Some((target(&record(&view)), Vec::new()));
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
    let rival = stored(&facts.content(NAMESPACE, Some(&SecretKey::new("x".into()))));
    view.rivals = Some((target(&record(&view)), vec![rival]));
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
    view.missing_at = Some(crate::plan::bind::target(&record(&view)));
    view.bucket = Some(BucketSeen::Present(Some(tags(&[]))));
    assert_eq!(verdict(&view), "BucketMissing", "an untagged one in its place is not it");
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    assert!(matches!(step(&view), Step::Rest(_)));
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
    view.rivals = Some((target(&record(&view)), Vec::new()));
    view.bucket = Some(BucketSeen::Present(Some(tags(ANOTHER))));
    assert_eq!(verdict(&view), "BucketExists");
    view.bucket = Some(BucketSeen::Present(Some(tags(EARLIER_LIFE))));
    let Step::Act(Act::CreateRecord(record)) = step(&view) else { panic!("no record") };
    assert!(record.adopted);
}

/// The bucket may have been made between the look and the record, by whoever held it then.
#[test]
fn absence_that_was_seen_before_the_record_is_made_proves_nothing() {
    let mut view = view();
    let record = record(&view);
    let look = Step::Look(Look::Bucket(crate::plan::bind::target(&record)));
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    let made = stored(&record.content(NAMESPACE));
    let name = Look::Internal(made.name().to_owned());
    for (step_before, answer) in [
        (Step::Act(Act::CreateRecord(record)), Answer::Secret(Some(made.clone()))),
        // Another operator made it.
        (Step::Look(name), Answer::Secret(Some(made.clone()))),
        (Step::Look(Look::Own), Answer::Secrets(vec![made.clone()])),
    ] {
        let mut view = view.clone();
        view.learn(&step_before, answer);
        assert_eq!(step(&view), look, "after {step_before}");
    }
    // The one that was held already is no other one.
    view.own = [made.clone()].into_iter().collect();
    view.learn(&Step::Look(Look::Own), Answer::Secrets(vec![made]));
    assert_ne!(step(&view), look);
}

/// The same of a claim that was bound: what its record is made anew for may be gone, and no later
/// look in the pass would say so.
#[test]
fn the_bucket_of_a_record_that_is_made_anew_is_looked_at_again() {
    let mut view = bound();
    let lost = record(&view);
    view.own.remove(lost.name().as_str());
    let look = Step::Look(Look::Bucket(target(&lost)));
    view.learn(&look, Answer::Bucket(BucketSeen::Absent));
    let remade = BucketRecord { adopted: true, generation: 2, ..lost };
    let made = stored(&remade.content(NAMESPACE));
    view.learn(&Step::Act(Act::CreateRecord(remade)), Answer::Secret(Some(made)));
    assert_eq!(step(&view), look);
}

/// The template was edited before the claim was bound, and another claim has a credential for the
/// new name.
#[test]
fn what_a_claim_knows_of_two_buckets_does_not_make_it_ask_in_circles() {
    let mut view = holding(|_| {});
    view.claim = claim_in("team-a", &json!({"bucketName": "another"}), true);
    let mut asked = Vec::new();
    let end = loop {
        let step = step(&view);
        let answer = match &step {
            Step::Look(Look::Bucket(_)) => Answer::Bucket(BucketSeen::Absent),
            Step::Look(Look::Holder(_)) => Answer::Holder(Holder::Suspect),
            Step::Look(Look::CredentialsFor(_) | Look::Own) => Answer::Secrets(Vec::new()),
            Step::Look(Look::Claim) => Answer::Claim(Some(Box::new(view.claim.clone()))),
            other => break other.clone(),
        };
        asked.push(step.to_string());
        assert!(asked.len() < 20, "{asked:?}");
        view.learn(&step, answer);
    };
    let Step::Act(Act::CreateRecord(made)) = end else { panic!("{end}") };
    assert_eq!(made.bucket.as_str(), "another");
}

#[test]
fn that_a_bucket_is_absent_is_seen_again_after_a_late_answer_unless_the_claim_was_bound_to_it() {
    let look = |view: &View| Step::Look(Look::Bucket(target(&record(view))));
    for (mut view, kept) in [(holding(|_| {}), false), (bound(), true)] {
        view.fresh = true;
        view.learn(&look(&view), Answer::Bucket(BucketSeen::Absent));
        let late = Step::Look(Look::Claim);
        let live = Answer::Claim(Some(Box::new(view.claim.clone())));
        view.learn_late(&late, live);
        assert_eq!(view.bucket == Some(BucketSeen::Absent), kept);
        assert!(!view.fresh && !view.confirmed, "a late answer is not one of now");
    }
}

#[test]
fn a_record_that_changes_after_it_was_asked_for_is_read_anew() {
    let generation = |view: &View| view.record().map(|(record, _)| record.generation);
    let mut view = holding(|_| {});
    assert_eq!(generation(&view), Some(1));
    let before = view.clone();
    let raised = stored(&BucketRecord { generation: 2, ..record(&view) }.content(NAMESPACE));
    view.own.insert(raised.name().to_owned(), raised);
    assert_eq!((generation(&view), generation(&before)), (Some(2), Some(1)));
    view.own.clear();
    assert_eq!(generation(&view), None);
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

/// A rotation has aimed at the next key, which was not made; record and key lost their labels, and
/// somebody deleted the bucket.
// covers: 2.record.settled
#[test]
fn before_a_bucket_is_made_the_keys_before_the_one_aimed_at_are_looked_for() {
    for told in [None, Some(1)] {
        let mut view =
            holding(|record| (record.generation, record.absence) = (if told.is_some() { 5 } else { 2 }, true));
        view.bucket = Some(BucketSeen::Absent);
        view.status_before.rotation_generation = told;
        let key = stored(&facts(&view).content(NAMESPACE, Some(&SecretKey::new("s3cr3t".into()))));
        let key_1 = AccessKeyId::of(&view.claim.uid, 1).secret_name();
        loop {
            let step = step(&view);
            match &step {
                Step::Look(Look::Internal(name)) if *name == key_1 => {
                    break view.learn(&step, Answer::Secret(Some(key)));
                }
                Step::Look(Look::Internal(_)) => view.learn(&step, Answer::Secret(None)),
                other => panic!("{other}"),
            }
        }
        let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
        assert_eq!(patch.change, Change::Settle, "it was bound, and is not made anew");
    }
}

/// Somebody deleted the record, and another operator made it anew, while this one stood still.
// covers: 3.2.create.absence
#[test]
fn a_bucket_is_not_tagged_by_a_record_that_may_be_another_by_now() {
    let mut view = holding(|record| record.absence = true);
    view.bucket = Some(BucketSeen::Present(Some(BTreeMap::new())));
    (view.bucket_empty, view.own_lists, view.own_target) = (Some(true), 0, None);
    assert_eq!(step(&view), Step::Look(Look::Own));
    view.learn(&Step::Look(Look::Own), Answer::Secrets(vec![stored(&record(&view).content(NAMESPACE))]));
    assert_eq!(verdict(&view), "BucketExists");
}
