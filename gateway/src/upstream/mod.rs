//! Stores: how they are reached and asked, how many calls each has at once and of whom, and when
//! one is left alone.

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
