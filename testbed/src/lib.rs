//! Where end-to-end scenarios and measurements play: control planes, stores, operators, gateways,
//! and the faults between them.
//!
//! An [environment](environment::Environment) is a cluster, a store, and a way to start operators.
//! It is there already, or the harness' own: processes of a [`control_plane`] and a [`simulated`]
//! store, or a [`kind`] cluster with everything in it. An own cluster is judged from outside
//! (`judge`) by its logs (`audit` and the store's), and a [`fault_proxy`] stands between it and
//! the operator. [`operator`] and [`gateway`] run as a [`process`], or as they are installed, with
//! the [`rights`] of their [`users`]. [`request`] writes requests to S3 byte by byte, signed by
//! [`sigv4`], and [`store`] asks by Amazon's SDK. [`tools`] and [`script`] run programs of others.

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
