//! Suspension of a process (SIGSTOP, a machine that is migrated): the world goes on, and later the
//! process continues where it was, with late timers.
//!
//! A process cannot be suspended from within, so it is held at its boundaries: its future is not
//! polled ([`run_until_crash`](super::run_until_crash)), none of its calls begins, and no answer
//! and no byte of an answer's body reaches it ([`Gate`](super::Gate)). Tasks that it has spawned on
//! the runtime, as kube-runtime does for each pass, continue up to the next boundary. Their timers
//! are not late: a deadline that passes in the meantime cancels the request, as can happen in a
//! process that continues and polls its timers first. Other effects of these tasks stay in memory.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Reason for a suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A pause of this duration.
    For(Duration),
    /// A second operator has to run.
    Twin,
}

/// State of a suspension, with the tasks that wait for its end. Clones belong to the same process.
///
/// A `watch` channel is not used, because it wakes its receivers in an order that differs between
/// processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Standstill(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stop: Option<Stop>,
    /// Task that resumes the process.
    driver: Option<Waker>,
    /// Tasks that are held, in the order of their arrival.
    held: Vec<Waker>,
}

impl Standstill {
    /// Suspends the process, if it is not suspended.
    pub(super) fn begin(&self, stop: Stop) {
        let mut state = self.state();
        state.stop.get_or_insert(stop);
        if let Some(driver) = state.driver.take() {
            driver.wake();
        }
    }

    pub(super) fn end(&self) {
        let held = {
            let mut state = self.state();
            state.stop = None;
            std::mem::take(&mut state.held)
        };
        held.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_on(&self) -> bool {
        self.state().stop.is_some()
    }

    /// Returns `Ready` when the process is suspended.
    pub(super) fn poll_on(&self, context: &Context<'_>) -> Poll<Stop> {
        let mut state = self.state();
        match state.stop {
            Some(stop) => Poll::Ready(stop),
            None => {
                state.driver = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns `Ready` when the process is not suspended.
    pub(super) fn poll_off(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.stop.is_none() {
            return Poll::Ready(());
        }
        if !state.held.iter().any(|held| held.will_wake(context.waker())) {
            state.held.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Locks the state. No code that could panic runs while it is changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
