//! The table of good and bad objects of all kinds, and what an API server answers to each.
//!
//! `table.yaml` says what it holds and how it is to be read; its expectations are the answers of a
//! real server (Kubernetes 1.34). The same table is played through any [`kube::Client`] ([`run`]):
//! to the simulated API in this crate's tests, to a real API server by `stowage-e2e`. So schema and
//! CEL rules, and the simulation of both, are held to one measure.

mod judge;
mod play;
mod table;

pub use judge::{CaseAnswer, Mismatch};
pub use play::{CaseOutcome, play, run};
pub use table::{Case, Expected, FieldValidation, Kind, Refusal, Request, Rules, SecondWrite, cases, parse};
