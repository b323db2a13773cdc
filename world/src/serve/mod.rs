//! The simulated parts on sockets, and a proxy that breaks calls to real ones.
//!
//! What the simulator puts together in one process stands here as servers: the store for an
//! operator and a gateway that run as processes or pods of their own, on the real clock; and the
//! fault layer of [`crate::effects`] as a proxy between operator, API server and store, so that a
//! plan means on a real cluster what it means in a simulated one.
//!
//! - [`store`], [`store_on`], [`api`]: the simulated services, each on a [`Server`];
//! - [`RequestLog`]: what the S3 servers were asked, for those who judge from the outside;
//! - [`proxy`]: faults between real clients and real servers, which is [`faults::proxy`] with
//!   Stowage's own faults.
//!
//! A harness uses these in process; `stowage-sim serve` runs each as a process.

pub mod proxy;
mod requests;
mod services;

pub use faults::proxy::Server;
pub use requests::{Logged, RequestLog, S3Request};
pub use services::{api, store, store_on};
