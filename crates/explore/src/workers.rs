//! A pool of threads for many schedules, each of which runs on one thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Results per job that may wait for the receiver; bounds memory.
const WAITING: usize = 4;

/// The result of a schedule.
pub struct Done<T> {
    /// The index of the schedule.
    pub index: usize,
    /// The value that `play` returned.
    pub result: T,
    /// Real time that the schedule took.
    pub took: Duration,
}

/// Plays schedules on `jobs` threads, in order, and passes each result to `receive`.
///
/// Stops when `receive` returns false or the deadline has passed. Returns false then, and when not
/// all schedules were played.
pub fn at_once<S: Sync, T: Send>(
    jobs: usize,
    schedules: &[S],
    deadline: Option<Instant>,
    play: impl Fn(&S) -> T + Sync,
    mut receive: impl FnMut(Done<T>) -> bool,
) -> bool {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::sync_channel(WAITING * jobs.max(1));
    let mut received = 0;
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next, stop, play) = (sender.clone(), &next, &stop, &play);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(schedule) = schedules.get(index) else { return };
                    let start = Instant::now();
                    let result = play(schedule);
                    if sender.send(Done { index, result, took: start.elapsed() }).is_err() {
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
    received == schedules.len() && !stop.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_played_once_until_nobody_wants_more() {
        let numbers: Vec<u64> = (0..100).collect();
        let mut seen = Vec::new();
        let all = at_once(
            3,
            &numbers,
            None,
            |number| number * 2,
            |done| {
                seen.push((done.index, done.result));
                true
            },
        );
        seen.sort_unstable();
        assert!(
            all && seen.iter().enumerate().all(|(place, (index, twice))| place == *index && *twice == 2 * place as u64)
        );
        let mut count = 0;
        let stopped = at_once(
            2,
            &numbers,
            None,
            |number| *number,
            |_| {
                count += 1;
                count < 3
            },
        );
        assert!(!stopped && count < numbers.len());
        assert!(!at_once(2, &numbers, Some(Instant::now()), |number| *number, |_| true), "no time is left");
    }
}
