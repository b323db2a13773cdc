//! A copy of the workspace to mutate and build. The user's own tree is only read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::explore::forget;
use super::named_test::{NamedTest, Outcome};
use super::process::{self, Done};

/// Time limit for a build. The first one builds every dependency.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Time limit for a test.
const MOST_OF_A_TEST: Duration = Duration::from_secs(600);

/// File name that marks directories whose content can be regenerated.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// The copy, and a target directory for all its builds, so that only operator, gateway and their
/// dependents are rebuilt for each mutant. It is locked against use by other processes.
pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Updates the copy at `place` from the workspace. Unchanged files are not touched, so that
    /// cargo rebuilds no more than needed.
    pub(super) fn prepare(workspace: &Path, place: &Path) -> Result<Self, String> {
        let (tree, target) = (place.join("tree"), place.join("target"));
        let unusable = |error: io::Error| format!("can't copy the workspace to {}: {error}", place.display());
        fs::create_dir_all(&tree).map_err(unusable)?;
        // For cargo and backup tools, and for the copy itself if `place` is inside the workspace.
        fs::write(place.join(CACHE_MARK), "Signature: 8a477f597d28d172789f06886806bc55\n").map_err(unusable)?;
        let lock = File::create(place.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(format!("{} is in use", place.display())),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        copy(workspace, &tree).map_err(unusable)?;
        Ok(Self { tree, target, _lock: lock })
    }

    /// Builds `stowage-proof` with these files in place of the workspace's own. Returns the path of
    /// the binary and the duration.
    pub(super) fn build(&self, files: &BTreeMap<String, String>) -> Result<(PathBuf, Duration), String> {
        let began = Instant::now();
        // Builds the whole workspace, because cargo selects features by the packages on the command
        // line.
        let arguments = ["build", "--quiet", "--locked", "--workspace", "--bin", "stowage-proof"];
        self.with(files, || self.built(&arguments))?;
        Ok((self.target.join("debug").join("stowage-proof"), began.elapsed()))
    }

    /// Runs a test with these files in place of the workspace's own. Returns its outcome, the
    /// duration of the build and the duration of the test.
    pub(super) fn test(
        &self,
        files: &BTreeMap<String, String>,
        test: &NamedTest,
    ) -> Result<(Outcome, Duration, Duration), String> {
        self.with(files, || {
            let began = Instant::now();
            self.built(&test.to_build())?;
            let build = began.elapsed();
            let done = self.cargo(&test.to_run(), MOST_OF_A_TEST).map_err(|why| format!("test {test}: {why}"))?;
            let outcome = Outcome::of(&done).map_err(|why| format!("test {test}: {why}"))?;
            Ok((outcome, build, began.elapsed() - build))
        })
    }

    /// Calls `act` with these files in place of the workspace's own, and restores them before it
    /// returns.
    fn with<T>(&self, files: &BTreeMap<String, String>, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let mut originals = BTreeMap::new();
        for (path, text) in files {
            let at = self.tree.join(path);
            let unusable = |error: io::Error| format!("can't write {path} in the copy: {error}");
            originals.insert(at.clone(), fs::read(&at).map_err(unusable)?);
            fs::write(&at, text).map_err(unusable)?;
        }
        let result = act();
        for (at, original) in originals {
            fs::write(&at, original).map_err(|error| format!("can't restore {}: {error}", at.display()))?;
        }
        result
    }

    /// Builds with cargo.
    fn built(&self, arguments: &[&str]) -> Result<(), String> {
        let done = self.cargo(&[arguments, &["--message-format", "short"]].concat(), PATIENCE)?;
        if done.success {
            return Ok(());
        }
        let error = done.stderr.lines().find(|line| line.contains("error")).unwrap_or("cargo build failed");
        Err(error.trim().to_owned())
    }

    /// Runs cargo in the copy, with the dev profile without debug information: an optimised build
    /// takes longer than it saves.
    fn cargo(&self, arguments: &[&str], patience: Duration) -> Result<Done, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        forget(&mut command, std::env::vars_os().map(|(name, _)| name));
        command.args(arguments).current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "false");
        process::run(&mut command, patience).map_err(|why| format!("cargo {why}"))
    }
}

/// Makes `to` equal to `from`, without hidden files and without directories whose content can be
/// regenerated.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut kept = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name().to_string_lossy().starts_with('.') || source.join(CACHE_MARK).exists() {
            continue;
        }
        kept.insert(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&source, &target)?;
        } else {
            let content = fs::read(&source)?;
            if fs::read(&target).ok().as_ref() != Some(&content) {
                fs::write(&target, content)?;
            }
        }
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !kept.contains(&entry.file_name()) {
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modified(path: &Path) -> std::time::SystemTime {
        fs::metadata(path).and_then(|metadata| metadata.modified()).expect("it is there")
    }

    #[test]
    fn a_copy_is_brought_up_to_date_and_no_more() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (from, place) = (folder.path().join("from"), folder.path().join("from/scratch"));
        for path in ["src/a.rs", "src/b.rs", ".git/x", "target/y", "target/CACHEDIR.TAG"] {
            let at = from.join(path);
            fs::create_dir_all(at.parent().expect("it has one")).expect("it can be made");
            fs::write(at, "old").expect("it can be written");
        }
        let scratch = Scratch::prepare(&from, &place).expect("it can be copied");
        assert!(Scratch::prepare(&from, &place).is_err(), "it is in use");
        let tree = scratch.tree.clone();
        assert!(!tree.join(".git").exists() && !tree.join("target").exists() && !tree.join("scratch").exists());
        let untouched = modified(&tree.join("src/b.rs"));
        fs::write(from.join("src/a.rs"), "new").expect("it can be written");
        fs::write(tree.join("src/c.rs"), "a stray").expect("it can be written");
        drop(scratch);
        Scratch::prepare(&from, &place).expect("it can be copied");
        assert_eq!(fs::read_to_string(tree.join("src/a.rs")).expect("it is there"), "new");
        assert!(!tree.join("src/c.rs").exists());
        assert_eq!(modified(&tree.join("src/b.rs")), untouched);
    }

    #[test]
    fn files_are_put_back_whatever_becomes_of_what_was_done_with_them() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (from, place) = (folder.path().join("from"), folder.path().join("scratch"));
        fs::create_dir_all(&from).expect("it can be made");
        fs::write(from.join("a.rs"), "sane").expect("it can be written");
        let scratch = Scratch::prepare(&from, &place).expect("it can be copied");
        let text = || fs::read_to_string(scratch.tree.join("a.rs")).expect("it is there");
        let files = BTreeMap::from([("a.rs".to_owned(), "mutated".to_owned())]);
        for result in [Ok(()), Err("it does not build".to_owned())] {
            let done = scratch.with(&files, || {
                assert_eq!(text(), "mutated");
                result.clone()
            });
            assert_eq!((done, text()), (result, "sane".to_owned()));
        }
        let lost = BTreeMap::from([("b.rs".to_owned(), "mutated".to_owned())]);
        assert!(scratch.with(&lost, || Ok(())).is_err_and(|why| why.contains("can't write b.rs")));
    }
}
