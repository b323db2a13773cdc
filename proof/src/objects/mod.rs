//! Table of valid and invalid objects of all kinds, with the answer of an API server to each.
//!
//! `table.yaml` describes its own format. Its expectations are the answers of a real server
//! (Kubernetes 1.34). The same table is played through any [`kube::Client`] ([`run`]): against the
//! simulated API in this crate's tests, and against a real API server by `stowage-e2e`. So the
//! schema, the CEL rules and their simulation are tested against the same expectations.

mod judge;
mod play;
mod table;

pub use judge::{CaseAnswer, Mismatch};
pub use play::{CaseOutcome, play, run};
pub use table::{Case, Expected, FieldValidation, Kind, Refusal, Request, Rules, SecondWrite, cases, parse};
