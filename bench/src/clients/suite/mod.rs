//! ceph/s3-tests through the gateway, with a claim's bucket where the suite would create one.
//!
//! `expected` has the expected result of each test with its reason, `told` parses the report of the
//! suite's plug-in, and `verdict` compares them. Tests that are expected to fail because of the
//! store are played at the store too.

mod args;
mod expected;
mod told;
mod verdict;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use stowage_testbed::console::{Output, print, tell, unless_interrupted};
use stowage_testbed::script::Script;

pub(crate) use self::args::SuiteArgs;
use self::expected::{Expected, Reason};
use self::told::Told;
use self::verdict::{Played, Report};
use super::catalogue::Client;
use super::environment::{Access, Cluster, PATIENCE};
use super::means::{Means, Over};
use super::play::environment;

/// The claim with the bucket that the suite uses, and one with the key of another user.
const CLAIMS: [&str; 2] = ["s3-tests", "somebody-else"];

/// Settings of a run.
pub(crate) struct Settings {
    suite: Client,
    expected: Expected,
    over: Vec<Over>,
    cache: PathBuf,
    means: Means,
    /// Strings, one of which a test's name must contain; all tests if empty.
    only: Vec<String>,
    /// Time limit for the suite over one endpoint.
    patience: Duration,
    output: Output,
}

/// Plays the suite, and prints the results.
///
/// # Errors
/// Fails if a test had an unexpected result, if something can't be started, or on a signal.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let report = unless_interrupted(play_all(&settings)).await?;
    match settings.output {
        Output::Text => print(report.text().trim_end())?,
        Output::Json => print(&serde_json::to_string_pretty(&report)?)?,
    }
    match report.unexpected() {
        0 => Ok(()),
        count => Err(anyhow!("{count} tests did other than they were expected to")),
    }
}

async fn play_all(settings: &Settings) -> Result<Report> {
    let home = settings.suite.installed(&settings.cache).await?;
    let mut report = Report::of(&settings.suite.version);
    for over in &settings.over {
        let expected = settings.expected.of(*over, &settings.only);
        let told = play(settings, &home, *over, &expected).await?;
        let knows = |test: &str| settings.expected.knows(test);
        report.add(Played { over: *over, expected: &expected, told: &told }, knows);
    }
    Ok(report)
}

/// Plays the suite over one endpoint: through the gateway the whole suite, unless `--only` selects
/// tests; at the store only the expected tests.
async fn play(settings: &Settings, home: &Path, over: Over, expected: &[(&str, Reason)]) -> Result<Vec<Told>> {
    let (serving, log) = settings.means.store.start_with_log(PATIENCE).await?;
    let cluster = Cluster::start(&settings.means, serving, over).await?;
    let mut installation = cluster.installation().await?;
    let [tenant, other] = CLAIMS;
    let access = installation.access(tenant).await?;
    let other = installation.access(other).await?;
    let directory = tempfile::Builder::new().prefix("stowage-s3-tests-").tempdir();
    let directory = directory.context("can't make a temporary directory")?;
    if !settings.only.is_empty() || over == Over::Store {
        let tests: String = expected.iter().map(|(test, _)| format!("{test}\n")).collect();
        fs::write(directory.path().join("tests.txt"), tests).context("can't write the list of tests")?;
    }
    let mut environment = environment(&access, home, directory.path());
    environment.push(("STORE_LOG".to_owned(), log.display().to_string()));
    environment.extend(keys_of(&other));
    tell(&format!("playing {} {} over {}", settings.suite.name, settings.suite.version, over.name()));
    let program = settings.suite.program();
    let script = Script { program: &program, directory: directory.path(), environment: Some(&environment) };
    let no_arguments: [&str; 0] = [];
    let done = script.run(&no_arguments, settings.patience).await?;
    if !done.status.success() {
        return Err(anyhow!("the suite ended ({}): {}", done.status, done.last_words()));
    }
    let told = fs::read_to_string(directory.path().join("report.jsonl")).context("the suite reports nothing")?;
    installation.end().await?;
    told::read(&told)
}

/// Returns the key of a user who is not the tenant, in variables with a prefix.
fn keys_of(other: &Access) -> Vec<(String, String)> {
    let of = |name: &str| other.fields.get(name).cloned().unwrap_or_default();
    let names = ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"];
    names.map(|name| (format!("OTHER_{name}"), of(&format!("AWS_{name}")))).into()
}
