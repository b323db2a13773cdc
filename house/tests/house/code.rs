//! The project's source files and their text.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folders of the workspace's crates with code, relative to the root.
pub(crate) fn crates() -> Vec<String> {
    let members = fs::read_dir(root().join("crates")).expect("there are crates").map(|entry| {
        let name = entry.expect("it can be read").file_name();
        format!("crates/{}", name.to_string_lossy())
    });
    let others = ["operator", "gateway", "world", "sim", "proof", "testbed", "e2e", "bench", "fuzz"].map(str::to_owned);
    let all: BTreeSet<String> = members.chain(others).collect();
    all.into_iter().collect()
}

/// Returns the code in these folders: each file with its path relative to the root, and its text
/// without tests.
pub(crate) fn code(folders: &[&str]) -> Vec<(String, String)> {
    let is_tests = |name: &str| name == "tests" || name.ends_with("_tests");
    let up_to_tests = |(name, text): (String, String)| {
        let code = text.split_once("\n#[cfg(test)]\nmod tests {").map_or(text.as_str(), |(code, _)| code).to_owned();
        (name, code)
    };
    rust_files(folders, is_tests).into_iter().map(up_to_tests).collect()
}

/// Returns the files in these folders with their whole text, files of tests included.
pub(crate) fn code_and_tests(folders: &[&str]) -> Vec<(String, String)> {
    rust_files(folders, |_| false)
}

fn rust_files(folders: &[&str], leave_out: impl Fn(&str) -> bool + Copy) -> Vec<(String, String)> {
    let mut found = BTreeSet::new();
    folders.iter().for_each(|folder| find(&root().join(folder), leave_out, &mut found));
    assert!(!found.is_empty(), "there is no code in {folders:?}");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("it is text");
        (path.strip_prefix(root()).expect("it is below the root").display().to_string(), text)
    };
    found.into_iter().map(read).collect()
}

/// Finds Rust files below a folder, without those with a name or folder to be left out.
fn find(folder: &Path, leave_out: impl Fn(&str) -> bool + Copy, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("it can be read").path();
        if leave_out(&path.file_stem().unwrap_or_default().to_string_lossy()) {
            continue;
        }
        if path.is_dir() {
            find(&path, leave_out, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
}
