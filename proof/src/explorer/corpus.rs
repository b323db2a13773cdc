//! Regression schedules, which once broke a promise or nearly did. They always run first.

use super::schedule::Schedule;

/// One schedule per line; the text after `--` says why it was added.
const LINES: &str = include_str!("corpus.txt");

/// Returns the schedules of the corpus.
///
/// # Panics
/// If a line is not a schedule, which a test rules out.
pub fn schedules() -> Vec<Schedule> {
    let lines = LINES.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| line.parse().expect("the corpus holds schedules")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::run::run;
    use super::*;

    #[test]
    fn the_corpus_can_be_read() {
        assert!(!schedules().is_empty());
    }

    /// A line that names calls by number becomes meaningless when the calls change, and then has to
    /// be adapted.
    #[test]
    fn every_fault_of_every_line_meets_a_call() {
        let unmet = |schedule: &Schedule| !run(schedule).history.trace.unmet(&schedule.plan).is_empty();
        let stale: Vec<String> = schedules().iter().filter(|it| unmet(it)).map(ToString::to_string).collect();
        assert!(stale.is_empty(), "faults that meet no call:\n{}", stale.join("\n"));
    }
}
