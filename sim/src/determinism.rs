//! Determinism: everything that would differ between two runs, taken from a seed.
#![allow(unsafe_code)]
