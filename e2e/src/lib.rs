//! Scenarios for the Stowage operator on a real API server and a real S3 store.
//!
//! [`Cli`] reads what to do; `cluster` and `store` hold what the scenarios work on, and take away again what
//! they made; `operator` is the process under test; `scenarios` play and check; `report` tells.

mod cli;
mod cluster;
mod operator;
mod report;
mod scenarios;
mod store;

pub use cli::Cli;
pub use report::{Report, ScenarioReport};
pub use scenarios::Scenario;
