//! The corpus of every target, and a few thousand inputs derived from it, which are the same in
//! each run.

mod mutation;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mutation::Mutation;
use rstest::rstest;
use stowage_fuzz::{TARGETS, Target};

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind)
}

/// Returns the inputs of a target's corpus, sorted by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = folder("corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, fs::read(path).expect("it can be read"))
    };
    let mut inputs: Vec<_> = files.map(|file| read(file.expect("a file").path())).collect();
    inputs.sort();
    inputs
}

/// Plays an input; the message of a failure contains the input.
fn play(target: Target, what: &str, input: &[u8]) {
    let played = catch_unwind(AssertUnwindSafe(|| (target.play)(input)));
    assert!(played.is_ok(), "target {}, {what}:\n{}", target.name, input.escape_ascii());
}

#[rstest]
#[case("names", 4000)]
#[case("templates", 4000)]
#[case("quantities", 4000)]
#[case("objects", 1500)]
#[case("secrets", 3000)]
#[case("store", 1000)]
#[case("plans", 4000)]
#[case("protobuf", 2000)]
#[case("copies", 4000)]
#[case("chunks", 500)]
#[case("heads", 1000)]
#[case("forms", 500)]
#[case("documents", 2000)]
#[case("deletions", 3000)]
fn what_is_promised_holds_of_the_corpus_and_what_is_made_of_it(#[case] name: &str, #[case] times: u32) {
    let target = Target::named(name).expect("there is such a target");
    let corpus = corpus(name);
    for (file, input) in &corpus {
        play(target, file, input);
    }
    let words = mutation::words(&folder("dictionaries").join(name));
    let mut mutation = Mutation::new(7, corpus.into_iter().map(|(_, input)| input).collect(), words);
    for number in 0..times {
        play(target, &format!("input {number}"), &mutation.another());
    }
}

#[test]
fn every_target_is_played() {
    let source = include_str!("main.rs");
    assert!(TARGETS.iter().all(|target| source.contains(&format!("#[case(\"{}\",", target.name))));
}
