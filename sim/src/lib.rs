//! The Stowage operator in one process with everything it talks to: a simulated Kubernetes API, a simulated S3
//! store, a gateway. Production code throughout; the simulation enters below `kube::Client` and below the AWS SDK.

pub mod cli;
pub mod conformance;
pub mod demo;
pub mod determinism;
pub mod effects;
pub mod explorer;
pub mod gateway;
pub mod history;
pub mod kubernetes;
pub mod model;
pub mod mutants;
pub mod objects;
pub mod oracles;
pub mod serve;
pub mod store;
pub mod world;
