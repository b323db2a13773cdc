//! What a mutant's own `stowage-proof` finds about it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::process::{self, Done};

/// Beyond its own limit, how long an exploration may take to end: the schedule under way, the
/// shrinking.
const GRACE: Duration = Duration::from_secs(120);

/// How an exploration is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Schedules run at once; the explorer's own choice if absent.
    pub jobs: Option<u16>,
    /// Seconds for the scenarios that a header names, and again for all.
    pub time_limit: u64,
}

/// What a mutant was killed by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Kill {
    /// The line that `stowage-proof replay` takes.
    pub line: String,
    /// The promise that was broken first.
    pub promise: String,
    /// What was seen.
    pub message: String,
    /// The line of the smallest plan that breaks the promise too, where one was found.
    #[serde(default)]
    pub shrunk: Option<String>,
    /// All promises that the mutant breaks under the smallest line, each once, in the order in
    /// which they were found broken.
    #[serde(skip)]
    pub promises: Vec<String>,
    /// Whether every fault of the line met a call of the unmutated operator too.
    #[serde(skip)]
    pub met: bool,
}

impl Kill {
    /// The smallest line known.
    pub fn fault(&self) -> &str {
        self.shrunk.as_ref().unwrap_or(&self.line)
    }
}

/// What an exploration came to; a part of what `explore -o json` prints (spec §5).
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Explored {
    pub(super) schedules: u64,
    pub(super) seconds: f64,
    pub(super) failures: Vec<Kill>,
}

/// Explores until the first failure, in these scenarios; in all if there are none.
///
/// # Errors
/// When the explorer gives no account: it crashed, or did not end.
pub(super) fn explore(binary: &Path, scenarios: &[String], limits: &Limits) -> Result<Explored, String> {
    let mut command = program(binary);
    command.arg("explore").args(scenarios).args(["--fail-fast", "--shuffle", "--output", "json"]);
    command.arg("--time-limit").arg(limits.time_limit.to_string());
    command.args(limits.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
    let done = process::run(&mut command, Duration::from_secs(limits.time_limit) + GRACE)
        .map_err(|why| format!("the exploration {why}"))?;
    told(&done, "exploration")
}

/// A `stowage-proof` that does what its arguments say: what the environment asks of this process is
/// not asked of it.
fn program(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    forget(&mut command, std::env::vars_os().map(|(name, _)| name));
    command
}

/// Keeps from a program those of these variables that a command line of ours would read.
pub(super) fn forget(command: &mut Command, names: impl Iterator<Item = OsString>) {
    for name in names.filter(|name| name.as_encoded_bytes().starts_with(b"STOWAGE_")) {
        command.env_remove(name);
    }
}

/// The document that a program told.
fn told<T: DeserializeOwned>(done: &Done, what: &str) -> Result<T, String> {
    serde_json::from_str(&done.stdout).map_err(|error| {
        let last = done.stderr.lines().last().unwrap_or("it said nothing");
        match done.exited {
            true => format!("the {what} gave no account ({error}): {last}"),
            false => format!("the {what} crashed: {last}"),
        }
    })
}

/// What a replay came to; a part of what `replay -o json` prints.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Replayed {
    /// Faults of the line that met no call.
    pub(super) unmet: Vec<String>,
    /// What was broken.
    pub(super) violations: Vec<Violated>,
}

/// A promise that a replay broke.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Violated {
    /// Its name.
    pub(super) promise: String,
    /// What was seen.
    #[serde(default)]
    pub(super) message: String,
}

impl Replayed {
    /// The promises that were broken, each once.
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

/// Replays a line by this build.
///
/// # Errors
/// When the line can't be replayed.
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
