//! Endpoints in the Secrets of keys and of public access (spec §2).

use super::super::is_incomplete;
use super::*;

const NEW: &str = "http://new.example";

fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

/// Returns the endpoint that the next step, a patch, writes to a Secret.
fn noted(view: &View, secret: &Stored) -> Option<String> {
    let Step::Act(Act::Patch(patch)) = step(view) else { panic!("{}", step(view)) };
    assert_eq!(patch.target.name, secret.name());
    let operations = patch.json();
    let all = operations.as_array().unwrap().iter();
    let value = all.into_iter().find(|operation| operation["path"] == "/data/endpoint")?["value"].clone();
    let bytes = data_encoding::BASE64.decode(value.as_str()?.as_bytes()).ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns the Secret as an older version created it.
fn older(secret: &Stored) -> Stored {
    edited(secret, |secret| drop(secret.data.get_or_insert_default().remove(wire::ENDPOINT)))
}

fn binding() -> Stored {
    let binding = record().binding_fixture(5);
    stored(&binding.content(NAMESPACE))
}

/// Returns a bound claim with public access.
fn open() -> Given {
    let mut given = bound();
    let spec = json!({"anonymousAccess": {"mode": "ReadOnly", "perSourceIPRPS": 5}});
    given.claim = Claim { status: given.claim.status, ..claim_in("team-a", &spec, true) };
    given.put(record_secret(&BucketRecord { public: true, ..record() }));
    given.put(binding());
    given
}

fn point_to(given: &mut Given, url: &str, former: &[&str]) {
    let former: Vec<Endpoint> = former.iter().map(|url| endpoint(url)).collect();
    let backend = edited_backend(AdoptionPolicy::Owned, |backend| {
        backend.endpoint = endpoint(url);
        backend.former_endpoints = former;
    });
    given.backends.insert("main".into(), backend);
}

// covers: 2.place.record
#[test]
fn what_an_older_version_made_is_completed_from_the_record_wherever_the_backend_points() {
    for paused in [false, true] {
        let mut given = open();
        point_to(&mut given, NEW, &[]);
        given.claim.paused = paused;
        for secret in [older(&key_secret(&facts(1))), older(&binding())] {
            let mut given = given.clone();
            given.put(secret.clone());
            let mut view = given.claim_read();
            if !paused {
                view.learn(Answer::Bucket(Target { endpoint: endpoint(NEW), ..at() }, BucketSeen::Absent));
                view.learn(Answer::PublicRival(at(), None));
            }
            assert_eq!(noted(&view, &secret).as_deref(), Some("http://s3.example"), "paused: {paused}");
        }
    }
}

// covers: 2.place.turns
#[test]
fn completion_waits_for_its_turn_and_makes_no_request_until_then() {
    let mut given = bound();
    given.put(older(&key_secret(&facts(1))));
    let turn = std::time::Duration::from_secs(7);
    let view = given.begin(Remembered { complete_after: Some(turn), ..Remembered::default() });
    assert!(matches!(step(&view), Step::Rest(rest) if rest.then == Then::After(turn)));
    assert_eq!(step(&given.cached()), Step::Look(Look::Claim), "it is read live before");
    assert_eq!(change(&given.claim_read()), Change::Complete);
    given.take(&record().name().to_string());
    assert!(!is_incomplete(&given.cached()), "no record says where it is");
}

// covers: 2.place.tags
#[test]
fn another_endpoint_is_written_only_where_our_tags_were_seen() {
    let mut given = bound();
    let moved = BucketRecord { endpoint: endpoint(NEW), settled: true, ..record() };
    given.take(&record().name().to_string());
    given.put(record_secret(&moved));
    point_to(&mut given, NEW, &[]);
    let at = Target::of(&moved);
    let mut view = given.claim_read();
    assert_eq!(step(&view), Step::Look(Look::Bucket(at.clone())));
    let mut anothers = view.clone();
    view.learn(Answer::Bucket(at.clone(), BucketSeen::Present(Some(tags(OURS)))));
    assert_eq!(noted(&view, &key_secret(&facts(1))).as_deref(), Some(NEW));
    anothers.learn(Answer::Bucket(at.clone(), BucketSeen::Present(Some(tags(&[])))));
    assert_eq!(verdict(&anothers), "CreationInconsistent", "it stays as it is, and that is told");
    let mut silent = given.claim_read();
    let look = Step::Look(Look::Bucket(at));
    silent.learn(Answer::Failed(look, Failure::Upstream("no answer".into())));
    assert_ne!(verdict(&silent), "CreationInconsistent", "nothing was seen");
}

// covers: 2.place.remade
#[test]
fn a_record_is_made_again_for_the_store_that_its_key_is_for() {
    let there = |given: &Given| {
        let mut view = given.read();
        view.learn(Answer::Holder(at(), Holder::Unknown));
        view.learn(Answer::CredentialsFor(at(), Vec::new()));
        view
    };
    let seen = |view: &mut View, entries: &[(&str, &str)]| {
        let at = Target { endpoint: endpoint(NEW), ..at() };
        assert_eq!(step(view), Step::Look(Look::Bucket(at.clone())));
        let next = at.record();
        view.learn(Answer::Bucket(at, BucketSeen::Present(Some(tags(entries)))));
        if step(view) == Step::Look(Look::Internal(next.to_string())) {
            // The record of a move in progress would have a higher generation.
            view.learn(Answer::Internal(next.to_string(), None));
        }
    };
    let mut given = bound();
    given.take(&record().name().to_string());
    point_to(&mut given, NEW, &[]);
    let mut view = there(&given);
    seen(&mut view, &[]);
    assert_eq!(verdict(&view), "BackendNotReady", "it may be another store");
    let mut view = there(&given);
    seen(&mut view, OURS);
    let Step::Act(Act::CreateRecord(made)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((made.endpoint.as_str(), made.adopted), ("http://s3.example", false), "it follows from there");
    point_to(&mut given, NEW, &["http://s3.example"]);
    let mut view = there(&given);
    seen(&mut view, &[]);
    let Step::Act(Act::CreateRecord(made)) = step(&view) else { panic!("{}", step(&view)) };
    assert_eq!((made.endpoint.as_str(), made.adopted), ("http://s3.example", true));
}

/// The claim returns to a backend whose endpoint has become that of another store.
#[test]
fn a_key_to_the_store_before_does_not_bind_a_claim_to_a_bucket_of_another() {
    let mut given = bound();
    let elsewhere = BucketRecord { endpoint: endpoint(NEW), generation: 2, ..record() };
    given.put(record_secret(&elsewhere));
    let view = given.read();
    assert!(view.is_bound_by(&record()) && !view.is_bound_by(&elsewhere));
}

// covers: 6.anonymous.oldest
#[test]
fn a_claim_whose_public_access_does_not_count_is_told_so_and_keeps_its_keys() {
    let given = open();
    let mut view = given.cached();
    assert_eq!(step(&view), Step::Look(Look::PublicRival(at())));
    let rival = ClaimRef { namespace: "team-b".into(), name: "films".into() };
    view.learn(Answer::PublicRival(at(), Some(rival)));
    let told = told(&view);
    let ready = told.conditions.iter().find(|c| c.type_ == "Ready").unwrap();
    assert_eq!((ready.reason.as_str(), told.phase), ("BucketNameConflict", Some(Phase::Bound)));
    assert!(!ready.message.contains("team-b"), "{}", ready.message);
}
