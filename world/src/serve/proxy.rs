//! The proxy of [`faults::proxy`], for plans with Stowage's faults.

pub use faults::proxy::{Body, Crash, EffectLine, Untold, Upstream, UpstreamError, router};

use crate::effects::StowageFault;

/// Proxy that injects the faults of one operator on its way to real servers.
pub type Proxy = faults::proxy::Proxy<StowageFault>;
/// Error for a plan with a fault that cannot be injected between real servers.
pub type Unplayable = faults::proxy::Unplayable<StowageFault>;
