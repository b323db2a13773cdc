//! The command line of the suite.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use stowage_testbed::console::Output;
use stowage_testbed::failure::Failure;

use super::super::args::{MeansArgs, cache};
use super::super::catalogue;
use super::super::means::Over;
use super::Settings;
use super::expected::Expected;

#[derive(Debug, Args)]
pub(crate) struct SuiteArgs {
    /// Play only tests with names that contain one of these strings, separated by commas.
    #[arg(long, env = "STOWAGE_ONLY", value_name = "WORDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Endpoints that the suite calls, separated by commas: the gateway over http or https, or the
    /// store itself for tests that are expected to fail there too.
    #[arg(long, env = "STOWAGE_OVER", value_name = "WAYS", value_enum, value_delimiter = ',', default_values_t = [Over::Http, Over::Store])]
    over: Vec<Over>,
    /// Directory with the suite's version, scripts and expected results.
    #[arg(long, env = "STOWAGE_SUITE", value_name = "DIR", default_value = "bench/s3-tests")]
    suite: PathBuf,
    #[command(flatten)]
    means: MeansArgs,
    /// Time limit for the suite over one endpoint, in seconds.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=36_000))]
    timeout: u64,
    /// Format of stdout: a table, or one JSON document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

impl SuiteArgs {
    /// Validates the command line.
    ///
    /// # Errors
    /// Fails if a program is missing on this machine, or if the lists are invalid.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let suite = catalogue::one(&self.suite)?;
        let mut over = self.over;
        over.sort_unstable();
        over.dedup();
        Ok(Settings {
            suite,
            expected: Expected::read(&self.suite.join("expected")).context("the expected results can't be read")?,
            over,
            cache: cache()?,
            means: self.means.means()?,
            only: self.only,
            patience: Duration::from_secs(self.timeout),
            output: self.output,
        })
    }
}
