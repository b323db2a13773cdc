//! Worlds with an access that are small enough for every test run, and planners that break each
//! promise about accesses, to prove that the oracles detect it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use stowage_operator::api::{
    AccessKeyId, BucketName, BucketRecord, ClaimRef, Consent, Limits, SharedWith, Sharing, SharingRule,
};
use stowage_operator::plan::access::{AccessAct, AccessAnswer, AccessStep, AccessView, ClaimWord, Place};
use stowage_operator::plan::{
    self, Answer, Arrival, BackendSeen, Change, ConsentQuestion, ConsentSeen, Look, Reconciliation, Rest, Step, Stored,
    Unasked, View,
};

use super::access::{WANTED, access_ref, access_uid, asker};
use super::access_worlds::ACCESS_WORLDS;
use super::facts::{Adoption, OPERATOR_NAMESPACE, Policy, Spec, Uid};
use super::names::{backend_name, bucket_name, claim_ref, endpoint};
use super::objects::Kind;
use super::promise::Promise;
use super::run::{WorldReport, explore_with};
use super::shown;
use super::talks::Planners;
use super::world::{Bounds, Event, ModelWorld, Recipe, backend};

fn text(report: &WorldReport) -> String {
    let mut out = Vec::new();
    for violation in &report.violations {
        super::text::write_violation(&mut out, report.name, violation).unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn the_planners_keep_what_they_promise_of_accesses() {
    for recipe in ACCESS_WORLDS {
        let bounds = Bounds { states: Some(2_000), ..Bounds::default() };
        let report = explore_with(recipe.clone(), Planners::PRODUCTION, bounds, 1);
        assert!(report.states > 500, "{} has {} states", report.name, report.states);
        assert!(report.violations.is_empty(), "{}", text(&report));
    }
}

#[test]
fn an_operator_that_starts_on_an_old_list_publishes_no_earlier_key() {
    let recipe = ACCESS_WORLDS.iter().find(|recipe| recipe.name == "access-restarted").unwrap().clone();
    let report = explore_with(recipe, Planners::PRODUCTION, Bounds::default(), 1);
    assert!(report.complete && report.violations.is_empty(), "{}", text(&report));
}

/// Returns a world of a bound claim, an access to its bucket and one operator. Nothing happens but
/// these events.
fn open(shares: bool, events: &'static [Event]) -> Recipe {
    let spec = Spec { shares: shares.then_some(WANTED), deletion: Policy::Retain, ..Spec::PLAIN };
    let most_events = u8::try_from(events.len()).unwrap();
    Recipe { claims: [Some(spec), None], access: true, bound: true, events, most_events, ..Recipe::CALM }
}

fn of_claims(claims: fn(&View, Timestamp) -> Step) -> Planners {
    Planners { claims, ..Planners::PRODUCTION }
}

fn of_accesses(accesses: fn(&AccessView, Timestamp) -> ControlFlow<Rest, AccessStep>) -> Planners {
    Planners { accesses, ..Planners::PRODUCTION }
}

/// Planners that each break one promise, with a world in which that shows.
#[rstest]
#[case(Promise::A1, of_claims(lets_everybody_in), open(false, &[]))]
#[case(Promise::A1, of_claims(withdraws_nothing), open(true, &[Event::Share(0, None)]))]
#[case(Promise::A2, of_claims(ends_no_access), open(true, &[Event::Delete(0)]))]
#[case(Promise::A3, of_accesses(forgets_lower_keys), Recipe { ticks: 2, ..open(true, &[Event::RotateAccess; 2]) })]
#[case(Promise::L1, of_claims(reads_nobody), open(true, &[]))]
#[case(Promise::A5, of_accesses(believes_in_consent), open(false, &[]))]
#[case(Promise::I6, of_accesses(deletes_what_it_stamps), Recipe { ticks: 1, ..open(true, &[Event::RotateAccess]) })]
#[case(Promise::I12, of_accesses(reads_no_access_again), open(true, &[]))]
#[case(Promise::I12, of_accesses(lets_go_at_once), open(true, &[Event::DeleteAccess]))]
#[case(Promise::L2, of_accesses(never_goes), open(true, &[Event::DeleteAccess]))]
fn each_promise_about_accesses_can_be_broken(
    #[case] promise: Promise,
    #[case] planners: Planners,
    #[case] world: Recipe,
) {
    let bounds = Bounds { states: Some(10_000), ..Bounds::default() };
    let whole = explore_with(world.clone(), Planners::PRODUCTION, bounds.clone(), 1);
    assert!(whole.violations.is_empty(), "the planners themselves break nothing here: {}", text(&whole));
    let report = explore_with(world, planners, bounds, 1);
    let broken: Vec<Promise> = report.violations.iter().map(|violation| violation.promise).collect();
    assert!(broken.contains(&promise), "{promise} stands, but {}", text(&report));
}

/// Steps of an access's planner cannot name a bucket, so writing to a Secret of a claim is the only
/// way to break A4.
#[test]
fn an_access_that_writes_to_the_record_of_a_bucket_is_seen() {
    let world = ModelWorld::new(open(true, &[]), Planners::PRODUCTION, Bounds::default());
    let state = world.first();
    let of_claim = [Kind::Record, Kind::Credential];
    let touched = world.secrets(&state).filter(|secret| of_claim.contains(&secret.kind));
    let found: Vec<_> = touched.map(|secret| world.touching(&state, 0, secret)).collect();
    assert_eq!(found, [Some(Promise::A4); 2]);
}

/// Calls the planner of claims after the pass learned a false answer.
fn deceived(view: &View, now: Timestamp, lie: Answer) -> Step {
    let mut view = view.clone();
    view.learn(lie);
    plan::next(&view, now)
}

fn everybody() -> Sharing {
    let namespaces = SharedWith { names: Some(vec![access_ref().namespace]), selector: None };
    Sharing::parse(Some(&vec![SharingRule { namespaces, max_mode: WANTED.into(), prefixes: None }]))
}

/// Returns the claim as if its owner consented.
fn consenting(view: &View) -> Answer {
    let mut claim = view.claim().clone();
    claim.sharing = everybody();
    Answer::StatusWritten(Box::new(claim))
}

fn withdraws_nothing(view: &View, now: Timestamp) -> Step {
    deceived(view, now, consenting(view))
}

/// Takes the claim that it reads for consent.
fn lets_everybody_in(view: &View, now: Timestamp) -> Step {
    let mut view = view.clone();
    view.learn(consenting(&view));
    let step = plan::next(&view, now);
    let Step::Look(Look::Consent(question)) = &step else { return step };
    let BackendSeen::Present { backend, .. } = shown::backend(backend(0, Adoption::Owned), 0) else { return step };
    let seen = ConsentSeen {
        record: view.record().map(|(_, stored)| stored.clone()),
        own: view.all_own().cloned().collect(),
        askers: vec![asker()],
        unasked: Unasked::new(),
        backend: Some(backend),
        claim: Some(Box::new(view.claim().clone())),
    };
    deceived(&view, now, Answer::Consent(question.clone(), Box::new(seen)))
}

/// Omits every access from its question about consent.
fn reads_nobody(view: &View, now: Timestamp) -> Step {
    match plan::next(view, now) {
        Step::Look(Look::Consent(question)) => {
            Step::Look(Look::Consent(ConsentQuestion { accesses: BTreeSet::new(), ..question }))
        }
        step => step,
    }
}

/// Assumes that the record of the access is marked as ending already.
fn ends_no_access(view: &View, now: Timestamp) -> Step {
    let Some((record, stored)) = view.record().filter(|_| view.claim().deleting) else { return plan::next(view, now) };
    let ending =
        BucketRecord { ending: true, accesses: Default::default(), limits: Limits::default(), ..record.clone() };
    let mut secret = ending.content(OPERATOR_NAMESPACE).to_secret();
    secret.metadata = stored.0.metadata.clone();
    deceived(view, now, Answer::Patched(Change::End, Stored(Arc::new(secret))))
}

/// Calls the planner of accesses after the pass learned false answers.
fn misled(
    view: &AccessView,
    now: Timestamp,
    lies: impl IntoIterator<Item = AccessAnswer>,
) -> ControlFlow<Rest, AccessStep> {
    let mut view = view.clone();
    lies.into_iter().for_each(|lie| view.learn(lie, Arrival::Prompt));
    view.next(now)
}

/// Starts a rotation as if no lower key existed.
fn forgets_lower_keys(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    let step = view.next(now);
    let told = view.access().status.rotation_generation.and_then(|told| u64::try_from(told).ok());
    let name = |generation: u64| AccessKeyId::of_access(&access_uid(), generation).access_secret_name();
    let gone = (1..told.unwrap_or(1)).map(|generation| AccessAnswer::Internal(name(generation), None));
    match misled(view, now, gone) {
        ControlFlow::Continue(AccessStep::Act(AccessAct::WriteStatus(..))) | ControlFlow::Break(_) => step,
        misled if step.is_break() => misled,
        ControlFlow::Continue(_) => step,
    }
}

fn believes_in_consent(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    let place = Place {
        bucket: BucketName::parse(bucket_name(0)).unwrap(),
        backend: backend_name(0).to_owned(),
        endpoint: endpoint(0),
        is_there: true,
    };
    let claim: ClaimRef = claim_ref(0);
    let word = ClaimWord {
        uid: Some(Uid(0).claim_uid()),
        shared: true,
        unwatched: false,
        place: Some(place),
        opened: Some(Consent::full()),
    };
    misled(view, now, [AccessAnswer::Claim(claim, word)])
}

fn deletes_what_it_stamps(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    match view.next(now) {
        ControlFlow::Continue(AccessStep::Act(AccessAct::Patch(patch))) if patch.change == Change::Retire => {
            ControlFlow::Continue(AccessAct::Delete(patch.target).into())
        }
        step => step,
    }
}

fn reads_no_access_again(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    misled(view, now, [AccessAnswer::Access(Some(Box::new(view.access().clone())))])
}

fn lets_go_at_once(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    match view.next(now) {
        ControlFlow::Continue(AccessStep::Act(AccessAct::Delete(_))) if view.access().deleting => {
            ControlFlow::Continue(AccessAct::RemoveFinalizer(view.access().id.clone()).into())
        }
        step => step,
    }
}

fn never_goes(view: &AccessView, now: Timestamp) -> ControlFlow<Rest, AccessStep> {
    match view.next(now) {
        ControlFlow::Continue(_) if view.access().deleting => {
            let then = plan::Then::AwaitChange;
            ControlFlow::Break(Rest { then, events: Vec::new(), waits_for: None })
        }
        step => step,
    }
}
