//! AWS Signature Version 4: verification of requests and of chunked bodies, and signing of requests
//! to a store.
//!
//! Every kind of payload is verified in the same way: [`claim`] parses the head, the caller finds
//! the secret key, [`verify`] checks the signature. If the key is unknown, the caller does the same
//! work with [`refuse_unknown`].

mod canonical;
mod chain;
mod claim;
mod raw;
mod scope;
mod secret;
mod sign;
mod verify;

pub(crate) use canonical::ALGORITHM;
pub use chain::Chain;
pub use claim::{Claim, How, claim};
pub(crate) use raw::HASH_OF_NOTHING;
pub use raw::Raw;
pub(crate) use scope::parse_stamp;
pub use scope::{Clause, Credential, Day, Scope};
pub use secret::{Signature, SigningSecret};
pub use sign::{Outgoing, Signer};
pub use verify::{Verified, refuse_unknown, verify};
pub(crate) use verify::{mismatch, unknown_key};
