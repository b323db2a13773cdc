//! A whole world in one process: a cluster, an S3 store, a gateway, and the operator between them.
//!
//! Everything runs on tokio's clock, which in a paused runtime jumps to the next timer: minutes of
//! backoff take no time. The operator is the production crate, started through its public
//! [`stowage_operator::run`].

mod backends;
mod beginnings;
mod clocks;
mod config;
pub mod deeds;
pub mod determinism;
pub mod effects;
pub mod fixtures;
mod foreign;
pub mod gateway;
mod gateways;
pub mod history;
mod installation;
mod manifests;
mod operator;
mod options;
pub mod scenes;
pub mod serve;
mod third_parties;
mod transport;
mod world;

pub use backends::BackendStore;
pub use clocks::Clocks;
pub use config::config_for;
pub use foreign::Foreign;
pub use installation::{
    ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, PROVISIONER,
    STORE_ENDPOINT, definitions,
};
pub use manifests::{Document, ManifestError, apply, apply_as, parse, read_once};
pub use operator::{Circumstances, Operator, operator_instance};
pub use options::{Accesses, Options};
pub use third_parties::{Accounts, ControllersRest, ThirdParties};
pub use transport::{Hosts, Stores, authority};
pub use world::{TookTooLong, World};
