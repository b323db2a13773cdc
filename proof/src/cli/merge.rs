//! The `stowage-proof merge` command.

use std::path::{Path, PathBuf};

use clap::Args;
use terminal::Printing;

use super::report::{prepare, publish};
use crate::explorer::CampaignReport;
use crate::explorer::report::document;
use crate::explorer::report::merge::merge;

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-proof merge shard-*.json
  stowage-proof merge shard-*.json --report out -o json

With -o json: the document of `stowage-proof explore`, for the whole.

Exit codes: 0 every promise was kept; 1 one was broken, or the whole has not met what it has to, or no
schedule was run, or the documents don't belong together, or the report can't be written; 2 wrong usage.";

/// Arguments of `stowage-proof merge`.
#[derive(Debug, Args)]
pub(super) struct MergeArgs {
    /// JSON documents of all shards.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write index.html, junit.xml and report.json into this directory. It is created if needed.
    #[arg(long, env = "STOWAGE_REPORT", value_name = "DIR")]
    report: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// Merges the reports, and prints the result.
pub(super) fn run_merge(args: MergeArgs) -> Result<(), String> {
    prepare(args.report.as_deref())?;
    let reports = args.files.iter().map(|file| read(file)).collect::<Result<Vec<CampaignReport>, String>>()?;
    let merged = merge(reports).map_err(|error| error.to_string())?;
    publish(&merged, args.report.as_deref(), args.printing)
}

fn read(file: &Path) -> Result<CampaignReport, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("can't read {}: {error}", file.display()))?;
    document::read(&text)
        .map_err(|error| format!("{} is no document of `stowage-proof explore -o json`: {error}", file.display()))
}
