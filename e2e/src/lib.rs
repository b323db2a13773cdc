//! Scenarios for the Stowage operator on a real API server and a real S3 store.
//!
//! [`Cli`] reads what to do, `run` does it. `scenarios` play in an environment of the
//! [testbed](stowage_testbed), of a kind that `cluster_kind` names. A `tenant` uses what a scenario
//! made for it, where two gateways serve it through a `balancer`. `report` tells what came of a
//! run, `artefacts` keeps what explains a failure, and `replay` names the command that plays the
//! same in the simulator. `chart` plays the Helm chart, `alerts` the troubles that alerts are for,
//! `kubectl` compares API servers by its commands, also with a `simulator` in this process. `guide`
//! plays the commands of the documentation.

mod alerts;
mod artefacts;
mod balancer;
mod chart;
mod cli;
mod cluster_kind;
mod guide;
mod kubectl;
mod replay;
mod report;
mod run;
mod scenarios;
mod simulator;
mod tenant;

pub use cli::Cli;
pub use report::{RunReport, ScenarioReport};
pub use scenarios::Scenario;
