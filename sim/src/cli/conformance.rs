//! `stowage-sim conformance`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{Output, Printing, print_json, printed};
use crate::conformance::kubernetes::{self, Accepted, KubernetesPair};
use crate::conformance::{Limits, Report, Start, run};

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-sim conformance --kubeconfig ~/.kube/config --context kind-stowage
  stowage-sim conformance --kubeconfig F --seed 7 --sequence 412

With -o json: {operations, sequences, explained, rules: [{name, times}], unexplained, differences: [{sequence,
operation, after, leaves: [{path, simulated, real}], replay}], definitions: {warnings, cel_room}}.

Exit codes: 0 every difference is explained; 1 one is not, or a server did not answer; 2 wrong usage.";

/// What to compare with what.
#[derive(Debug, Args)]
pub(super) struct ConformanceArgs {
    /// Kubeconfig file of the cluster to compare the simulated Kubernetes API with.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE", help_heading = "Kubernetes")]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME", help_heading = "Kubernetes")]
    context: Option<String>,
    /// Compare so many operations, and finish the sequence.
    #[arg(long, env = "STOWAGE_OPERATIONS", value_name = "N", default_value_t = 10_000)]
    operations: u64,
    /// Every choice follows from it.
    #[arg(long, env = "STOWAGE_SEED", value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Play this sequence only.
    #[arg(long, env = "STOWAGE_SEQUENCE", value_name = "N")]
    sequence: Option<u64>,
    /// Begin with this sequence.
    #[arg(long, env = "STOWAGE_FROM", value_name = "N", default_value_t = 0, conflicts_with = "sequence")]
    from: u64,
    /// Print differences with everything that came before them, and don't take the time to make them small.
    #[arg(long, env = "STOWAGE_WHOLE")]
    whole: bool,
    /// Begin no sequence after so many seconds.
    #[arg(long, env = "STOWAGE_TIME_LIMIT", value_name = "SECONDS")]
    time_limit: Option<u64>,
    #[command(flatten)]
    printing: Printing,
}

/// Compares, and prints what differs.
pub(super) fn run_conformance(args: &ConformanceArgs) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("can't start the runtime: {error}"))?;
    let (report, accepted) = runtime.block_on(compare_kubernetes(args))?;
    match args.printing.output {
        Output::Json => print_json(&document(&report, &accepted))?,
        Output::Text => printed(write_text(&report, &accepted))?,
    }
    match report.unexplained {
        0 => Ok(()),
        1 => Err("1 sequence came to a difference that no rule explains".to_owned()),
        several => Err(format!("{several} sequences came to a difference that no rule explains")),
    }
}

async fn compare_kubernetes(args: &ConformanceArgs) -> Result<(Report, Accepted), String> {
    let client = connect(&args.kubeconfig, args.context.as_ref()).await?;
    let accepted = kubernetes::accept(&client).await?;
    let mut command = format!("stowage-sim conformance --kubeconfig {}", args.kubeconfig.display());
    if let Some(context) = &args.context {
        command += &format!(" --context {context}");
    }
    let mut pair = KubernetesPair::new(kubernetes::simulated(), client);
    let report = run(&mut pair, &limits(args, command), |report| tell(args, report)).await?;
    Ok((report, accepted))
}

async fn connect(file: &PathBuf, context: Option<&String>) -> Result<kube::Client, String> {
    let unusable = |error: &dyn std::fmt::Display| format!("can't use the kubeconfig {}: {error}", file.display());
    let options = KubeConfigOptions { context: context.cloned(), ..KubeConfigOptions::default() };
    let config = Kubeconfig::read_from(file).map_err(|error| unusable(&error))?;
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.map_err(|error| unusable(&error))?;
    kube::Client::try_from(config).map_err(|error| unusable(&error))
}

fn limits(args: &ConformanceArgs, command: String) -> Limits {
    Limits {
        seed: args.seed,
        operations: args.operations,
        time: args.time_limit.map(Duration::from_secs),
        shrink: !args.whole,
        start: args.sequence.map_or(Start::From(args.from), Start::Only),
        // Names of an earlier run may still be on their way out.
        prefix: format!("conformance-{:06x}", fastrand::u32(..0x0100_0000)),
        command,
    }
}

/// A line now and then for who waits at a terminal; on stderr, so that stdout holds the result only.
fn tell(args: &ConformanceArgs, report: &Report) {
    if args.printing.output == Output::Text && report.sequences.is_multiple_of(50) {
        // Who reads no progress is no failure.
        let _ = writeln!(io::stderr(), "{} operations, {} unexplained", report.operations, report.unexplained);
    }
}

fn document(report: &Report, accepted: &Accepted) -> Value {
    let rules: Vec<Value> = report.by_rule.iter().map(|(name, times)| json!({"name": name, "times": times})).collect();
    json!({
        "operations": report.operations, "sequences": report.sequences, "explained": report.explained, "rules": rules,
        "unexplained": report.unexplained, "differences": report.differences,
        "definitions": accepted,
    })
}

fn write_text(report: &Report, accepted: &Accepted) -> io::Result<()> {
    let mut out = io::stdout();
    for difference in &report.differences {
        writeln!(out, "sequence {}:\n{difference}\n", difference.sequence)?;
    }
    writeln!(out, "definitions: accepted with {} warnings", accepted.warnings.len())?;
    for warning in &accepted.warnings {
        writeln!(out, "  {warning}")?;
    }
    for (name, room) in &accepted.cel_room {
        writeln!(out, "  {name}: accepted with rules {room} times as dear")?;
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
