//! Worlds small enough for every test run, and planners that break each promise, to prove that the
//! oracles detect it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use stowage_operator::api::{Claim, CredentialFacts, Deletion, FINALIZER, wire};
use stowage_operator::plan::{Act, Answer, BucketSeen, Change, Rest, Step, Stored, Then, Trigger, View, next};

use super::facts::{Adoption, Policy, Spec};
use super::promise::Promise;
use super::run::{WorldReport, explore};
use super::talks::Planner;
use super::world::{Bounds, Event, Recipe, backend};
use super::worlds::worlds;

const BOUNDED: Bounds = Bounds { states: Some(30_000), until: None, asked: None };

fn text(report: &WorldReport) -> String {
    let mut out = Vec::new();
    for violation in &report.violations {
        super::text::write_violation(&mut out, report.name, violation).unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn recipe(name: &str) -> Recipe {
    worlds().find(|recipe| recipe.name == name).unwrap().clone()
}

#[rstest]
#[case("one-claim-crashes")]
#[case("two-claims-one-bucket")]
#[case("rotation-stale-cache")]
#[case("revocation")]
#[case("revocation-in-rotation")]
#[case("recreate-delete")]
#[case("deletion-by-name")]
#[case("move-deleted")]
#[case("two-operators")]
#[case("stranger")]
#[case("another-account")]
#[case("policy-edits")]
#[case("backend-move")]
#[case("tampering")]
fn the_planner_keeps_its_promises(#[case] name: &str) {
    let report = explore(recipe(name), next, Bounds { states: Some(3_000), ..Bounds::default() }, 1);
    assert!(report.states > 500, "{name} has {} states", report.states);
    assert!(report.violations.is_empty(), "{}", text(&report));
}

#[test]
fn a_small_world_is_explored_to_its_end_and_always_alike() {
    let small = Recipe { crashes: 1, losses: 1, ..Recipe::CALM };
    let explored = || explore(small.clone(), next, Bounds::default(), 1);
    let (one, other) = (explored(), explored());
    assert!(one.complete && one.violations.is_empty(), "{}", text(&one));
    assert_eq!((one.states, one.transitions, one.depth), (other.states, other.transitions, other.depth));
    let together = explore(small, next, Bounds::default(), 2);
    assert_eq!((one.states, one.transitions), (together.states, together.transitions));
}

#[test]
fn a_bound_is_told() {
    let report = explore(recipe("one-claim-crashes"), next, Bounds { states: Some(100), ..Bounds::default() }, 1);
    assert!(!report.complete);
}

#[test]
fn worlds_have_names_of_their_own() {
    let mut names: Vec<&str> = worlds().map(|recipe| recipe.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(worlds().all(|recipe| recipe.events.len() <= 32), "events are bits");
}

/// Planners that each break one promise, with a world in which that shows.
#[rstest]
#[case(Promise::I1, takes_any_bucket_for_its_own, one(Policy::Force, false, &[Event::Make(0), Event::Delete(0)]))]
#[case(Promise::I2, reads_no_claim_again, one(Policy::Force, true, &[Event::Delete(0), Event::Policy(0, Policy::Retain)]))]
#[case(Promise::I3, reads_no_claim_again, Recipe { purge_slice: 1, ..one(Policy::Force, true, &[Event::Put(0), Event::Delete(0), Event::Policy(0, Policy::Delete)]) })]
#[case(Promise::I4, mints_in_spite_of_a_conflict, Recipe { claims: [Some(Spec::PLAIN); 2], bound: false, ..one(Policy::Retain, true, &[]) })]
#[case(Promise::I5, forgets_what_is_on_its_way_out, Recipe { ticks: 2, ..one(Policy::Retain, true, &[Event::Rotate(0), Event::Rotate(0)]) })]
#[case(Promise::I6, revokes_at_once, Recipe { ticks: 1, ..one(Policy::Retain, true, &[Event::Rotate(0)]) })]
#[case(Promise::I7, mints_before_it_revokes, one(Policy::Retain, true, &[Event::Revoke(0)]))]
#[case(Promise::I8, stamps_too_early, Recipe { ticks: 1, ..one(Policy::Retain, true, &[Event::Rotate(0)]) })]
#[case(Promise::I10, mints_again, one(Policy::Retain, true, &[Event::DropKey(0)]))]
#[case(Promise::I12, needs_no_finalizer, one(Policy::Retain, false, &[]))]
#[case(Promise::I13, takes_any_secret_for_its_own, one(Policy::Retain, false, &[Event::Squat(0)]))]
#[case(Promise::I14, always_retains, one(Policy::Delete, true, &[Event::Delete(0)]))]
#[case(Promise::I16, makes_nothing_public, one(Policy::Retain, true, &[Event::Public(0, true)]))]
#[case(Promise::L1, is_always_paused, one(Policy::Retain, false, &[]))]
#[case(Promise::L2, goes_no_further, one(Policy::Retain, true, &[Event::Delete(0)]))]
#[case(Promise::L4, never_rests, one(Policy::Retain, false, &[]))]
fn each_promise_can_be_broken(#[case] promise: Promise, #[case] planner: Planner, #[case] world: Recipe) {
    assert!(explore(world.clone(), next, BOUNDED, 1).violations.is_empty(), "the planner itself breaks nothing here");
    let report = explore(world, planner, BOUNDED, 1);
    let broken: Vec<Promise> = report.violations.iter().map(|violation| violation.promise).collect();
    assert!(broken.contains(&promise), "{promise} stands, but {}", text(&report));
}

/// Returns a world of one claim, initially bound or not, and one operator. Nothing happens but
/// these events.
fn one(deletion: Policy, bound: bool, events: &'static [Event]) -> Recipe {
    let claims = [Some(Spec { deletion, ..Spec::PLAIN }), None];
    let most_events = u8::try_from(events.len()).unwrap();
    let backends = [Some(backend(0, Adoption::Any)), None];
    Recipe { claims, bound, events, most_events, backends, ..Recipe::CALM }
}

/// Takes keys that are due for deletion as already deleted.
fn mints_before_it_revokes(view: &View, now: Timestamp) -> Step {
    match next(view, now) {
        Step::Act(Act::Delete(secret)) if secret.name.starts_with("vc-") => {
            deceived(view, now, [Answer::Deleted(secret, None)])
        }
        step => step,
    }
}

/// Calls the planner after the pass learned false answers.
fn deceived(view: &View, now: Timestamp, lies: impl IntoIterator<Item = Answer>) -> Step {
    let mut view = view.clone();
    lies.into_iter().for_each(|lie| view.learn(lie));
    next(&view, now)
}

/// Calls the planner with an edited claim.
fn of_another_claim(view: &View, now: Timestamp, edit: impl FnOnce(&mut Claim)) -> Step {
    let mut claim = view.claim().clone();
    edit(&mut claim);
    deceived(view, now, [Answer::StatusWritten(Box::new(claim))])
}

fn just_read(view: &View) -> Answer {
    Answer::Claim(Some(Box::new(view.claim().clone())))
}

fn takes_any_bucket_for_its_own(view: &View, now: Timestamp) -> Step {
    match (view.last_look(), view.bucket_of_record()) {
        (Some(BucketSeen::Present(_)), Some(at)) => {
            let ours = BTreeMap::from([(wire::TAG_CLAIM_UID.to_owned(), view.claim().uid.to_string())]);
            deceived(view, now, [Answer::Bucket(at, BucketSeen::Present(Some(ours))), just_read(view)])
        }
        _ => next(view, now),
    }
}

fn reads_no_claim_again(view: &View, now: Timestamp) -> Step {
    deceived(view, now, [just_read(view)])
}

fn mints_in_spite_of_a_conflict(view: &View, now: Timestamp) -> Step {
    let step = next(view, now);
    let conflict = view.claim().status.conditions.iter().any(|c| c.reason == "BucketNameConflict");
    match (&step, view.holder()) {
        (Step::Rest(_), Some(_)) if conflict && view.all_own().next().is_none() => {
            let bucket = stowage_operator::api::BucketName::parse(super::names::bucket_name(0)).unwrap();
            Step::Act(Act::Mint(CredentialFacts {
                claim: view.claim().at.clone(),
                uid: view.claim().uid.clone(),
                backend: "main".to_owned(),
                endpoint: super::names::endpoint(0),
                bucket,
                generation: 1,
                quota_soft: None,
                quota_hard: None,
            }))
        }
        _ => step,
    }
}

fn forgets_what_is_on_its_way_out(view: &View, now: Timestamp) -> Step {
    let (goes, stays): (Vec<_>, Vec<_>) =
        view.all_own().cloned().partition(|secret| secret.annotation(wire::EXPIRES_AT).is_some());
    // The planner requires both a list and a read by name to believe it.
    let gone = goes.iter().map(|secret| Answer::Internal(secret.name().to_owned(), None));
    deceived(view, now, [Answer::Own(stays)].into_iter().chain(gone))
}

fn revokes_at_once(view: &View, now: Timestamp) -> Step {
    match next(view, now) {
        Step::Act(Act::Patch(patch)) if patch.change == Change::Retire => Step::Act(Act::Delete(patch.target)),
        step => step,
    }
}

fn stamps_too_early(view: &View, now: Timestamp) -> Step {
    match next(view, now) {
        Step::Act(Act::Patch(patch)) if patch.change == Change::Retire => {
            next(view, now.checked_sub(SignedDuration::from_secs(100)).unwrap())
        }
        step => step,
    }
}

fn mints_again(view: &View, now: Timestamp) -> Step {
    let record = view.record().map(|(_, stored)| stored.clone());
    deceived(view, now, record.map(|record| Answer::Patched(Change::RaiseGeneration(Trigger::Repair), record)))
}

fn needs_no_finalizer(view: &View, now: Timestamp) -> Step {
    of_another_claim(view, now, |claim| claim.finalizers = vec![FINALIZER.to_owned()])
}

fn takes_any_secret_for_its_own(view: &View, now: Timestamp) -> Step {
    let ours = |stored: &Stored| {
        let mut secret = stored.0.as_ref().clone();
        let reference = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            uid: view.claim().uid.to_string(),
            controller: Some(true),
            ..Default::default()
        };
        secret.metadata.owner_references = Some(vec![reference]);
        Answer::Consumer(stored.name().to_owned(), Some(Stored(Arc::new(secret))))
    };
    deceived(view, now, view.consumers().map(ours))
}

fn always_retains(view: &View, now: Timestamp) -> Step {
    of_another_claim(view, now, |claim| claim.deletion = Deletion::Retain)
}

fn makes_nothing_public(view: &View, now: Timestamp) -> Step {
    of_another_claim(view, now, |claim| {
        if let Ok(desired) = &mut claim.desired {
            desired.anonymous = None;
        }
    })
}

fn is_always_paused(view: &View, now: Timestamp) -> Step {
    of_another_claim(view, now, |claim| claim.paused = true)
}

fn goes_no_further(view: &View, now: Timestamp) -> Step {
    of_another_claim(view, now, |claim| claim.paused = claim.deleting)
}

/// Writes a different status each time.
fn never_rests(view: &View, now: Timestamp) -> Step {
    let step = next(view, now);
    let Step::Rest(Rest { then: Then::AwaitChange, .. }) = &step else { return step };
    let mut status = view.claim().status.clone();
    status.access_key_id = if status.access_key_id.is_some() { None } else { Some("x".to_owned()) };
    Step::Act(Act::WriteStatus(view.claim().id.clone(), Box::new(status)))
}
