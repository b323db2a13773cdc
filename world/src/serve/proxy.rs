//! The proxy of [`faults::proxy`], for plans with Stowage's faults.

pub use faults::proxy::{Body, Crash, EffectLine, Untold, Upstream, UpstreamError, router};

use crate::effects::StowageFault;

/// The faults that one operator meets on its way to real servers.
pub type Proxy = faults::proxy::Proxy<StowageFault>;
/// A plan has a fault that can't be made to happen between real servers.
pub type Unplayable = faults::proxy::Unplayable<StowageFault>;
