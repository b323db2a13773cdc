//! The command line (spec §5).

mod ahead;
mod args;
mod names;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use daemon::{admin, cluster, descriptors, signals};
use data_encoding::HEXLOWER;

use crate::api::{self, Gateway, Unlabelled};
use crate::plan::Reach;
use crate::upstream::{Limits, RustlsConnect};
use crate::{Clock, Config, Election, Metrics, Parts, Terms, Uptime};

use ahead::{PlanArgs, WhyArgs};
use args::{ClusterArgs, GatewayArgs, LimitArgs, ObcArgs, PublishingArgs};

/// Program name under which kubectl finds the plugin `kubectl stowage`.
const PLUGIN: &str = "kubectl-stowage";

/// Turns BucketClaims into S3 buckets and scoped, rotating credentials.
#[derive(Debug, Parser)]
#[command(name = "stowage-operator", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator until SIGTERM or SIGINT.
    Run(Box<RunArgs>),
    /// Show what the operator would do next about each claim, access and backend, and why; change
    /// nothing.
    Plan(Box<PlanArgs>),
    /// Explain the state of a claim or access: what it waits for, since when, and what would change
    /// it.
    Why(Box<WhyArgs>),
    /// Print the CustomResourceDefinitions as YAML.
    Crds,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    conduct: ConductArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    obc: ObcArgs,
    #[command(flatten, next_help_heading = "Gateway")]
    gateway: GatewayArgs,
    #[command(flatten, next_help_heading = "Secrets")]
    publishing: PublishingArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Limits")]
    resync: ResyncArgs,
    #[command(flatten, next_help_heading = "Process")]
    process: ProcessArgs,
}

#[derive(Debug, Args)]
struct ConductArgs {
    /// Change nothing in the cluster or at a store, and log what would be done. Useful as the first
    /// step of a restore, and before two clusters work on the same buckets.
    #[arg(long, env = "STOWAGE_READ_ONLY")]
    read_only: bool,
    /// Allow several operators in this namespace: one works, elected by the Lease stowage-operator,
    /// the others stand by. One that crashes is replaced after 15 s plus the maximum duration of a
    /// call (--upstream-timeout, at least 30 s); one that is stopped is replaced at once.
    #[arg(long, env = "STOWAGE_LEADER_ELECT", conflicts_with = "read_only")]
    leader_elect: bool,
}

#[derive(Debug, Args)]
struct ResyncArgs {
    /// Interval in seconds at which every object is reconciled even if nothing changed, jittered.
    #[arg(long, env = "STOWAGE_RESYNC_INTERVAL", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    resync_interval: u64,
}

#[derive(Debug, Args)]
struct ProcessArgs {
    /// Address that serves /metrics, /healthz and /readyz.
    #[arg(long, env = "STOWAGE_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "[::]:8080")]
    admin_address: SocketAddr,
    /// Format of the log on stderr; RUST_LOG sets the level, info by default.
    #[arg(long, env = "STOWAGE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    log_format: daemon::log::Format,
}

impl Cli {
    /// Executes the command.
    ///
    /// # Errors
    /// An error message about what failed.
    pub fn execute(self) -> Result<ExitCode, String> {
        let runtime = || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.map_err(|error| format!("can't start: {error}"))
        };
        let done = |()| ExitCode::SUCCESS;
        match self.command {
            Command::Crds => crds().map(done),
            Command::Run(args) => {
                daemon::log::init(args.process.log_format);
                runtime()?.block_on(run(*args)).map(done)
            }
            Command::Plan(args) => runtime()?.block_on(ahead::plan(*args)),
            Command::Why(args) => runtime()?.block_on(ahead::why(*args)).map(done),
        }
    }

    /// Parses the arguments of this process. Exits if they are invalid or ask for help.
    pub fn of_process() -> Self {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        Self::try_of(&arguments).unwrap_or_else(|error| {
            // `plan` uses exit code 2 for "something to do", so invalid usage exits with 1 there.
            let is_ahead = arguments.get(1).is_some_and(|command| command == "plan" || command == "why");
            let _ = error.print();
            std::process::exit(if is_ahead && error.exit_code() != 0 { 1 } else { error.exit_code() })
        })
    }

    /// Parses arguments, beginning with the program's name. As a plugin of kubectl, the help shows
    /// `kubectl stowage`.
    fn try_of(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let name = arguments.first().map(Path::new).and_then(Path::file_stem);
        let mut command = Self::command();
        if name.is_some_and(|name| name == PLUGIN) {
            command = command.name("kubectl-stowage").bin_name("kubectl stowage");
        }
        Self::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }
}

/// Returns the CRDs as one YAML stream, with the same content as `crds/`.
///
/// # Errors
/// Returns an error if they can't be written as YAML, which would be a bug.
pub fn crds_yaml() -> Result<String, String> {
    let documents: Result<Vec<String>, _> = api::crds().iter().map(serde_saphyr::to_string).collect();
    let documents = documents.map_err(|error| format!("can't write the CRDs as YAML: {error}"))?;
    Ok(documents.iter().map(|document| format!("---\n{}\n", document.trim_end())).collect())
}

fn crds() -> Result<(), String> {
    use std::io::Write;
    let written = std::io::stdout().write_all(crds_yaml()?.as_bytes());
    written.map_err(|error| format!("can't write to stdout: {error}"))
}

async fn run(args: RunArgs) -> Result<(), String> {
    let reach = Reach::of(args.cluster.watch_namespace.clone())?;
    // Installed first, so that a start against a server that doesn't answer can be stopped as well.
    let terminated = signals::terminated().map_err(|error| format!("can't listen for signals: {error}"))?;
    let (client, own_namespace) =
        cluster::client(args.cluster.kubeconfig.as_deref(), args.cluster.context.as_deref()).await?;
    descriptors::raise();
    let unlabelled_credentials = unlabelled(&args.cluster);
    let timeout = Duration::from_secs(args.limits.upstream_timeout);
    let (publishing, ca) = args.publishing.read()?;
    let config = Config {
        operator_namespace: args.cluster.namespace.or(own_namespace).unwrap_or_else(|| "stowage-system".to_owned()),
        usage_namespace: args.cluster.usage_namespace,
        reach,
        trusted_namespaces: args.cluster.trusted_secret_namespace.into_iter().collect::<BTreeSet<_>>(),
        unlabelled_credentials,
        gateway: Gateway {
            endpoint: args.gateway.gateway_endpoint,
            region: args.gateway.gateway_region,
            addressing_style: args.gateway.gateway_addressing_style,
            ca,
        },
        publishing,
        installation: args.cluster.installation_id,
        read_only: args.conduct.read_only,
        election: if args.conduct.leader_elect { Some(election(timeout)?) } else { None },
        max_concurrent_reconciles: args.limits.max_concurrent_reconciles,
        limits: Limits { calls: usize::from(args.limits.max_upstream_calls), timeout },
        purge_slice: args.limits.purge_slice,
        accesses: true,
        obc: args.obc.provisioner(),
        resync_interval: Duration::from_secs(args.resync.resync_interval),
    };
    let (ready, readiness) = tokio::sync::watch::channel(false);
    let metrics = Metrics::new();
    let listener = admin::listen(args.process.admin_address)?;
    let pages = admin::Pages::new(move || readable(*readiness.borrow()), {
        let metrics = metrics.clone();
        move || metrics.encode()
    });
    let admin = admin::serve(listener, pages);
    let parts = Parts {
        client,
        connect: Arc::new(RustlsConnect),
        clock: Clock::system(),
        uptime: Uptime::system(),
        metrics,
        ready: Some(ready),
    };
    let told = terminated.clone();
    let shutdown = async {
        told.await;
        tracing::info!("told to stop: taking no new work");
    };
    let operator = crate::run(config, parts, shutdown);
    tokio::select! {
        outcome = operator => outcome.map_err(|error| error.to_string()),
        never = admin => match never {},
        () = deadline(terminated) => Err("work under way did not end within 10 s of the signal and was dropped".to_owned()),
    }
}

/// Builds the election's configuration. The id is the host name, which is the pod's name, and a
/// random number for this start.
fn election(timeout: Duration) -> Result<Election, String> {
    let mut start = [0; 8];
    getrandom::fill(&mut start).map_err(|error| format!("there are no random numbers here: {error}"))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let id = format!("{machine}_{}", HEXLOWER.encode(&start));
    Ok(Election { id, terms: Terms::for_calls_of(timeout) })
}

/// Returns the answer of `/readyz`: ready if every cache is filled, or another operator leads.
fn readable(is_ready: bool) -> Result<String, String> {
    if is_ready { Ok("ok".to_owned()) } else { Err("filling caches".to_owned()) }
}

/// Returns the policy for admin Secrets whose owner has not opted in, and logs a warning if they
/// are accepted.
fn unlabelled(args: &ClusterArgs) -> Unlabelled {
    let unlabelled = args.unlabelled();
    if unlabelled == Unlabelled::Refused {
        return unlabelled;
    }
    tracing::warn!(
        "--accept-unlabelled-credentials: whoever may edit an S3Backend can have any Secret sent anywhere that is not \
         opted in; opt the admin Secrets in and drop the flag"
    );
    unlabelled
}

/// Resolves shortly before 10 s have passed since the signal (spec §5).
async fn deadline(terminated: impl Future<Output = ()>) {
    terminated.await;
    tokio::time::sleep(Duration::from_millis(9_500)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_was_expected() {
        let parse = |args: &[&str]| {
            let args = [&["stowage-operator", "run"], args].concat();
            Cli::try_parse_from(args).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(parse(&[]).contains("--gateway-endpoint"));
        assert!(parse(&["--gateway-endpoint", "gateway"]).contains("not a URL"));
        let long = format!("http://{}", "g".repeat(1020));
        assert!(parse(&["--gateway-endpoint", &long]).contains("more than 1024 bytes"));
        let gateway = ["--gateway-endpoint", "http://gateway"];
        assert!(parse(&[&gateway[..], &["--upstream-timeout", "0"]].concat()).contains("1..=300"));
        assert!(parse(&[&gateway[..], &["--gateway-addressing-style", "both"]].concat()).contains("path, virtual"));
        assert!(parse(&[&gateway[..], &["--gateway-region", ""]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--namespace", ""]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--trusted-secret-namespace", "a,B"]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--leader-elect", "--read-only"]].concat()).contains("cannot be used with"));
        assert_eq!(parse(&gateway), "");
        assert_eq!(parse(&[&gateway[..], &["--trusted-secret-namespace", "a,b-1"]].concat()), "");
    }

    // covers: 3.9.flag
    #[test]
    fn namespaces_that_are_served_are_named_with_the_installation_and_without_obc() {
        let parse = |args: &[&str]| {
            let args = [&["stowage-operator", "run", "--gateway-endpoint", "http://gateway"], args].concat();
            Cli::try_parse_from(args).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let id = ["--installation-id", "cluster"];
        assert!(parse(&["--watch-namespace", "team-a"]).contains("--installation-id <ID>"));
        for wrong in ["", "team-a,", "Team"] {
            assert!(
                parse(&[&id[..], &["--watch-namespace", wrong]].concat()).contains("1 to 63 characters"),
                "{wrong}"
            );
        }
        let both = parse(&[&id[..], &["--watch-namespace", "team-a", "--obc"]].concat());
        assert!(both.contains("cannot be used with"), "{both}");
        assert_eq!(parse(&[&id[..], &["--watch-namespace", "a,b", "--watch-namespace", "c"]].concat()), "");
    }
}
