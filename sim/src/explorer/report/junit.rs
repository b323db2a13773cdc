//! A report as JUnit XML: each scenario is a suite; what its schedules found are its cases.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Tests, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::{Failure, Report};

/// The report as JUnit XML: a case for each scenario that says whether its schedules kept every promise, and one for
/// each that broke one.
///
/// # Errors
/// Never, unless there is no memory left.
pub fn to_text(report: &Report) -> Result<String, SerializeError> {
    let mut tests = Tests::new("stowage-sim explore");
    tests.set_time(Duration::try_from_secs_f64(report.seconds).unwrap_or_default());
    for (name, row) in &report.scenarios {
        let mut suite = TestSuite::new(name.clone());
        suite.add_property(("about", row.about.as_str()));
        suite.add_property(("schedules", row.schedules.to_string().as_str()));
        suite.add_property(("seed", report.seed.to_string().as_str()));
        let failures: Vec<&Failure> = report.failures.iter().filter(|it| scenario_of(it) == name).collect();
        let mut whole = TestCase::new(format!("{}: {} schedules", row.phase, row.schedules), verdict(failures.len()));
        whole.set_classname(name.clone());
        suite.add_test_case(whole);
        suite.add_test_cases(failures.into_iter().map(|failure| case(name, failure)));
        tests.add_test_suite(suite);
    }
    tests.to_string()
}

fn scenario_of(failure: &Failure) -> &str {
    failure.line.split(' ').next().unwrap_or_default()
}

fn verdict(failures: usize) -> TestCaseStatus {
    if failures == 0 {
        return TestCaseStatus::success();
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(format!("schedules that broke a promise: {failures}"));
    status
}

fn case(scenario: &str, failure: &Failure) -> TestCase {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(failure.promise.clone()).set_message(failure.message.clone());
    let shrunk = failure.shrunk.iter().map(|line| format!("\nstowage-sim replay '{line}'"));
    status.set_description(format!("stowage-sim replay '{}'{}", failure.line, shrunk.collect::<String>()));
    let mut case = TestCase::new(failure.line.clone(), status);
    case.set_classname(scenario);
    case
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn each_scenario_is_a_suite_and_each_failure_a_case() {
        let text = to_text(&samples::report()).expect("it can be written");
        let tests = Tests::deserialize_from_str(&text).expect("it is JUnit XML");
        assert_eq!((tests.tests, tests.failures), (3, 2));
        let names: Vec<&str> = tests.test_suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(names, ["create", "rotate"]);
        let case = tests.test_suites[1].test_cases.last().expect("it has cases");
        assert_eq!(case.name.as_str(), samples::LINE);
        let TestCaseStatus::NonSuccess { message, ty, description, .. } = &case.status else { panic!("it failed") };
        assert_eq!(message.as_ref().map(|it| it.as_str()), Some(samples::report().failures[0].message.as_str()));
        assert_eq!(ty.as_ref().map(|it| it.as_str()), Some("I6"));
        let told = description.as_ref().map(|it| it.as_str()).unwrap_or_default();
        assert!(told.contains("stowage-sim replay 'rotate 1 #17 crash(before)'"), "{told}");
    }
}
