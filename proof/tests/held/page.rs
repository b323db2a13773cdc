//! The page that shows the table.

use std::fmt::Write;

use super::evidence::State;
use super::{Kind, PROMISES};

/// Renders `docs/reference/held.md`.
pub(super) fn render() -> String {
    let mut text = String::from(
        "# Held\n\nEvery promise for every kind of object that Stowage reads or writes: the tests that hold it, or the \
         reason why it\ndoesn't apply. Written by `just held` from `proof/tests/held/`, which checks that everything \
         named here is in the tree.\n\n## Overview\n\n✓ is held, – doesn't apply, ○ is open: no test holds it yet.\n\n",
    );
    let titles: Vec<&str> = PROMISES.iter().map(|(title, _)| *title).collect();
    writeln!(text, "| kind | {} |", titles.join(" | ")).expect("it is a string");
    writeln!(text, "|---|{}", "---|".repeat(titles.len())).expect("it is a string");
    for kind in Kind::all() {
        let marks: Vec<&str> = kind.row().cells().iter().map(|cell| mark(cell.state())).collect();
        writeln!(text, "| {} | {} |", kind.title(), marks.join(" | ")).expect("it is a string");
    }
    text.push_str("\n## Promises\n\n| promise | what it says |\n|---|---|\n");
    for (title, says) in PROMISES {
        writeln!(text, "| {title} | {says} |").expect("it is a string");
    }
    for kind in Kind::all() {
        write!(text, "\n## {}\n\n| promise | held by |\n|---|---|\n", kind.title()).expect("it is a string");
        for ((title, _), cell) in PROMISES.iter().zip(kind.row().cells()) {
            writeln!(text, "| {title} | {} |", cell.text().replace('|', "\\|")).expect("it is a string");
        }
    }
    text
}

fn mark(state: State) -> &'static str {
    match state {
        State::Held => "✓",
        State::Exempt => "–",
        State::Open => "○",
    }
}
