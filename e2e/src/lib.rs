//! Scenarios for the Stowage operator on a real API server and a real S3 store.
//!
//! [`Cli`] reads what to do, `run` does it. `scenarios` play in a `testbed`: a cluster and a store,
//! which are there, or are the harness' own: a `control_plane` and a `simulated` store, or a `kind`
//! cluster with everything in it. Either is a `rig`, whose logs (`audit` and the store's) are
//! judged from outside (`judge`), and between which and the operator faults happen (`way`, which
//! `controls` the proxy there). What they made is taken away again. `operator` is what is under
//! test, as a `process` or as it is installed; `report` tells what came of it, `artefacts` keeps
//! what explains a failure, and `failure` is how one is told. Tenants go through a `gateway`, also
//! by a `request` that is written by hand, with a signature (`sigv4`) that is nobody else's.
//! `bench` measures an operator on a control plane and a real store, and `clients` are those of
//! others, which are to work through the gateway; `operators` are those of others, which are to
//! work on the simulator's API server. `guide` plays what the documentation has its readers type.

mod alerts;
mod artefacts;
mod audit;
mod balancer;
mod bench;
mod chart;
mod cli;
mod clients;
mod clock;
mod control_plane;
mod controls;
mod failure;
mod gateway;
mod guide;
mod judge;
mod kind;
mod kubectl;
mod log;
mod objects;
mod operator;
mod operators;
mod process;
mod report;
mod request;
mod rig;
mod rights;
mod run;
mod scenarios;
mod sigv4;
mod simulated;
mod simulator;
mod stage;
mod stage_kind;
mod store;
mod tenant;
mod testbed;
mod tls;
mod tools;
mod users;
mod way;
mod words;

pub use cli::Cli;
pub use control_plane::{MissingProgram, missing as missing_of_a_control_plane};
pub use failure::Failure;
pub use report::{RunReport, ScenarioReport};
pub use scenarios::Scenario;
