//! The path of a request: parse, authenticate, authorise, forward, respond.

mod admission;
mod answers;
mod authentication;
mod config;
mod deleting;
mod deletions;
mod documents;
mod gateway;
mod peer;
mod quota;
mod recheck;
mod record;
mod segments;
mod serve;
mod shared;
mod source;
mod store;
mod upload;
mod versions;

pub use self::config::Config;
pub use self::gateway::Gateway;
pub use self::peer::{Peer, Proxies};
pub use self::shared::Gears;
pub(crate) use self::store::Reading;
pub use crate::clock::WallClock;
