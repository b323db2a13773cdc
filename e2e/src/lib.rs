//! Scenarios for the Stowage operator on a real API server and a real S3 store.
//!
//! [`Cli`] reads what to do, `run` does it. Scenarios play in a `cluster` with a `store`, which are there, or are the
//! harness' own: a `control_plane` and a `simulated` store, or a `kind` cluster with everything in it. Either is a `rig`, whose
//! logs (`audit` and the store's) are judged from outside (`judge`), and between which and the operator faults happen
//! (`way`, which `controls` the proxy there). What they made is taken away again. `operator` is what is under test; `report`
//! tells what came of it, and `artefacts` keeps what explains a failure.

mod artefacts;
mod audit;
mod cli;
mod clock;
mod cluster;
mod control_plane;
mod controls;
mod judge;
mod kind;
mod operator;
mod report;
mod rig;
mod run;
mod scenarios;
mod simulated;
mod stage;
mod store;
mod tenant;
mod way;

pub use cli::Cli;
pub use control_plane::missing as missing_of_a_control_plane;
pub use report::{Report, ScenarioReport};
pub use scenarios::Scenario;
