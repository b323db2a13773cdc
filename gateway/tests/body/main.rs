//! Bodies from the client to the store: decoding, verification, the output for the store, and time
//! limits. The client's signing and the store's parsing are implemented here, independently of the
//! gateway.

mod client;
mod decoding;
mod memory;
mod pacing;
mod payloads;
mod store;
mod tampering;
mod to_the_store;
