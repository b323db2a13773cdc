//! The built binary, and the operator as a whole against a server that answers by hand. One test
//! binary, so that the crate is linked once.

mod admin;
mod cli;
mod crds;
mod namespaced;
