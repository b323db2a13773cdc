//! Each oracle sees its promise broken on purpose, and nothing where it is kept.

mod buckets;
mod canonical;
mod clocks;
mod keys;
mod rest;
mod stored;
mod story;
mod uses;
mod worlds;
