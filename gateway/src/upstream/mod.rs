//! Stores: how they are reached and asked, and how many calls each has at once.

mod call;
mod clients;
mod transport;

pub use self::call::{Call, CallError, Place};
pub use self::clients::{Client, Clients};
pub use self::transport::{Connect, RustlsConnect, Transport};
pub use store_tls::{ConnectError, Trust};
