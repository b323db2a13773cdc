//! Stores: connections, calls, the share of calls of each tenant, and circuit breakers.

mod call;
mod circuit;
mod clients;
mod heard;
mod shares;
mod transport;

pub use self::call::{Call, CallError, Place};
pub use self::clients::{Admitted, Client, Clients, NotNow};
pub use self::shares::{Place as Share, Shares, Tenant};
pub use self::transport::{Connect, RustlsConnect, Transport};
pub use store_tls::{ConnectError, Trust};
