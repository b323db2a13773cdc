//! Plans worth running: possible faults and their places, derived from a run without faults.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use faults::{
    Call, CallFault, CallKind, CallPattern, EffectPattern, Entry, Fault, Feature, HeadStatus, KubeFault, KubeVerb,
    Line, Nobody, Plan, S3Fault, S3Operation, Vocabulary,
};

/// The calls of a run without faults.
#[derive(Clone, Copy, Debug)]
pub struct Undisturbed<'a, V = Nobody> {
    /// All calls, in order.
    pub lines: &'a [Line<V>],
    /// Number of calls before faults may begin.
    pub before: u64,
    /// Number of calls when the run reached its end.
    pub until: u64,
}

impl<'a, V> Undisturbed<'a, V> {
    /// Returns true if the call of this number is subject to faults.
    pub fn could_meet(&self, number: u64) -> bool {
        number > self.before && number <= self.until
    }

    /// Returns the calls that are subject to faults.
    pub fn met(&self) -> impl Iterator<Item = &'a Line<V>> {
        let (before, until) = (self.before, self.until);
        self.lines.iter().filter(move |line| line.number > before && line.number <= until)
    }
}

/// Returns the plan of one fault at one call; `None` for the number 0, which no call has.
pub fn single<V>(number: u64, fault: Fault<V>) -> Option<Plan<V>> {
    entry(number, fault).map(|entry| Plan { entries: vec![entry] })
}

/// Returns one fault at one call; `None` for the number 0.
pub fn entry<V>(number: u64, fault: Fault<V>) -> Option<Entry<V>> {
    Some(Entry { effect: EffectPattern::Number(number.try_into().ok()?), fault })
}

/// Returns every fault at every call that it applies to and that `begins` allows.
///
/// `begins` returns the number of the first call that a fault may meet. A fault of watches may
/// also meet an earlier watch, as that one is still open.
pub fn singles<V: Vocabulary>(
    undisturbed: Undisturbed<'_, V>,
    faults: impl IntoIterator<Item = Fault<V>>,
    begins: impl Fn(Fault<V>) -> u64,
) -> Vec<(u64, Fault<V>)> {
    let mut singles = Vec::new();
    for fault in faults {
        let from = begins(fault);
        for line in undisturbed.lines.iter().filter(|line| line.number <= undisturbed.until) {
            let again = fault.is_of_run() && line.number > from;
            if !again && applies(fault, line.number, &line.call, from) {
                singles.push((line.number, fault));
            }
        }
    }
    singles
}

/// Returns true if a fault is worth trying at a call, where faults begin at the call numbered
/// `from`.
pub fn applies<V: Vocabulary>(fault: Fault<V>, number: u64, call: &Call, from: u64) -> bool {
    let watch = matches!(call, Call::Kube(call) if call.verb == KubeVerb::Watch);
    (number >= from || (watch && is_of_watches(fault))) && fault.check(call.kind()).is_ok()
}

fn is_of_watches<V: Vocabulary>(fault: Fault<V>) -> bool {
    let on = |verb| fault.check(CallKind::Kube(verb)).is_ok();
    on(KubeVerb::Watch) && !on(KubeVerb::Create)
}

/// Returns the plans in which every call of one kind meets one of these faults, once faults may
/// begin.
///
/// The kinds include lists and watches from before that time, because they are repeated later.
pub fn lasting<V: Vocabulary>(undisturbed: Undisturbed<'_, V>, faults: &[Fault<V>]) -> Vec<Plan<V>> {
    let mut kinds: BTreeMap<String, CallPattern> = BTreeMap::new();
    for line in undisturbed.lines.iter().filter(|line| line.number <= undisturbed.until) {
        let again = matches!(&line.call, Call::Kube(call) if matches!(call.verb, KubeVerb::List | KubeVerb::Watch));
        if again || line.number > undisturbed.before {
            let pattern = CallPattern::of(&line.call);
            kinds.insert(pattern.to_string(), pattern);
        }
    }
    let of_kind = |call: CallPattern| {
        let kind = call.kind();
        let fitting = faults.iter().copied().filter(move |fault| fault.check(kind).is_ok());
        fitting.map(move |fault| lasting_at(&call, fault)).collect::<Vec<_>>()
    };
    kinds.into_values().flat_map(of_kind).collect()
}

/// Returns the plan in which a fault meets every call of a kind.
///
/// For a list the plan also ends the watches with 410 Gone, as a list is repeated only then.
fn lasting_at<V>(call: &CallPattern, fault: Fault<V>) -> Plan<V> {
    let each = |call, fault| Entry { effect: EffectPattern::Call { call, occurrence: None }, fault };
    let lost = match call.clone() {
        CallPattern::Kube { verb: KubeVerb::List, resource, subresource } => Some(each(
            CallPattern::Kube { verb: KubeVerb::Watch, resource, subresource },
            Fault::Kube(KubeFault::WatchGone),
        )),
        CallPattern::Kube { .. } | CallPattern::S3(_) => None,
    };
    Plan { entries: [each(call.clone(), fault)].into_iter().chain(lost).collect() }
}

/// Returns plans for HEAD requests, which are sent only where a store has no tagging.
///
/// In each plan tagging is unsupported from the first GetBucketTagging on, and the first HeadBucket
/// is refused.
pub fn untagged<V>(undisturbed: Undisturbed<'_, V>) -> Vec<Plan<V>> {
    let is_look = |call: &Call| matches!(call, Call::S3(call) if call.operation.name() == "GetBucketTagging");
    let look = undisturbed.met().find(|line| is_look(&line.call)).map(|line| line.number);
    let without = || look.and_then(|number| entry(number, Fault::S3(S3Fault::NotImplemented(Feature::Tagging))));
    let Some(head) = S3Operation::named("HeadBucket") else { return Vec::new() };
    let first = EffectPattern::Call { call: CallPattern::S3(head), occurrence: Some(NonZeroU64::MIN) };
    let refused = |status| Entry { effect: first.clone(), fault: Fault::S3(S3Fault::Head(status)) };
    let plans =
        HeadStatus::ALL.into_iter().filter_map(|status| Some(Plan { entries: vec![without()?, refused(status)] }));
    plans.collect()
}

/// Returns orders of events with at most two preemptions: a slow call is overtaken by everything
/// that is ready.
///
/// Only calls that begin in the same moment as another one can be overtaken.
pub fn preemptions<V>(undisturbed: Undisturbed<'_, V>) -> Vec<Plan<V>> {
    let mut moments: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for line in undisturbed.met() {
        moments.entry(line.began_ms).or_default().push(line.number);
    }
    let numbers: Vec<u64> = moments.into_values().filter(|together| together.len() > 1).flatten().collect();
    let moment = |number: &u64| entry(*number, Fault::Call(CallFault::Slow { millis: 1 }));
    let one = numbers.iter().filter_map(|number| Some(Plan { entries: vec![moment(number)?] }));
    let two = numbers.iter().enumerate().flat_map(|(index, first)| {
        let rest = numbers.iter().skip(index + 1);
        rest.filter_map(move |second| Some(Plan { entries: vec![moment(first)?, moment(second)?] }))
    });
    one.chain(two).collect()
}

/// Draws `count` plans of up to three of these faults at different calls; empty ones are dropped.
///
/// Swarm selection: each plan draws from half of the kinds of faults, so that rare combinations of
/// rare kinds occur.
pub fn triples<V: Vocabulary>(singles: &[(u64, Fault<V>)], random: &mut fastrand::Rng, count: usize) -> Vec<Plan<V>> {
    let kinds: BTreeSet<&str> = Fault::<V>::all_single().iter().map(|fault| fault.name()).collect();
    let draw = |random: &mut fastrand::Rng| {
        let swarm: BTreeSet<&str> = kinds.iter().copied().filter(|_| random.bool()).collect();
        let mut entries: BTreeMap<u64, Entry<V>> = BTreeMap::new();
        // A small swarm that applies to few calls may not have three.
        for _ in 0..64 {
            let Some((number, fault)) = random.choice(singles) else { break };
            if entries.len() < 3 && swarm.contains(fault.name()) {
                entries.extend(entry(*number, *fault).map(|entry| (*number, entry)));
            }
        }
        Plan { entries: entries.into_values().collect() }
    };
    (0..count).map(|_| draw(random)).filter(|plan| !plan.is_empty()).collect()
}
