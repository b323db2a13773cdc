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
//! | `worlds` | which worlds there are: who is in them, what may go wrong |
//! | `world`, `state` | what a world is made of, and a state of it |
//! | `objects` | claims, Secrets, tags and backends as the planner sees them, by numbers |
//! | `phrases` | what is said between a pass and the world: by numbers too |
//! | `talks`, `keys` | the conversations with the planner: it is asked once for each view that comes up |
//! | `caches`, `turn` | how a pass begins; how its steps are answered and carried out |
//! | `people` | what everybody else does |
//! | `checker` | what can happen in a state: the model as stateright explores it |
//! | `oracle`, `rest` | what must never be, and what must be at rest |

mod caches;
mod checker;
mod objects;
mod oracle;
mod people;
mod phrases;
mod rest;
mod run;
mod shelf;
mod state;
mod talks;
#[cfg(test)]
mod tests;
mod text;
mod turn;
mod world;
mod worlds;

pub use oracle::Promise;
pub use run::{ModelReport, Options, Violation, WorldReport, run, world_names};
pub use text::{cpu_name, document, write_summary, write_violation, write_world};
