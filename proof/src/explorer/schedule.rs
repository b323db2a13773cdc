//! A schedule: one scenario with one seed and one plan. Its text form replays it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use stowage_world::effects::{GatewayPlan, Plan, PlanError};

use super::scenario::Scenario;
use super::scenarios;

/// One scenario with one seed and one plan of faults.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// The seed of all random numbers.
    pub seed: u64,
    /// All faults except those of the gateways' calls.
    pub plan: Plan,
    /// Faults of the gateways' calls.
    pub gateway: GatewayPlan,
}

/// The seed of the runs that the ends of others are compared with, where only the order of actions
/// differs.
pub(super) const FIRST_SEED: u64 = 1;

/// One in this many schedules of one fault, chosen by a hash of its line, is observed for longer
/// once it is at rest. A long rest takes a fifth of a run's time.
const RESTS_LONG: u8 = 5;

impl Schedule {
    /// Returns true if the run goes on for long at rest. Not for several faults: their effects may
    /// be repaired as late as that.
    pub(super) fn rests_long(&self) -> bool {
        let is_drawn = || Sha256::digest(self.to_string())[0].is_multiple_of(RESTS_LONG);
        match self.plan.entries.len() {
            0 => self.seed == FIRST_SEED,
            1 => is_drawn(),
            _ => false,
        }
    }
}

impl fmt::Display for Schedule {
    /// Writes `create 1 #17 crash(before)`, or `objects 1 | s3:PutObject@1 lost-answer` with the
    /// plan of the gateways' calls after a bar, as `stowage-proof replay` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        explore::Schedule { scenario: self.scenario.name.to_owned(), seed: self.seed, plan: self.plan.clone() }
            .fmt(f)?;
        if self.gateway.is_empty() { Ok(()) } else { write!(f, " | {}", self.gateway) }
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    /// Parses the text form: scenario, seed, plan. Text after ` -- ` is a remark, as in the corpus,
    /// and is ignored.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let text = text.split_once(" -- ").map_or(text, |(schedule, _)| schedule);
        let (text, gateway) = text.split_once('|').unwrap_or((text, ""));
        let explore::Schedule { scenario, seed, plan } = text.parse()?;
        let scenario = scenarios::named(&scenario).ok_or(ScheduleError::Scenario(scenario))?;
        let gateway: GatewayPlan = gateway.parse().map_err(ScheduleError::Gateway)?;
        if !gateway.is_empty() && (scenario.world)().gateway_plan.is_none() {
            return Err(ScheduleError::NoRequests(scenario.name));
        }
        Ok(Self { scenario, seed, plan, gateway })
    }
}

/// Error of parsing a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The scenario does not exist.
    #[error("there is no scenario `{0}`; there are: {known}", known = scenarios::names().join(", "))]
    Scenario(String),
    /// The text after the bar is not a plan.
    #[error("of the gateways' calls: {0}")]
    Gateway(PlanError),
    /// No step of the scenario sends requests to the gateways.
    #[error("in the scenario `{0}` the gateways' calls have no numbers: nobody asks them for anything")]
    NoRequests(&'static str),
    /// The line is not a schedule of any scenario.
    #[error(transparent)]
    Line(#[from] explore::ScheduleError),
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("create 1")]
    #[case("rotate 18446744073709551615 #17 crash(before); s3:CreateBucket@1 lost-answer")]
    #[case("objects 1 | s3:PutObject@1 cut-request; #9 lost-answer")]
    #[case("objects 1 #3 hang | #9 lost-answer")]
    fn a_line_is_read_as_it_is_printed(#[case] line: &str) {
        assert_eq!(line.parse::<Schedule>().map(|schedule| schedule.to_string()), Ok(line.to_owned()));
    }

    #[rstest]
    #[case("", "`` is no seed")]
    #[case("creat 1", "no scenario `creat`; there are: ")]
    #[case("create", "`` is no seed")]
    #[case("create one", "`one` is no seed")]
    #[case("create 1 #1 lost-anser", "unknown fault `lost-anser`")]
    #[case("objects 1 | #1 lost-anser", "of the gateways' calls: plan, character")]
    #[case("create 1 | #1 hang", "nobody asks them for anything")]
    fn what_is_wrong_is_said(#[case] line: &str, #[case] problem: &str) {
        let error = line.parse::<Schedule>().expect_err("no schedule").to_string();
        assert!(error.contains(problem), "{error}");
    }
}
