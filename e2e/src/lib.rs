//! Scenarios for the Stowage operator on a real API server and a real S3 store.
//!
//! [`Cli`] parses the command line, and `run` plays `scenarios` in an environment of the
//! [testbed](stowage_testbed), on a kind of cluster from `cluster_kind`. A `tenant` uses the
//! objects of a scenario, through a `balancer` if two gateways serve it. `report` is the result of
//! a run, `artefacts` keeps data that explains a failure, and `replay` names the command that plays
//! the same in the simulator. `chart` tests the Helm chart, `alerts` plays the problems that alerts
//! are for, and `kubectl` compares API servers by its commands, one of them from a `simulator` in
//! this process. `guide` plays the commands of the documentation.

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
