//! The plans to explore: every fault at every call that it applies to, lasting faults, overtaken
//! calls, pairs and triples.

pub use explore::plans::single;
use explore::plans::{self, applies, entry};
use stowage_world::effects::{
    Applied, Call, CallFault, EffectPattern, Fault, GatewayCalls, GatewayPlan, KubeFault, OfGateway, Plan, S3Fault,
    StowageFault, Tampering, is_of_gateway,
};

use super::outcome::Outcome;
use stowage_world::scenes::CLAIM;

/// Every single fault at every call of a fault-free run.
#[derive(Clone, Debug, Default)]
pub struct Singles {
    /// The plans.
    pub plans: Vec<Plan>,
    /// The number of crashes that must be among them: three for each call.
    pub crashes_expected: usize,
    /// Number of pairs of call and fault that are left out because the contract can't promise
    /// anything for them (spec §3.2).
    pub limits: usize,
}

/// Returns every single fault at every call that it applies to: calls after faults may begin,
/// and watches that are open by then.
pub fn singles(undisturbed: &Outcome) -> Singles {
    let mut singles = Singles { crashes_expected: 3 * undisturbed.calls().count(), ..Singles::default() };
    let lines = undisturbed.history.trace.lines();
    let first_of_hands = first_about_claim(undisturbed);
    let begins = |fault| if is_by_hand(fault) { first_of_hands } else { undisturbed.before + 1 };
    for (number, fault) in plans::singles(undisturbed.undisturbed(), Fault::all_single(), begins) {
        // Calls are numbered from 1, in order.
        let at = usize::try_from(number).ok().and_then(|number| lines.get(number.checked_sub(1)?));
        if at.is_some_and(|line| is_beyond_proof(fault, &line.call)) {
            singles.limits += 1;
        } else {
            singles.plans.extend(single(number, fault));
        }
    }
    singles
}

/// Returns true for the limit that spec §3.2 states.
///
/// A stranger with our account's rights can replace our bucket by another one after the read of its
/// tags and before the calls that empty it. The operator can't distinguish that stranger from
/// itself.
pub(super) fn is_beyond_proof(fault: Fault, call: &Call) -> bool {
    let empties = ["ListMultipartUploads", "AbortMultipartUpload", "ListObjectVersions"];
    fault == Fault::Project(StowageFault::Usurp { empty: false })
        && matches!(call, Call::S3(call) if empties.contains(&call.operation.name()))
}

/// Returns true if the fault is a manual change in the cluster.
pub(super) fn is_by_hand(fault: Fault) -> bool {
    matches!(fault, Fault::Project(StowageFault::Recreate | StowageFault::Tamper(_) | StowageFault::Edit(_)))
}

/// Returns the number of the first call after faults may begin that names the claim: before it,
/// manual changes have nothing to change.
pub(super) fn first_about_claim(undisturbed: &Outcome) -> u64 {
    let about = |call: &Call| matches!(call, Call::Kube(call) if call.name.as_deref() == Some(CLAIM));
    let mut calls = undisturbed.calls();
    let first = undisturbed.calls().next();
    calls.find(|(_, call)| about(call)).or(first).map_or(0, |(number, _)| number)
}

/// Returns every fault of a gateway's call at each call that it applies to, like [`singles`] for
/// the operator.
pub fn gateway_singles(undisturbed: &Outcome) -> Vec<GatewayPlan> {
    let GatewayCalls { trace, before, until, .. } = &undisturbed.gateway;
    let lines = plans::Undisturbed { lines: trace.lines(), before: *before, until: *until };
    let singles = plans::singles(lines, OfGateway::all_single(), |_| before + 1);
    let is_worth = |(number, fault): &(u64, OfGateway)| {
        let at = usize::try_from(*number).ok().and_then(|number| trace.lines().get(number.checked_sub(1)?));
        at.is_some_and(|line| is_of_gateway(*fault, line.call.kind()))
    };
    singles.into_iter().filter(is_worth).filter_map(|(number, fault)| single(number, fault)).collect()
}

/// Faults that can last without making the user's goal impossible for ever.
const LASTING: [Fault; 16] = [
    Fault::Call(CallFault::LostRequest),
    Fault::Call(CallFault::LostAnswer),
    Fault::Call(CallFault::Hang),
    Fault::Kube(KubeFault::Conflict),
    Fault::Kube(KubeFault::ServerError(Applied::Not)),
    Fault::Kube(KubeFault::Throttle { seconds: 3 }),
    Fault::Kube(KubeFault::Forbidden),
    Fault::Kube(KubeFault::Denied),
    Fault::Kube(KubeFault::QuotaExceeded),
    Fault::S3(S3Fault::Unreachable),
    Fault::S3(S3Fault::InternalError),
    Fault::S3(S3Fault::SlowDown),
    Fault::S3(S3Fault::AccessDenied),
    Fault::Kube(KubeFault::WatchCut),
    Fault::Kube(KubeFault::WatchGone),
    Fault::Kube(KubeFault::WatchSilent),
];

/// Returns every lasting fault for every kind of call of a fault-free run.
pub fn lasting(undisturbed: &Outcome) -> Vec<Plan> {
    plans::lasting(undisturbed.undisturbed(), &LASTING)
}

/// Returns plans in which HEAD requests are refused; they are sent only where a store has no
/// tagging.
pub fn untagged(undisturbed: &Outcome) -> Vec<Plan> {
    plans::untagged(undisturbed.undisturbed())
}

/// Returns orders of events with at most two preemptions.
pub fn preemptions(undisturbed: &Outcome) -> Vec<Plan> {
    plans::preemptions(undisturbed.undisturbed())
}

/// Draws `count` plans of up to three faults at different calls, and drops those that reach a
/// limit together.
pub fn triples(undisturbed: &Outcome, random: &mut fastrand::Rng, count: usize) -> Vec<Plan> {
    let singles: Vec<(u64, Fault)> = singles(undisturbed)
        .plans
        .iter()
        .filter_map(|plan| plan.entries.first())
        .filter_map(|entry| Some((number_of(&entry.effect)?, entry.fault)))
        .collect();
    let mut drawn = plans::triples(&singles, random, count);
    drawn.retain(|plan| !is_beyond_proof_together(plan));
    drawn
}

/// Returns true for limits that several faults reach together (`docs/proof/limits.md`).
///
/// A watch that hides deletions for good leaves no sign of a manual change. And if both a key and
/// the record that counts keys were deleted by hand, the key's id may be used again.
fn is_beyond_proof_together(plan: &Plan) -> bool {
    let among = |of: fn(Fault) -> bool| plan.entries.iter().any(|entry| of(entry.fault));
    let record = |fault| fault == Fault::Project(StowageFault::Tamper(Tampering::DeleteRecord));
    let key = |fault| fault == Fault::Project(StowageFault::Tamper(Tampering::DeleteCredential));
    let hides = among(|fault| fault == Fault::Kube(KubeFault::Collapse));
    (hides && among(|fault| matches!(fault, Fault::Project(StowageFault::Tamper(_))))) || (among(record) && among(key))
}

/// Returns the plans of two faults that begin with `first`, which had the outcome `outcome`; then
/// those that are left out.
///
/// A pair is left out if the first fault has no effect any more when the second one occurs: it
/// doesn't outlast its call, the run's last calls and their answers are those of the fault-free
/// run, and so is its end. From there on nothing distinguishes the run from the fault-free one, so
/// the pair equals the second fault alone, which is explored anyway. The process's memory could
/// still differ without showing in any call of a fault-free rest; for that reason a part of the
/// pairs that are left out is run nevertheless.
pub fn pairs(undisturbed: &Outcome, first: &Plan, outcome: &Outcome, alike: bool) -> (Vec<Plan>, Vec<Plan>) {
    let Some((begin, fault)) = first.entries.first().and_then(|it| Some((number_of(&it.effect)?, it.fault))) else {
        return Default::default();
    };
    let lines = outcome.lines();
    let common = if alike && !fault.outlasts_its_call() { common_end(undisturbed, outcome) } else { 0 };
    let independent_from = lines.len().saturating_sub(common) as u64 + 1;
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for fault in Fault::all_single() {
        for line in lines.iter().filter(|line| line.number > begin && line.number <= outcome.until) {
            // A fault of the whole run may have kept the first fault from its call.
            let fits = !fault.is_of_run() && applies(fault, line.number, &line.call, begin + 1);
            if !fits || is_beyond_proof(fault, &line.call) {
                continue;
            }
            let Some(second) = entry(line.number, fault) else { continue };
            let plan = Plan { entries: first.entries.iter().cloned().chain([second]).collect() };
            if is_beyond_proof_together(&plan) {
                continue;
            }
            if line.number >= independent_from { left_out.push(plan) } else { kept.push(plan) }
        }
    }
    (kept, left_out)
}

/// Returns the number of last calls, with their answers, that two runs have in common.
fn common_end(one: &Outcome, other: &Outcome) -> usize {
    one.lines()
        .iter()
        .rev()
        .zip(other.lines().iter().rev())
        .take_while(|(a, b)| a.call == b.call && a.world == b.world && a.answer == b.answer)
        .count()
}

fn number_of(effect: &EffectPattern) -> Option<u64> {
    match effect {
        EffectPattern::Number(number) => Some(number.get()),
        EffectPattern::Call { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use stowage_world::effects::GatewayPlan;

    use super::*;
    use crate::explorer::{Schedule, run, scenarios};
    use crate::oracles::canonical;

    /// Tests the argument by which pairs are left out: each ends like its second fault alone.
    #[test]
    fn pairs_that_are_left_out_go_on_as_their_second_fault_alone() {
        let mut compared = 0;
        for name in ["create", "rotate", "delete-empty"] {
            let scenario = scenarios::named(name).expect("there is one");
            let play =
                |plan: &Plan| run(&Schedule { scenario, seed: 1, plan: plan.clone(), gateway: GatewayPlan::default() });
            let undisturbed = play(&Plan::default());
            let firsts = singles(&undisturbed).plans;
            for first in firsts.iter().step_by(firsts.len() / 12) {
                let outcome = play(first);
                let alike =
                    outcome.reached && canonical(&outcome.end).difference(&canonical(&undisturbed.end)).is_none();
                let (_, left_out) = pairs(&undisturbed, first, &outcome, alike);
                let fault = first.entries[0].fault;
                assert!(left_out.is_empty() || !fault.outlasts_its_call(), "{first} goes on");
                let later = outcome.lines().len() as i64 - undisturbed.lines().len() as i64;
                for pair in left_out.iter().step_by(1 + left_out.len() / 3) {
                    let second = pair.entries.last().expect("it has two");
                    let number = number_of(&second.effect).expect("it has a number");
                    let by_itself = number.checked_add_signed(-later).expect("it is a call of the undisturbed run");
                    let alone = play(&single(by_itself, second.fault).expect("it is no call 0"));
                    let (line, pair) = (pair.to_string(), play(pair));
                    // Jitter is drawn again, so calls may come in another order.
                    let broken = |outcome: &Outcome| outcome.violations.iter().map(|it| it.promise).collect::<Vec<_>>();
                    assert_eq!((broken(&pair), pair.reached), (broken(&alone), alone.reached), "{name} 1 {line}");
                    assert_eq!(canonical(&pair.end).difference(&canonical(&alone.end)), None, "{name} 1 {line}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 20, "{compared} pairs were compared");
    }
}
