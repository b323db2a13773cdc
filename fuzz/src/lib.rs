//! What Stowage reads from outside, with what must hold of any input.
//!
//! A [`Target`] takes any bytes and panics where a promise is broken: not only that nothing
//! panics, but that what is accepted is what the definitions accept, that what is printed is read
//! back, that what is kept has its bound, and that an answer says no more than stands in it. What
//! is expected is worked out in another way than the code under test does it.
//!
//! `fuzz/run` plays the targets with a fuzzer that sees which code an input reaches; the tests play
//! the corpus, and a few thousand inputs made of it. `docs/guide/fuzzing.md` tells how.

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

/// Something that reads what comes from outside.
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
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}
