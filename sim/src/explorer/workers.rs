//! Runs many schedules at once, each on a thread of its own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::run::{Outcome, run};
use super::schedule::Schedule;

/// Outcomes that may wait for whoever takes them down, for each job: it bounds what is kept.
const WAITING: usize = 4;

/// What came of a schedule.
pub(super) struct Done {
    /// Its place among the schedules.
    pub(super) index: usize,
    /// What came of it.
    pub(super) outcome: Outcome,
    /// Real time that it took.
    pub(super) took: Duration,
}

/// Runs schedules on so many threads, in their order; hands each result to `receive`, until that says no or the deadline
/// has come. `false` if not all were run.
pub(super) fn at_once(
    jobs: usize,
    schedules: &[Schedule],
    deadline: Option<Instant>,
    mut receive: impl FnMut(Done) -> bool,
) -> bool {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::sync_channel(WAITING * jobs.max(1));
    let mut received = 0;
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, stop) = (sender.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(schedule) = schedules.get(index) else { return };
                    let start = Instant::now();
                    let outcome = run(schedule);
                    if sender.send(Done { index, outcome, took: start.elapsed() }).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for done in results {
            received += 1;
            if !receive(done) {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
    received == schedules.len()
}
