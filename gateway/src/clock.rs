//! The time of day.

use std::sync::Arc;

use jiff::Timestamp;

/// Where the gateway reads the time from.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
