//! Generated requests through the gateway, and what the store says that it understood of them.
//!
//! `generate` makes heads in which much is written in an odd way. Each goes signed over the `wire`
//! to a gateway, which reads it, and asks the store in its own words. The store's access log names
//! the operation that it understood; `judge` compares that with what the gateway's own code takes
//! the head for.

mod generate;
mod judge;
mod wire;

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use http::HeaderMap;
use jiff::Timestamp;
use serde::Serialize;
use stowage_gateway::sigv4::Signer;
use stowage_operator::api::SecretKey;

use self::generate::{Generator, Head};
use self::judge::Understood;
use super::args::MeansArgs;
use super::bed::{Access, Ground, PATIENCE};
use super::{Means, Over};
use crate::failure::Failure;
use crate::run::{Output, print, tell, unless_interrupted};

/// Of requests that the store has from operator and harness, the user agent tells; the gateway
/// gives none.
const NOT_THE_GATEWAY: &str = "aws-sdk-rust";
/// Objects that are there.
const OBJECTS: [&str; 5] = ["k0", "k1", "a/k2", "k3 ?acl", "k4+ä"];
/// Of those heads that were understood otherwise, so many are told.
const TOLD: usize = 20;
/// For each that is to come to the store, so many heads are made at most.
const MADE: u64 = 10;

#[derive(Debug, Args)]
pub(crate) struct HeadsArgs {
    /// How many heads are to come to the store.
    #[arg(long, env = "STOWAGE_HEADS", value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    heads: u64,
    /// What the heads follow from.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 41)]
    seed: u64,
    #[command(flatten)]
    means: MeansArgs,
    /// What is written to stdout: a table, or one document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// What to play, and how.
pub(crate) struct Settings {
    heads: u64,
    seed: u64,
    means: Means,
    output: Output,
}

impl HeadsArgs {
    /// What the command line asks for.
    ///
    /// # Errors
    /// What is missing on this machine.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let Self { heads, seed, means, output } = self;
        Ok(Settings { heads, seed, means: means.means()?, output })
    }
}

/// What came of it.
#[derive(Debug, Default, Serialize)]
struct Report {
    seed: u64,
    /// Heads that were sent.
    made: u64,
    /// Those that the gateway took for data, and passed on.
    passed_on: u64,
    /// Those that came to no call: refused, or answered by the gateway itself.
    kept: u64,
    /// What the store understood, in its words.
    operations: BTreeMap<String, u64>,
    /// The gateway's answers, by status.
    statuses: BTreeMap<u16, u64>,
    /// How many were understood otherwise, and the first of them.
    otherwise: u64,
    first: Vec<String>,
}

impl Report {
    fn text(&self) -> String {
        let Self { seed, made, passed_on, kept, otherwise, .. } = self;
        let mut text = format!("seed {seed}: {made} heads, {passed_on} came to the store, {kept} did not\n");
        for (operation, count) in &self.operations {
            text.push_str(&format!("  {operation:<32} {count:>7}\n"));
        }
        text.push_str("answers:");
        self.statuses.iter().for_each(|(status, count)| text.push_str(&format!(" {status}: {count}")));
        text.push_str(&format!("\n{otherwise} were understood otherwise by the store\n"));
        self.first.iter().for_each(|line| text.push_str(&format!("{line}\n")));
        text
    }
}

/// Plays it, and tells what came of it.
///
/// # Errors
/// When the store understood another operation or bucket than the gateway, or too few heads came to
/// it, or something can't be begun, or a signal comes.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let report = unless_interrupted(play(&settings)).await?;
    match settings.output {
        Output::Text => print(report.text().trim_end())?,
        Output::Json => print(&serde_json::to_string_pretty(&report)?)?,
    }
    match (report.otherwise, report.passed_on) {
        (0, passed_on) if passed_on >= settings.heads => Ok(()),
        (0, passed_on) => Err(anyhow!("only {passed_on} heads came to the store")),
        (otherwise, _) => Err(anyhow!("{otherwise} heads were understood otherwise")),
    }
}

async fn play(settings: &Settings) -> Result<Report> {
    let (serving, log) = settings.means.store.start_with_log(PATIENCE).await?;
    let ground = Ground::start(&settings.means, serving, Over::Http).await?;
    let mut bed = ground.bed().await?;
    let tenant = Tenant::of(&bed.access("heads").await?, log)?;
    for key in OBJECTS {
        tenant.put(key).await?;
    }
    tell(&format!("{} heads from seed {}", settings.heads, settings.seed));
    let mut generator = Generator::new(settings.seed, &tenant.bucket);
    let mut report = Report { seed: settings.seed, ..Report::default() };
    while report.passed_on < settings.heads && report.made < settings.heads * MADE {
        tenant.try_one(&generator.head(), &mut report).await?;
        if report.made.is_multiple_of(10_000) {
            tell(&format!("{} heads, {} came to the store", report.made, report.passed_on));
        }
    }
    bed.end().await?;
    Ok(report)
}

/// Who sends the heads, and sees what the store has of them.
struct Tenant {
    bucket: String,
    host: String,
    address: SocketAddr,
    signer: Signer,
    log: PathBuf,
}

impl Tenant {
    fn of(access: &Access, log: PathBuf) -> Result<Self> {
        let field = |name: &str| access.fields.get(name).cloned().with_context(|| format!("the Secret has no {name}"));
        let endpoint: http::Uri = field("AWS_ENDPOINT_URL")?.parse().context("the endpoint is no URL")?;
        let host = endpoint.authority().context("the endpoint has no host")?.to_string();
        let address = host.parse().context("the gateway is on no address")?;
        let secret = SecretKey::new(field("AWS_SECRET_ACCESS_KEY")?);
        let signer = Signer::new(field("AWS_ACCESS_KEY_ID")?, &secret, field("AWS_REGION")?);
        Ok(Self { bucket: field("BUCKET_NAME")?, host, address, signer, log })
    }

    async fn send(&self, head: &Head) -> Result<(HeaderMap, u16)> {
        let headers = wire::signed(head, &self.signer, &self.host, Timestamp::now())?;
        let status = wire::send(self.address, head, &headers).await?;
        Ok((headers, status))
    }

    async fn put(&self, key: &str) -> Result<()> {
        let path = format!("/{}/{key}", self.bucket).into_bytes();
        let target = stowage_gateway::uri::encode_path(&path);
        let head =
            Head { method: "PUT", path, query: Vec::new(), target, headers: HeaderMap::new(), body: b"data".to_vec() };
        match self.send(&head).await? {
            (_, 200) => Ok(()),
            (_, status) => Err(anyhow!("PUT of {key:?} was answered {status}")),
        }
    }

    async fn try_one(&self, head: &Head, report: &mut Report) -> Result<()> {
        let began = std::fs::metadata(&self.log).context("the store writes no log")?.len();
        let (headers, status) = self.send(head).await?;
        let understood = lines(&self.log, began)?;
        report.made += 1;
        *report.statuses.entry(status).or_default() += 1;
        if understood.is_empty() {
            report.kept += 1;
        } else {
            report.passed_on += 1;
        }
        for line in &understood {
            *report.operations.entry(line.operation.clone()).or_default() += 1;
        }
        let ask = judge::ask(head, &headers, wire::PAYLOAD);
        if let Err(why) = judge::judge(ask.as_ref(), &understood) {
            report.otherwise += 1;
            if report.first.len() < TOLD {
                report.first.push(format!("{} {}: {why}", head.method, head.target));
            }
        }
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
