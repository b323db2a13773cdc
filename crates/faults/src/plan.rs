//! Plans: faults and the calls that they meet. `seed + plan` replays a run exactly.
//!
//! As text, pairs of call and fault joined by `; `:
//! `s3:CreateBucket@1 lost-answer; kube:patch bucketclaims/status@2 conflict; #17 crash(after-effect)`.

use std::fmt;
use std::num::NonZeroU64;

use super::call::{Call, CallKind, KubeVerb, S3Operation};
use super::fault::Fault;
use super::row::{Nobody, Vocabulary};

/// Faults to inject, in the order written. If several entries meet one call, the first that can
/// apply to it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<V = Nobody> {
    /// The pairs of call and fault.
    pub entries: Vec<Entry<V>>,
}

/// One fault at one call, or at each call of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<V = Nobody> {
    /// Effects that the fault meets.
    pub effect: EffectPattern,
    /// Fault to inject.
    pub fault: Fault<V>,
}

/// Selection of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EffectPattern {
    /// `#17`: by its number in the run, counted from 1.
    Number(NonZeroU64),
    /// `kube:patch bucketclaims/status@2`: by its call.
    Call {
        /// Pattern for the call.
        call: CallPattern,
        /// Number of the matching call, counted from 1 over the whole run; `None` for every one.
        occurrence: Option<NonZeroU64>,
    },
}

/// Pattern for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallPattern {
    /// `kube:<verb> <resource>[/<subresource>]`, in any namespace and with any name.
    Kube {
        /// The verb.
        verb: KubeVerb,
        /// Plural of the resource.
        resource: String,
        /// The subresource; `None` means the resource itself, without its subresources.
        subresource: Option<String>,
    },
    /// `s3:<Operation>`, on any bucket.
    S3(S3Operation),
}

impl CallPattern {
    /// Returns the pattern of a call, without its namespace, name and bucket.
    pub fn of(call: &Call) -> Self {
        match call {
            Call::Kube(call) => {
                Self::Kube { verb: call.verb, resource: call.resource.clone(), subresource: call.subresource.clone() }
            }
            Call::S3(call) => Self::S3(call.operation),
        }
    }

    /// Returns true if the call matches.
    pub fn matches(&self, call: &Call) -> bool {
        match (self, call) {
            (Self::Kube { verb, resource, subresource }, Call::Kube(call)) => {
                *verb == call.verb && *resource == call.resource && *subresource == call.subresource
            }
            (Self::S3(operation), Call::S3(call)) => *operation == call.operation,
            (Self::Kube { .. }, Call::S3(_)) | (Self::S3(_), Call::Kube(_)) => false,
        }
    }

    /// Returns the kind of all calls that match.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Kube { verb, .. } => CallKind::Kube(*verb),
            Self::S3(operation) => CallKind::S3(*operation),
        }
    }
}

impl<V> Default for Plan<V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<V> Plan<V> {
    /// Creates a plan with one fault.
    pub fn single(effect: EffectPattern, fault: Fault<V>) -> Self {
        Self { entries: vec![Entry { effect, fault }] }
    }

    /// Splits the plan into entries that meet every matching call, and the others.
    pub fn lasting_and_once(self) -> (Self, Self) {
        let lasts = |entry: &Entry<V>| matches!(entry.effect, EffectPattern::Call { occurrence: None, .. });
        let (lasting, once) = self.entries.into_iter().partition(lasts);
        (Self { entries: lasting }, Self { entries: once })
    }

    /// Returns true if the plan has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<V: Vocabulary> fmt::Display for Plan<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            entry.fmt(f)?;
        }
        Ok(())
    }
}

impl<V: Vocabulary> fmt::Display for Entry<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.effect, self.fault)
    }
}

impl fmt::Display for EffectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "#{number}"),
            Self::Call { call, occurrence } => {
                call.fmt(f)?;
                match occurrence {
                    Some(k) => write!(f, "@{k}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl fmt::Display for CallPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kube { verb, resource, subresource } => {
                write!(f, "kube:{verb} {resource}")?;
                match subresource {
                    Some(subresource) => write!(f, "/{subresource}"),
                    None => Ok(()),
                }
            }
            Self::S3(operation) => write!(f, "s3:{operation}"),
        }
    }
}

/// Error of parsing a plan, with its location.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan, character {column}: {problem}; {allowed}")]
pub struct PlanError {
    /// Column of the offending word, in characters counted from 1.
    pub column: usize,
    /// The problem, with the offending word.
    pub problem: String,
    /// Description of what is allowed there.
    pub allowed: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::fault::LONGEST;
    use crate::{CallFault, ClockFault, KubeFault, ProcessFault, S3Fault};

    type Plan = super::Plan;
    type Entry = super::Entry;
    type Fault = super::Fault;

    fn off() -> impl Strategy<Value = i32> {
        (0..=2 * LONGEST).prop_map(|it| it.cast_signed() - LONGEST.cast_signed())
    }

    fn fault() -> impl Strategy<Value = Fault> {
        let operations: Vec<_> = S3Operation::all().collect();
        prop_oneof![
            10 => prop::sample::select(Fault::all_single()),
            1 => (0..=1000 * u64::from(LONGEST)).prop_map(|millis| Fault::Call(CallFault::Slow { millis })),
            1 => (0..=LONGEST).prop_map(|seconds| Fault::Kube(KubeFault::Throttle { seconds })),
            1 => (0..=LONGEST).prop_map(|seconds| Fault::Process(ProcessFault::Pause { seconds })),
            1 => off().prop_map(|seconds| Fault::Clock(ClockFault::Step { seconds })),
            1 => any::<u32>().prop_map(|changes| Fault::Kube(KubeFault::Stale { changes })),
            1 => prop::sample::select(operations).prop_map(|it| Fault::S3(S3Fault::VerbDown(it))),
        ]
    }

    fn call_pattern() -> impl Strategy<Value = CallPattern> {
        let operations: Vec<_> = S3Operation::all().collect();
        prop_oneof![
            (prop::sample::select(KubeVerb::ALL.to_vec()), "[a-z][a-z0-9-]{0,12}", prop::option::of("[a-z]{1,8}"),)
                .prop_map(|(verb, resource, subresource)| CallPattern::Kube { verb, resource, subresource }),
            prop::sample::select(operations).prop_map(CallPattern::S3),
        ]
    }

    fn effect() -> impl Strategy<Value = EffectPattern> {
        let count = || (1..=u64::MAX).prop_map(|n| NonZeroU64::new(n).expect("from 1"));
        prop_oneof![
            count().prop_map(EffectPattern::Number),
            (call_pattern(), prop::option::of(count()))
                .prop_map(|(call, occurrence)| EffectPattern::Call { call, occurrence }),
        ]
    }

    fn entry() -> impl Strategy<Value = Entry> {
        (effect(), fault())
            .prop_filter("the fault can apply", |(effect, fault)| match effect {
                EffectPattern::Number(_) => true,
                EffectPattern::Call { call, .. } => fault.check(call.kind()).is_ok(),
            })
            .prop_map(|(effect, fault)| Entry { effect, fault })
    }

    proptest! {
        #[test]
        fn text_and_plan_are_the_same(entries in prop::collection::vec(entry(), 0..6)) {
            let plan = Plan { entries };
            prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
        }

        #[test]
        fn no_text_panics(text in "[#a-z0-9:;@/() éSB-]{0,40}") {
            if let Err(error) = text.parse::<Plan>() {
                prop_assert!(error.column <= text.chars().count() + 1);
            }
        }
    }

    #[rstest]
    #[case("")]
    #[case("s3:CreateBucket@1 lost-answer; #17 crash(after-effect)")]
    #[case("kube:patch bucketclaims/status@2 conflict")]
    #[case("kube:watch secrets lost-answer")]
    fn the_documented_forms_are_read(#[case] text: &str) {
        assert_eq!(text.parse::<Plan>().map(|plan| plan.to_string()), Ok(text.to_owned()));
    }

    #[test]
    fn spacing_is_free() {
        let plan: Plan = "  #3   hang ;kube:get\tsecrets  slow(5);; ".parse().expect("a plan");
        assert_eq!(plan.to_string(), "#3 hang; kube:get secrets slow(5)");
    }

    #[rstest]
    #[case("#1 lost-anser", 4, "unknown fault `lost-anser`", "lost-answer")]
    #[case("#1 hang; é hang", 10, "unknown effect `é`", "s3:<Operation>")]
    #[case("#0 hang", 1, "bad effect number `#0`", "#1")]
    #[case("#1", 3, "the fault is missing", "crash(before|after-effect|after-answer)")]
    #[case("#1; #2 hang", 3, "the fault is missing", "hang")]
    #[case("kube:patch", 11, "the resource is missing", "kube:<verb> <resource>")]
    #[case("kube:put secrets hang", 1, "unknown Kubernetes verb in `kube:put`", "update")]
    #[case("kube:get Secrets hang", 10, "bad resource `Secrets`", "plural")]
    #[case("kube:get secrets@0 hang", 10, "bad occurrence in `secrets@0`", "from 1")]
    #[case("s3:createbucket hang", 1, "unknown S3 operation", "CreateBucket")]
    #[case("#1 hang hang", 9, "unexpected `hang`", "`;`")]
    #[case("#1 crash(now)", 4, "bad parameter in `crash(now)`", "crash(before|after-effect|after-answer)")]
    #[case("#1 slow(5s)", 4, "bad parameter in `slow(5s)`", "slow(ms)")]
    #[case("#1 slow(86400001)", 4, "too long a time in `slow(86400001)`", "a day at most")]
    #[case("#1 step(-86401)", 4, "too long a time in `step(-86401)`", "a day at most")]
    #[case("#1 slow", 4, "bad parameter in `slow`", "slow(ms)")]
    #[case("#1 slow(5", 4, "no closing bracket", "slow(ms)")]
    #[case("#1 hang(5)", 4, "unknown fault `hang(5)`", "hang")]
    #[case("#1 head(404)", 4, "bad parameter", "head(301|400|403)")]
    #[case("#1 stale", 4, "bad parameter in `stale`", "stale(n)")]
    #[case("#1 stall(2)", 4, "unknown fault `stall(2)`", "lost-request")]
    #[case("#1 verb-down(Create)", 4, "bad parameter", "verb-down(operation)")]
    #[case("kube:create secrets already-exists", 21, "`already-exists`", "CreateBucket")]
    #[case("kube:list secrets watch-cut", 19, "`watch-cut`", "Kubernetes watches")]
    #[case("s3:CreateBucket conflict", 17, "`conflict` can't happen to S3's CreateBucket", "Kubernetes writes")]
    #[case("kube:get secrets conflict", 18, "can't happen to a Kubernetes get", "Kubernetes writes")]
    #[case("kube:delete secrets quota-exceeded", 21, "`quota-exceeded`", "may create")]
    #[case("kube:patch secrets slow-down", 20, "`slow-down`", "S3 calls")]
    #[case("s3:CreateBucket head(403)", 17, "`head(403)`", "HEAD requests")]
    fn errors_name_place_fault_and_remedy(
        #[case] text: &str,
        #[case] column: usize,
        #[case] problem: &str,
        #[case] allowed: &str,
    ) {
        let error = text.parse::<Plan>().expect_err("not a plan");
        assert_eq!(error.column, column, "{error}");
        assert!(error.problem.contains(problem), "{error}");
        assert!(error.allowed.contains(allowed), "{error}");
    }
}
