//! What the operator would do next, told and not done: `plan` and `why` (spec §5).
//!
//! The planner is asked as in a pass, its questions are answered by the same observer, and at the
//! first effect the reconciliation is over: that is what comes next. There is nobody here who could
//! carry it out, and the clients of API server and stores are those of `--read-only`.
//!
//! What a running operator has in memory is not known here: what of it matters stands in the status
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
