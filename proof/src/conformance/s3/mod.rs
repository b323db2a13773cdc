//! Conformance of the store: random operations, determined by a seed, like those of the operator,
//! the gateway and tenants.

mod bodies;
mod buckets;
mod call;
mod canonical;
mod generate;
mod lists;
mod locks;
mod objects;
mod pair;
pub(super) mod rules;
mod server;
mod side;
mod sign;
mod strange;
mod uploads;
mod xml;

pub use call::{Body, Call, Listing, Operation, Signer};
pub use generate::sequence;
pub use pair::S3Pair;
pub use server::Server;
pub use sign::Keys;
