//! What the operators of a scenario have logged, however they run.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// Lines of the log that a failure's message repeats.
const TAIL: usize = 5;
/// Lines of the log that are kept; the oldest go first.
const KEPT_LINES: usize = 50_000;

/// What a scenario's operators wrote to stderr.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    /// Appends a line; the oldest goes where too many are kept.
    pub fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// All lines that were kept, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// The last lines, oldest first.
    pub fn tail(&self) -> Vec<String> {
        let lines = self.0.lock();
        lines.iter().skip(lines.len().saturating_sub(TAIL)).cloned().collect()
    }

    /// Forgets all lines.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}
