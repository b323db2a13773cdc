//! The faults that the operator's calls met, as a plan: each with the call's kind and its position
//! among the calls of that kind since the beginning of the record.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use stowage_world::deeds::Met;
use stowage_world::effects::{CallPattern, EffectPattern, Entry, Fault, Lasts, Line, Plan};

/// Maximum number of faults in the plan.
const MOST_FAULTS: usize = 200;

/// Counts the operator's calls and records their faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Befell {
    /// Number of the last call that was counted.
    last: u64,
    /// Number of calls of each kind.
    counts: BTreeMap<String, u64>,
    plan: Plan,
    /// The calls that met the faults.
    met: Vec<Met>,
    /// Lasting faults, each with its end in milliseconds; `None` lasts until the end.
    lasting: Vec<(Fault, Option<u64>)>,
    missed: bool,
    beyond_room: u64,
    ended_by_hand: bool,
}

impl Befell {
    /// Starts to count after the call with this number.
    pub(super) fn after(number: u64) -> Self {
        Self { last: number, ..Self::default() }
    }

    /// Number of the last call that was counted.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Counts the next call.
    pub(super) fn see(&mut self, line: &Line) {
        self.missed |= line.number > self.last + 1;
        self.last = line.number;
        let call = CallPattern::of(&line.call);
        let count = self.counts.entry(call.to_string()).or_default();
        *count += 1;
        let occurrence = NonZeroU64::new(*count);
        if let Some(fault) = line.fault.filter(|fault| !self.lasts(*fault, line.began_ms)) {
            match fault.lasts() {
                Lasts::For(time) => self.lasting.push((fault, Some(line.began_ms.saturating_add(millis(time))))),
                Lasts::ToTheEnd => self.lasting.push((fault, None)),
                Lasts::ItsCall | Lasts::Beyond | Lasts::WholeRun => {}
            }
            let entry = Entry { effect: EffectPattern::Call { call, occurrence }, fault };
            if self.plan.entries.len() < MOST_FAULTS {
                self.met.push(Met { fault: entry.to_string(), call: line.call.to_string() });
            }
            self.add(entry);
        }
    }

    /// Records a plan that is armed. Only faults of the whole run are added: they meet no call.
    pub(super) fn armed(&mut self, plan: &Plan) {
        plan.entries.iter().filter(|entry| entry.fault.is_of_run()).for_each(|entry| self.add(entry.clone()));
    }

    /// Records that all pending and lasting faults were removed, this many milliseconds after the
    /// start.
    pub(super) fn calm(&mut self, now_ms: u64) {
        let lasts = self.lasting.iter().any(|(_, until)| until.is_none_or(|until| now_ms < until));
        self.ended_by_hand |= lasts;
        self.lasting.clear();
    }

    /// Returns the faults as a plan.
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the calls that met the faults.
    pub(super) fn met(&self) -> &[Met] {
        &self.met
    }

    /// Returns the limitations of the plan, one sentence each.
    pub(super) fn caveats(&self) -> Vec<String> {
        let missed = "more calls were made at once than are kept: which of its kind a fault met is not sure";
        let ended = "a fault that lasted was ended by hand, which a plan can't tell: it lasts to the end";
        let cut = format!("{} more faults befell calls than a line tells of", self.beyond_room);
        let told =
            [(self.missed, missed.to_owned()), (self.ended_by_hand, ended.to_owned()), (self.beyond_room > 0, cut)];
        told.into_iter().filter(|(is_so, _)| *is_so).map(|(_, sentence)| sentence).collect()
    }

    fn add(&mut self, entry: Entry) {
        if self.plan.entries.len() < MOST_FAULTS {
            self.plan.entries.push(entry);
        } else {
            self.beyond_room += 1;
        }
    }

    /// Returns true if a call meets this fault because an earlier call started it.
    fn lasts(&self, fault: Fault, now_ms: u64) -> bool {
        self.lasting.iter().any(|(it, until)| *it == fault && until.is_none_or(|until| now_ms < until))
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use stowage_world::effects::{Call, CallOutcome, KubeCall, S3Call};

    use super::*;

    fn line(number: u64, call: Call, fault: &str, began_ms: u64) -> Line {
        let plan: Plan =
            if fault.is_empty() { Plan::default() } else { format!("#1 {fault}").parse().expect("a plan") };
        let fault = plan.entries.first().map(|entry| entry.fault);
        Line { number, instance: 1, call, fault, world: None, answer: CallOutcome::Broken, began_ms }
    }

    fn create(bucket: &str) -> Call {
        let uri = format!("http://s3.example/{bucket}").parse().expect("a URL");
        Call::S3(S3Call::read(&Method::PUT, &uri, &HeaderMap::new()))
    }

    fn list(resource: &str) -> Call {
        Call::Kube(KubeCall::read(&Method::GET, &format!("/api/v1/{resource}").parse().expect("a path")))
    }

    fn told(lines: &[Line]) -> (String, Befell) {
        let mut befell = Befell::after(lines.first().map_or(0, |line| line.number - 1));
        lines.iter().for_each(|line| befell.see(line));
        (befell.plan().to_string(), befell)
    }

    #[test]
    fn a_fault_is_told_by_the_kind_of_its_call_and_which_of_them_it_was() {
        let lines = [
            line(41, list("secrets"), "", 0),
            line(42, create("a"), "", 1),
            line(43, list("secrets"), "slow(5)", 2),
            line(44, create("b"), "lost-answer", 3),
            line(45, list("namespaces"), "hang", 4),
        ];
        let (plan, befell) = told(&lines);
        assert_eq!(plan, "kube:list secrets@2 slow(5); s3:CreateBucket@2 lost-answer; kube:list namespaces@1 hang");
        assert_eq!(plan.parse::<Plan>().as_ref(), Ok(befell.plan()));
        assert_eq!((befell.last(), befell.caveats()), (45, Vec::new()));
        let met: Vec<&str> = befell.met().iter().map(|met| met.call.as_str()).collect();
        assert_eq!(met, ["kube:list secrets", "s3:CreateBucket b", "kube:list namespaces"]);
    }

    #[test]
    fn a_fault_that_lasts_is_told_where_it_began() {
        let down = |number| line(number, create("a"), "verb-down(CreateBucket)", number);
        let (plan, mut befell) = told(&[down(1), down(2), line(3, list("secrets"), "", 3)]);
        assert_eq!(plan, "s3:CreateBucket@1 verb-down(CreateBucket)");
        befell.calm(4);
        befell.see(&down(4));
        assert_eq!(befell.plan().entries.len(), 2, "it was armed again");
        assert_eq!(befell.caveats().len(), 1, "that it was over meanwhile is not told");
    }

    #[test]
    fn what_is_not_sure_is_said_and_a_line_has_an_end() {
        let (_, befell) = told(&[line(1, create("a"), "", 0), line(9, create("a"), "hang", 0)]);
        assert!(befell.caveats()[0].contains("not sure"), "{:?}", befell.caveats());
        let many: Vec<Line> = (1..=300).map(|number| line(number, create("a"), "hang", 0)).collect();
        let (_, befell) = told(&many);
        assert_eq!(befell.plan().entries.len(), MOST_FAULTS);
        assert!(befell.caveats()[0].starts_with("100 more"), "{:?}", befell.caveats());
    }

    #[test]
    fn what_holds_for_the_whole_run_is_told_though_it_meets_no_call() {
        let mut befell = Befell::default();
        let mut plan: Plan = "#1 skew(gateway,60); #2 hang".parse().expect("a plan");
        befell.armed(&plan);
        plan.entries.truncate(1);
        assert_eq!(*befell.plan(), plan);
    }
}
