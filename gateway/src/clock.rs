//! The wall clock.

use std::sync::Arc;

use jiff::Timestamp;

/// A source of the current time.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
