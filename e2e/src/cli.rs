//! The command line (spec §5).

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand, ValueEnum};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::cluster::World;
use crate::report::Report;
use crate::scenarios::{self, Scenario};
use crate::store::{Account, Store};

/// Plays scenarios with the Stowage operator on a real API server and a real S3 store.
#[derive(Debug, Parser)]
#[command(name = "stowage-e2e", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play the scenarios; everything they make is taken away again.
    ///
    /// Needs the rights of a cluster administrator, and no other Stowage operator in the cluster. Definitions that
    /// were there before are replaced by this version's and stay.
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Scenarios to play; all of them when none is named.
    #[arg(value_enum, value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "S3 store")]
    store: StoreArgs,
    /// The operator under test: program and arguments that come before `run`, separated by spaces.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", value_parser = words)]
    operator_command: Words,
    /// How long to wait for each thing that should happen, in seconds.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Form of the report on stdout.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Where the scenarios run.
    #[arg(long, env = "STOWAGE_CLUSTER", value_name = "STAGE")]
    cluster: StageKind,
    /// Kubeconfig file, for the scenarios and for the operator.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Context of the kubeconfig; its current one by default.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME")]
    context: Option<String>,
}

#[derive(Debug, Args)]
struct StoreArgs {
    /// URL of the S3 store, as the operator reaches it.
    #[arg(long, env = "STOWAGE_S3_ENDPOINT", value_name = "URL")]
    s3_endpoint: String,
    /// Region of the store.
    #[arg(long, env = "STOWAGE_S3_REGION", value_name = "REGION", default_value = "us-east-1")]
    s3_region: String,
    /// Access key id of the store's administrator.
    #[arg(long, env = "STOWAGE_S3_ACCESS_KEY", value_name = "ID")]
    s3_access_key: String,
    /// File that holds the administrator's secret key; blanks around it are dropped.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY_FILE", value_name = "FILE", required_unless_present = "s3_secret_key")]
    s3_secret_key_file: Option<PathBuf>,
    /// The secret key itself. Better given by the environment, where other users don't see it.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY", value_name = "KEY", hide_env_values = true)]
    s3_secret_key: Option<String>,
}

/// Where scenarios can run.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StageKind {
    /// A cluster that is there already.
    Existing,
}

impl StageKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Existing => "existing",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// One line per scenario, as it ends.
    Text,
    /// One document when all have ended.
    Json,
}

/// A command line in words.
#[derive(Clone, Debug)]
struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err("a program is needed".to_owned()) } else { Ok(Words(words)) }
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// One sentence: what failed.
    pub fn execute(self) -> Result<(), String> {
        let Command::Run(args) = self.command;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|error| format!("can't start: {error}"))?.block_on(run(*args))
    }
}

async fn run(args: RunArgs) -> Result<(), String> {
    let world = world(&args).await?;
    world.store.probe().await?;
    let new_definitions = scenarios::install(&world).await?;
    // Whatever comes of it, the world is left as it was.
    let played = tokio::select! {
        report = play(&args, &world) => report,
        signal = tokio::signal::ctrl_c() => Err(signal.map_or_else(|error| error.to_string(), |()| "interrupted".to_owned())),
    };
    let cleaned = world.clean_up().await;
    let uninstalled = scenarios::uninstall(&world, &new_definitions).await;
    let report = played?;
    cleaned.and(uninstalled)?;
    match report.failed() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} scenarios failed", report.scenarios.len())),
    }
}

async fn play(args: &RunArgs, world: &World) -> Result<Report, String> {
    let chosen = if args.scenarios.is_empty() { Scenario::value_variants() } else { &args.scenarios };
    let mut report = Report { stage: args.cluster.cluster.as_str().to_owned(), scenarios: Vec::new() };
    for scenario in chosen {
        let outcome = scenario.run(world).await;
        if args.output == Output::Text {
            print(&outcome.to_string())?;
        }
        report.scenarios.push(outcome);
    }
    if args.output == Output::Json {
        print(&serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?)?;
    }
    Ok(report)
}

fn print(line: &str) -> Result<(), String> {
    use std::io::Write;
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("can't write to stdout: {error}"))
}

async fn world(args: &RunArgs) -> Result<World, String> {
    let ClusterArgs { kubeconfig, context, .. } = &args.cluster;
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
    let options = KubeConfigOptions { context: context.clone(), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|error| error.to_string())?;
    let store = Store::new(Account {
        endpoint: args.store.s3_endpoint.clone(),
        region: args.store.s3_region.clone(),
        access_key: args.store.s3_access_key.clone(),
        secret_key: secret_key(&args.store)?,
    })?;
    // Short enough for bucket names, which hold it; unlike that of any other run.
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Ok(World {
        client: Client::try_from(config).map_err(|error| error.to_string())?,
        kubeconfig: kubeconfig.clone(),
        context: context.clone(),
        store,
        command: args.operator_command.0.clone(),
        patience: Duration::from_secs(args.timeout),
        prefix: format!("e2e-{:x}", moment & 0xff_ffff_ffff),
    })
}

fn secret_key(args: &StoreArgs) -> Result<String, String> {
    match (&args.s3_secret_key, &args.s3_secret_key_file) {
        (Some(key), _) => Ok(key.clone()),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            Ok(text.trim().to_owned())
        }
        (None, None) => Err("no secret key is given".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
