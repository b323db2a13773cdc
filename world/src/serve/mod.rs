//! Simulated services on sockets, and a proxy that injects faults into calls to real ones.
//!
//! The parts that the simulator combines in one process are servers here: the store, for an
//! operator and a gateway that run as separate processes or pods on the real clock; and the fault
//! layer of [`crate::effects`], as a proxy between operator, API server and store. So a plan means
//! the same on a real cluster as in a simulated one.
//!
//! - [`store`], [`store_on`], [`api`]: the simulated services, each on a [`Server`];
//! - [`RequestLog`]: requests to the S3 servers, for oracles that judge from the outside;
//! - [`proxy`]: faults between real clients and real servers. It is [`faults::proxy`] with
//!   Stowage's own faults.
//!
//! A harness uses these in process; `stowage-sim serve` runs each as a process.

pub mod proxy;
mod requests;
mod services;

pub use faults::proxy::Server;
pub use requests::{Logged, RequestLog, S3Request};
pub use services::{api, store, store_on};
