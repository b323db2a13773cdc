//! Tests of the built binary, and of the whole operator against a scripted server. They are one
//! test binary, so that the crate is linked once.

mod admin;
mod cli;
mod crds;
mod namespaced;
