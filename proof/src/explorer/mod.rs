//! The explorer: runs scenarios under every fault, and judges the outcome.

pub mod campaign;
pub mod cells;
pub mod corpus;
mod ending;
mod log;
mod others;
pub mod outcome;
mod outlast;
pub mod plans;
mod play;
mod probe;
mod probe_accesses;
mod quick;
mod reference;
pub mod report;
pub mod retold;
pub mod run;
pub mod scenario;
pub mod scenarios;
pub mod schedule;
pub mod script;
pub mod shrink;
mod stage;
mod tenants;
pub mod timeline;
pub mod transcript;

pub use campaign::{Campaign, Order, Profile, Progress, explore};
pub use explore::Shard;
pub use outcome::Outcome;
pub use report::{CampaignReport, Failure};
pub use run::run;
pub use scenario::{Scenario, ScenarioPhase};
pub use schedule::{Schedule, ScheduleError};
pub use transcript::Detail;
