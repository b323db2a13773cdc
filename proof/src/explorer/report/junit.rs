//! A report as JUnit XML: each scenario is a suite, and the findings of its schedules are its
//! cases.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Tests, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{CampaignReport, Conclusion, Failure};

/// Name of the suite for results that belong to no single scenario.
const WHOLE: &str = "exploration";

/// Renders the report as JUnit XML.
///
/// It has one case per scenario for all its promises, one per schedule that broke a promise, and
/// one for the coverage. The names of the cases are the same in each run, except for those of
/// schedules.
///
/// # Errors
/// Fails only for lack of memory.
pub fn to_text(report: &CampaignReport) -> Result<String, SerializeError> {
    let mut tests = Tests::new("stowage-proof explore");
    tests.set_time(Duration::try_from_secs_f64(report.seconds).unwrap_or_default());
    let mut whole = suite(WHOLE, report);
    whole.add_test_case(named("everything that has to be met was met", WHOLE, met(report)));
    tests.add_test_suite(whole);
    for (name, row) in &report.scenarios {
        let mut suite = suite(name, report);
        suite.add_property(("about", row.about.as_str()));
        suite.add_property(("phase", row.phase.to_string().as_str()));
        suite.add_property(("schedules", row.schedules.to_string().as_str()));
        let failures: Vec<&Failure> = report.failures.iter().filter(|it| scenario_of(it) == name).collect();
        suite.add_test_case(named("every promise was kept", name, verdict(report, row.schedules, failures.len())));
        suite.add_test_cases(failures.into_iter().map(|failure| case(name, failure)));
        tests.add_test_suite(suite);
    }
    tests.to_string()
}

/// Creates a suite with the properties of its run; `complete` is false if that was cut short.
fn suite(name: &str, report: &CampaignReport) -> TestSuite {
    let mut suite = TestSuite::new(name);
    suite.add_property(("seed", report.seed.to_string().as_str()));
    suite.add_property(("shard", report.shard.to_string().as_str()));
    suite.add_property(("complete", report.complete.to_string().as_str()));
    suite
}

fn named(name: &str, class: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}

fn scenario_of(failure: &Failure) -> &str {
    failure.line.split(' ').next().unwrap_or_default()
}

fn failed(message: String) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(message);
    status
}

fn skipped(message: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

/// Returns the status of the coverage; skipped if only a part was explored.
fn met(report: &CampaignReport) -> TestCaseStatus {
    let gaps = report.gaps();
    if report.conclusion() == Conclusion::Nothing {
        return failed(Conclusion::Nothing.to_string());
    }
    if !gaps.is_empty() {
        let mut status = failed(format!("not met: {}", gaps.len()));
        status.set_description(gaps.join("\n"));
        return status;
    }
    if report.is_whole() { TestCaseStatus::success() } else { skipped("only a part was explored") }
}

/// Returns the status of a scenario. If the run was cut short it is skipped, because it is unknown
/// how much was played.
fn verdict(report: &CampaignReport, schedules: u64, failures: usize) -> TestCaseStatus {
    match (failures, schedules) {
        (0, 0) => skipped("no schedule of it was run"),
        (0, some) if !report.complete => skipped(&format!("cut short; kept by the schedules that were run: {some}")),
        (0, _) => TestCaseStatus::success(),
        (many, _) => failed(format!("schedules that broke a promise: {many}")),
    }
}

fn case(scenario: &str, failure: &Failure) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(failure.promise.clone()).set_message(failure.message.clone());
    let commands: Vec<String> = [failure.command()].into_iter().chain(failure.smaller_command()).collect();
    status.set_description(commands.join("\n"));
    named(&failure.line, scenario, status)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn written(report: &CampaignReport) -> Tests {
        Tests::deserialize_from_str(&to_text(report).expect("it can be written")).expect("it is JUnit XML")
    }

    fn names(tests: &Tests) -> Vec<String> {
        let cases = tests.test_suites.iter().flat_map(|suite| &suite.test_cases);
        cases.map(|case| case.name.to_string()).collect()
    }

    #[test]
    fn cases_are_called_the_same_however_many_schedules_ran() {
        let report = CampaignReport { failures: Vec::new(), ..samples::report() };
        let mut more = report.clone();
        more.scenarios.get_mut("create").expect("it is there").schedules += 7;
        assert_eq!(names(&written(&report)), names(&written(&more)));
    }

    #[test]
    fn what_was_cut_short_says_so() {
        let mut report = CampaignReport { complete: false, failures: Vec::new(), ..samples::report() };
        report.scenarios.get_mut("rotate").expect("it is there").schedules = 0;
        let tests = written(&report);
        let complete = |suite: &TestSuite| {
            let property = suite.properties.iter().find(|it| it.name.as_str() == "complete");
            property.is_some_and(|it| it.value.as_str() == "true")
        };
        assert!(!tests.test_suites.iter().any(complete));
        let skipped = |suite: &TestSuite| matches!(suite.test_cases[0].status, TestCaseStatus::Skipped { .. });
        assert_eq!(tests.test_suites.iter().map(skipped).collect::<Vec<_>>(), [true, true, true]);
        let whole = written(&CampaignReport { complete: true, ..report });
        assert!(whole.test_suites.iter().all(complete));
        assert_eq!(whole.test_suites.iter().map(skipped).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn what_was_not_met_is_a_failure() {
        for report in [samples::gaps(), samples::nothing()] {
            let tests = written(&report);
            assert_eq!(tests.failures, 1);
            assert!(matches!(tests.test_suites[0].test_cases[0].status, TestCaseStatus::NonSuccess { .. }));
        }
    }

    #[test]
    fn each_scenario_is_a_suite_and_each_failure_a_case() {
        let tests = written(&samples::report());
        assert_eq!((tests.tests, tests.failures), (4, 2));
        let names: Vec<&str> = tests.test_suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(names, [WHOLE, "create", "rotate"]);
        let case = tests.test_suites[2].test_cases.last().expect("it has cases");
        assert_eq!(case.name.as_str(), samples::LINE);
        let TestCaseStatus::NonSuccess { message, ty, description, .. } = &case.status else { panic!("it failed") };
        assert_eq!(message.as_ref().map(|it| it.as_str()), Some(samples::report().failures[0].message.as_str()));
        assert_eq!(ty.as_ref().map(|it| it.as_str()), Some("I6"));
        let told = description.as_ref().map(|it| it.as_str()).unwrap_or_default();
        assert!(told.contains("stowage-proof replay 'rotate 1 #17 crash(before)'"), "{told}");
    }
}
