//! How the schedules of a campaign are played.

use std::collections::BTreeSet;
use std::time::Instant;

use super::report::Verdict;
use super::run::{Outcome, run};
use super::schedule::Schedule;
#[cfg(target_os = "linux")]
use super::trunk;
use super::workers::{Done, at_once};

/// How schedules are played. What comes of them is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playing {
    /// Each from its beginning, on threads of this process.
    Whole,
    /// What they have in common once, with a process that branches off for each: on Linux, as long as no other thread of
    /// the process does anything. Else whole.
    Branching,
}

/// What makes a verdict of what came of a schedule.
pub(super) type Judge<'a> = &'a (dyn Fn(&Schedule, &Outcome) -> Verdict + Sync);

/// Plays schedules, so many at once; hands each verdict to `receive`, until that says no or the deadline has come. `false`
/// if not all were played.
pub(super) fn play_all(
    playing: Playing,
    jobs: usize,
    schedules: &[Schedule],
    deadline: Option<Instant>,
    judge: Judge<'_>,
    mut receive: impl FnMut(Done<Verdict>) -> bool,
) -> bool {
    let (mut played, mut wanted) = (BTreeSet::new(), true);
    let mut take = |done: Done<Verdict>| {
        played.insert(done.index);
        wanted = receive(done);
        wanted
    };
    #[cfg(target_os = "linux")]
    if playing == Playing::Branching {
        trunk::play_branching(jobs, schedules, deadline, judge, &mut take);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = playing;
    if !wanted {
        return false;
    }
    let left: Vec<usize> = (0..schedules.len()).filter(|index| !played.contains(index)).collect();
    let whole: Vec<Schedule> = left.iter().filter_map(|index| schedules.get(*index).cloned()).collect();
    let play = |schedule: &Schedule| judge(schedule, &run(schedule));
    at_once(jobs, &whole, deadline, play, |done| match left.get(done.index) {
        Some(index) => receive(Done { index: *index, ..done }),
        None => true,
    })
}
