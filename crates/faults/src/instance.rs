//! One life of the operator: how a fault ends it, and how the harness learns of it.
//!
//! # Guarantees
//!
//! Once an instance is dead, no call of it reaches the world and none returns: whatever of the
//! operator still runs until its future is dropped can change nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::watch;

use super::standstill::{Standstill, Stop};

/// How long a life that ends after an answer may go on at most, so that it ends also if no further
/// call comes. Under tokio's paused clock this passes only when the operator has nothing left to do
/// but wait.
const LAST_BREATH: Duration = Duration::from_millis(1);

/// One life of the operator, from its start to its end or its crash. Cheap to clone; clones are the
/// same life.
#[derive(Clone, Debug)]
pub struct Instance {
    id: u32,
    life: Arc<watch::Sender<Life>>,
    standstill: Standstill,
    /// Whether it takes a turn while another one stands still: no third takes one meanwhile.
    is_twin: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    /// To die at its next call, at the latest after [`LAST_BREATH`].
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

    /// Which life of the run this is, counted from 1.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether it has died.
    pub fn is_dead(&self) -> bool {
        matches!(*self.life.borrow(), Life::Dead { .. })
    }

    /// Ends this life now, as SIGKILL would, at no effect in particular. Of the dead, nothing.
    pub fn kill(&self) {
        self.die(None);
    }

    /// Comes to an end when this life stands still. Whoever runs it then lets it go on, when it is
    /// time.
    pub async fn stops(&self) -> Stop {
        poll_fn(|context| self.standstill.poll_on(context)).await
    }

    /// Has it go on after a stop.
    pub fn go_on(&self) {
        self.standstill.end();
    }

    /// Has it stand still. A twin does not for another one.
    pub(super) fn stop(&self, stop: Stop) {
        if stop != Stop::Twin || !self.is_twin {
            self.standstill.begin(stop);
        }
    }

    /// Comes to an end while it moves.
    pub(super) async fn moves(&self) {
        poll_fn(|context| self.standstill.poll_off(context)).await;
    }

    pub(super) fn standstill(&self) -> &Standstill {
        &self.standstill
    }

    /// Ends this life because of a crash at this effect.
    pub(super) fn crash(&self, effect: u64) {
        self.die(Some(effect));
    }

    /// Lets the caller have its answer and ends this life before anything else is carried out.
    pub(super) fn doom(&self, effect: u64) {
        self.life.send_if_modified(|life| {
            let alive = *life == Life::Alive;
            if alive {
                *life = Life::Doomed { effect };
            }
            alive
        });
    }

    /// Whether a call may go on to the world. To a doomed instance the question is its end.
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

    /// Ends when the life has; gives the effect it crashed at, or `None` if it was killed.
    ///
    /// Waiting here is what lets a life end that was to end after an answer and makes no further
    /// call.
    pub async fn death(&self) -> Option<u64> {
        let mut life = self.life.subscribe();
        loop {
            let now = *life.borrow_and_update();
            match now {
                Life::Dead { effect } => return effect,
                Life::Doomed { effect } => {
                    // Whether the life ends meanwhile or has to be ended here comes to the same.
                    let _ = tokio::time::timeout(LAST_BREATH, life.changed()).await;
                    self.die(Some(effect));
                }
                Life::Alive => {
                    // The sender lives in `self`, so this can't fail.
                    let _ = life.changed().await;
                }
            }
        }
    }

    /// Ends when the life has, without hastening it.
    pub(super) async fn is_over(&self) {
        let mut life = self.life.subscribe();
        // The sender lives in `self`, so this can't fail.
        let _ = life.wait_for(|life| matches!(life, Life::Dead { .. })).await;
    }
}

/// Lets through what is for a life only while that moves.
#[derive(Clone, Debug)]
pub struct Gate(Instance);

impl Gate {
    /// The gate before this life.
    pub fn before(instance: &Instance) -> Self {
        Self(instance.clone())
    }

    /// Ready while the life moves.
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        self.0.standstill().poll_off(context)
    }
}

/// A life's future, which is polled only while the life moves.
async fn moving<F: Future>(instance: &Instance, life: F) -> F::Output {
    let gate = Gate::before(instance);
    let mut life = pin!(life);
    poll_fn(|context| {
        ready!(gate.poll_open(context));
        life.as_mut().poll(context)
    })
    .await
}

/// How a life of the operator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeEnd<T> {
    /// The operator's future came to its own end.
    Finished(T),
    /// It was killed: by a crash at this effect, or by [`Instance::kill`] (`None`).
    Crashed {
        /// Number of the effect at which the plan had it crash.
        effect: Option<u64>,
    },
}

/// Runs the operator until it ends or its instance dies; on death its future is dropped, and with
/// it all that it has in hand. While its instance stands still it is not polled.
///
/// # Assumptions
///
/// The operator's work lives in its future: a task it has spawned and let go of would outlive it
/// (without reaching the world, see [`Instance`]).
pub async fn run_until_crash<F: Future>(instance: &Instance, operator: F) -> LifeEnd<F::Output> {
    tokio::select! {
        biased;
        effect = instance.death() => LifeEnd::Crashed { effect },
        output = moving(instance, operator) => LifeEnd::Finished(output),
    }
}
