//! Emergency revocation: its order, and the lookups before the next key is created.

use super::*;

/// Returns a bound claim with a revoke request. Its current key is the second one, and the first is
/// gone.
fn leaked() -> Given {
    let mut given = bound();
    given.take(&key_name(1));
    given.put(record_secret(&BucketRecord { generation: 2, ..record() }));
    given.put(key_secret(&facts(2)));
    given.put_consumer(consumer_secret(&facts(2)));
    given.claim.revoke_request = Some("leaked".into());
    given
}

/// Returns the record after a revocation whose highest generation is this one.
fn revoked_through(generation: u64) -> BucketRecord {
    BucketRecord {
        generation: generation + 1,
        revoked_through: generation,
        handled_revoke_request: Some("leaked".into()),
        settled: true,
        ..record()
    }
}

/// Asserts that the next step patches the record for the revocation, and records it.
fn raise(view: &mut View, given: &mut Given, record: &BucketRecord) {
    let Step::Act(Act::Patch(patch)) = step(view) else { panic!("{}", step(view)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Revocation));
    let operations = patch.json().to_string();
    for (field, value) in [
        ("generation", record.generation.to_string()),
        ("revoked-through", record.revoked_through.to_string()),
        ("settled", "true".to_owned()),
    ] {
        let value = data_encoding::BASE64.encode(value.as_bytes());
        assert!(operations.contains(&format!("\"path\":\"/data/{field}\",\"value\":\"{value}\"")), "{operations}");
    }
    given.put(record_secret(record));
    view.learn(Answer::Patched(patch.change, record_secret(record)));
}

// covers: 3.3.revoke, 3.3.revoke.first, 3.3.revoke.live, 2.record.revoked
#[test]
fn a_revocation_reads_the_claim_notes_deletes_looks_for_what_it_can_not_see_and_mints() {
    let mut given = leaked();
    let mut view = given.cached();
    ask(&mut view, &Look::Claim, &given); // An old list would ask twice.
    raise(&mut view, &mut given, &revoked_through(2));
    let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(secret.name, key_name(2));
    let deleted = given.delete(secret);
    view.learn(deleted);
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    let Step::Act(Act::Mint(minted)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(minted.generation, 3);
}

// covers: 3.3.revoke.deleted, 3.3.revoke.first
/// Somebody removed the labels of the key, so no cache and no list shows it.
#[test]
fn a_key_that_only_its_name_leads_to_is_deleted_before_the_next_is_made() {
    let mut given = leaked();
    given.put(key_secret(&facts(1)));
    given.hide(&key_name(1));
    let mut view = given.claim_read();
    raise(&mut view, &mut given, &revoked_through(2));
    for generation in [2, 1] {
        if generation == 1 {
            ask(&mut view, &Look::Internal(key_name(1)), &given);
        }
        let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
        assert_eq!(secret.name, key_name(generation));
        let deleted = given.delete(secret);
        view.learn(deleted);
    }
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
}

// covers: 3.3.revoke.deleted
/// The create request was in flight when its generation was revoked.
#[test]
fn a_revoked_key_that_turns_up_later_is_deleted_whatever_stands_in_the_way() {
    let mut given = leaked();
    given.put(record_secret(&revoked_through(2)));
    given.put(key_secret(&facts(3)));
    given.claim.paused = true;
    given.claim.rotate_request = Some("now".into());
    let Step::Act(Act::Delete(secret)) = step(&given.cached()) else { panic!("{}", step(&given.cached())) };
    assert_eq!(secret.name, key_name(2));
}

// covers: 3.3.revoke.noKey
#[test]
fn where_a_key_may_be_that_is_not_seen_a_request_is_not_only_noted() {
    let mut given = leaked();
    given.hide(&key_name(2));
    let mut view = given.claim_read();
    for generation in [1, 2] {
        ask(&mut view, &Look::Internal(key_name(generation)), &given);
    }
    assert_eq!(change(&view), Change::RaiseGeneration(Trigger::Revocation));
    given.take(&key_name(2));
    let mut view = given.claim_read();
    for generation in [1, 2] {
        ask(&mut view, &Look::Internal(key_name(generation)), &given);
    }
    assert_eq!(change(&view), Change::NoteRevocation);
}

// covers: 3.3.revoke.taken
#[rstest]
#[case::of_the_key_to_come(3, Change::RaiseGeneration(Trigger::Revocation))]
#[case::of_a_key_that_is_gone(2, Change::NoteRevocation)]
fn a_strangers_secret_is_read_once_and_has_a_key_take_the_next_number_only_where_it_has_its_name(
    #[case] taken: u64,
    #[case] change_then: Change,
) {
    let mut given = leaked();
    given.put(record_secret(&BucketRecord { generation: 3, ..record() }));
    given.take(&key_name(2));
    given.put(edited(&unlabelled(&key_secret(&facts(taken))), |secret| secret.data = None));
    let mut view = given.claim_read();
    for generation in [1, 2, 3] {
        ask(&mut view, &Look::Internal(key_name(generation)), &given);
    }
    assert_eq!(change(&view), change_then);
}

// covers: 3.3.revoke.cost
/// A create request without an answer may take effect for a minute, and a kept key still exists.
#[rstest]
#[case::a_minute_later(61, false, Some("3"))]
#[case::at_once(30, false, None)]
#[case::one_is_kept(61, true, None)]
fn a_revocation_notes_that_those_of_the_last_are_gone(
    #[case] since: i64,
    #[case] is_kept: bool,
    #[case] noted: Option<&str>,
) {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    let made = Timestamp::from_second(1_000_000).unwrap();
    let mut given = leaked();
    given.claim.revoke_request = Some("again".into());
    given.put(record_secret(&BucketRecord { generation: 4, ..revoked_through(2) }));
    given.put(edited(&key_secret(&facts(4)), |secret| secret.metadata.creation_timestamp = Some(Time(made))));
    given.take(&key_name(2));
    if is_kept {
        given.put(edited(&expiring(&key_secret(&facts(2)), "1970-01-01T00:00:00Z"), |secret| {
            secret.metadata.finalizers = Some(vec!["example.com/backup".into()]);
            secret.metadata.deletion_timestamp = Some(Time(made));
        }));
    }
    let Step::Act(Act::Patch(patch)) = next(&given.claim_read(), Timestamp::from_second(1_000_000 + since).unwrap())
    else {
        panic!("nothing is revoked")
    };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Revocation));
    let operations = patch.json().to_string();
    let field = "\"path\":\"/data/lowest-generation\",\"value\":";
    let value = noted.map(|text| format!("{field}\"{}\"", data_encoding::BASE64.encode(text.as_bytes())));
    assert_eq!(operations.contains(field), noted.is_some(), "{operations}");
    assert!(value.is_none_or(|value| operations.contains(&value)), "{operations}");
}

// covers: 3.5.pace.revoked
#[test]
fn over_its_pace_a_claim_is_revoked_and_gets_its_next_key_and_nothing_else() {
    let wait = std::time::Duration::from_secs(30);
    let over = || Remembered { held_off: Some(wait), ..Remembered::default() };
    let mut given = leaked();
    let mut view = given.begin(over());
    assert!(!view.is_paced());
    ask(&mut view, &Look::Claim, &given);
    raise(&mut view, &mut given, &revoked_through(2));
    let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
    let deleted = given.delete(secret);
    view.learn(deleted);
    ask(&mut view, &Look::Internal(key_name(1)), &given);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));

    let rests = |view: &View| matches!(step(view), Step::Rest(rest) if rest.then == Then::Wait(wait));
    let mut given = leaked();
    given.claim.revoke_request = None;
    given.claim.rotate_request = Some("now".into());
    let view = given.begin(over());
    assert!(rests(&view), "{}", step(&view));

    let mut given = leaked();
    given.take(&key_name(2));
    let mut view = given.begin(over());
    ask(&mut view, &Look::Claim, &given);
    for generation in [1, 2] {
        ask(&mut view, &Look::Internal(key_name(generation)), &given);
    }
    assert!(rests(&view), "there is none to end: {}", step(&view));
}

// covers: 3.3.revoke.coalesced
/// A clock that is behind can't measure the minute, so the revocation does not wait.
#[rstest]
#[case::in_the_minute(Some(30), 30)]
#[case::after_it(None, 61)]
#[case::before_it_by_a_clock_that_is_behind(None, -3600)]
fn within_a_minute_of_a_revocation_another_waits(#[case] waits: Option<u64>, #[case] since: i64) {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    let made = Timestamp::from_second(1_000_000).unwrap();
    let mut given = leaked();
    given.claim.revoke_request = Some("again".into());
    given.put(record_secret(&BucketRecord { settled: false, lowest: Some(3), ..revoked_through(2) }));
    given.take(&key_name(2));
    given.put(edited(&key_secret(&facts(3)), |secret| secret.metadata.creation_timestamp = Some(Time(made))));
    given.put_consumer(consumer_secret(&facts(3)));
    let now = Timestamp::from_second(1_000_000 + since).unwrap();
    let mut view = given.claim_read();
    let mut step = next(&view, now);
    if let Step::Act(Act::WriteStatus(_, status)) = &step {
        let claim = Claim { status: status.as_ref().clone(), ..view.claim().clone() };
        view.learn(Answer::StatusWritten(Box::new(claim)));
        step = next(&view, now);
    }
    match (waits, step) {
        (Some(seconds), Step::Rest(rest)) => {
            assert_eq!(rest.then, Then::After(std::time::Duration::from_secs(seconds)));
        }
        (None, Step::Act(Act::Patch(patch))) => {
            assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Revocation));
        }
        (_, step) => panic!("{step}"),
    }
}

// covers: 1.bound.impaired.revoked, 3.3.revoke.told
/// A deletion without an answer may or may not have taken effect.
#[rstest]
#[case::refused(Failure::Refused("a webhook says no".into()))]
#[case::unanswered(Failure::Kubernetes("no answer came".into()))]
fn a_revoked_key_that_can_not_be_deleted_is_told_to_work(#[case] failure: Failure) {
    let mut given = leaked();
    let mut view = given.begin(Remembered { setbacks: 3, ..Remembered::default() });
    view.learn(live(&given.claim));
    raise(&mut view, &mut given, &revoked_through(2));
    let deletion = step(&view);
    assert!(matches!(deletion, Step::Act(Act::Delete(_))), "{deletion}");
    view.learn(Answer::Failed(deletion, failure));
    let status = write_status(&mut view);
    assert_eq!((verdict_of(&status, "Ready"), status.phase), ("BackendError".to_owned(), Some(Phase::Bound)));
    assert_eq!(status.access_key_id.as_deref(), Some(facts(2).access_key_id().as_str()));
    let condition = status.conditions.iter().find(|c| c.type_ == "CredentialsProvisioned").expect("it is told");
    assert!(condition.status == "True" && condition.message.contains("works until it is"), "{condition:?}");
    assert_eq!((status.handled_revoke_request.clone(), told_events(&view)), (None, vec!["BackendError".to_owned()]));

    given.claim = Claim { status, paused: true, ..given.claim };
    let mut view = given.claim_read();
    let Step::Act(Act::Delete(secret)) = step(&view) else { panic!("{}", step(&view)) };
    let deleted = given.delete(secret);
    view.learn(deleted);
    let status = write_status(&mut view);
    assert_eq!(status.handled_revoke_request.as_deref(), Some("leaked"));
    assert_eq!((status.access_key_id, told_events(&view)), (None, vec!["KeysRevoked".to_owned()]));
}

/// Returns the reason of a condition.
fn verdict_of(status: &BucketClaimStatus, type_: &str) -> String {
    status.conditions.iter().find(|c| c.type_ == type_).map(|c| c.reason.clone()).unwrap_or_default()
}

/// Returns the reasons of the Events at the end of the pass.
fn told_events(view: &View) -> Vec<String> {
    let Step::Rest(rest) = step(view) else { panic!("{}", step(view)) };
    rest.events.into_iter().map(|event| event.reason).collect()
}

// covers: 3.3.revoke.kept
#[test]
fn of_a_key_that_is_kept_the_end_is_written_once() {
    let mut given = leaked();
    given.put(record_secret(&revoked_through(2)));
    let kept = |secret: &Stored| {
        edited(secret, |secret| {
            secret.metadata.finalizers = Some(vec!["example.com/backup".into()]);
            secret.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        })
    };
    let far = expiring(&key_secret(&facts(2)), &Timestamp::MAX.to_string());
    given.put(kept(&far));
    given.put(key_secret(&facts(3)));
    given.put_consumer(consumer_secret(&facts(3)));
    let view = given.claim_read();
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((patch.change, patch.target.name.clone()), (Change::Retire, key_name(2)));
    assert!(patch.json().to_string().contains("1970-01-01T00:00:00Z"), "over by every clock");
    given.put(kept(&expiring(&key_secret(&facts(2)), "1970-01-01T00:00:00Z")));
    let view = given.claim_read();
    assert!(matches!(step(&view), Step::Act(Act::WriteStatus(..))), "{}", step(&view));
}

// covers: 3.3.revoke.moved
/// The record of the next bucket was created before the revocation.
#[test]
fn what_a_move_goes_on_with_knows_of_a_revocation() {
    let mut given = leaked();
    given.claim.revoke_request = Some("leaked".into());
    let twin = edited_backend(AdoptionPolicy::Owned, |backend| {
        backend.name = "twin".into();
        backend.endpoint = Endpoint::parse("http://other.example").unwrap();
    });
    given.backends.insert("twin".into(), twin);
    if let Ok(desired) = &mut given.claim.desired {
        desired.backend = "twin".into();
    }
    given.take(&key_name(2));
    given.put(record_secret(&BucketRecord { another: true, ..revoked_through(2) }));
    given.put(key_secret(&facts(3)));
    given.put_consumer(consumer_secret(&facts(3)));
    let there = BucketRecord {
        backend: "twin".into(),
        endpoint: Endpoint::parse("http://other.example").unwrap(),
        generation: 7,
        adopted: true,
        another: true,
        ..record()
    };
    given.put(record_secret(&there));
    let mut view = given.read();
    let at = Target::of(&there);
    let ours = Answer::Bucket(at.clone(), BucketSeen::Present(Some(tags(OURS))));
    view.learn(ours);
    view.learn(Answer::Owner(at, super::super::OwnerSeen::Ours));
    while let Step::Look(look) = step(&view) {
        view.learn(given.answer(look));
    }
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!(
        (patch.change, patch.target.name.as_str()),
        (Change::RaiseGeneration(Trigger::Move), there.name().as_str())
    );
    let operations = patch.json().to_string();
    for (field, value) in [("revoked-through", "2"), ("handled-revoke-request", "leaked")] {
        let value = data_encoding::BASE64.encode(value.as_bytes());
        assert!(operations.contains(&format!("\"path\":\"/data/{field}\",\"value\":\"{value}\"")), "{operations}");
    }
}
