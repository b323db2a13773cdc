//! Log of a scenario's operators, whether they run as processes or pods.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of log lines that an error message repeats.
const TAIL: usize = 5;
/// Maximum number of lines kept; the oldest are dropped first.
const KEPT_LINES: usize = 50_000;

/// Lines that a scenario's operators wrote to stderr.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Appends a line, and drops the oldest one if the log is full.
    pub fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Returns all kept lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Returns the last lines, oldest first.
    pub fn tail(&self) -> Vec<String> {
        let lines = self.0.lock();
        lines.iter().skip(lines.len().saturating_sub(TAIL)).cloned().collect()
    }

    /// Removes all lines.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}
