//! Plays a controller under every fault at every call that it makes, and judges what comes of it.
//!
//! A controller talks to a Kubernetes API, and perhaps to a store. [`Simulation`] gives it
//! simulated ones, below its real clients, so that the code that is tried is the code that ships.
//! One run without faults numbers its calls. Then each call is given each fault that makes sense
//! for it: the answer is lost, the API server refuses, a watch goes silent, the process dies before
//! the effect, after it, or after its answer. In the end, what the user wanted must have come
//! about, and every [`Oracle`] must be content. What breaks a promise is a line of text that plays
//! it again.
//!
//! # A tutorial
//!
//! The example `copier` tries a controller that copies labelled ConfigMaps into a bucket and cleans
//! up after them. Its `controller.rs` is an ordinary kube-rs controller: it is given a
//! `kube::Client` and an AWS SDK client, and knows of nothing else. `simulation.rs` is all that is
//! written to try it; it has four parts.
//!
//! 1. *The process*: how a life of it begins. It is called again after each crash.
//!    ```text
//!    Simulation::seeded(7).process(|process: Process| async move {
//!        let store = InProcess::new(process.store).client(KEY, SECRET, "us-east-1");
//!        controller::run(process.client, store).await;
//!    })
//!    ```
//! 2. *The user*: what there is [`before`](Simulation::before), and what the
//!    [`user`](Simulation::user) does once the process has nothing to do. The user meets no faults,
//!    and doesn't wait for the process.
//! 3. *The end*: what has to have come about, by [`until`](Simulation::until), whatever goes wrong.
//!    An hour of simulated time is patience enough; it passes in milliseconds.
//! 4. *Promises*: an [`Oracle`] is told of each call and judges the end. It looks at the world,
//!    never at the controller's code: that no copy is left without its ConfigMap, for instance.
//!
//! [`explore`](Simulation::explore) plays it all and gives an [`ExplorationReport`], which prints
//! as a table:
//!
//! ```text
//! $ cargo run --release -p explore --example copier -- --copy-first
//! FAULT                      TRIED   BROKE
//! crash                         24       2
//! …
//! ✗ NoStrayCopy: default/draft is left, its ConfigMap is gone
//!     #9 crash(after-effect)
//! ```
//!
//! The line below a broken promise is a [`Plan`](faults::Plan): `simulation.run(&line.parse()?)`
//! plays it again. A controller with third parties of its own (people who edit its Secrets, say)
//! brings them as a [`Vocabulary`](faults::Vocabulary) and uses the parts of this crate ([`plans`],
//! [`lives`], [`shrink`], [`workers`]) around a world of its own.
//!
//! # Guarantees
//!
//! - Every effect of the undisturbed run after the user's first act is a crash point at three
//!   places, and [`ExplorationReport::is_clean`] is false unless all of them were met.
//! - Besides the oracles, three promises are judged of every run: `end` (what was wanted came about
//!   and stayed), `rest` (the process changes nothing once all is as wanted), `panic` (nothing
//!   panicked).
//! - A failure is shown with as few faults as break the same promise.
//!
//! # Determinism
//!
//! The same seed and plan give the same run, see [`seeded`]. Statics that draw random numbers at
//! their first use are for a [`WarmUp`](seeded::WarmUp), given by [`Simulation::after`].
//!
//! # Limits
//!
//! - The Kubernetes API and the store are simulated: see `kube_sim` and `s3_sim` for what is not
//!   modelled.
//! - Pairs of faults are tried at random, not all of them.
//! - An oracle can only judge what it looks at.

#![warn(clippy::too_many_lines)]

mod body;
pub mod lives;
mod oracle;
mod others;
pub mod plans;
mod schedule;
pub mod services;
mod shard;
mod shrink;
mod simulation;
pub mod workers;
mod world;

pub use body::ApiBody;
pub use oracle::{Oracle, Seen};
pub use others::StoreService;
pub use schedule::{Schedule, ScheduleError};
pub use shard::Shard;
pub use shrink::shrink;
pub use simulation::{Broken, ExplorationReport, Failure, Process, Run, Simulation};
pub use world::{KEY, OWNER, SECRET, SimulatedWorld};
