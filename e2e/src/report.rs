//! What came of a run (spec §5).

use std::fmt;

use serde::Serialize;

/// The document that `-o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// What the scenarios ran on: `kind`, `control-plane` or `existing`.
    pub stage: String,
    /// In the order in which they ran.
    pub scenarios: Vec<ScenarioReport>,
    /// What was not played, as nobody asked for it by name.
    pub left_out: Vec<LeftOut>,
}

/// A scenario that can't be played here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// What is missing.
    pub why: &'static str,
}

/// What came of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioReport {
    /// Its name.
    pub name: String,
    /// Whether all of its checks held.
    pub ok: bool,
    /// How long it took, cleaning up included.
    pub seconds: f64,
    /// The disturbance that was part of it; empty when there was none.
    pub plan: String,
    /// What was found out, or the first check that failed.
    pub message: String,
}

impl RunReport {
    /// How many scenarios failed.
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
