//! Environments for end-to-end scenarios and measurements: control planes, stores, operators,
//! gateways, and the faults between them.
//!
//! An [environment](environment::Environment) is a cluster, a store, and a way to start operators.
//! It exists already, or the harness starts it: a [`control_plane`] of processes and a
//! [`simulated`] store, or a [`kind`] cluster with everything in it. The harness checks scenarios
//! in its own cluster from outside (`judge`) by the logs (`audit`, and the store's). A
//! [`fault_proxy`] is between that cluster and the operator. [`operator`] and [`gateway`] run as a
//! [`process`], or as they are installed, with the [`rights`] of their [`users`]. [`request`]
//! writes S3 requests byte by byte, signed by [`sigv4`]; [`store`] uses the AWS SDK. [`tools`] and
//! [`script`] run third-party programs.

mod ask;
mod audit;
pub mod clock;
pub mod console;
pub mod control_plane;
pub mod definitions;
pub mod environment;
pub mod failure;
pub mod fault_proxy;
pub mod gateway;
mod judge;
pub mod kind;
pub mod log;
pub mod objects;
pub mod operator;
pub mod process;
pub mod request;
pub mod rights;
pub mod script;
pub mod sigv4;
pub mod simulated;
pub mod store;
pub mod tools;
pub mod users;
pub mod words;
