//! Instances: one process of the operator each. A fault can end it, and the harness observes its
//! end.
//!
//! # Guarantees
//!
//! Once an instance is dead, none of its calls reaches the world and none returns. So the parts of
//! the operator that still run until its future is dropped cannot change anything.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::watch;

use super::standstill::{Standstill, Stop};

/// Maximum time that an instance lives on if it has to die after an answer, so that it dies even if
/// it makes no further call. With tokio's paused clock, this time passes only when the operator has
/// nothing to do but wait.
const LAST_BREATH: Duration = Duration::from_millis(1);

/// One process of the operator, from its start to its end or crash. It is cheap to clone, and
/// clones are the same instance.
#[derive(Clone, Debug)]
pub struct Instance {
    id: u32,
    life: Arc<watch::Sender<Life>>,
    standstill: Standstill,
    /// True if the instance runs while another one is suspended. No third instance runs in that
    /// time.
    is_twin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    /// Has to die at its next call, or after [`LAST_BREATH`] at the latest.
    Doomed {
        effect: u64,
    },
    Dead {
        effect: Option<u64>,
    },
}

impl Instance {
    pub(super) fn new(id: u32, is_twin: bool) -> Self {
        let life = Arc::new(watch::Sender::new(Life::Alive));
        Self { id, life, standstill: Standstill::default(), is_twin }
    }

    /// Returns the number of the instance in its run, counted from 1.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns true if the instance has died.
    pub fn is_dead(&self) -> bool {
        matches!(*self.life.borrow(), Life::Dead { .. })
    }

    /// Ends the instance now, like SIGKILL, at no particular call. Does nothing if it is dead.
    pub fn kill(&self) {
        self.die(None);
    }

    /// Completes when the instance is suspended. The caller then has to resume it at the right
    /// time.
    pub async fn stops(&self) -> Stop {
        poll_fn(|context| self.standstill.poll_on(context)).await
    }

    /// Resumes the instance.
    pub fn go_on(&self) {
        self.standstill.end();
    }

    /// Suspends the instance. A twin is not suspended for another twin.
    pub(super) fn stop(&self, stop: Stop) {
        if stop != Stop::Twin || !self.is_twin {
            self.standstill.begin(stop);
        }
    }

    /// Completes when the instance is not suspended.
    pub(super) async fn moves(&self) {
        poll_fn(|context| self.standstill.poll_off(context)).await;
    }

    pub(super) fn standstill(&self) -> &Standstill {
        &self.standstill
    }

    /// Ends the instance because of a crash at this call.
    pub(super) fn crash(&self, effect: u64) {
        self.die(Some(effect));
    }

    /// Lets the caller have its answer, and ends the instance before anything else is carried out.
    pub(super) fn doom(&self, effect: u64) {
        self.life.send_if_modified(|life| {
            let alive = *life == Life::Alive;
            if alive {
                *life = Life::Doomed { effect };
            }
            alive
        });
    }

    /// Returns true if a call may be carried out. Ends an instance that is doomed.
    pub(super) fn may_act(&self) -> bool {
        let life = *self.life.borrow();
        match life {
            Life::Alive => true,
            Life::Doomed { effect } => {
                self.die(Some(effect));
                false
            }
            Life::Dead { .. } => false,
        }
    }

    fn die(&self, effect: Option<u64>) {
        self.life.send_if_modified(|life| match *life {
            Life::Dead { .. } => false,
            Life::Alive | Life::Doomed { .. } => {
                *life = Life::Dead { effect };
                true
            }
        });
    }

    /// Completes when the instance has died. Returns the call at which it crashed, or `None` if
    /// it was killed.
    ///
    /// An instance that has to die after an answer and makes no further call only dies while
    /// something waits here.
    pub async fn death(&self) -> Option<u64> {
        let mut life = self.life.subscribe();
        loop {
            let now = *life.borrow_and_update();
            match now {
                Life::Dead { effect } => return effect,
                Life::Doomed { effect } => {
                    // The result does not matter: the instance is dead afterwards in either case.
                    let _ = tokio::time::timeout(LAST_BREATH, life.changed()).await;
                    self.die(Some(effect));
                }
                Life::Alive => {
                    // The sender is in `self`, so this cannot fail.
                    let _ = life.changed().await;
                }
            }
        }
    }

    /// Completes when the instance has died, without causing its death.
    pub(super) async fn is_over(&self) {
        let mut life = self.life.subscribe();
        // The sender is in `self`, so this cannot fail.
        let _ = life.wait_for(|life| matches!(life, Life::Dead { .. })).await;
    }
}

/// A gate that is open only while an instance is not suspended.
#[derive(Clone, Debug)]
pub struct Gate(Instance);

impl Gate {
    /// Creates the gate of this instance.
    pub fn before(instance: &Instance) -> Self {
        Self(instance.clone())
    }

    /// Returns `Ready` while the instance is not suspended.
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        self.0.standstill().poll_off(context)
    }
}

/// Polls an instance's future only while the instance is not suspended.
async fn moving<F: Future>(instance: &Instance, life: F) -> F::Output {
    let gate = Gate::before(instance);
    let mut life = pin!(life);
    poll_fn(|context| {
        ready!(gate.poll_open(context));
        life.as_mut().poll(context)
    })
    .await
}

/// End of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd<T> {
    /// The operator's future completed.
    Finished(T),
    /// The process was killed: by a crash at this effect, or by [`Instance::kill`] (`None`).
    Crashed {
        /// Number of the call at which the plan killed it. `None` if [`Instance::kill`] did.
        effect: Option<u64>,
    },
}

/// Runs the operator until it ends or its instance dies. On death its future is dropped with
/// everything it owns. While its instance is suspended, the future is not polled.
///
/// # Assumptions
///
/// The operator's work is in its future. A detached task would outlive it (without reaching the
/// world, see [`Instance`]).
pub async fn run_until_crash<F: Future>(instance: &Instance, operator: F) -> LifeEnd<F::Output> {
    tokio::select! {
        biased;
        effect = instance.death() => LifeEnd::Crashed { effect },
        output = moving(instance, operator) => LifeEnd::Finished(output),
    }
}
