//! Bodies from the client to the store: what is decoded, what is verified, what a store gets of it,
//! and how long it may take. The client here signs and the store here parses with code of their
//! own.

mod client;
mod decoding;
mod memory;
mod pacing;
mod payloads;
mod store;
mod tampering;
mod to_the_store;
