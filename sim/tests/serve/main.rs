//! Tests of the simulated parts and the proxy on real sockets, with real clients and the real
//! clock.

mod gateway;
mod numbering;
mod parts;
mod process;
mod proxy;
mod watches;
