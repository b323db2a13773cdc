//! The `stowage-proof conformance` command.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;
use http::Uri;
use serde_json::{Value, json};
use terminal::kubeconfig;
use terminal::numbers::{seconds, within};
use terminal::{Output, Printing, print_json, printed};

use crate::conformance::kubernetes::{self, Accepted, KubernetesPair};
use crate::conformance::s3::{Keys, S3Pair};
use crate::conformance::{ConformanceReport, Limits, Start, run};

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-proof conformance --kubeconfig ~/.kube/config --context kind-stowage
  stowage-proof conformance --kubeconfig F --seed 7 --sequence 412
  stowage-proof conformance --s3 http://127.0.0.1:9000 --s3-access-key ID --s3-secret-key-file F

With -o json: {operations, sequences, explained, rules: [{name, times}], unexplained, differences: [{sequence,
operation, after, leaves: [{path, simulated, real}], replay}]}, and with a cluster definitions: {warnings, cel_room},
with a store server and
left, the buckets that it doesn't let go of.

Exit codes: 0 every difference is explained; 1 one is not, or a server did not answer; 2 wrong usage.";

/// Arguments of `stowage-proof conformance`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("server").args(["kubeconfig", "s3"]).required(true)))]
pub(super) struct ConformanceArgs {
    /// Kubeconfig file of the cluster to compare the simulated Kubernetes API with.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE", help_heading = "Kubernetes")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME", help_heading = "Kubernetes", conflicts_with = "s3")]
    context: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    /// Number of operations to compare. The sequence under way is finished.
    #[arg(long, env = "STOWAGE_OPERATIONS", value_name = "N", default_value_t = 10_000, value_parser = number)]
    operations: u64,
    /// Seed of every random choice.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 1, value_parser = number)]
    seed: u64,
    /// Play only this sequence.
    #[arg(long, env = "STOWAGE_SEQUENCE", value_name = "N", value_parser = number)]
    sequence: Option<u64>,
    /// Start with this sequence.
    #[arg(long, env = "STOWAGE_FROM", value_name = "N", default_value_t = 0, value_parser = number, conflicts_with = "sequence")]
    from: u64,
    /// Print each difference with all operations before it, instead of taking the time to reduce
    /// it.
    #[arg(long, env = "STOWAGE_WHOLE", value_parser = BoolishValueParser::new())]
    whole: bool,
    /// Start no sequence after this many seconds.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<u64>,
    #[command(flatten)]
    printing: Printing,
}

fn number(text: &str) -> Result<u64, String> {
    within(text, 0..=u64::MAX)
}

/// Arguments for the comparison with a store.
#[derive(Debug, Args)]
#[command(next_help_heading = "S3")]
struct StoreArgs {
    /// URL (http) of the store to compare the simulated store with.
    #[arg(long, env = "STOWAGE_S3", value_name = "URL", requires_all = ["s3_access_key", "s3_secret_key_file"])]
    s3: Option<Uri>,
    /// Access key id of an account that may create buckets.
    #[arg(long, env = "STOWAGE_S3_ACCESS_KEY", value_name = "ID", requires = "s3")]
    s3_access_key: Option<String>,
    /// File with the secret key of that account.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY_FILE", value_name = "FILE", requires = "s3")]
    s3_secret_key_file: Option<PathBuf>,
    /// Region of the store.
    #[arg(long, env = "STOWAGE_S3_REGION", value_name = "REGION", default_value = "us-east-1")]
    s3_region: String,
}

/// Facts about the real server to report beside the comparison.
enum About {
    Cluster(Accepted),
    Store { name: &'static str, left: Vec<String> },
}

/// Runs the comparison and prints the differences.
pub(super) fn run_conformance(args: &ConformanceArgs) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("can't start the runtime: {error}"))?;
    let (report, about) = runtime.block_on(async {
        match (&args.kubeconfig, &args.store.s3) {
            (Some(kubeconfig), _) => compare_kubernetes(args, kubeconfig).await,
            (None, Some(url)) => compare_stores(args, url).await,
            // Unreachable: clap requires one of the two.
            (None, None) => Err("give --kubeconfig or --s3".to_owned()),
        }
    })?;
    match args.printing.output {
        Output::Json => print_json(&document(&report, &about))?,
        Output::Text => printed(write_text(&report, &about))?,
    }
    match report.unexplained {
        0 => Ok(()),
        1 => Err("1 sequence came to a difference that no rule explains".to_owned()),
        several => Err(format!("{several} sequences came to a difference that no rule explains")),
    }
}

async fn compare_kubernetes(args: &ConformanceArgs, file: &Path) -> Result<(ConformanceReport, About), String> {
    let client = kubeconfig::client(kubeconfig::read(Some(file), args.context.as_deref()).await?)?;
    let accepted = kubernetes::accept(&client).await?;
    let mut command = format!("stowage-proof conformance --kubeconfig {}", file.display());
    if let Some(context) = &args.context {
        command += &format!(" --context {context}");
    }
    let mut pair = KubernetesPair::new(kubernetes::simulated(), client);
    let report = run(&mut pair, &limits(args, command), |report| tell(args, report)).await?;
    Ok((report, About::Cluster(accepted)))
}

async fn compare_stores(args: &ConformanceArgs, url: &Uri) -> Result<(ConformanceReport, About), String> {
    let StoreArgs { s3_access_key, s3_secret_key_file, s3_region, .. } = &args.store;
    let file = s3_secret_key_file.as_deref().unwrap_or(Path::new(""));
    let secret = std::fs::read_to_string(file).map_err(|error| format!("can't read {}: {error}", file.display()))?;
    let access_key = s3_access_key.clone().unwrap_or_default();
    let mut command = format!("stowage-proof conformance --s3 {url} --s3-access-key {access_key}");
    command += &format!(" --s3-secret-key-file {} --s3-region {s3_region}", file.display());
    let keys = Keys { access_key, secret_key: secret.trim().to_owned(), region: s3_region.clone() };
    let mut pair = S3Pair::connect(url, keys).await?;
    let report = run(&mut pair, &limits(args, command), |report| tell(args, report)).await?;
    Ok((report, About::Store { name: pair.server().name(), left: pair.left().to_vec() }))
}

fn limits(args: &ConformanceArgs, command: String) -> Limits {
    Limits {
        seed: args.seed,
        operations: args.operations,
        time: args.time_limit.map(Duration::from_secs),
        shrink: !args.whole,
        start: args.sequence.map_or(Start::From(args.from), Start::Only),
        // Objects of an earlier run may still be terminating, so names must differ.
        prefix: format!("conformance-{:06x}", fastrand::u32(..0x0100_0000)),
        command,
    }
}

/// Prints progress every 50 sequences, to stderr, so that stdout has only the result.
fn tell(args: &ConformanceArgs, report: &ConformanceReport) {
    if args.printing.output == Output::Text && report.sequences.is_multiple_of(50) {
        // Progress that cannot be written is not an error.
        let _ = writeln!(io::stderr(), "{} operations, {} unexplained", report.operations, report.unexplained);
    }
}

fn document(report: &ConformanceReport, about: &About) -> Value {
    let rules: Vec<Value> = report.by_rule.iter().map(|(name, times)| json!({"name": name, "times": times})).collect();
    let mut document = json!({
        "operations": report.operations, "sequences": report.sequences, "explained": report.explained, "rules": rules,
        "unexplained": report.unexplained, "differences": report.differences,
    });
    match about {
        About::Cluster(accepted) => document["definitions"] = json!(accepted),
        About::Store { name, left } => {
            document["server"] = json!(name);
            document["left"] = json!(left);
        }
    }
    document
}

fn write_text(report: &ConformanceReport, about: &About) -> io::Result<()> {
    let mut out = io::stdout();
    for difference in &report.differences {
        writeln!(out, "sequence {}:\n{difference}\n", difference.sequence)?;
    }
    match about {
        About::Cluster(accepted) => write_accepted(&mut out, accepted)?,
        About::Store { name, left } => {
            writeln!(out, "compared with {name}")?;
            for bucket in left {
                writeln!(out, "  it doesn't let go of bucket {bucket}")?;
            }
        }
    }
    writeln!(
        out,
        "{} operations in {} sequences; {} explained, {} sequences with a difference that is not",
        report.operations, report.sequences, report.explained, report.unexplained
    )?;
    for (name, times) in &report.by_rule {
        writeln!(out, "  explained {times} times: {name}")?;
    }
    Ok(())
}

fn write_accepted(out: &mut impl Write, accepted: &Accepted) -> io::Result<()> {
    writeln!(out, "definitions: accepted with {} warnings", accepted.warnings.len())?;
    for warning in &accepted.warnings {
        writeln!(out, "  {warning}")?;
    }
    for (name, room) in &accepted.cel_room {
        writeln!(out, "  {name}: accepted with rules {room} times as dear")?;
    }
    Ok(())
}
