//! What a report comes to: one verdict, which every form of it tells.

use std::fmt;

use crate::explorer::campaign::scope::Profile;
use crate::explorer::cells::REASONS;
use crate::explorer::scenarios;
use explore::Shard;

use super::CampaignReport;

/// What a report comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// So many schedules broke a promise.
    Broken(usize),
    /// It was cut short before the first schedule: nothing is known.
    Nothing,
    /// No promise was broken, but something that has to be met was not: see
    /// [`CampaignReport::gaps`].
    Gaps,
    /// No promise was broken by what was run until it was cut short.
    Part,
    /// There are so few schedules that this shard has none.
    Idle,
    /// All was run, and no promise was broken.
    Kept,
}

impl Conclusion {
    /// Whether what was looked for was found, or could not be looked for: 1 to the shell.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Broken(_) | Self::Nothing | Self::Gaps)
    }

    /// Whether something was run, and that went well.
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
    /// What it comes to.
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

    /// Whether it is of everything that there is: only then something can be missing.
    pub fn is_whole(&self) -> bool {
        self.complete && self.shard == Shard::WHOLE && self.scenarios.len() >= scenarios::ALL.len()
    }

    /// What an exploration of everything has to meet and this one did not, in words: cells, crash
    /// points, calls of single faults, reasons of Ready. Nothing where only a part was explored.
    pub fn gaps(&self) -> Vec<String> {
        if !self.is_whole() {
            return Vec::new();
        }
        let met = self.cells();
        let cells = self.cells_expected().into_iter().filter(|cell| !met.contains_key(cell));
        let cells = cells.map(|(fault, phase)| format!("{fault} met no call in {phase}"));
        // The quick profile has some of them.
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
