//! `stowage-sim history`: saves the recorded user actions of a running simulator, and prints the
//! command that replays them together with the faults.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde::Deserialize;
use stowage_world::deeds::Deeds;
use terminal::quoted;
use terminal::{Failure, printed};

use super::running::{Simulator, block_on, expect};

pub(super) const HELP: &str = "\
Examples:
  stowage-sim history seen.yaml
  sh -c \"$(stowage-sim history seen.yaml)\"

Exit codes: 0 the file is written; 1 it can't be, said in one sentence on stderr; 2 wrong usage.";

#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// The file to write; an existing one is replaced.
    file: PathBuf,
    #[command(flatten)]
    simulator: Simulator,
}

/// The answer to `GET /history` of the admin API.
#[derive(Deserialize)]
struct Told {
    history: Deeds,
    plan: String,
    caveats: Vec<String>,
}

/// Runs `stowage-sim history`.
pub(super) fn history(args: &HistoryArgs) -> Result<(), Failure> {
    let answer = block_on(async { expect(&args.simulator.client()?, Method::GET, "/history", None).await })?;
    let told: Told = serde_json::from_value(answer)
        .map_err(|error| Failure::Found(format!("the simulator's answer makes no sense: {error}")))?;
    let text = told.history.text()?;
    fs::write(&args.file, text).map_err(|error| format!("can't write {}: {error}", args.file.display()))?;
    for caveat in &told.caveats {
        // If stderr is closed, the command is printed anyway.
        let _ = writeln!(io::stderr(), "stowage-sim: {caveat}");
    }
    Ok(printed(writeln!(io::stdout(), "{}", line(&args.file.to_string_lossy(), &told.plan)))?)
}

/// Returns the command that replays `file` with the faults in `plan`.
fn line(file: &str, plan: &str) -> String {
    let plan = if plan.is_empty() { String::new() } else { format!(" {}", quoted(plan)) };
    format!("stowage-proof replay --history {}{plan}", quoted(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_one_that_a_shell_reads_back() {
        assert_eq!(line("seen.yaml", ""), "stowage-proof replay --history seen.yaml");
        let expected = "stowage-proof replay --history 'my file' 's3:CreateBucket@1 lost-answer; #2 hang'";
        assert_eq!(line("my file", "s3:CreateBucket@1 lost-answer; #2 hang"), expected);
    }
}
