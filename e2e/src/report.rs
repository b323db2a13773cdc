//! The report of a run (spec §5).

use std::fmt;

use serde::Serialize;

/// The document that `-o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Kind of cluster: `kind`, `control-plane` or `existing`.
    pub stage: String,
    /// Results, in the order in which the scenarios were chosen.
    pub scenarios: Vec<ScenarioReport>,
    /// Scenarios that can't be played here and were not named on the command line.
    pub left_out: Vec<LeftOut>,
}

/// A scenario that can't be played here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: &'static str,
}

/// Result of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioReport {
    /// Its name.
    pub name: String,
    /// True if all of its checks passed.
    pub ok: bool,
    /// Duration in seconds, clean-up included.
    pub seconds: f64,
    /// The plan of faults that was part of it; empty if there was none.
    pub plan: String,
    /// A summary, or the first check that failed.
    pub message: String,
}

impl RunReport {
    /// Returns the number of failed scenarios.
    pub fn failed(&self) -> usize {
        self.scenarios.iter().filter(|scenario| !scenario.ok).count()
    }
}

impl fmt::Display for ScenarioReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.ok { "ok" } else { "FAILED" };
        write!(f, "{word:<7} {:<16} {:>6.1} s  {}", self.name, self.seconds, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_fields_of_the_contract() {
        let scenario = ScenarioReport {
            name: "restart".to_owned(),
            ok: false,
            seconds: 1.5,
            plan: "SIGKILL".to_owned(),
            message: "why".to_owned(),
        };
        let report = RunReport { stage: "existing".to_owned(), scenarios: vec![scenario], left_out: Vec::new() };
        assert_eq!(report.failed(), 1);
        let expected = r#"{"stage":"existing","scenarios":[{"name":"restart","ok":false,"seconds":1.5,"plan":"SIGKILL","message":"why"}],"left_out":[]}"#;
        assert_eq!(serde_json::to_string(&report).unwrap(), expected);
        assert_eq!(report.scenarios[0].to_string(), "FAILED  restart             1.5 s  why");
    }
}
