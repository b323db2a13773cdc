//! Fuzz targets for everything that Stowage parses from outside, with the properties that must be
//! true for any input.
//!
//! A [`Target`] accepts any bytes and panics if a property is violated. It checks more than the
//! absence of panics: exactly the inputs that the definitions accept are accepted, printed values
//! are parsed as the same, memory is bounded, and results contain no more than their input.
//! Expected results are computed in another way than in the code under test.
//!
//! `fuzz/run` plays the targets with a coverage-guided fuzzer. The tests play the corpus, and a few
//! thousand inputs derived from it. `docs/guide/fuzzing.md` explains how.

#![warn(clippy::too_many_lines)]

mod definitions;
mod gateway;
mod held;
mod names;
mod objects;
mod plans;
mod protobuf;
mod quantities;
mod secrets;
mod store;
mod templates;

/// A parser of external input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name; its corpus is `fuzz/corpus/NAME`, its dictionary `fuzz/dictionaries/NAME`.
    pub name: &'static str,
    /// Plays one input.
    pub play: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 14] = [
    Target { name: "names", play: names::play },
    Target { name: "templates", play: templates::play },
    Target { name: "quantities", play: quantities::play },
    Target { name: "objects", play: objects::play },
    Target { name: "secrets", play: secrets::play },
    Target { name: "store", play: store::play },
    Target { name: "plans", play: plans::play },
    Target { name: "protobuf", play: protobuf::play },
    Target { name: "copies", play: gateway::copies::play },
    Target { name: "chunks", play: gateway::chunks::play },
    Target { name: "heads", play: gateway::heads::play },
    Target { name: "forms", play: gateway::forms::play },
    Target { name: "documents", play: gateway::documents::play },
    Target { name: "deletions", play: gateway::deletions::play },
];

impl Target {
    /// Returns the target with this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}
