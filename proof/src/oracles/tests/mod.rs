//! Tests that each oracle finds violations of its promises, and finds none where they are kept.

mod accesses;
mod adoption;
mod buckets;
mod canonical;
mod clocks;
mod exchanges;
mod holders;
mod keys;
mod policy;
mod public;
mod rest;
mod revocation;
mod stored;
mod story;
mod uses;
mod worlds;
