//! Plays a controller under every fault at every call, and judges what comes of it.

mod body;
mod exploration;
pub mod lives;
mod oracle;
pub mod plans;
mod schedule;
pub mod services;
mod shard;
mod shrink;
mod simulation;
pub mod workers;
mod world;

pub use body::ApiBody;
pub use exploration::{Failure, Report};
pub use oracle::{Oracle, Seen};
pub use schedule::{Schedule, ScheduleError};
pub use shard::Shard;
pub use shrink::shrink;
pub use simulation::{Broken, KEY, OWNER, Process, Run, SECRET, Simulation};
pub use world::{Clock, StoreService, World};
