//! Schedules that once broke a promise, or nearly: run first, always.

use super::schedule::Schedule;

/// A schedule in each line; what follows `--` says why it is there.
const LINES: &str = include_str!("corpus.txt");

/// The schedules of the corpus.
///
/// # Panics
/// When a line is no schedule, which a test rules out.
pub fn schedules() -> Vec<Schedule> {
    let lines = LINES.lines().map(|line| line.split_once(" -- ").map_or(line, |(schedule, _)| schedule).trim());
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.parse().expect("the corpus holds schedules")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_can_be_read() {
        assert!(!super::schedules().is_empty());
    }
}
