//! Which plans are explored: every fault at every effect that it applies to.

use crate::effects::call::CallKind;
use crate::effects::{Call, EffectPattern, Fault, KubeVerb, Plan};

use super::others::CLAIM;
use super::run::Outcome;

/// Every single fault at every effect of an undisturbed run.
#[derive(Clone, Debug, Default)]
pub struct Singles {
    /// The plans.
    pub plans: Vec<Plan>,
    /// How many of them are crashes.
    pub crashes: usize,
    /// How many crashes there have to be: three for each effect.
    pub crashes_expected: usize,
    /// Pairs of effect and fault that are left out because the contract can't promise anything (spec §3.2).
    pub limits: usize,
}

/// Every single fault at every effect that it applies to: the effects after faults may begin, and the watches that
/// stand by then.
pub fn singles(undisturbed: &Outcome) -> Singles {
    let mut singles = Singles { crashes_expected: 3 * undisturbed.calls().count(), ..Singles::default() };
    let first_of_hands = first_about_claim(undisturbed);
    for fault in Fault::all_single() {
        for line in undisturbed.history.trace.lines() {
            let from = if is_by_hand(fault) { first_of_hands } else { undisturbed.before + 1 };
            if !applies(fault, line.number, &line.call, from) {
                continue;
            }
            if is_beyond_proof(fault, &line.call) {
                singles.limits += 1;
                continue;
            }
            singles.crashes += usize::from(matches!(fault, Fault::Crash(_)));
            singles.plans.extend(single(line.number, fault));
        }
    }
    singles
}

/// The plan of one fault at one effect; `None` for the number 0, which no effect has.
pub fn single(number: u64, fault: Fault) -> Option<Plan> {
    Some(Plan::single(EffectPattern::Number(number.try_into().ok()?), fault))
}

/// Whether a fault is worth trying at a call.
pub(super) fn applies(fault: Fault, number: u64, call: &Call, from: u64) -> bool {
    let watch = matches!(call, Call::Kube(call) if call.verb == KubeVerb::Watch);
    (number >= from || (watch && is_of_watches(fault))) && fault.check(call.kind()).is_ok()
}

/// The limit that spec §3.2 states: a stranger with our account's rights who puts another bucket in the place of ours
/// after the look at its tags, and before the calls that empty it, can't be told from ourselves.
pub(super) fn is_beyond_proof(fault: Fault, call: &Call) -> bool {
    let empties = ["ListMultipartUploads", "AbortMultipartUpload", "ListObjectVersions"];
    fault == Fault::Usurp && matches!(call, Call::S3(call) if empties.contains(&call.operation.name()))
}

fn is_of_watches(fault: Fault) -> bool {
    let on = |verb| fault.check(CallKind::Kube(verb)).is_ok();
    on(KubeVerb::Watch) && !on(KubeVerb::Create)
}

/// The faults that are somebody's hands in the cluster.
pub(super) fn is_by_hand(fault: Fault) -> bool {
    matches!(fault, Fault::Recreate | Fault::Tamper(_) | Fault::Edit(_))
}

/// The first call after faults may begin that names the claim: hands that come earlier have nothing to meet.
pub(super) fn first_about_claim(undisturbed: &Outcome) -> u64 {
    let about = |call: &Call| matches!(call, Call::Kube(call) if call.name.as_deref() == Some(CLAIM));
    let mut calls = undisturbed.calls();
    let first = undisturbed.calls().next();
    calls.find(|(_, call)| about(call)).or(first).map_or(0, |(number, _)| number)
}
