//! The pure planner, model-checked.
//!
//! The production planner (`stowage_operator::plan`, its
//! [`Sweep`](stowage_operator::plan::orphans::Sweep) included) is put into an abstract world that
//! executes its steps: a handful of claims, Secrets, buckets, caches, one or two operators with
//! passes under way. [`stateright`] goes through every state that such a world can come into: what
//! everybody does falls between any two steps of a pass. See `docs/guide/model.md`.
//!
//! | file | what |
//! |---|---|
//! | `worlds`, `access_worlds` | which worlds there are: who is in them, what may go wrong |
//! | `world`, `state` | what a world is made of, and a state of it |
//! | `facts`, `objects`, `names`, `shown` | claims, Secrets, tags and backends, by numbers and as the planner sees them |
//! | `phrases` | what is said between a pass and the world: by numbers too |
//! | `talks`, `shelf` | the conversations with the planner: it is asked once for each view that comes up |
//! | `caches`, `turn` | how a pass begins; how its steps are answered and carried out |
//! | `people` | what everybody else does |
//! | `access`, `access_talks`, `visit` | the access: its objects, its planner, the passes |
//! | `sweeps`, `access_sweep` | the sweeps: what is said to them, and how those of the access are carried out |
//! | `checker` | what can happen in a state: the model as stateright explores it |
//! | `promise`, `oracle`, `rest`, `access_oracle`, `access_rest` | what must never be, and what must be at rest |

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
