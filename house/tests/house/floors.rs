//! Modules of larger crates: no module depends on a later one.

use std::collections::BTreeSet;

use crate::circles::of_crate;
use crate::graph::{Graph, arrow};

/// Modules of each crate, in an order in which they can be read: each depends only on earlier ones.
/// A module is anything directly below the crate's `src`: a file, a folder, or a file and the
/// folder with its name.
const ROOMS: [(&str, &str); 3] = [
    // Simulated and disturbed things; recordings and history; the parts of a world; the world
    // itself.
    (
        "world",
        "deeds manifests foreign installation determinism effects clocks history gateway transport fixtures backends \
         beginnings options config operator gateways third_parties scenes serve world",
    ),
    // Checks and their subjects; the explorers; checks of the proof itself.
    ("proof", "objects oracles model explorer conformance mutants cli"),
    ("sim", "demo up cli"),
];

/// Modules above all others, which no module depends on.
const ROOTS: [&str; 2] = ["lib", "main"];

/// Returns the module that a file is, or is in.
fn room(file: &str) -> &str {
    file.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Returns dependencies on a module that is not earlier, or that is not listed.
fn up(graph: &Graph, order: &str) -> Vec<String> {
    let height = |room: &str| match ROOTS.contains(&room) {
        true => Some(usize::MAX),
        false => order.split_whitespace().position(|known| known == room),
    };
    let is_up = |from: &str, to: &str| {
        let (from, to) = (room(from), room(to));
        from != to && height(from).zip(height(to)).is_none_or(|(from, to)| to >= from)
    };
    graph.between().filter(|(from, to, _)| is_up(from, to)).map(|(from, to, names)| arrow(from, to, names)).collect()
}

#[test]
fn no_arrow_runs_up_between_the_rooms_of_a_crate() {
    for (folder, order) in ROOMS {
        let graph = of_crate(folder);
        let files = graph.between().flat_map(|(from, to, _)| [from, to]);
        let rooms: BTreeSet<&str> = files.map(room).filter(|room| !ROOTS.contains(room)).collect();
        assert_eq!(rooms, order.split_whitespace().collect(), "{folder}: on which floor are these?");
        assert_eq!(up(&graph, order), [] as [&str; 0], "{folder}");
        let across: Vec<_> = graph.joined().filter(|(file, whole)| room(file) != room(whole)).collect();
        assert_eq!(across, [] as [(&str, &str); 0], "{folder}: an `impl` block of a type stays in its room");
    }
}

#[test]
fn an_arrow_that_runs_up_between_rooms_is_seen() {
    let planted = |file: &str, text: &str| {
        let files = [
            ("lib.rs", "pub mod cli; pub mod low; pub mod high; pub fn all() { high::play() }"),
            ("cli.rs", "mod play; use crate::high::play; fn run() { play::command() }"),
            ("cli/play.rs", "use crate::low::Case; pub fn command() {}"),
            ("high/mod.rs", "mod run; pub use run::play;"),
            ("high/run.rs", "use crate::low::Case; pub fn play() {}"),
            ("low.rs", "pub struct Case;"),
        ];
        let planted = files.map(|(name, before)| {
            let after = if name == file { format!("{before} {text}") } else { before.to_owned() };
            (name.to_owned(), after)
        });
        up(&Graph::of(&planted), "low high cli")
    };
    assert_eq!(planted("", ""), [] as [&str; 0]);
    assert_eq!(planted("low.rs", "use crate::high::play;"), ["low.rs -> high/run.rs: play"]);
    assert_eq!(
        planted("high/run.rs", "fn f() { crate::cli::play::command() }"),
        ["high/run.rs -> cli/play.rs: command"]
    );
    assert_eq!(planted("low.rs", "fn f() { crate::all() }"), ["low.rs -> lib.rs: all"]);
}
