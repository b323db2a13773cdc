//! What the operator would do next, told and not done: `plan` and `why` (spec §5).
//!
//! The planner is asked as in a pass, its questions are answered by the same observer, and at the
//! first effect the conversation is over: that is what comes next. There is nobody here who could
//! carry it out, and the clients of API server and stores are those of `--read-only`.
//!
//! What a running operator has in memory is not known here: what of it matters stands in the status
//! that it has written (`controller/looks.rs`).

mod backend;
mod claim;
mod heard;
mod line;
mod orphan;
mod plan;
mod seen;
mod setup;
mod text;
mod why;

pub use line::{Deed, Line, Next, Object};
pub use plan::{Plan, plan};
pub use setup::{GivenGateway, Means, Scope, Setup};
pub use text::Paint;
pub use why::{BackendWord, Why, why};
