//! The last requests to the gateway, from its access log.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// Maximum number of requests that are kept, of a few hundred bytes each.
const MOST: usize = 200;

/// A writer for the gateway's access log of JSON lines. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
    lines: VecDeque<Value>,
    /// Number of requests so far.
    count: u64,
}

impl Traffic {
    /// Returns the number of requests so far.
    pub(super) fn count(&self) -> u64 {
        self.0.lock().count
    }

    /// Returns the last requests, newest first, at most `most`.
    pub(super) fn last(&self, most: usize) -> Vec<Value> {
        self.0.lock().lines.iter().rev().take(most).cloned().collect()
    }
}

impl Write for Traffic {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut seen = self.0.lock();
        let seen = &mut *seen;
        for byte in bytes {
            if *byte != b'\n' {
                seen.begun.push(*byte);
                continue;
            }
            if let Ok(line) = serde_json::from_slice(&std::mem::take(&mut seen.begun)) {
                seen.count += 1;
                seen.lines.push_back(line);
                if seen.lines.len() > MOST {
                    seen.lines.pop_front();
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_told_newest_first_however_they_are_cut_and_the_oldest_go() {
        let mut traffic = Traffic::default();
        let text: String = (0..300).map(|number| format!("{{\"n\": {number}}}\n")).collect();
        for part in text.as_bytes().chunks(7) {
            traffic.write_all(part).expect("it takes all");
        }
        assert_eq!(traffic.last(2), [json!({"n": 299}), json!({"n": 298})]);
        assert_eq!((traffic.count(), traffic.last(1000).len()), (300, MOST));
    }
}
