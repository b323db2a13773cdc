//! The Stowage operator in one process with everything it talks to: a simulated Kubernetes API, a
//! simulated S3 store, a gateway. Production code throughout; the simulation enters below
//! `kube::Client` and below the AWS SDK.
//!
//! # Features
//!
//! `proof`: what tries the operator and the simulator, which are exploration, model, mutants and
//! conformance. Off by default, so that the demo is built in half the time; a build of the whole
//! workspace has it.

#![cfg_attr(not(feature = "proof"), expect(dead_code, reason = "the proof looks at more of a world than the demo"))]

pub mod cli;
#[cfg(feature = "proof")]
pub mod conformance;
pub mod deeds;
pub mod demo;
pub mod determinism;
pub mod effects;
#[cfg(feature = "proof")]
pub mod explorer;
pub mod gateway;
pub mod history;
pub mod installation;
#[cfg(feature = "proof")]
pub mod model;
#[cfg(feature = "proof")]
pub mod mutants;
#[cfg(feature = "proof")]
pub mod objects;
#[cfg(feature = "proof")]
pub mod oracles;
pub mod serve;
pub mod up;
pub mod world;
