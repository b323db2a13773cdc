//! Comparison of the tests' results with the expected ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::super::means::Over;
use super::expected::Reason;
use super::told::{Outcome, Told};

/// Expected and actual results over one endpoint.
pub(super) struct Played<'a> {
    pub(super) over: Over,
    pub(super) expected: &'a [(&'a str, Reason)],
    pub(super) told: &'a [Told],
}

/// The document that `-o json` prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    suite: String,
    ways: Vec<Way>,
}

/// Results over one endpoint.
#[derive(Debug, Serialize)]
struct Way {
    over: Over,
    reasons: Vec<Sum>,
    unexpected: Vec<Unexpected>,
}

/// The tests of one reason.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Sum {
    reason: &'static str,
    tests: usize,
    /// Number of their requests that the gateway refused, and of those that were refused with 403,
    /// 405 or 501 by gateway or store.
    refused: usize,
    /// Number of requests that the store received while these were answered.
    store_calls: u32,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Unexpected {
    test: String,
    why: String,
}

impl Report {
    pub(super) fn of(suite: &str) -> Self {
        Self { suite: suite.to_owned(), ways: Vec::new() }
    }

    /// Compares the results of one endpoint; `knows` returns true for tests that are in the list.
    pub(super) fn add(&mut self, played: Played<'_>, knows: impl Fn(&str) -> bool) {
        let told: BTreeMap<&str, &Told> = played.told.iter().map(|told| (told.test.as_str(), told)).collect();
        let mut sums: BTreeMap<Reason, Sum> = BTreeMap::new();
        let mut unexpected = Vec::new();
        for (test, reason) in played.expected {
            let told = told.get(test).copied();
            let sum = sums.entry(*reason).or_insert_with(|| Sum { reason: reason.name(), ..Sum::default() });
            sum.tests += 1;
            let refused = told.iter().flat_map(|told| &told.refused);
            for refused in refused.filter(|it| it.is_denial() || it.calls == 0) {
                sum.refused += 1;
                sum.store_calls += refused.calls;
            }
            if let Err(why) = judge(*reason, played.over, told) {
                unexpected.push(Unexpected { test: (*test).to_owned(), why });
            }
        }
        let unknown = played.told.iter().filter(|told| !knows(&told.test)).map(|told| told.test.as_str());
        for test in unknown.collect::<BTreeSet<_>>() {
            unexpected.push(Unexpected { test: test.to_owned(), why: "it is in no list".to_owned() });
        }
        self.ways.push(Way { over: played.over, reasons: sums.into_values().collect(), unexpected });
    }

    /// Returns the number of tests with unexpected results.
    pub(super) fn unexpected(&self) -> usize {
        self.ways.iter().map(|way| way.unexpected.len()).sum()
    }

    /// Returns a table for each endpoint, with a line for each reason, followed by the unexpected
    /// results.
    pub(super) fn text(&self) -> String {
        let mut text = format!("s3-tests {}\n", self.suite);
        for Way { over, reasons, unexpected } in &self.ways {
            let [reason, tests, refused, calls] = ["reason", "tests", "refused", "store calls"];
            text.push_str(&format!("\n{:<5} {reason:<24} {tests:>5} {refused:>8} {calls:>12}\n", over.name()));
            let total = reasons.iter().fold(Sum { reason: "all", ..Sum::default() }, |all, sum| Sum {
                tests: all.tests + sum.tests,
                refused: all.refused + sum.refused,
                store_calls: all.store_calls + sum.store_calls,
                ..all
            });
            for Sum { reason, tests, refused, store_calls } in reasons.iter().chain([&total]) {
                text.push_str(&format!("      {reason:<24} {tests:>5} {refused:>8} {store_calls:>12}\n"));
            }
            unexpected.iter().for_each(|it| text.push_str(&format!("UNEXPECTED {}: {}\n", it.test, it.why)));
        }
        text
    }
}

/// Checks that a test had the result of this reason.
fn judge(reason: Reason, over: Over, told: Option<&Told>) -> Result<(), String> {
    let Some(told) = told else { return Err("it was not played".to_owned()) };
    let expected = match reason {
        Reason::Passes => Outcome::Passed,
        Reason::Skipped => Outcome::Skipped,
        Reason::ByChance if told.outcome != Outcome::Skipped => return Ok(()),
        _ => Outcome::Failed,
    };
    if told.outcome != expected {
        return Err(format!("{:?}, not {expected:?}: {}", told.outcome, told.why));
    }
    if !reason.is_refused() || over == Over::Store {
        return Ok(());
    }
    if let Some(refused) = told.refused.iter().find(|it| it.is_denial() && it.calls > 0) {
        let (request, status) = (&refused.request, refused.status);
        return Err(format!("{request} was answered {status}, and the store was asked"));
    }
    if told.refused.iter().all(|it| it.calls > 0) {
        return Err(format!("the gateway refused nothing: {}", told.why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::told::Refused;
    use super::*;

    fn told(outcome: Outcome, answers: &[(u16, u32)]) -> Told {
        let refused =
            answers.iter().map(|(status, calls)| Refused { request: "X".to_owned(), status: *status, calls: *calls });
        Told { test: "t".to_owned(), outcome, why: "why".to_owned(), refused: refused.collect() }
    }

    #[rstest]
    #[case::passed(Reason::Passes, Outcome::Passed, &[(403, 0), (400, 1)], None)]
    #[case::broke(Reason::Passes, Outcome::Failed, &[], Some("Failed, not Passed: why"))]
    #[case::passes_now(Reason::AsTheStore, Outcome::Passed, &[], Some("Passed, not Failed: why"))]
    #[case::either(Reason::ByChance, Outcome::Passed, &[], None)]
    #[case::or(Reason::ByChance, Outcome::Failed, &[], None)]
    #[case::left_out(Reason::ByChance, Outcome::Skipped, &[], Some("Skipped, not Failed: why"))]
    #[case::refused(Reason::RefusedAdministration, Outcome::Failed, &[(400, 1), (403, 0)], None)]
    #[case::allowed(Reason::RefusedAdministration, Outcome::Passed, &[], Some("Passed, not Failed: why"))]
    #[case::by_the_store(Reason::RefusedHeader, Outcome::Failed, &[(501, 1)], Some("X was answered 501, and the store was asked"))]
    #[case::by_nobody(Reason::RefusedHeader, Outcome::Failed, &[(400, 1)], Some("the gateway refused nothing: why"))]
    fn a_test_does_what_its_reason_says(
        #[case] reason: Reason,
        #[case] outcome: Outcome,
        #[case] answers: &[(u16, u32)],
        #[case] why: Option<&str>,
    ) {
        let judged = judge(reason, Over::Http, Some(&told(outcome, answers)));
        assert_eq!(judged.err().as_deref(), why);
    }

    #[test]
    fn what_is_in_no_list_or_was_not_played_is_told() {
        let mut report = Report::of("1");
        let (told, expected) = ([told(Outcome::Failed, &[(403, 0), (400, 2)])], [("u", Reason::RefusedHeader)]);
        report.add(Played { over: Over::Http, expected: &expected, told: &told }, |test| test == "u");
        let line = "UNEXPECTED u: it was not played\nUNEXPECTED t: it is in no list\n";
        assert!(report.text().ends_with(line), "{}", report.text());
        assert_eq!(report.unexpected(), 2);
    }

    #[test]
    fn a_reason_is_summed_up() {
        let mut report = Report::of("1");
        let (told, expected) = ([told(Outcome::Failed, &[(403, 0), (400, 2)])], [("t", Reason::RefusedHeader)]);
        report.add(Played { over: Over::Http, expected: &expected, told: &told }, |_| true);
        let lines = [
            "http  reason                   tests  refused  store calls",
            "      refused-header               1        1            0",
        ];
        let text = report.text();
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        assert_eq!(report.unexpected(), 0);
    }
}
