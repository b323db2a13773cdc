//! AWS Signature Version 4: who a request is from, signatures of bodies in chunks, and our own
//! towards a store.
//!
//! There is one way to be verified, whatever the payload: [`claim`] reads what the head says, the
//! caller finds the secret key, [`verify`] believes it or not. A caller without a key spends the
//! same work with [`refuse_unknown`].

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
