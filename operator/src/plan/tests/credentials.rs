//! Keys, the consumer Secret and public access, and how keys are replaced.

use k8s_openapi::ByteString;

use crate::api::AccessKeyId;

use super::*;

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

// covers: 2.credential.once
/// Somebody deleted it before the pass that made it was over.
#[test]
fn what_a_pass_has_minted_it_does_not_mint_again() {
    let mut view = bound();
    let name = facts(&view).access_key_id().secret_name();
    let minted = view.own.remove(&name).expect("it has one");
    view.own_target = Some(1);
    let mint = step(&view);
    assert!(matches!(mint, Step::Act(Act::Mint(_))), "{mint}");
    view.learn(&mint, Answer::Secret(Some(minted)));
    view.own.remove(&name);
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Internal(name)));
    view.learn(&look, Answer::Secret(None));
    let Step::Act(Act::Patch(patch)) = step(&view) else { panic!("{}", step(&view)) };
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
        view.live.insert(secret.name().to_owned());
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

/// The name was edited twice within one pass, and the second name is a stranger's.
#[test]
fn the_status_names_the_consumer_secret_that_is_there_while_the_one_of_the_spec_is_not_to_be_had() {
    let mut view = bound();
    let ours = view.consumers.remove("photos-s3").flatten().expect("it has one");
    let named = |name: &str, controlled: bool| {
        let mut secret = (*ours.0).clone();
        secret.metadata.name = Some(name.into());
        secret.metadata.owner_references = secret.metadata.owner_references.filter(|_| controlled);
        Some(Stored(Arc::new(secret)))
    };
    view.claim.consumer_secret = "taken-s3".into();
    view.consumers.insert("taken-s3".into(), named("taken-s3", false));
    view.consumers.insert("between-s3".into(), named("between-s3", true));
    view.met.insert("taken-s3".into());
    let told = |view: &View| {
        let Step::Act(Act::WriteStatus(_, status)) = step(view) else { panic!("{}", step(view)) };
        status.bound_secret_name
    };
    assert_eq!((verdict(&view).as_str(), told(&view).as_deref()), ("SecretConflict", Some("between-s3")));
    view.consumers.insert("photos-s3".into(), named("photos-s3", true));
    assert_eq!(told(&view).as_deref(), Some("photos-s3"), "that of the status, where both are there");
    view.consumers.remove("photos-s3");
    view.claim.status.bound_secret_name = None;
    assert_eq!(told(&view).as_deref(), Some("between-s3"), "the name was edited while the claim was bound");
    let mut other = named("between-s3", true);
    if let Some(Stored(secret)) = &mut other {
        Arc::make_mut(secret).data = None;
    }
    view.consumers.insert("between-s3".into(), other);
    assert_eq!(told(&view), None, "it holds no key");
    view.claim.status.bound_secret_name = Some("photos-s3".into());
    view.consumers.retain(|name, _| name == "taken-s3");
    assert_eq!(told(&view).as_deref(), Some("photos-s3"), "what a cache does not show may be there");
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

#[test]
fn a_post_that_finds_what_a_read_did_not_ends_the_pass() {
    let mut view = bound();
    view.fresh = true;
    view.learn(&Step::Look(Look::Consumer("photos-s3".into())), Answer::Secret(None));
    let create = step(&view);
    assert!(matches!(create, Step::Act(Act::CreateConsumer(_))), "{create}");
    view.learn(&create, Answer::Exists);
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
}

#[test]
fn a_renamed_consumer_secret_is_found_by_the_name_that_the_status_tells() {
    let mut view = bound();
    let mut old = (*view.consumers["photos-s3"].as_ref().unwrap().0).clone();
    old.metadata.name = Some("before-s3".into());
    old.metadata.labels = None;
    view.status_before.bound_secret_name = Some("before-s3".into());
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Consumer("before-s3".into())));
    view.learn(&look, Answer::Secret(Some(Stored(Arc::new(old)))));
    view.fresh = true;
    let delete = step(&view);
    let Step::Act(Act::Delete(secret)) = &delete else { panic!("{delete}") };
    assert_eq!(secret.name, "before-s3");
    view.claim.status.bound_secret_name = Some("before-s3".into());
    let told = |answer: Answer| {
        let mut view = view.clone();
        view.learn(&delete, answer);
        let Step::Act(Act::WriteStatus(_, status)) = step(&view) else { panic!("{}", step(&view)) };
        status.bound_secret_name
    };
    let refused = Answer::Failed(Failure::Refused("no right to".into()));
    assert_eq!(told(refused).as_deref(), Some("before-s3"), "nothing else leads to it");
    assert_eq!(told(Answer::Done).as_deref(), Some("photos-s3"));
}

/// A read by name may have been of the server's past, and nobody looks for the key of a number that
/// was passed.
#[test]
fn a_key_that_is_gone_is_passed_once_a_live_list_does_not_show_it_either() {
    let mut view = bound();
    let key = AccessKeyId::of(&view.claim.uid, 1).secret_name();
    let all = view.own.values().cloned().collect();
    view.own.remove(&key);
    view.own_lists = 0;
    assert_eq!(step(&view), Step::Look(Look::Internal(key.clone())));
    view.learn(&Step::Look(Look::Internal(key)), Answer::Secret(None));
    assert_eq!(step(&view), Step::Look(Look::Own));
    let mut gone = view.clone();
    gone.learn(&Step::Look(Look::Own), Answer::Secrets(view.own.values().cloned().collect()));
    let Step::Act(Act::Patch(patch)) = step(&gone) else { panic!("{}", step(&gone)) };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    let noted = patch.json().to_string().contains(&data_encoding::BASE64.encode(b"true"));
    assert!(noted, "that the claim was bound no key tells any more, and the status does not know the new number");
    view.learn(&Step::Look(Look::Own), Answer::Secrets(all));
    assert!(matches!(step(&view), Step::Rest(_)), "{}", step(&view));
}

/// A list from before the POST shows nothing of what has that name now; the read after it may be of
/// the server's past.
#[test]
fn a_key_whose_name_a_post_found_taken_is_looked_for_by_a_list_from_after_it() {
    let mut view = bound();
    let key = AccessKeyId::of(&view.claim.uid, 1).secret_name();
    let all = view.own.values().cloned().collect();
    view.own.remove(&key);
    (view.own_target, view.own_lists) = (Some(1), 1);
    let mint = step(&view);
    assert!(matches!(mint, Step::Act(Act::Mint(_))), "{mint}");
    view.learn(&mint, Answer::Exists);
    assert_eq!(step(&view), Step::Look(Look::Internal(key.clone())));
    view.learn(&Step::Look(Look::Internal(key)), Answer::Secret(None));
    assert_eq!(step(&view), Step::Look(Look::Own), "no other number is aimed at yet");
    view.learn(&Step::Look(Look::Own), Answer::Secrets(all));
    assert!(!matches!(step(&view), Step::Act(Act::Patch(_) | Act::Mint(_))), "{}", step(&view));
}

/// The caches may show a key that is long gone, and the Secret that the tenant reads as it is now.
#[test]
fn a_key_is_published_only_where_this_pass_has_made_it_or_read_it() {
    let mut view = bound();
    view.live.clear();
    assert!(matches!(step(&view), Step::Rest(_)), "what is published is left alone: {}", step(&view));
    view.consumers.insert("photos-s3".into(), None);
    let look = step(&view);
    let key = view.credential(1).cloned().unwrap();
    assert_eq!(look, Step::Look(Look::Internal(key.name().to_owned())));
    let mut gone = view.clone();
    view.learn(&look, Answer::Secret(Some(key)));
    assert!(matches!(step(&view), Step::Act(Act::CreateConsumer(_))), "{}", step(&view));
    gone.learn(&look, Answer::Secret(None));
    let rest = step(&gone);
    assert!(
        matches!(&rest, Step::Rest(rest) if matches!(rest.then, Then::Retry(_))),
        "a server may tell its past: {rest}"
    );
}

/// A cache that is behind doesn't show the successor of a key that is to end. Where a live list
/// doesn't either, somebody else gave it its end.
#[test]
fn a_key_that_is_to_end_is_published_only_once_a_live_list_has_been_read() {
    let mut view = bound();
    let mut key = view.credential(1).cloned().unwrap();
    let annotations = Arc::make_mut(&mut key.0).metadata.annotations.get_or_insert_default();
    annotations.insert(wire::EXPIRES_AT.to_owned(), "2030-01-01T00:05:00Z".to_owned());
    view.own.insert(key.name().to_owned(), key);
    view.consumers.insert("photos-s3".into(), None);
    view.own_lists = 0;
    assert_eq!(step(&view), Step::Look(Look::Own));
    let all = view.own.values().cloned().collect();
    view.learn(&Step::Look(Look::Own), Answer::Secrets(all));
    assert!(matches!(step(&view), Step::Act(Act::CreateConsumer(_))), "{}", step(&view));
}

/// A bound claim in whose consumer Secret somebody has written another generation, and the id that
/// follows from it.
fn telling_of(generation: u64) -> View {
    let mut view = bound();
    let id = AccessKeyId::of(&view.claim.uid, generation);
    let told = view.consumers.get_mut("photos-s3").and_then(Option::as_mut).expect("a bound claim has one");
    let secret = Arc::make_mut(&mut told.0);
    let labels = secret.metadata.labels.get_or_insert_default();
    labels.insert(wire::ROTATION_GENERATION.to_owned(), generation.to_string());
    let data = secret.data.get_or_insert_default();
    data.insert("AWS_ACCESS_KEY_ID".to_owned(), ByteString(id.as_str().as_bytes().to_vec()));
    view
}

/// What is planned once everything that the pass wants to read was read, and is as it was.
fn after_looks(view: &mut View) -> Step {
    for _ in 0..10 {
        let look = step(view);
        let answer = match &look {
            Step::Look(Look::Consumer(name)) => Answer::Secret(view.consumers[name].clone()),
            Step::Look(Look::Internal(name)) => Answer::Secret(view.own.get(name).cloned()),
            Step::Look(Look::Own) => Answer::Secrets(view.own.values().cloned().collect()),
            _ => return look,
        };
        view.learn(&look, answer);
    }
    panic!("no end of looks")
}

/// A deletion asks for the key of every generation up to the record's: a tenant must not make that
/// a number without end.
#[rstest]
#[case(18)]
#[case(1_000_000)]
#[case(u64::MAX)]
fn a_generation_far_ahead_of_all_that_is_known_is_its_tenants_own(#[case] told: u64) {
    let mut view = telling_of(told);
    let Step::Act(Act::Patch(patch)) = after_looks(&mut view) else { panic!("no patch") };
    assert_eq!((patch.change, patch.target.name.as_str()), (Change::Repair, "photos-s3"));
    assert_eq!(view.next_generation(), 2);
}

#[test]
fn a_generation_a_little_ahead_may_have_been_in_use() {
    let mut view = telling_of(17);
    let Step::Act(Act::Patch(patch)) = after_looks(&mut view) else { panic!("no patch") };
    assert_eq!(patch.change, Change::RaiseGeneration(Trigger::Repair));
    assert_eq!(view.next_generation(), 18);
}

/// As a copy that somebody keeps has it: no pass would come to an end that took it for a key of a
/// later generation.
#[test]
fn a_secret_under_a_name_of_no_generation_is_told_of() {
    let mut view = bound();
    let mut copy = (*view.credential(1).expect("it has one").0).clone();
    copy.metadata.name = Some(format!("{}-backup", copy.metadata.name.unwrap_or_default()));
    let copy = Stored(Arc::new(copy));
    view.own.insert(copy.name().to_owned(), copy);
    assert_eq!(verdict(&view), "CreationInconsistent");
}

/// Another operator may have moved the claim meanwhile, and opened the bucket that it has now.
#[test]
fn a_pass_that_stood_still_looks_at_what_the_claim_has_before_it_opens_a_bucket_to_the_public() {
    let mut view = bound();
    let open = |rate: u32| json!({"anonymousAccess": {"mode": "ReadOnly", "perSourceIPRPS": rate}});
    view.claim = Claim { status: view.claim.status, ..claim_in("team-a", &open(1), true) };
    view.fresh = true;
    let Step::Act(Act::CreateBinding(binding)) = step(&view) else { panic!("{}", step(&view)) };
    (view.late, view.own_lists) = (true, 0);
    assert_eq!(step(&view), Step::Look(Look::Own));
    view.own_lists = 1;
    assert!(matches!(step(&view), Step::Act(Act::CreateBinding(_))));
    let secret = stored(&binding.content(NAMESPACE));
    view.own.insert(secret.name().to_owned(), secret);
    view.own_lists = 0;
    view.claim = Claim { status: view.claim.status, ..claim_in("team-a", &open(2), true) };
    assert_eq!(step(&view), Step::Look(Look::Own), "and before it changes what is open");
}

/// Another operator may have aimed at a later one meanwhile.
#[test]
fn after_a_slow_answer_a_key_is_made_by_what_a_list_shows() {
    let mut view = holding(|_| {});
    view.bucket = Some(BucketSeen::Present(Some(tags(OURS))));
    (view.own_target, view.own_lists) = (Some(1), 1);
    assert!(matches!(step(&view), Step::Act(Act::Mint(_))));
    let live = Answer::Claim(Some(Box::new(view.claim.clone())));
    view.learn_slow(&Step::Look(Look::Claim), live);
    let look = step(&view);
    assert_eq!(look, Step::Look(Look::Own));
    let mut alone = view.clone();
    alone.learn(&look, Answer::Secrets(vec![stored(&record(&view).content(NAMESPACE))]));
    assert!(matches!(step(&alone), Step::Act(Act::Mint(_))), "it is slow, not wrong");
    let raised = stored(&BucketRecord { generation: 2, ..record(&view) }.content(NAMESPACE));
    view.learn(&look, Answer::Secrets(vec![raised]));
    assert!(!matches!(step(&view), Step::Act(Act::Mint(_))), "{}", step(&view));
}
