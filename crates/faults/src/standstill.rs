//! A life that stands still: its process is stopped (SIGSTOP, a machine that is moved) while the
//! world goes on, and goes on later where it was, its timers late.
//!
//! A process can't be stopped from within, so it is held at its seams: its future is not polled
//! ([`run_until_crash`](super::run_until_crash)), no call of it begins, no answer reaches it, and
//! no byte of an answer's body ([`Gate`](super::Gate)). Tasks that it has given to the runtime, as
//! kube-runtime does with each pass, run on up to the next of these. Timers of theirs are not late:
//! a deadline that passes meanwhile takes the request back, as it may where a process goes on and
//! looks at its timers first. What else comes of them stays in memory.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// What a life stands still for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// For so long.
    For(Duration),
    /// A second operator takes its turn, and has to be given it.
    Twin,
}

/// Whether a life stands still, and who waits for it to go on. Clones are of the same life.
///
/// Not a `watch` channel: that wakes its receivers in an order which is not the same in every
/// process.
#[derive(Clone, Debug, Default)]
pub(super) struct Standstill(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stop: Option<Stop>,
    /// Who has it go on again.
    driver: Option<Waker>,
    /// What is held, in the order in which it came.
    held: Vec<Waker>,
}

impl Standstill {
    /// Has the life stand still, if it doesn't yet.
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

    /// Ready when it stands still.
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

    /// Ready when it does not.
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

    /// Nothing that could panic runs while it is changed.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}
