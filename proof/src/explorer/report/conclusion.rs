//! The conclusion of a report, which is the same in all its output formats.

use std::fmt;

use crate::explorer::campaign::scope::Profile;
use crate::explorer::cells::REASONS;
use crate::explorer::scenarios;
use explore::Shard;

use super::CampaignReport;

/// The conclusion of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// This many schedules broke a promise.
    Broken(usize),
    /// The run was cut short before the first schedule: there is no result.
    Nothing,
    /// No promise was broken, but the coverage is incomplete: see [`CampaignReport::gaps`].
    Gaps,
    /// The run was cut short, and no promise was broken until then.
    Part,
    /// The campaign has so few schedules that this shard has none.
    Idle,
    /// All schedules were run, and no promise was broken.
    Kept,
}

impl Conclusion {
    /// Returns true for an exit code of 1: something was found, or could not be looked for.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Broken(_) | Self::Nothing | Self::Gaps)
    }

    /// Returns true if schedules were run and no promise was broken.
    pub fn is_good(self) -> bool {
        matches!(self, Self::Part | Self::Kept)
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broken(1) => "1 schedule broke a promise",
            Self::Broken(many) => return write!(f, "{many} schedules broke a promise"),
            Self::Nothing => "no schedule was run",
            Self::Gaps => "no promise was broken, but not all was tried",
            Self::Part => "no promise was broken by what was run",
            Self::Idle => "no schedule falls to this shard",
            Self::Kept => "every promise was kept",
        })
    }
}

impl CampaignReport {
    /// Returns the conclusion of the report.
    pub fn conclusion(&self) -> Conclusion {
        match (self.failures.len(), self.schedules, self.complete) {
            (0, 0, false) => Conclusion::Nothing,
            (0, _, true) if !self.gaps().is_empty() => Conclusion::Gaps,
            (0, 0, true) => Conclusion::Idle,
            (0, _, false) => Conclusion::Part,
            (0, _, true) => Conclusion::Kept,
            (many, _, _) => Conclusion::Broken(many),
        }
    }

    /// Returns true if the report covers everything: only then can something be missing.
    pub fn is_whole(&self) -> bool {
        self.complete && self.shard == Shard::WHOLE && self.scenarios.len() >= scenarios::ALL.len()
    }

    /// Returns descriptions of missing coverage: cells, crash points, calls of single faults,
    /// reasons of `Ready`. Empty if only a part was explored.
    pub fn gaps(&self) -> Vec<String> {
        if !self.is_whole() {
            return Vec::new();
        }
        let met = self.cells();
        let cells = self.cells_expected().into_iter().filter(|cell| !met.contains_key(cell));
        let cells = cells.map(|(fault, phase)| format!("{fault} met no call in {phase}"));
        // The quick profile has only some of the crash points.
        let all = self.profile != Profile::Quick;
        let rows = self.scenarios.iter().filter(|(_, row)| all && row.crash_points != row.crash_points_expected);
        let crashes = rows.map(|(name, row)| {
            format!("{} of {} crash points of {name} were tried", row.crash_points, row.crash_points_expected)
        });
        let unmet = self.scenarios.iter().filter(|(_, row)| row.unmet > 0);
        let unmet = unmet.map(|(name, row)| format!("single faults of {name} that met no call: {}", row.unmet));
        let told = REASONS.iter().map(ToString::to_string).filter(|reason| !self.reasons.contains(reason));
        let told = told.map(|reason| format!("no claim came to {reason}"));
        cells.chain(crashes).chain(unmet).chain(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::samples;
    use super::*;

    #[rstest]
    #[case::broken(samples::report(), Conclusion::Broken(1), true)]
    #[case::kept(CampaignReport { failures: vec![], ..samples::report() }, Conclusion::Kept, false)]
    #[case::part(CampaignReport { failures: vec![], complete: false, ..samples::report() }, Conclusion::Part, false)]
    #[case::nothing(samples::nothing(), Conclusion::Nothing, true)]
    #[case::idle(CampaignReport { complete: true, ..samples::nothing() }, Conclusion::Idle, false)]
    #[case::gaps(samples::gaps(), Conclusion::Gaps, true)]
    #[case::gaps_of_a_part(CampaignReport { complete: false, ..samples::gaps() }, Conclusion::Part, false)]
    fn a_report_comes_to_one_verdict(
        #[case] report: CampaignReport,
        #[case] expected: Conclusion,
        #[case] fails: bool,
    ) {
        assert_eq!((report.conclusion(), report.conclusion().is_failure()), (expected, fails));
    }
}
