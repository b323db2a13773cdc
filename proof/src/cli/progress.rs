//! Progress of an exploration on stderr: a bar on a terminal, otherwise a line from time to time. A
//! broken promise is printed at once.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::explorer;

/// Time between two lines if stderr is not a terminal.
const PAUSE: Duration = Duration::from_secs(30);

/// Template of the bar.
const TEMPLATE: &str = "{bar:24} {pos}/{len} schedules, {rate}, {msg}";

/// Prints the progress of an exploration.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
    /// Time of the last line. The first line is printed with the first schedule.
    told: Option<Instant>,
}

impl Progress {
    /// Starts the display.
    pub(super) fn begin() -> Self {
        let bar = ProgressBar::no_length();
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
                // An error while drawing the bar cannot be reported anywhere.
                let _ = write!(out, "{:.0}/s", state.per_sec());
            }));
        }
        Self { bar, start: Instant::now(), told: None }
    }

    /// Shows the current progress.
    pub(super) fn tell(&mut self, now: explorer::Progress<'_>) {
        let explorer::Progress { done, total, more, broken, failures, cells, cells_total } = now;
        if let Some(failure) = broken {
            // A closed stderr is ignored.
            self.bar.suspend(|| {
                let _ = writeln!(io::stderr(), "{}  # breaks {}", failure.command(), failure.promise);
            });
        }
        let told = format!("{failures} failed, {cells} of {cells_total} cells");
        let passed = self.start.elapsed();
        if !self.bar.is_hidden() {
            self.bar.set_length(total as u64);
            self.bar.set_position(done as u64);
            self.bar.set_message(format!("{told}, {}", left(done, total, more, passed)));
        } else if self.told.is_none_or(|told| told.elapsed() >= PAUSE) {
            self.told = Some(Instant::now());
            let _ =
                writeln!(io::stderr(), "{}, {}, {told}", line(done, total, passed), left(done, total, more, passed));
        }
    }

    /// Removes the bar.
    pub(super) fn end(self) {
        self.bar.finish_and_clear();
    }
}

/// Schedules per second.
fn rate(done: usize, passed: Duration) -> f64 {
    done as f64 / passed.as_secs_f64().max(0.001)
}

/// Formats `1200/4000 schedules, 300/s`.
fn line(done: usize, total: usize, passed: Duration) -> String {
    format!("{done}/{total} schedules, {:.0}/s", rate(done, passed))
}

/// Formats `9 s left`, with `at least` if more schedules may be added.
fn left(done: usize, total: usize, more: bool, passed: Duration) -> String {
    let seconds = total.saturating_sub(done) as f64 / rate(done, passed).max(0.001);
    format!("{}{seconds:.0} s left", if more { "at least " } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let passed = Duration::from_secs(4);
        assert_eq!(line(1200, 4000, passed), "1200/4000 schedules, 300/s");
        assert_eq!(left(1200, 4000, false, passed), "9 s left");
        assert_eq!(left(1200, 4000, true, passed), "at least 9 s left");
        assert_eq!(line(0, 10, Duration::ZERO), "0/10 schedules, 0/s");
        assert_eq!(left(0, 10, false, Duration::ZERO), "10000 s left");
    }
}
