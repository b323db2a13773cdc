//! Every single fault at every effect that it applies to, for each scenario: in the end all is as the user wanted, or
//! as it must be after what others did meanwhile; nobody else's bucket was touched, and no key is left over.
//!
//! A scenario is a row of `scenarios`; what a fault makes of its end stands in `ends`, what always holds in `oracles`.

mod ends;
mod oracles;
mod scenarios;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use stowage_sim::determinism::run_seeded;
use stowage_sim::effects::{
    Call, CrashPoint, EffectPattern, Fault, KubeVerb, Plan, ProcessFault, S3Fault, StowageFault,
};
use stowage_sim::world::{Options, World};

use crate::support::Stage;

/// Longest that a scenario may take, in virtual time.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);
/// How often a scenario's end is looked for, in virtual time.
const GLANCE: Duration = Duration::from_secs(5);
/// What has gone wrong by halves shows in later passes.
const AFTERMATH: Duration = Duration::from_secs(100);
/// Longer than the interval of drift checks and resyncs, jitter included: what a look at the bucket has to show.
const RESYNC: Duration = Duration::from_secs(700);

/// What a user does, and what is to come of it.
struct Scenario {
    name: &'static str,
    /// What stands before the operator starts.
    manifests: fn() -> String,
    /// What happens before the user acts. Faults meet what comes later, and the watches that stand by then.
    setup: for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>,
    /// What the user does.
    act: for<'a> fn(&'a Stage) -> BoxFuture<'a, ()>,
    /// Whether it has come to what the user wanted.
    wanted: fn(&World) -> bool,
    /// Asserts what else holds when it has.
    check: for<'a> fn(&'a Stage, Option<Fault>) -> BoxFuture<'a, ()>,
}

/// What a run was.
struct Run {
    /// Effects before the user acted.
    before: u64,
    /// Every call until the end came.
    calls: Vec<(u64, Call)>,
    /// What of the plan met no call.
    unfired: Plan,
}

fn run(scenario: &Scenario, plan: Plan) -> Run {
    let fault = plan.entries.first().map(|entry| entry.fault);
    run_seeded(1, || async move {
        let mut world = World::new(Options { seed: 1, plan, ..Options::default() });
        world.apply(&world.kube(), &(scenario.manifests)()).await;
        let operator = world.start_operator();
        let stage = Stage::of(world, operator);
        (scenario.setup)(&stage).await;
        let before = stage.world.effects.trace().effects();
        (scenario.act)(&stage).await;
        let other = until_end(scenario, &stage, fault).await;
        let trace = stage.world.effects.trace();
        let calls = trace.lines().iter().map(|line| (line.number, line.call.clone())).collect();
        // At the next look at a bucket, at the next sweep, or when the operator goes on.
        let shows_late = matches!(
            fault,
            Some(
                Fault::S3(S3Fault::Vanish)
                    | Fault::Project(StowageFault::Usurp { .. })
                    | Fault::Process(ProcessFault::Twin | ProcessFault::Pause { .. })
            )
        );
        stage.world.pass(if shows_late { RESYNC } else { AFTERMATH }).await;
        stage.world.run_cluster_controllers();
        oracles::assert_sound(&stage, fault).await;
        if !other {
            assert!(
                (scenario.wanted)(&stage.world) || ends::has_come(scenario, &stage.world, fault),
                "it did not stay so\n{}",
                stage.trace()
            );
            if (scenario.wanted)(&stage.world) {
                (scenario.check)(&stage, fault).await;
            }
        }
        Run { before, calls, unfired: stage.world.effects.unfired() }
    })
}

/// Waits for what the user wanted, or for what the fault makes of it; says whether it is that.
async fn until_end(scenario: &Scenario, stage: &Stage, fault: Option<Fault>) -> bool {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if (scenario.wanted)(&stage.world) {
            return false;
        }
        if ends::has_come(scenario, &stage.world, fault) {
            return true;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "it came to no end: {}\n{}",
            oracles::summary(&stage.world),
            stage.trace()
        );
        stage.world.pass(GLANCE).await;
        stage.world.run_cluster_controllers();
    }
}

/// Runs one scenario with each of these faults at every effect that it applies to.
fn matrix(scenario: &Scenario, faults: impl Fn(&Fault) -> bool) {
    let start = Instant::now();
    let undisturbed = run(scenario, Plan::default());
    let effects = undisturbed.calls.iter().filter(|(number, _)| *number > undisturbed.before).count();
    let with_crashes = faults(&Fault::Process(ProcessFault::Crash(CrashPoint::Before)));
    let (mut schedules, mut crashes, mut limits, mut failures) = (0, 0, 0, Vec::new());
    for fault in Fault::all_single().into_iter().filter(faults) {
        for (number, call) in &undisturbed.calls {
            let watch = matches!(call, Call::Kube(call) if call.verb == KubeVerb::Watch);
            let from = if by_hand(&fault) { first_about_claim(&undisturbed) } else { undisturbed.before + 1 };
            let earlier = *number < from && !(watch && is_of_watches(fault));
            let again = fault.is_of_run() && *number > from;
            if earlier || again || fault.check(call.kind()).is_err() {
                continue;
            }
            if is_beyond_proof(fault, call) {
                limits += 1;
                continue;
            }
            let number = (*number).try_into().expect("effects are counted from 1");
            let plan = Plan::single(EffectPattern::Number(number), fault);
            schedules += 1;
            crashes += usize::from(matches!(fault, Fault::Process(ProcessFault::Crash(_))));
            match catch_unwind(AssertUnwindSafe(|| run(scenario, plan.clone()))) {
                Ok(run) => assert!(run.unfired.is_empty(), "{plan} met no call"),
                Err(panic) => failures.push(format!("{plan} ({call}): {}", first_line(&*panic))),
            }
        }
    }
    println!(
        "{}: {schedules} schedules over {effects} effects, {crashes} of them crashes, in {:?}; {limits} honest limits",
        scenario.name,
        start.elapsed()
    );
    let crash_points = if with_crashes { 3 * effects } else { 0 };
    assert_eq!(crashes, crash_points, "every effect x before, after the effect, after the answer");
    assert!(schedules > 0, "no fault applied to anything");
    assert!(failures.is_empty(), "{} of {schedules} failed:\n{}", failures.len(), failures.join("\n"));
}

/// The limit that spec §3.2 states: a stranger with our account's rights who puts another bucket in the place of ours
/// after the look at its tags, and before the calls that empty it, can't be told from ourselves.
fn is_beyond_proof(fault: Fault, call: &Call) -> bool {
    let empties = ["ListMultipartUploads", "AbortMultipartUpload", "ListObjectVersions"];
    fault == Fault::Project(StowageFault::Usurp { empty: false })
        && matches!(call, Call::S3(call) if empties.contains(&call.operation.name()))
}

fn is_of_watches(fault: Fault) -> bool {
    use stowage_sim::effects::CallKind;
    let on = |verb| fault.check(CallKind::Kube(verb)).is_ok();
    on(KubeVerb::Watch) && !on(KubeVerb::Create)
}

fn first_line(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("panicked").lines().next().unwrap_or_default().to_owned()
}

/// The first call after the user's act that names the claim: hands that come earlier have nothing to meet.
fn first_about_claim(undisturbed: &Run) -> u64 {
    let about = |call: &Call| matches!(call, Call::Kube(call) if call.name.as_deref() == Some("photos"));
    let later = undisturbed.calls.iter().filter(|(number, _)| *number > undisturbed.before);
    later.clone().find(|(_, call)| about(call)).or(later.clone().next()).map_or(0, |(number, _)| *number)
}

/// The faults that are somebody's hands in the world, and the others: two halves of about one size.
fn by_hand(fault: &Fault) -> bool {
    matches!(fault, Fault::Project(StowageFault::Recreate | StowageFault::Tamper(_) | StowageFault::Edit(_)))
}

macro_rules! matrices {
    ($($scenario:ident: $by_hand:ident, $on_the_wire:ident;)*) => {
        $(
            #[test]
            fn $by_hand() {
                matrix(&scenarios::$scenario, by_hand);
            }

            #[test]
            fn $on_the_wire() {
                matrix(&scenarios::$scenario, |fault| !by_hand(fault));
            }
        )*
    };
}

matrices! {
    CREATE: a_claim_is_bound_whatever_others_do, a_claim_is_bound_whatever_fails;
    ROTATE: a_key_is_rotated_whatever_others_do, a_key_is_rotated_whatever_fails;
    DELETE: a_claim_goes_whatever_others_do, a_claim_goes_whatever_fails;
    DELETE_EMPTY: an_empty_bucket_goes_whatever_others_do, an_empty_bucket_goes_whatever_fails;
    DELETE_FORCED: a_full_bucket_goes_whatever_others_do, a_full_bucket_goes_whatever_fails;
    QUOTA: a_quota_takes_effect_whatever_others_do, a_quota_takes_effect_whatever_fails;
    RENAME: a_secret_is_renamed_whatever_others_do, a_secret_is_renamed_whatever_fails;
    ADOPT: a_bucket_is_adopted_whatever_others_do, a_bucket_is_adopted_whatever_fails;
}
