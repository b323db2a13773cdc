//! ceph/s3-tests through the gateway, with a claim's bucket where the suite would make one.
//!
//! `expected` has what each test is expected to do, and why; `told` is what the suite's plug-in
//! reports; `verdict` compares. What is put down to the store is played at the store as well.

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

/// The claim whose bucket the suite uses, and one whose key is somebody else's.
const CLAIMS: [&str; 2] = ["s3-tests", "somebody-else"];

/// What to play, and how.
pub(crate) struct Settings {
    suite: Client,
    expected: Expected,
    over: Vec<Over>,
    cache: PathBuf,
    means: Means,
    /// Only tests whose names contain one of these; all where there are none.
    only: Vec<String>,
    /// How long the suite may take over one way.
    patience: Duration,
    output: Output,
}

/// Plays the suite, and tells what came of it.
///
/// # Errors
/// When a test did other than it was expected to, or something can't be begun, or a signal comes.
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

/// Has the suite play over one way: all that it has, where all is expected; else what is.
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

/// The key of somebody who is not the tenant, under names of their own.
fn keys_of(other: &Access) -> Vec<(String, String)> {
    let of = |name: &str| other.fields.get(name).cloned().unwrap_or_default();
    let names = ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY"];
    names.map(|name| (format!("OTHER_{name}"), of(&format!("AWS_{name}")))).into()
}
