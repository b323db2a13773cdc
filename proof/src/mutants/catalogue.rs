//! Catalogue of mutants, read from their patches.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::oracles::Promise;

use super::named_test::NamedTest;
use super::patch;

/// Directory of the patches, relative to the workspace.
pub const FOLDER: &str = "proof/mutants";
/// Key of the header line with the schedule that killed the mutant last.
const PLAN: &str = "Plan";

/// A bug that is seeded into the code to test whether the proof finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Name of the mutant and of its file.
    pub name: String,
    /// Description of the bug, in one sentence.
    pub bug: String,
    /// Origin of the bug: another operator, the contract's own history, or this project.
    pub origin: String,
    /// Finder that has to detect the bug.
    pub finder: Finder,
    diff: String,
}

/// A finder of mutants: the exploration, or a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finder {
    /// The exploration has to find a schedule that breaks one of the promises.
    Exploration {
        /// Promises that the mutant is expected to break.
        promises: Vec<Promise>,
        /// Scenarios that are explored first.
        scenarios: Vec<String>,
        /// The schedule that killed it last. It is replayed before anything is explored.
        plan: Option<String>,
    },
    /// A test, for bugs that no schedule can show: memory, the number of requests, hundreds of
    /// concurrent calls.
    Test(NamedTest),
}

impl Mutant {
    /// Parses a patch: header lines of the form `Key: value`, an empty line, then the diff. `name`
    /// is the name of the patch file.
    ///
    /// # Errors
    /// Returns a description of the first problem.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let (header, diff) = text.split_once("\n\n").ok_or("no empty line between its header and its diff")?;
        let mut fields = BTreeMap::new();
        for line in header.lines() {
            let (key, value) =
                line.split_once(": ").ok_or_else(|| format!("header line {line:?} is no \"Key: value\""))?;
            if fields.insert(key, value.trim().to_owned()).is_some() {
                return Err(format!("its header has two lines {key}"));
            }
        }
        let is_tested = fields.contains_key("Test");
        let plan = if is_tested { None } else { fields.remove(PLAN) };
        let mut field = |key: &str| fields.remove(key).filter(|value| !value.is_empty()).ok_or(format!("no {key}"));
        let words = |text: String| text.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>();
        let mutant = Self {
            name: field("Mutant")?,
            bug: field("Bug")?,
            origin: field("From")?,
            finder: if is_tested {
                Finder::Test(NamedTest::parse(&field("Test")?)?)
            } else {
                Finder::Exploration {
                    promises: words(field("Oracles")?).iter().map(|name| promise(name)).collect::<Result<_, _>>()?,
                    scenarios: words(field("Scenarios")?),
                    plan,
                }
            },
            diff: diff.to_owned(),
        };
        match fields.into_keys().next() {
            Some(key) => Err(format!("its header has a line {key}, which means nothing")),
            None if mutant.name != name => Err(format!("it calls itself {}", mutant.name)),
            None => Ok(mutant),
        }
    }

    /// Returns the promises that it is expected to break; none if a test finds it.
    pub fn promises(&self) -> &[Promise] {
        match &self.finder {
            Finder::Exploration { promises, .. } => promises,
            Finder::Test(_) => &[],
        }
    }

    /// Returns the scenarios to explore first; none if a test finds it.
    pub fn scenarios(&self) -> &[String] {
        match &self.finder {
            Finder::Exploration { scenarios, .. } => scenarios,
            Finder::Test(_) => &[],
        }
    }

    /// Returns the test that finds the bug; `None` if the exploration does.
    pub fn test(&self) -> Option<&NamedTest> {
        match &self.finder {
            Finder::Exploration { .. } => None,
            Finder::Test(test) => Some(test),
        }
    }

    /// Returns the schedule that killed the mutant last, as an argument of `stowage-proof replay`.
    pub fn plan(&self) -> Option<&str> {
        match &self.finder {
            Finder::Exploration { plan, .. } => plan.as_deref(),
            Finder::Test(_) => None,
        }
    }

    /// Writes the schedule that killed the mutant into its patch, in place of an earlier one.
    ///
    /// # Errors
    /// Returns an error if the patch can't be read or written.
    pub fn record(&self, workspace: &Path, line: &str) -> Result<(), String> {
        let path = workspace.join(FOLDER).join(format!("{}.patch", self.name));
        let unusable = |error| format!("can't keep the plan in {}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(unusable)?;
        fs::write(&path, with_plan(&text, line)).map_err(unusable)
    }

    /// Applies the patch to `workspace` and returns the new text of each changed file, by path.
    ///
    /// # Errors
    /// Returns an error if the patch does not apply.
    pub fn apply(&self, workspace: &Path) -> Result<BTreeMap<String, String>, String> {
        patch::apply(&self.diff, |path| {
            fs::read_to_string(workspace.join(path)).map_err(|error| format!("can't read {path}: {error}"))
        })
    }
}

/// Returns the patch with this plan in the header, in place of an earlier one.
fn with_plan(text: &str, line: &str) -> String {
    let (header, diff) = text.split_once("\n\n").unwrap_or((text, ""));
    let others = header.lines().filter(|line| !line.starts_with(&format!("{PLAN}: ")));
    let header: String = others.map(|line| format!("{line}\n")).collect();
    format!("{header}{PLAN}: {line}\n\n{diff}")
}

fn promise(name: &str) -> Result<Promise, String> {
    let found = Promise::ALL.into_iter().find(|promise| promise.name() == name);
    found.ok_or_else(|| format!("there is no promise {name}"))
}

/// Loads the catalogue of a workspace, sorted by name.
///
/// # Errors
/// Returns an error for the first patch that cannot be read.
pub fn load(workspace: &Path) -> Result<Vec<Mutant>, String> {
    let folder = workspace.join(FOLDER);
    let unreadable = |error| format!("can't read {}: {error}", folder.display());
    let mut mutants = Vec::new();
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".patch").ok_or_else(|| format!("{FOLDER}/{name} is no patch"))?;
        let text = fs::read_to_string(&path).map_err(|error| format!("can't read {FOLDER}/{name}: {error}"))?;
        mutants.push(Mutant::parse(stem, &text).map_err(|problem| format!("{FOLDER}/{name}: {problem}"))?);
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Mutant: late
Bug: It comes late.
From: spec §3.3
Oracles: I6, L3
Scenarios: rotate, create

--- a/operator/src/act.rs
+++ b/operator/src/act.rs
@@ -1 +1 @@
-a
+b
";

    #[test]
    fn a_patch_says_what_it_is() {
        let mutant = Mutant::parse("late", TEXT).expect("it is well-formed");
        assert_eq!((mutant.name.as_str(), mutant.origin.as_str()), ("late", "spec §3.3"));
        assert_eq!(mutant.promises(), [Promise::I6, Promise::L3]);
        assert_eq!(mutant.scenarios(), ["rotate", "create"]);
        assert_eq!((mutant.test(), mutant.plan()), (None, None));
    }

    #[test]
    fn a_patch_has_the_plan_that_was_recorded_last() {
        let once = with_plan(TEXT, "create 1");
        let twice = with_plan(&once, "rotate 1 #3 hang");
        let plan = |text: &str| Mutant::parse("late", text).expect("it is well-formed").plan().map(str::to_owned);
        assert_eq!(plan(&once).as_deref(), Some("create 1"));
        assert_eq!(plan(&twice).as_deref(), Some("rotate 1 #3 hang"));
        assert_eq!(twice.replace("Plan: rotate 1 #3 hang\n", ""), TEXT);
    }

    #[test]
    fn a_patch_names_the_test_that_finds_it() {
        let tested = TEXT.replace("Oracles: I6, L3\nScenarios: rotate, create", "Test: operator/tests/memory a_test");
        let mutant = Mutant::parse("late", &tested).expect("it is well-formed");
        assert_eq!(mutant.test().map(ToString::to_string).as_deref(), Some("operator/tests/memory a_test"));
        assert!(mutant.promises().is_empty() && mutant.scenarios().is_empty());
        let both = tested.replace("Test:", "Scenarios: create\nTest:");
        let problem = Mutant::parse("late", &both).expect_err("one of them finds it");
        assert!(problem.contains("a line Scenarios"), "{problem}");
        let planned = tested.replace("Test:", "Plan: create 1\nTest:");
        assert!(Mutant::parse("late", &planned).expect_err("nothing is explored").contains("a line Plan"));
        assert!(Mutant::parse("late", &tested.replace(" a_test", "")).is_err());
    }

    #[test]
    fn a_header_is_whole_or_refused() {
        let without = |line: &str| TEXT.replace(line, "");
        for (text, problem) in [
            (without("Bug: It comes late.\n"), "no Bug"),
            (without("It comes late."), "no Bug"),
            (TEXT.replace("Bug:", "Bug"), "header line"),
            (TEXT.replace("L3", "L99"), "there is no promise L99"),
            (TEXT.replace("Scenarios", "Where"), "no Scenarios"),
            (TEXT.replace("Bug", "Note: well\nBug"), "a line Note"),
            (TEXT.replace("\n\n", "\n"), "no empty line"),
        ] {
            let found = Mutant::parse("late", &text).expect_err(problem);
            assert!(found.contains(problem), "{found}");
        }
        assert!(Mutant::parse("early", TEXT).is_err());
    }
}
