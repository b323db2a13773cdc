//! A schedule: one scenario with one seed and one plan. Its text form replays it.

use std::fmt;
use std::str::FromStr;

use faults::{Nobody, Plan, PlanError, Vocabulary};

/// A run to play: a scenario by its name, a seed, and a plan of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule<V = Nobody> {
    /// The name of the scenario.
    pub scenario: String,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The faults.
    pub plan: Plan<V>,
}

impl<V: Vocabulary> fmt::Display for Schedule<V> {
    /// Writes, for instance, `create 1 #17 crash(before)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.scenario, self.seed)?;
        if self.plan.is_empty() { Ok(()) } else { write!(f, " {}", self.plan) }
    }
}

impl<V: Vocabulary> FromStr for Schedule<V> {
    type Err = ScheduleError;

    /// Parses the text form: scenario, seed, plan. Text after ` -- ` is a remark and is ignored.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let text = text.split_once(" -- ").map_or(text, |(schedule, _)| schedule).trim();
        let (scenario, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (seed, plan) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        let seed = seed.parse().map_err(|_| ScheduleError::Seed(seed.to_owned()))?;
        Ok(Self { scenario: scenario.to_owned(), seed, plan: plan.parse()? })
    }
}

/// Error of parsing a [`Schedule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The second field is not a seed.
    #[error("`{0}` is no seed; expected `SCENARIO SEED PLAN`, the seed a number from 0 to 18446744073709551615")]
    Seed(String),
    /// The rest is not a plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    type Schedule = super::Schedule;

    #[rstest]
    #[case("create 1")]
    #[case("rotate 18446744073709551615 #17 crash(before); s3:CreateBucket@1 lost-answer")]
    fn a_line_is_read_as_it_is_printed(#[case] line: &str) {
        assert_eq!(line.parse::<Schedule>().map(|schedule| schedule.to_string()), Ok(line.to_owned()));
    }

    #[test]
    fn a_remark_is_not_read() {
        let schedule: Schedule = "create 1 #17 hang -- the answer; is late".parse().expect("a schedule");
        assert_eq!(schedule.to_string(), "create 1 #17 hang");
    }

    #[rstest]
    #[case("create", "`` is no seed")]
    #[case("create one", "`one` is no seed")]
    #[case("create 1 #1 lost-anser", "unknown fault `lost-anser`")]
    fn what_is_wrong_is_said(#[case] line: &str, #[case] problem: &str) {
        let error = line.parse::<Schedule>().expect_err("no schedule").to_string();
        assert!(error.contains(problem), "{error}");
    }
}
