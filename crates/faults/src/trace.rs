//! Traces: every call of a run, in the order of their starts, in a form that two equal runs
//! share.
//!
//! The form is canonical: it has no bodies and no wall-clock time; times are those of the run's own
//! clock; names that clients make from the wall clock (Events) are masked. Two runs with the same
//! seed and plan have the same [`Trace::hash`].

use std::fmt;

use sha2::{Digest, Sha256};

use super::call::{Call, KubeVerb};
use super::fault::Fault;
use super::plan::{EffectPattern, Entry, Plan};
use super::row::{Nobody, Vocabulary};

/// All calls of a run, by number; or only the last ones, if a run without end keeps no more (see
/// [`super::Effects::keep`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace<V = Nobody> {
    /// Number of calls before the first line.
    forgotten: u64,
    lines: Vec<Line<V>>,
}

/// One call and its result: a line of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<V = Nobody> {
    /// Number of the effect, counted from 1.
    pub number: u64,
    /// Instance of the operator that made the call, see [`super::Instance::id`].
    pub instance: u32,
    /// The call.
    pub call: Call,
    /// The fault that the plan gave it.
    pub fault: Option<Fault<V>>,
    /// Status of the service's answer; `None` if the request was not carried out or has no answer
    /// yet.
    pub world: Option<u16>,
    /// Result for the operator.
    pub answer: CallOutcome,
    /// Start in milliseconds of the run's clock since the start of the run.
    pub began_ms: u64,
}

/// Result of a call, as the operator saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// No result yet.
    Pending,
    /// An HTTP answer with this status.
    Status(u16),
    /// The connection failed.
    Broken,
    /// The operator gave up waiting.
    Dropped,
    /// The operator died before the result.
    Died,
}

/// Counters over a part of a trace. They count calls that reached the service, even if the operator
/// did not receive the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Creates, updates, patches and deletes carried out (answered below 300), including Events.
    pub kubernetes_writes: u64,
    /// Writes of Events among these.
    pub event_writes: u64,
    /// All Kubernetes requests except lists and watches, including refused ones.
    pub kubernetes_requests: u64,
    /// Lists.
    pub kubernetes_lists: u64,
    /// Watches.
    pub kubernetes_watches: u64,
    /// All S3 calls, including refused ones.
    pub s3_calls: u64,
}

impl<V> Default for Trace<V> {
    fn default() -> Self {
        Self { forgotten: 0, lines: Vec::new() }
    }
}

impl<V: Vocabulary> Trace<V> {
    /// Returns the lines that are kept, by number.
    pub fn lines(&self) -> &[Line<V>] {
        &self.lines
    }

    /// Returns the number of calls, which is the number of the last one.
    pub fn effects(&self) -> u64 {
        self.forgotten + self.lines.len() as u64
    }

    /// Returns the SHA-256 of the text form, in hex.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.to_string()))
    }

    /// Returns counters over the whole run.
    pub fn counters(&self) -> Counters {
        self.counters_after(0)
    }

    /// Returns counters over the calls with numbers above this one. Call [`Trace::effects`]
    /// first, then act, then count.
    pub fn counters_after(&self, number: u64) -> Counters {
        let mut counters = Counters::default();
        for line in self.lines.iter().filter(|line| line.number > number) {
            counters.count(line);
        }
        counters
    }

    /// Returns the entries of a plan whose fault no call has met. A fault of the whole run needs no
    /// call.
    pub fn unmet(&self, plan: &Plan<V>) -> Plan<V> {
        let met = |entry: &Entry<V>| {
            entry.fault.is_of_run() || self.meant(&entry.effect).any(|it| it.fault == Some(entry.fault))
        };
        Plan { entries: plan.entries.iter().filter(|entry| !met(entry)).cloned().collect() }
    }

    /// Returns the lines that match a pattern of a plan.
    fn meant<'a>(&'a self, effect: &'a EffectPattern) -> Box<dyn Iterator<Item = &'a Line<V>> + 'a> {
        match effect {
            EffectPattern::Number(number) => Box::new(self.lines.iter().filter(|line| line.number == number.get())),
            EffectPattern::Call { call, occurrence } => {
                let alike = self.lines.iter().filter(|line| call.matches(&line.call));
                match occurrence.and_then(|it| usize::try_from(it.get()).ok()) {
                    Some(occurrence) => Box::new(alike.skip(occurrence - 1).take(1)),
                    None => Box::new(alike),
                }
            }
        }
    }

    pub(super) fn push(&mut self, line: Line<V>) {
        self.lines.push(line);
    }

    /// Removes old lines from time to time, so that at least `least` and at most twice as many are
    /// kept.
    pub(super) fn keep(&mut self, least: usize) {
        if self.lines.len() >= least.saturating_mul(2) {
            let old = self.lines.len() - least;
            self.lines.drain(..old);
            self.forgotten += old as u64;
        }
    }

    /// Returns the lines after the call with this number, as far as they are kept.
    pub fn lines_after(&self, number: u64) -> &[Line<V>] {
        let passed = usize::try_from(number.saturating_sub(self.forgotten)).unwrap_or(usize::MAX);
        self.lines.get(passed..).unwrap_or_default()
    }

    /// Returns the line of an earlier call, if it is kept.
    pub(super) fn line_mut(&mut self, number: u64) -> Option<&mut Line<V>> {
        let index = usize::try_from(number.checked_sub(self.forgotten)?).ok()?.checked_sub(1)?;
        self.lines.get_mut(index)
    }
}

impl Counters {
    fn count<V>(&mut self, line: &Line<V>) {
        let Some(status) = line.world else {
            return;
        };
        match &line.call {
            Call::S3(_) => self.s3_calls += 1,
            Call::Kube(call) => match call.verb {
                KubeVerb::List => self.kubernetes_lists += 1,
                KubeVerb::Watch => self.kubernetes_watches += 1,
                verb => {
                    self.kubernetes_requests += 1;
                    if verb.is_write() && status < 300 {
                        self.kubernetes_writes += 1;
                        self.event_writes += u64::from(call.is_event());
                    }
                }
            },
        }
    }
}

impl<V> FromIterator<Line<V>> for Trace<V> {
    /// Creates the trace of these lines. They must be in the order of their numbers, without gaps.
    fn from_iter<I: IntoIterator<Item = Line<V>>>(lines: I) -> Self {
        Self { forgotten: 0, lines: lines.into_iter().collect() }
    }
}

impl<V: Vocabulary> fmt::Display for Trace<V> {
    /// Formats one line per call.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl<V: Vocabulary> fmt::Display for Line<V> {
    /// Formats `#12 kube:patch bucketclaims/status team-a/photos -> broken (world 200)
    /// [lost-answer] 1500ms/1`. The last part is the time and the operator's instance.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} -> {}", self.number, self.call, self.answer)?;
        match self.world {
            Some(status) if self.answer != CallOutcome::Status(status) => write!(f, " (world {status})")?,
            _ => {}
        }
        if let Some(fault) = self.fault {
            write!(f, " [{fault}]")?;
        }
        write!(f, " {}ms/{}", self.began_ms, self.instance)
    }
}

impl CallOutcome {
    /// Parses the text form.
    pub fn told(text: &str) -> Option<Self> {
        match text {
            "pending" => Some(Self::Pending),
            "broken" => Some(Self::Broken),
            "dropped" => Some(Self::Dropped),
            "died" => Some(Self::Died),
            status => status.parse().ok().map(Self::Status),
        }
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Status(status) => write!(f, "{status}"),
            Self::Broken => f.write_str("broken"),
            Self::Dropped => f.write_str("dropped"),
            Self::Died => f.write_str("died"),
        }
    }
}
