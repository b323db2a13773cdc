//! Model checking of the pure planner.
//!
//! The production planner (`stowage_operator::plan`, including its
//! [`Sweep`](stowage_operator::plan::orphans::Sweep)) runs in an abstract world that executes its
//! steps: a few claims, Secrets, buckets and caches, and one or two operators with passes under
//! way. [`stateright`] explores every reachable state of such a world. Any event can happen between
//! two steps of a pass. See `docs/guide/model.md`.
//!
//! | file | content |
//! |---|---|
//! | `worlds`, `access_worlds` | list of worlds: their objects, events and faults |
//! | `world`, `state` | definition of a world, and a state of it |
//! | `facts`, `objects`, `names` | claims, Secrets, tags and backends, as numbers |
//! | `shown` | the same objects as the planner sees them |
//! | `phrases` | calls and replies between a pass and the world, as numbers |
//! | `talks`, `shelf` | calls of the planner, once for each view that occurs |
//! | `caches`, `turn` | start of a pass; answers to its steps and execution of its effects |
//! | `people` | events from outside the operator |
//! | `access`, `access_talks`, `visit` | the access: its objects, its planner, its passes |
//! | `sweeps`, `access_sweep` | steps and answers of sweeps, and execution of the access's |
//! | `checker` | possible actions in a state: the stateright model |
//! | `promise` | the promises that are checked |
//! | `oracle`, `access_oracle` | safety rules |
//! | `rest`, `access_rest` | rules at rest |

mod access;
mod access_oracle;
mod access_rest;
mod access_sweep;
mod access_talks;
#[cfg(test)]
mod access_tests;
mod access_worlds;
mod caches;
mod checker;
mod facts;
mod names;
mod objects;
mod oracle;
mod people;
mod phrases;
mod promise;
mod rest;
mod run;
mod shelf;
mod shown;
mod state;
mod sweeps;
mod talks;
#[cfg(test)]
mod tests;
mod text;
mod turn;
mod visit;
mod world;
mod worlds;

pub use promise::Promise;
pub use run::{ModelReport, Options, Violation, WorldReport, run, world_names};
pub use text::{cpu_name, document, write_summary, write_violation, write_world};
