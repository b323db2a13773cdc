//! A report as one JSON document (spec §5), and its parser.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::explorer::scenario::ScenarioPhase;
use crate::oracles::Promise;

use super::{CampaignReport, ScenarioCoverage};

/// The document of a report: the report itself, and values derived from it.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    #[serde(flatten)]
    report: &'a CampaignReport,
    rate: f64,
    cells: Cells<'a>,
    promises: Vec<Judged>,
    /// Descriptions of missing coverage. Like a broken promise, a single one fails the run.
    gaps: Vec<String>,
}

/// Faults that met a call, by phase.
#[derive(Debug, Serialize)]
struct Cells<'a> {
    covered: usize,
    total: usize,
    table: Vec<Cell<'a>>,
}

#[derive(Debug, Serialize)]
struct Cell<'a> {
    fault: &'a str,
    phase: ScenarioPhase,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Judged {
    name: &'static str,
    words: &'static str,
    schedules: u64,
    limited: u64,
}

impl<'a> Document<'a> {
    /// Creates the document of a report.
    pub fn of(report: &'a CampaignReport) -> Self {
        let table: Vec<Cell<'_>> =
            report.cells().into_iter().map(|((fault, phase), count)| Cell { fault, phase, count }).collect();
        let (covered, total) = report.coverage();
        let cells = Cells { covered, total, table };
        let judged = |promise: Promise| Judged {
            name: promise.name(),
            words: promise.words(),
            schedules: report.judged.get(promise.name()).copied().unwrap_or_default(),
            limited: report.limited.get(promise.name()).copied().unwrap_or_default(),
        };
        let promises = Promise::ALL.map(judged).into();
        Self { report, rate: report.rate(), cells, promises, gaps: report.gaps() }
    }

    /// Returns the document as text.
    ///
    /// # Errors
    /// Never fails: everything in it can be written as JSON.
    pub fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

/// Reads a report back from its document.
///
/// # Errors
/// Returns an error if the text is not such a document.
pub fn read(text: &str) -> serde_json::Result<CampaignReport> {
    serde_json::from_str(text)
}

/// Scenarios in the form of the contract: a list of objects, each with its name.
pub(super) mod scenarios {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{BTreeMap, ScenarioCoverage, Serialize};

    #[derive(Serialize)]
    struct Named<'a> {
        name: &'a str,
        #[serde(flatten)]
        row: &'a ScenarioCoverage,
    }

    #[derive(Deserialize)]
    struct Owned {
        name: String,
        #[serde(flatten)]
        row: ScenarioCoverage,
    }

    pub(in super::super) fn serialize<S: Serializer>(
        rows: &BTreeMap<String, ScenarioCoverage>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows.iter().map(|(name, row)| Named { name, row }))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, ScenarioCoverage>, D::Error> {
        let rows = Vec::<Owned>::deserialize(deserializer)?;
        Ok(rows.into_iter().map(|Owned { name, row }| (name, row)).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::samples;
    use super::*;

    #[test]
    fn a_document_is_read_back_as_it_was_written() {
        let report = samples::report();
        let text = Document::of(&report).to_text().expect("it can be written");
        assert_eq!(read(&text).expect("it is a document"), report);
    }

    #[test]
    fn the_document_has_the_fields_of_the_contract() {
        let report = samples::report();
        let document: Value = serde_json::to_value(Document::of(&report)).expect("it can be written");
        assert_eq!(document["schedules"], 700);
        assert_eq!(document["jobs"], 2);
        assert_eq!(document["seconds"], 2.5);
        assert_eq!(document["scenarios"][1]["name"], "rotate");
        assert_eq!(document["scenarios"][1]["crash_points_expected"], 90);
        assert_eq!(document["cells"]["covered"], 3);
        assert_eq!(document["cells"]["total"], report.cells_expected().len());
        assert_eq!(document["failures"][0]["line"], samples::LINE);
        assert_eq!(document["failures"][0]["promise"], "I6");
        assert!(document["failures"][0]["message"].is_string());
    }

    #[test]
    fn the_document_tells_what_was_not_met() {
        let gaps = |report: &CampaignReport| {
            serde_json::to_value(Document::of(report)).expect("it can be written")["gaps"].clone()
        };
        assert_eq!(gaps(&samples::report()), serde_json::json!([]), "of a part nothing is missing");
        let gaps = gaps(&samples::gaps());
        let gaps: Vec<&str> = gaps.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert!(gaps.contains(&"45 of 90 crash points of rotate were tried"), "{gaps:?}");
        assert!(gaps.contains(&"lost-answer met no call in rotate"), "{gaps:?}");
    }

    #[test]
    fn what_is_no_document_is_refused() {
        assert!(read("{}").is_err());
        let text = Document::of(&samples::report()).to_text().expect("it can be written");
        let error = read(&text.replace("\"0/2\"", "\"2/2\"")).expect_err("there is no such shard").to_string();
        assert!(error.contains("expected I/N with I from 0 to N-1 and N up to 65535"), "{error}");
    }
}
