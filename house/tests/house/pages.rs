//! Pages: words of each, and of all together.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::code::root;

/// Maximum number of words of a page that is longer than [`LONGEST`], or that has a bound of its
/// own.
const BOUNDS: [(&str, usize); 8] = [
    ("ARCHITECTURE.md", 2_500),
    ("README.md", 1_400),
    ("docs/operate/troubleshooting.md", 5_500),
    ("docs/reference/api.md", 4_200),
    ("docs/reference/glossary.md", 800),
    ("docs/reference/held.md", 4_000),
    ("docs/security.md", 5_800),
    ("docs/spec.md", 15_000),
];

/// Maximum number of words of any other page.
const LONGEST: usize = 3_500;

/// Maximum number of words of all pages together.
const TOTAL: usize = 86_500;

/// Returns each page of the project with its number of words, as `wc -w` counts them.
fn pages() -> Vec<(String, usize)> {
    let mut found = BTreeSet::new();
    find(&root(), &mut found);
    let words = |path: &PathBuf| {
        let text = fs::read_to_string(path).expect("it is text");
        let name = path.strip_prefix(root()).expect("it is below the root").display().to_string();
        (name, text.split_whitespace().count())
    };
    found.iter().map(words).collect()
}

/// Collects the pages below a directory, without build output and hidden directories.
fn find(directory: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.insert(path);
        }
    }
}

/// Returns the bound of a page.
fn bound(name: &str) -> usize {
    BOUNDS.iter().find(|(page, _)| *page == name).map_or(LONGEST, |(_, most)| *most)
}

#[test]
fn pages_are_short() {
    let pages = pages();
    assert!(pages.len() > 50, "only {} pages are found", pages.len());
    pages.iter().for_each(|(name, words)| println!("{words:6} {name}"));
    let long: Vec<_> = pages.iter().filter(|(name, words)| *words > bound(name)).collect();
    assert!(long.is_empty(), "these have more words than their bound: {long:?}");
    let total: usize = pages.iter().map(|(_, words)| words).sum();
    println!("{total:6} in all");
    assert!(total <= TOTAL, "all pages together have {total} words, more than {TOTAL}");
}

#[test]
fn each_bound_is_of_a_page() {
    let pages = pages();
    let lost: Vec<_> = BOUNDS.iter().filter(|(name, _)| pages.iter().all(|(page, _)| page != name)).collect();
    assert!(lost.is_empty(), "there are no pages {lost:?}");
}
