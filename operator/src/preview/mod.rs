//! Previews the operator's next steps without carrying them out: `plan` and `why` (spec §5).
//!
//! The planner runs as in a pass, the same observer answers its looks, and the first effect ends
//! the reconciliation: that is the next step. Nothing here could carry it out, and the clients of
//! API server and stores are those of `--read-only`.
//!
//! The memory of a running operator is not available here. The relevant parts are in the status
//! that it has written (`controller/looks.rs`).

mod access;
mod ahead;
mod backend;
mod claim;
mod departure;
mod gateway;
mod heard;
mod line;
mod list;
mod obc;
mod orphan;
mod plan;
mod seen;
mod seen_obc;
mod setup;
mod text;
mod why;
mod why_access;
mod why_obc;
mod why_text;

pub use departure::departure;
pub use line::{Deed, Line, Next, Object};
pub use plan::{Plan, plan};
pub use setup::{GivenGateway, Means, Scope, Setup};
pub use text::Paint;
pub use why::{BackendWord, Why, why};
pub use why_access::{WhyAccess, why_access};
pub use why_obc::{WhyObc, Worker, why_obc};
