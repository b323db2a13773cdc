//! Tests that find mutants which no exploration can: they pass on the unmutated sources and fail on
//! the mutated ones.

use std::fmt;
use std::fs;
use std::path::Path;

use super::process::Done;

/// A test function in an integration test, identified by path and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedTest {
    /// Path from the root of the workspace without `.rs`: `gateway/tests/front`.
    target: String,
    /// Name with its modules: `shares::a_namespace_leaves_half_of_a_store_to_others`. For a test
    /// with cases, all cases.
    name: String,
}

impl NamedTest {
    /// Parses the value of a header: path and name, separated by a space.
    ///
    /// # Errors
    /// Returns an error for any other text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [target, name] = words[..] else { return Err(format!("{text:?} is no path and name of a test")) };
        let folders: Vec<&str> = target.split('/').collect();
        let is_path = matches!(folders[..], [.., _, "tests", _]) && !target.contains("..");
        if !is_path {
            return Err(format!("{target} is no integration test: FOLDER/tests/NAME"));
        }
        Ok(Self { target: target.to_owned(), name: name.to_owned() })
    }

    /// Returns a message if the workspace does not have this test.
    pub fn problem(&self, workspace: &Path) -> Option<String> {
        let (modules, function) = self.name.rsplit_once("::").unwrap_or(("", &self.name));
        let inner = Path::new(&self.target).join(modules.replace("::", "/"));
        let files = match modules {
            "" => [format!("{}.rs", self.target), format!("{}/main.rs", self.target)],
            _ => [format!("{}.rs", inner.display()), format!("{}/mod.rs", inner.display())],
        };
        let has = |file: &String| {
            let text = fs::read_to_string(workspace.join(file)).unwrap_or_default();
            text.contains(&format!("fn {function}("))
        };
        (!files.iter().any(has)).then(|| format!("there is no test {self}"))
    }

    /// Returns the arguments for cargo to build it. It builds the whole workspace, because cargo
    /// selects features by the packages on the command line. In other packages, a target with the
    /// same name does not have the test.
    pub(super) fn to_build(&self) -> Vec<&str> {
        let target = self.target.rsplit('/').next().unwrap_or(&self.target);
        vec!["test", "--quiet", "--locked", "--workspace", "--test", target, "--no-run"]
    }

    /// Returns the arguments for cargo to run it.
    pub(super) fn to_run(&self) -> Vec<&str> {
        let built = self.to_build().into_iter().filter(|argument| *argument != "--no-run");
        built.chain(["--no-fail-fast", "--", &self.name]).collect()
    }
}

impl fmt::Display for NamedTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.target, self.name)
    }
}

/// Outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All cases pass.
    Passed,
    /// A case fails with this message.
    Failed(String),
}

impl Outcome {
    /// Parses the output of cargo and the test.
    ///
    /// # Errors
    /// Returns an error if no test ran, or if there is no result.
    pub(super) fn of(done: &Done) -> Result<Self, String> {
        let results = done.stdout.lines().filter_map(|line| line.strip_prefix("test result: "));
        let (mut passed, mut failed) = (0, 0);
        for result in results {
            passed += count(result, "passed");
            failed += count(result, "failed");
        }
        match (done.success, passed, failed) {
            (false, _, 1..) => Ok(Self::Failed(words(&done.stdout))),
            (true, 1.., 0) => Ok(Self::Passed),
            (true, 0, 0) => Err("no test of that name ran".to_owned()),
            _ => {
                Err(format!("the test came to no verdict: {}", done.stderr.lines().last().unwrap_or("it said nothing")))
            }
        }
    }
}

/// Returns the number before a word: 2 for `passed` in `ok. 2 passed; 0 failed`.
fn count(result: &str, word: &str) -> u64 {
    let words: Vec<&str> = result.split([' ', ';']).filter(|word| !word.is_empty()).collect();
    let before = words.windows(2).find_map(|pair| (pair[1] == word).then_some(pair[0]));
    before.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the message of the first panic.
fn words(stdout: &str) -> String {
    let mut lines = stdout.lines().skip_while(|line| !line.contains(" panicked at ")).skip(1);
    lines.next().unwrap_or("it fails").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(success: bool, stdout: &str) -> Done {
        Done { success, exited: true, stdout: stdout.to_owned(), stderr: "error: last words\n".to_owned() }
    }

    const PASSED: &str = "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out\n";
    const NONE: &str = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out\n";
    const FAILED: &str = "\
---- shares::a_test stdout ----

thread 'shares::a_test' (7) panicked at gateway/tests/front/shares.rs:5:
assertion failed: 1 of 2
note: run with

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 8 filtered out
";

    #[test]
    fn a_test_is_named_by_path_and_name() {
        let test = NamedTest::parse("gateway/tests/front shares::a_test").expect("it is well-formed");
        assert_eq!(test.to_string(), "gateway/tests/front shares::a_test");
        assert_eq!(test.to_build(), ["test", "--quiet", "--locked", "--workspace", "--test", "front", "--no-run"]);
        assert_eq!(
            test.to_run(),
            ["test", "--quiet", "--locked", "--workspace", "--test", "front", "--no-fail-fast", "--", "shares::a_test"]
        );
        for text in ["a_test", "gateway/src/front a_test", "gateway/tests/front a b", "../x/tests/front a", ""] {
            assert!(NamedTest::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_test_that_is_not_there_is_told() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let write = |path: &str, text: &str| {
            let at = folder.path().join(path);
            fs::create_dir_all(at.parent().expect("it has one")).expect("it can be made");
            fs::write(at, text).expect("it can be written");
        };
        write("a/tests/one.rs", "fn here() {}");
        write("a/tests/two/main.rs", "fn here() {}");
        write("a/tests/two/inner.rs", "async fn inside() {}");
        let problem = |text: &str| NamedTest::parse(text).expect("it is well-formed").problem(folder.path());
        assert_eq!(problem("a/tests/one here"), None);
        assert_eq!(problem("a/tests/two here"), None);
        assert_eq!(problem("a/tests/two inner::inside"), None);
        for lost in ["a/tests/one her", "a/tests/two inside", "a/tests/three here", "a/tests/two other::inside"] {
            assert_eq!(problem(lost), Some(format!("there is no test {lost}")));
        }
    }

    #[test]
    fn a_test_passes_or_fails_or_has_no_verdict() {
        assert_eq!(Outcome::of(&done(true, &format!("{NONE}{PASSED}"))), Ok(Outcome::Passed));
        assert_eq!(Outcome::of(&done(false, FAILED)), Ok(Outcome::Failed("assertion failed: 1 of 2".to_owned())));
        assert_eq!(Outcome::of(&done(true, NONE)), Err("no test of that name ran".to_owned()));
        for stdout in ["", PASSED] {
            let problem = Outcome::of(&done(false, stdout)).expect_err("it crashed");
            assert!(problem.contains("no verdict: error: last words"), "{problem}");
        }
    }
}
