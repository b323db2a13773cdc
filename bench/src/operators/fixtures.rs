//! Runs the test fixtures that the guide shows, with exactly the text of the page.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use stowage_testbed::console::{print, tell};
use stowage_testbed::script::{Done, Script};
use tempfile::TempDir;

/// Time limit for a fixture's tests; those in Go are compiled.
const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// The operator with the Go modules that the Go fixture's tests need too.
const GO_MODULES: &str = "controller-runtime";
/// Number of output lines of a failure that are printed.
const TAIL: usize = 20;

/// A fixture, and the commands that run tests with it.
struct Fixture {
    name: &'static str,
    /// The language of its block in the guide.
    language: &'static str,
    /// Its file name in a test project.
    file: &'static str,
    /// Its tests, in `fixtures`.
    tests: &'static str,
    /// A command that fails if the tests can't be run on this machine.
    possible: &'static [&'static str],
    run: &'static [&'static str],
}

const FIXTURES: [Fixture; 2] = [
    Fixture {
        name: "pytest",
        language: "python",
        file: "conftest.py",
        tests: "test_stowage.py",
        possible: &["python3", "-m", "pytest", "--version"],
        run: &["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
    },
    Fixture {
        name: "go-test",
        language: "go",
        file: "main_test.go",
        tests: "stowage_test.go",
        possible: &["go", "list", "-mod=readonly", "-deps", "-test", "."],
        run: &["go", "test", "-mod=readonly", "-count=1", "."],
    },
];

/// Runs the tests of each fixture with the text of this page, and returns the number of failed
/// ones.
///
/// # Errors
/// Fails if the page lacks a fixture, or if a project can't be created.
pub(super) async fn run(guide: &Path, operators: &Path, simulator: &Path) -> Result<usize> {
    let page = std::fs::read_to_string(guide).with_context(|| guide.display().to_string())?;
    let mut failed = 0;
    for fixture in &FIXTURES {
        let project = fixture.project(&page, operators, simulator)?;
        let possible = shell(project.path(), fixture.possible).await;
        match possible.as_ref().map(|done| (done.status.success(), done.last_words())) {
            Ok((true, _)) => {}
            Ok((false, why)) => {
                print(&format!("left out {}: {why}", fixture.name))?;
                continue;
            }
            Err(why) => {
                print(&format!("left out {}: {why}", fixture.name))?;
                continue;
            }
        }
        let done = shell(project.path(), fixture.run).await?;
        let said = done.stdout.lines().chain(done.stderr.lines());
        if done.status.success() {
            let last = done.stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            print(&format!("{} ok: {last}", fixture.name))?;
        } else {
            failed += 1;
            print(&format!("{} FAILED ({})", fixture.name, done.status))?;
            let said: Vec<&str> = said.collect();
            said.iter().skip(said.len().saturating_sub(TAIL)).for_each(|line| tell(line));
        }
    }
    Ok(failed)
}

impl Fixture {
    /// Creates a test project with the fixture from the page, and with the simulator in `bin`.
    fn project(&self, page: &str, operators: &Path, simulator: &Path) -> Result<TempDir> {
        let project = tempfile::Builder::new().prefix("stowage-fixture-").tempdir();
        let project = project.context("can't make a temporary directory")?;
        let block =
            block(page, self.language).with_context(|| format!("the guide has no fixture for {}", self.name))?;
        let write = |name: &str, text: &str| std::fs::write(project.path().join(name), text).context("no room");
        let copy = |from: &Path, name: &str| {
            let text = std::fs::read_to_string(from.join(name));
            write(name, &text.with_context(|| from.join(name).display().to_string())?)
        };
        write(self.file, block)?;
        copy(&operators.join("fixtures"), self.tests)?;
        if self.language == "go" {
            copy(&operators.join(GO_MODULES), "go.mod")?;
            copy(&operators.join(GO_MODULES), "go.sum")?;
        }
        let bin = project.path().join("bin");
        std::fs::create_dir(&bin).context("no room")?;
        std::os::unix::fs::symlink(simulator, bin.join("stowage-sim")).context("can't link to the simulator")?;
        Ok(project)
    }
}

/// Runs a command in a project, with `stowage-sim` on the PATH.
async fn shell(project: &Path, words: &[&str]) -> Result<Done> {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("PATH={}:{path}", project.join("bin").display());
    let further = ["GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1"];
    let arguments: Vec<&str> = std::iter::once(path.as_str()).chain(further).chain(words.iter().copied()).collect();
    let script = Script { program: Path::new("env"), directory: project, environment: None };
    script.run(&arguments, PATIENCE).await
}

/// Returns the only block of code in a language on a page.
fn block<'a>(page: &'a str, language: &str) -> Option<&'a str> {
    let mut blocks = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let (_, only) = blocks.find(|(named, _)| *named == language)?;
    blocks.all(|(named, _)| named != language).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../docs/guide/simulator.md");
    const KUBE_SIM: &str = include_str!("../../../crates/kube-sim/README.md");

    #[test]
    fn a_block_is_found_by_its_language_if_it_is_the_only_one() {
        let page = "a\n```python\nb\n```\nc\n```go\nd\n```\n```go\ne\n```\n";
        assert_eq!(block(page, "python"), Some("b"));
        assert_eq!(block(page, "go"), None);
        assert_eq!(block(page, "rust"), None);
    }

    #[test]
    fn the_guide_has_each_fixture_and_what_is_asked_of_it_is_there() {
        for fixture in &FIXTURES {
            assert!(fixture.project(GUIDE, Path::new("operators"), Path::new("/bin/true")).is_ok(), "{}", fixture.name);
        }
    }

    /// The README's code is a doc test.
    #[test]
    fn what_the_guide_shows_in_rust_stands_in_the_readme_of_kube_sim() {
        let shown = block(GUIDE, "rust").unwrap();
        assert!(KUBE_SIM.contains(shown));
    }
}
