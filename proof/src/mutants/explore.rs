//! Exploration and replay with the `stowage-proof` binary of a mutant.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::process::{self, Done};

/// Extra time for an exploration beyond its own limit, for the schedule under way and for
/// shrinking.
const GRACE: Duration = Duration::from_secs(120);

/// Limits of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of schedules to run at once; `None` = the explorer's default.
    pub jobs: Option<u16>,
    /// Seconds for the scenarios that a header names, and the same again for all scenarios.
    pub time_limit: u64,
}

/// Failure that killed a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Kill {
    /// Line for `stowage-proof replay`.
    pub line: String,
    /// The promise that was broken first.
    pub promise: String,
    /// Message of the failure.
    pub message: String,
    /// Line of the smallest plan that also breaks the promise, if one was found.
    #[serde(default)]
    pub shrunk: Option<String>,
    /// All promises that the mutant breaks under the smallest line, without duplicates, in the
    /// order of detection.
    #[serde(skip)]
    pub promises: Vec<String>,
    /// True if every fault of the line also met a call of the unmutated operator.
    #[serde(skip)]
    pub met: bool,
}

impl Kill {
    /// Returns the smallest line known.
    pub fn fault(&self) -> &str {
        self.shrunk.as_ref().unwrap_or(&self.line)
    }
}

/// Result of an exploration: a part of the output of `explore -o json` (spec §5).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Explored {
    pub(super) schedules: u64,
    pub(super) seconds: f64,
    pub(super) failures: Vec<Kill>,
}

/// Explores these scenarios until the first failure; all scenarios if the list is empty.
///
/// # Errors
/// Returns an error if the explorer prints no result because it crashed or did not end in time.
pub(super) fn explore(binary: &Path, scenarios: &[String], limits: &Limits) -> Result<Explored, String> {
    let mut command = program(binary);
    command.arg("explore").args(scenarios).args(["--fail-fast", "--shuffle", "--output", "json"]);
    command.arg("--time-limit").arg(limits.time_limit.to_string());
    command.args(limits.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
    let done = process::run(&mut command, Duration::from_secs(limits.time_limit) + GRACE)
        .map_err(|why| format!("the exploration {why}"))?;
    told(&done, "exploration")
}

/// Returns a command of this `stowage-proof` without the environment variables of this process, so
/// that only its arguments count.
fn program(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    forget(&mut command, std::env::vars_os().map(|(name, _)| name));
    command
}

/// Removes those of these variables that our command lines read from a command's environment.
pub(super) fn forget(command: &mut Command, names: impl Iterator<Item = OsString>) {
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(b"STOWAGE_")) {
        command.env_remove(name);
    }
}

/// Parses the document that a program printed.
fn told<T: DeserializeOwned>(done: &Done, what: &str) -> Result<T, String> {
    serde_json::from_str(&done.stdout).map_err(|error| {
        let last = done.stderr.lines().last().unwrap_or("it said nothing");
        match done.exited {
            true => format!("the {what} gave no account ({error}): {last}"),
            false => format!("the {what} crashed: {last}"),
        }
    })
}

/// Result of a replay: a part of the output of `replay -o json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Replayed {
    /// Faults of the schedule that met no call.
    pub(super) unmet: Vec<String>,
    /// Broken promises.
    pub(super) violations: Vec<Violated>,
}

/// A promise that a replay broke.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Violated {
    /// Name of the promise.
    pub(super) promise: String,
    /// Description of the violation.
    #[serde(default)]
    pub(super) message: String,
}

impl Replayed {
    /// Returns the broken promises without duplicates.
    pub(super) fn promises(self) -> Vec<String> {
        let mut promises = Vec::new();
        for Violated { promise, .. } in self.violations {
            if !promises.contains(&promise) {
                promises.push(promise);
            }
        }
        promises
    }
}

/// Replays a line with this build.
///
/// # Errors
/// Returns an error if the line cannot be replayed.
pub(super) fn replay(binary: &Path, line: &str) -> Result<Replayed, String> {
    let mut command = program(binary);
    command.args(["replay", line, "--output", "json"]);
    let done = process::run(&mut command, GRACE).map_err(|why| format!("the replay {why}"))?;
    told(&done, "replay")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(stdout: &str, exited: bool) -> Done {
        Done { success: false, exited, stdout: stdout.to_owned(), stderr: "one\nlast words\n".to_owned() }
    }

    #[test]
    fn what_the_environment_asks_is_not_asked_of_a_mutant() {
        let mut command = Command::new("stowage-proof");
        forget(&mut command, ["STOWAGE_SHARD", "PATH", "STOWAGE_LIST"].map(OsString::from).into_iter());
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert_eq!(removed, ["STOWAGE_LIST", "STOWAGE_SHARD"]);
    }

    #[test]
    fn an_account_is_read_whatever_else_it_says() {
        let text = r#"{"schedules": 7, "seconds": 0.5, "jobs": 2, "failures":
            [{"line": "create 1 #3 lost-answer", "promise": "I1", "message": "gone", "event": 4}]}"#;
        let explored: Explored = told(&done(text, true), "exploration").expect("it is an account");
        assert_eq!((explored.schedules, explored.failures[0].promise.as_str()), (7, "I1"));
    }

    #[test]
    fn no_account_is_no_survival() {
        let problem = told::<Explored>(&done("", false), "exploration").expect_err("there is none");
        assert!(problem.contains("the exploration crashed: last words"), "{problem}");
        assert!(told::<Explored>(&done("panicked", true), "exploration").is_err());
    }

    #[test]
    fn a_promise_that_is_broken_twice_is_named_once() {
        let text = r#"{"line": "create 1", "unmet": [], "violations":
            [{"promise": "L1", "words": "w"}, {"promise": "I1", "event": 4}, {"promise": "L1"}]}"#;
        let replayed: Replayed = told(&done(text, true), "replay").expect("it is an account");
        assert_eq!(replayed.promises(), ["L1", "I1"]);
    }
}
