//! Runs a controller under every fault at every call that it makes, and judges the outcome.
//!
//! A controller calls a Kubernetes API, and perhaps an S3 store. [`Simulation`] simulates both
//! below the controller's real clients, so that the code under test is the code that ships. One run
//! without faults numbers its calls. Then each call meets each fault that makes sense for it: the
//! answer is lost, the API server refuses, a watch goes silent, the process dies before the call is
//! carried out, after that, or after its answer. At the end of each run the state that the user
//! wanted must be reached, and every [`Oracle`] must be satisfied. Each violation is printed as one
//! line of text that replays it.
//!
//! # A tutorial
//!
//! The example `copier` tests a controller that copies labelled ConfigMaps into a bucket and cleans
//! up after them. Its `controller.rs` is an ordinary kube-rs controller: it takes a `kube::Client`
//! and an AWS SDK client, and nothing of the simulation. `simulation.rs` is all the code that the
//! test needs; it has four parts.
//!
//! 1. *The process*: the entry point of the controller. It is called again after each crash.
//!    ```text
//!    Simulation::seeded(7).process(|process: Process| async move {
//!        let store = InProcess::new(process.store).client(KEY, SECRET, "us-east-1");
//!        controller::run(process.client, store).await;
//!    })
//!    ```
//! 2. *The user*: the state [`before`](Simulation::before) the process starts, and the actions of
//!    the [`user`](Simulation::user) once the process is idle. The user meets no faults, and
//!    doesn't wait for the process.
//! 3. *The end*: the state that must be reached, by [`until`](Simulation::until), under every
//!    fault. The limit is an hour of simulated time, which passes in milliseconds.
//! 4. *Promises*: an [`Oracle`] observes each call and judges the final state. It looks at the
//!    world, never at the controller's code: for instance, that no copy is left without its
//!    ConfigMap.
//!
//! [`explore`](Simulation::explore) runs all of it and returns an [`ExplorationReport`], which
//! prints as a table:
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
//! The line below a violation is a [`Plan`](faults::Plan): `simulation.run(&line.parse()?)` replays
//! it. A controller with third parties of its own (people who edit its Secrets, say) defines them
//! as a [`Vocabulary`](faults::Vocabulary) and uses the parts of this crate ([`plans`], [`lives`],
//! [`shrink`], [`workers`]) around its own world.
//!
//! # Guarantees
//!
//! - Every call of the fault-free run after the user's first action is a crash point at three
//!   places, and [`ExplorationReport::is_clean`] is false unless all of them were reached.
//! - Besides the oracles, three promises are judged for every run: `end` (the wanted state was
//!   reached and stayed), `rest` (the process changes nothing once the wanted state is reached),
//!   `panic` (nothing panicked).
//! - A failure is reported with as few faults as break the same promise.
//!
//! # Determinism
//!
//! The same seed and plan give the same run, see [`seeded`]. Statics that draw random numbers at
//! their first use need a [`WarmUp`](seeded::WarmUp), set by [`Simulation::after`].
//!
//! # Limits
//!
//! - The Kubernetes API and the store are simulated: see `kube_sim` and `s3_sim` for the parts that
//!   are not modelled.
//! - Pairs of faults are sampled at random, not enumerated.
//! - An oracle can only judge the state that it looks at.

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
