//! Programs that were built together with this one.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Returns the directories in which a program may have been built.
pub(super) fn places() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| program.parent().map(Path::to_owned));
    beside.into_iter().chain([PathBuf::from("target/release")]).collect()
}

/// Returns the path of a program of this project; `flag` is the option for another one.
pub(super) fn built(name: &str, flag: &str, places: &[PathBuf]) -> Result<PathBuf> {
    let found = places.iter().map(|place| place.join(name)).find(|program| program.is_file());
    found.with_context(|| {
        format!(
            "there is no {name} beside this program or in target/release: \
             `cargo build --release -p {name}` builds it, or {flag} names another"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_nobody_built_is_told_with_what_builds_it() {
        let place = tempfile::tempdir().unwrap();
        let found = || built("stowage-operator", "--operator-command", &[place.path().to_owned()]);
        let why = found().unwrap_err().to_string();
        assert!(why.contains("cargo build --release") && why.contains("--operator-command"), "{why}");
        std::fs::write(place.path().join("stowage-operator"), "").unwrap();
        assert_eq!(found().unwrap(), place.path().join("stowage-operator"));
    }
}
