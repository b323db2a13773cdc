//! The fuzzer, for the target in `STOWAGE_FUZZ_TARGET`: see `fuzz/run`.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use stowage_fuzz::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("STOWAGE_FUZZ_TARGET").unwrap_or_default();
    Target::named(&name).unwrap_or_else(|| {
        let names = TARGETS.map(|target| target.name).join(", ");
        panic!("STOWAGE_FUZZ_TARGET is {name:?}, and not one of {names}")
    })
});

fuzz_target!(|input: &[u8]| (TARGET.play)(input));
