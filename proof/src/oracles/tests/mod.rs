//! Each oracle sees its promise broken on purpose, and nothing where it is kept.

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
