//! Tests that prove the Stowage operator and its simulator: scenarios played under every fault and
//! judged by oracles, a model of the planner checked exhaustively, mutants of the operator, and the
//! simulator compared with real servers.

pub mod cli;
pub mod conformance;
pub mod explorer;
pub mod model;
pub mod mutants;
pub mod objects;
pub mod oracles;
