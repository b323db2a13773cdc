//! Generated requests through the gateway, with a record of everything that the store receives.
//!
//! `generate` generates requests with unusual heads, documents, sources of copies, forms and
//! headers. One of the two senders in `cast` signs each request and sends it over the `wire` to a
//! gateway, which parses it and writes its own request to the store. A `recorder` in front of the
//! store records every byte of that. `read` and `xml` parse it a second time, and `rules` checks it
//! against the rights of the sender's key. The store's access log has the operation that it
//! understood, which `judge` compares with the gateway's own parse of the head. At the end the
//! `canary` shows if anything else has changed in the store.

mod canary;
mod cast;
mod generate;
mod judge;
mod read;
mod recorder;
mod report;
mod rules;
mod wire;
mod xml;

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use jiff::Timestamp;
use stowage_testbed::console::{Output, print, tell, unless_interrupted};
use stowage_testbed::failure::Failure;
use stowage_testbed::request::Asker;
use stowage_testbed::simulated::REGION;

use self::cast::Cast;
use self::generate::{Generator, Request};
use self::judge::{Bounds, Outcome, Understood, judge};
use self::recorder::Recorder;
use self::report::Report;
use super::args::MeansArgs;
use super::environment::{Cluster, PATIENCE};
use super::means::{Means, Over};

/// User agent of requests from operator and harness in the store's log; the gateway sends none.
const NOT_THE_GATEWAY: &str = "aws-sdk-rust";
/// Limit of generated requests, per request that has to reach the store.
const MADE: u64 = 10;
/// Number of requests between two lines of progress.
const PROGRESS: u64 = 2_000;

#[derive(Debug, Args)]
pub(crate) struct HeadsArgs {
    /// Number of requests that have to reach the store.
    #[arg(long, env = "STOWAGE_REQUESTS", value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    requests: u64,
    /// Seed from which, with its number, each request is generated.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 41)]
    seed: u64,
    /// Number of the first request; with `--requests 1`, one request of a report can be repeated.
    #[arg(long, env = "STOWAGE_FIRST", value_name = "N", default_value_t = 0)]
    first: u64,
    #[command(flatten)]
    means: MeansArgs,
    /// Format of stdout: a table, or one JSON document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Settings of a run.
pub(crate) struct Settings {
    requests: u64,
    seed: u64,
    first: u64,
    means: Means,
    output: Output,
}

impl HeadsArgs {
    /// Validates the command line.
    ///
    /// # Errors
    /// Fails if a program is missing on this machine.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let Self { requests, seed, first, means, output } = self;
        Ok(Settings { requests, seed, first, means: means.means()?, output })
    }
}

/// Sends the requests, and prints a report.
///
/// # Errors
/// Fails if the store understood or received something that it should not have, if anything else
/// changed there, if too few requests reached it, if something can't be started, or on a signal.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let report = unless_interrupted(play(&settings)).await?;
    match settings.output {
        Output::Text => print(report.text().trim_end())?,
        Output::Json => print(&serde_json::to_string_pretty(&report)?)?,
    }
    match (report.wrong, report.changes.len(), report.forwarded) {
        (0, 0, forwarded) if forwarded >= settings.requests => Ok(()),
        (0, 0, forwarded) => Err(anyhow!("only {forwarded} requests came to the store")),
        (wrong, changes, _) => {
            Err(anyhow!("{wrong} requests went wrong, {changes} objects and files of others changed"))
        }
    }
}

async fn play(settings: &Settings) -> Result<Report> {
    let (serving, log) = settings.means.store.start_with_log(PATIENCE).await?;
    let directory = log.parent().context("the store's log is in no directory")?.to_owned();
    let recorder = Recorder::start(&serving.endpoint, NOT_THE_GATEWAY).await?;
    let store = Asker::new(&serving.endpoint, REGION, serving.key.clone())?;
    let cluster = Cluster::start_behind(&settings.means, serving, Over::Http, recorder.url()).await?;
    let mut installation = cluster.installation().await?;
    let cast = Cast::assemble(&mut installation, store, &directory).await?;
    tell(&format!("{} requests from seed {}", settings.requests, settings.seed));
    let generator = Generator::new(settings.seed, cast.scene.clone());
    let mut report = Report::new(settings.seed);
    let stand = Stand { cast, recorder, log };
    while report.forwarded < settings.requests && report.sent < settings.requests.saturating_mul(MADE) {
        let request = generator.request(settings.first + report.sent);
        stand.try_one(&request, &mut report).await.with_context(|| request.to_string())?;
        if report.sent.is_multiple_of(PROGRESS) {
            tell(&report.progress());
        }
    }
    report.looked_at(stand.cast.canary.count(), stand.cast.canary.changes().await?);
    installation.end().await?;
    Ok(report)
}

/// The senders of requests, with the record of the store's side.
struct Stand {
    cast: Cast,
    recorder: Recorder,
    log: PathBuf,
}

impl Stand {
    async fn try_one(&self, request: &Request, report: &mut Report) -> Result<()> {
        let (caller, rights) = self.cast.of(request.who);
        let began = std::fs::metadata(&self.log).context("the store writes no log")?.len();
        drop(self.recorder.take());
        let sent = caller.write(request, Timestamp::now())?;
        let answer = caller.send(&sent).await?;
        let (received, understood) = (self.recorder.take(), lines(&self.log, began)?);
        let outcome = Outcome { received: &received, understood: &understood, answer: &answer };
        let bounds = Bounds { rights, secrets: &self.cast.canary.secrets };
        let judged = judge(request, &sent, &outcome, &bounds);
        report.add(request, &sent, &outcome, &judged);
        Ok(())
    }
}

/// Returns the gateway's requests in the store's log from this byte offset on.
fn lines(log: &Path, began: u64) -> Result<Vec<Understood>> {
    let mut file = std::fs::File::open(log).context("the store's log can't be read")?;
    file.seek(SeekFrom::Start(began)).context("the store's log can't be read")?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).context("the store's log can't be read")?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter(|line| !line.contains(NOT_THE_GATEWAY)).filter_map(Understood::read).collect())
}
