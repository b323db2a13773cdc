//! The consumer Secret and public access.

use k8s_openapi::ByteString;

use crate::api::AccessKeyId;

use super::super::credentials::KeyHolder;
use super::*;

/// Returns a consumer Secret of this name that the claim does not control.
fn strangers(name: &str) -> Stored {
    edited(&consumer_secret(&facts(1)), |secret| {
        secret.metadata.name = Some(name.into());
        secret.metadata.owner_references = None;
    })
}

/// The caches may show a Secret that is long deleted, for as long as a watch is silent.
#[test]
fn a_strangers_consumer_secret_is_read_before_it_is_refused() {
    let mut given = bound();
    given.put_consumer(strangers(CONSUMER));
    let mut view = given.read();
    assert_eq!(step(&view), Step::Look(Look::Consumer(CONSUMER.into())));
    let mut gone = view.clone();
    gone.learn(Answer::Consumer(CONSUMER.into(), None));
    assert!(matches!(step(&gone), Step::Act(Act::CreateConsumer(_))));
    ask(&mut view, &Look::Consumer(CONSUMER.into()), &given);
    assert_eq!(verdict(&view), "SecretConflict");
}

/// The name was edited twice within one pass, and the second name belongs to a foreign Secret.
#[test]
fn the_status_names_the_consumer_secret_that_is_there_while_the_one_of_the_spec_is_not_to_be_had() {
    let told = |given: &Given| {
        let mut view = given.read();
        ask(&mut view, &Look::Consumer("taken-s3".into()), given);
        assert_eq!(verdict(&view), "SecretConflict");
        told(&view).bound_secret_name
    };
    let between = edited(&consumer_secret(&facts(1)), |secret| secret.metadata.name = Some("between-s3".into()));
    let mut given = bound();
    let ours = given.consumers.remove(CONSUMER).expect("it has one");
    given.claim.consumer_secret = "taken-s3".into();
    given.put_consumer(strangers("taken-s3"));
    given.put_consumer(between.clone());
    assert_eq!(told(&given).as_deref(), Some("between-s3"));
    given.put_consumer(ours);
    assert_eq!(told(&given).as_deref(), Some(CONSUMER), "that of the status, where both are there");
    given.consumers.remove(CONSUMER);
    given.claim.status.bound_secret_name = None;
    assert_eq!(told(&given).as_deref(), Some("between-s3"), "the name was edited while the claim was bound");
    given.put_consumer(edited(&between, |secret| secret.data = None));
    assert_eq!(told(&given), None, "it holds no key");
    given.claim.status.bound_secret_name = Some(CONSUMER.into());
    given.consumers.remove("between-s3");
    assert_eq!(told(&given).as_deref(), Some(CONSUMER), "what a cache does not show may be there");
}

#[test]
fn a_post_that_finds_what_a_read_did_not_ends_the_pass() {
    let mut view = bound().read();
    view.learn(Answer::Consumer(CONSUMER.into(), None));
    let create = step(&view);
    assert!(matches!(create, Step::Act(Act::CreateConsumer(_))), "{create}");
    view.learn(Answer::ConsumerPosted(CONSUMER.into(), Posted::NameTaken));
    let rest = step(&view);
    assert!(matches!(&rest, Step::Rest(rest) if matches!(rest.then, Then::Retry(_))), "{rest}");
}

#[test]
fn a_renamed_consumer_secret_is_found_by_the_name_that_the_status_tells() {
    let mut given = bound();
    let before = edited(&consumer_secret(&facts(1)), |secret| {
        secret.metadata.name = Some("before-s3".into());
        secret.metadata.labels = None;
    });
    given.claim.status.bound_secret_name = Some("before-s3".into());
    let mut view = given.read();
    given.put_consumer(before);
    ask(&mut view, &Look::Consumer("before-s3".into()), &given);
    let delete = step(&view);
    let Step::Act(Act::Delete(secret)) = &delete else { panic!("{delete}") };
    assert_eq!(secret.name, "before-s3");
    let shown_after = |answer: Answer| {
        let mut view = view.clone();
        view.learn(answer);
        told(&view).bound_secret_name
    };
    let refused = Answer::Failed(delete.clone(), Failure::Refused("no right to".into()));
    assert_eq!(shown_after(refused).as_deref(), Some("before-s3"), "nothing else leads to it");
    assert_eq!(shown_after(Answer::Deleted(secret.clone(), None)).as_deref(), Some(CONSUMER));
}

/// The caches may show a key that is long deleted, together with the current consumer Secret.
#[test]
fn a_key_is_published_only_where_this_pass_has_made_it_or_read_it() {
    let given = bound();
    let mut view = given.claim_read();
    assert!(matches!(step(&view), Step::Rest(_)), "what is published is left alone: {}", step(&view));
    view.learn(Answer::Consumer(CONSUMER.into(), None));
    let mut gone = view.clone();
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    assert!(matches!(step(&view), Step::Act(Act::CreateConsumer(_))), "{}", step(&view));
    gone.learn(Answer::Internal(key_name(1), None));
    let rest = step(&gone);
    assert!(
        matches!(&rest, Step::Rest(rest) if matches!(rest.then, Then::Retry(_))),
        "a server may tell its past: {rest}"
    );
}

/// An outdated cache may not show that the record has the successor of an expiring key. If the live
/// record does not have one either, somebody else set the expiry.
#[test]
fn a_key_that_is_to_end_is_published_only_once_the_record_has_been_read() {
    let mut given = bound();
    given.put(expiring(&key_secret(&facts(1)), "2030-01-01T00:05:00Z"));
    let mut view = given.claim_read();
    view.learn(Answer::Consumer(CONSUMER.into(), None));
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    ask(&mut view, &Look::Internal(record().name().to_string()), &given);
    assert!(matches!(step(&view), Step::Act(Act::CreateConsumer(_))), "{}", step(&view));
}

/// Returns a pass over a bound claim after somebody wrote another generation with its access key id
/// into the consumer Secret. Everything that the pass wanted to read was read and is unchanged.
fn telling_of(generation: u64) -> View {
    let mut given = bound();
    let id = AccessKeyId::of(&given.claim.uid, generation);
    given.put_consumer(edited(&consumer_secret(&facts(1)), |secret| {
        let labels = secret.metadata.labels.get_or_insert_default();
        labels.insert(wire::ROTATION_GENERATION.to_owned(), generation.to_string());
        let data = secret.data.get_or_insert_default();
        data.insert("AWS_ACCESS_KEY_ID".to_owned(), ByteString(id.as_str().as_bytes().to_vec()));
    }));
    let mut view = given.read();
    for _ in 0..10 {
        let Step::Look(look) = step(&view) else { return view };
        view.learn(given.answer(look));
    }
    panic!("no end of looks")
}

/// Otherwise each edit by a tenant would cause another key, and the claim's generations would grow.
// covers: 3.3.claimed
#[rstest]
#[case(2)]
#[case(17)]
#[case(1_000_000)]
#[case(u64::MAX)]
fn a_generation_that_nobody_has_a_key_of_is_its_tenants_own(#[case] told: u64) {
    let view = telling_of(told);
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("no patch") };
    assert_eq!((patch.change, patch.target.name.as_str()), (Change::Repair, CONSUMER));
    assert_eq!(view.next_generation(), 2);
}

/// If record and keys were deleted by hand, a key of that generation may have been used.
// covers: 3.3.claimed, 2.credential.neverReused
#[rstest]
#[case(17, 18)]
#[case(18, 2)]
#[case(u64::MAX, 2)]
fn a_record_that_is_made_again_passes_what_a_consumer_secret_tells_that_is_a_little_ahead(
    #[case] told: u64,
    #[case] aimed: u64,
) {
    let mut view = telling_of(told);
    view.learn(Answer::Own(vec![key_secret(&facts(1))]));
    let made = loop {
        match step(&view) {
            Step::Look(Look::Bucket(_)) => view.learn(tagged(OURS)),
            Step::Look(Look::Own) => view.learn(Answer::Own(vec![key_secret(&facts(1))])),
            Step::Look(Look::Internal(name)) => view.learn(Answer::Internal(name, None)),
            Step::Look(look) => view.learn(bound().answer(look)),
            Step::Act(Act::CreateRecord(made)) => break made,
            other => panic!("{other}"),
        }
    };
    assert_eq!((made.generation, made.lowest), (aimed, None), "and what else there was no note tells");
}

/// An outdated claim could remove public access that was requested since.
#[test]
fn public_access_is_withdrawn_by_a_claim_read_live() {
    let mut given = bound();
    let binding = record().binding_fixture(10);
    given.put(stored(&binding.content(NAMESPACE)));
    let mut view = given.cached();
    ask(&mut view, &Look::Claim, &given);
    assert!(matches!(step(&view), Step::Act(Act::Delete(secret)) if secret.name.starts_with("ab-")));
}

/// Another operator may have moved the claim meanwhile and opened its new bucket.
// covers: 3.live.doubt, 2.record.public
#[test]
fn a_pass_that_stood_still_reads_the_record_before_it_opens_a_bucket_to_the_public() {
    let mut given = bound();
    let open = |given: &Given, rate: u32| {
        let spec = json!({"anonymousAccess": {"mode": "ReadOnly", "perSourceIPRPS": rate}});
        Claim { status: given.claim.status.clone(), ..claim_in("team-a", &spec, true) }
    };
    given.claim = open(&given, 1);
    let view = given.read();
    assert_eq!(change(&view), Change::NotePublic, "before there is a binding");
    given.put(record_secret(&BucketRecord { public: true, ..record() }));
    let mut view = given.read();
    let Step::Act(Act::CreateBinding(binding)) = step(&view) else { panic!("{}", step(&view)) };
    view.learn_slow(live(&given.claim));
    let look = Look::Internal(record().name().to_string());
    ask(&mut view, &look, &given);
    assert!(matches!(step(&view), Step::Act(Act::CreateBinding(_))));
    view.learn(Answer::BindingPosted(Posted::Stored(stored(&binding.content(NAMESPACE)))));
    view.learn_slow(live(&open(&given, 2)));
    assert_eq!(step(&view), Step::Look(look), "and before it changes what is open");
}
