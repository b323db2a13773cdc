//! Generated requests through the gateway, and everything that the store has of them.
//!
//! `generate` makes requests in which much is written in an odd way: heads, documents, sources of
//! copies, forms, headers. A `cast` of two sends each, signed, over the `wire` to a gateway, which
//! reads it, and asks the store in its own words. A `recorder` before the store keeps every byte
//! of that; `read` and `xml` read it anew, and `rules` hold it against what the sender's key opens.
//! The store's access log names the operation that it understood, which `judge` compares with what
//! the gateway's own code takes the head for. At the end the `canary` tells whether anything of
//! others has changed at the store.

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

/// Of requests that the store has from operator and harness, the user agent tells; the gateway
/// gives none.
const NOT_THE_GATEWAY: &str = "aws-sdk-rust";
/// For each that is to come to the store, so many requests are made at most.
const MADE: u64 = 10;
/// Requests between two lines about how far it has come.
const PROGRESS: u64 = 2_000;

#[derive(Debug, Args)]
pub(crate) struct HeadsArgs {
    /// How many requests are to come to the store.
    #[arg(long, env = "STOWAGE_REQUESTS", value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    requests: u64,
    /// What the requests follow from, each with its number.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 41)]
    seed: u64,
    /// The number of the first request: with `--requests 1`, what a report shows is tried alone.
    #[arg(long, env = "STOWAGE_FIRST", value_name = "N", default_value_t = 0)]
    first: u64,
    #[command(flatten)]
    means: MeansArgs,
    /// What is written to stdout: a table, or one document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// What to play, and how.
pub(crate) struct Settings {
    requests: u64,
    seed: u64,
    first: u64,
    means: Means,
    output: Output,
}

impl HeadsArgs {
    /// What the command line asks for.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let Self { requests, seed, first, means, output } = self;
        Ok(Settings { requests, seed, first, means: means.means()?, output })
    }
}

/// Plays it, and tells what came of it.
///
/// # Errors
/// When the store understood or received what it should not have, or something of others has
/// changed there, or too few requests came to it, or something can't be begun, or a signal comes.
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

/// Who sends the requests, and sees what the store has of them.
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

/// What the store has answered to the gateway since its log had this length.
fn lines(log: &Path, began: u64) -> Result<Vec<Understood>> {
    let mut file = std::fs::File::open(log).context("the store's log can't be read")?;
    file.seek(SeekFrom::Start(began)).context("the store's log can't be read")?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).context("the store's log can't be read")?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter(|line| !line.contains(NOT_THE_GATEWAY)).filter_map(Understood::read).collect())
}
