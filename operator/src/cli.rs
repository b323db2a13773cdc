//! The command line (spec §5).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use daemon::{admin, cluster, descriptors, signals};
use data_encoding::HEXLOWER;

use crate::api::{self, AddressingStyle, ConsumerContent, Endpoint, Gateway, Unlabelled};
use crate::upstream::{Limits, RustlsConnect};
use crate::{Clock, Config, Election, Metrics, Parts, Terms, Uptime};

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
    /// Print the CustomResourceDefinitions as YAML.
    Crds,
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "Gateway")]
    gateway: GatewayArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Process")]
    process: ProcessArgs,
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Kubeconfig file; without it and --context, the pod's service account is used.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    context: Option<String>,
    /// Namespace where the operator keeps its Secrets; by default the pod's own, outside of a
    /// cluster stowage-system.
    #[arg(long, env = "STOWAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    namespace: Option<String>,
    /// Another namespace, besides that one, where admin and CA Secrets of backends are read;
    /// repeatable, or separated by commas.
    #[arg(long, env = "STOWAGE_TRUSTED_SECRET_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace)]
    trusted_secret_namespace: Vec<String>,
    /// For the time of an upgrade: admin Secrets are used that have neither the label
    /// broker.stowage.io/backend-credentials nor the annotation broker.stowage.io/endpoints. Who
    /// may edit an S3Backend can then have any such Secret sent anywhere; the log names what is
    /// used.
    #[arg(long, env = "STOWAGE_ACCEPT_UNLABELLED_CREDENTIALS")]
    accept_unlabelled_credentials: bool,
    /// Stands in the tags of buckets and tells this cluster's from another's on the same store; by
    /// default the UID of kube-system. A restored cluster is given its old one.
    #[arg(long, env = "STOWAGE_INSTALLATION_ID", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    installation_id: Option<String>,
    /// Change nothing, neither in the cluster nor at a store, and log what would be done: the first
    /// step of a restore, and a look before two clusters work on the same buckets.
    #[arg(long, env = "STOWAGE_READ_ONLY")]
    read_only: bool,
    /// Several operators of this namespace may run: one of them works, by the Lease
    /// stowage-operator, and the others stand by. One that dies is followed after 15 s and the
    /// longest that a call may take (--upstream-timeout, at least 30 s); one that is told to end,
    /// at once.
    #[arg(long, env = "STOWAGE_LEADER_ELECT", conflicts_with = "read_only")]
    leader_elect: bool,
}

#[derive(Debug, Args)]
struct GatewayArgs {
    /// URL of the S3 gateway that tenants talk to; no claim can be bound without one.
    #[arg(long, env = "STOWAGE_GATEWAY_ENDPOINT", value_name = "URL", value_parser = gateway_endpoint)]
    gateway_endpoint: Endpoint,
    /// Region that requests to the gateway are signed for.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", default_value = "us-east-1", value_parser = gateway_region)]
    gateway_region: String,
    /// How the gateway wants a bucket's name in a request's URL.
    #[arg(long, env = "STOWAGE_GATEWAY_ADDRESSING_STYLE", value_name = "STYLE", default_value = "path", value_parser = addressing_style())]
    gateway_addressing_style: AddressingStyle,
}

/// A URL that fits into what is kept of a consumer Secret: one that does not would be repaired for
/// ever.
fn gateway_endpoint(text: &str) -> Result<Endpoint, String> {
    let longest = ConsumerContent::LONGEST_ENDPOINT;
    let endpoint = Endpoint::parse(text).map_err(|error| error.to_string())?;
    if endpoint.as_str().len() > longest { Err(format!("it has more than {longest} bytes")) } else { Ok(endpoint) }
}

/// A region, as backends may have it too.
fn gateway_region(text: &str) -> Result<String, String> {
    if (1..=63).contains(&text.len()) { Ok(text.to_owned()) } else { Err("a region has 1 to 63 characters".to_owned()) }
}

/// Reads a style by its name in the contract, which the help lists.
fn addressing_style() -> impl TypedValueParser<Value = AddressingStyle> {
    PossibleValuesParser::new(AddressingStyle::ALL.map(AddressingStyle::as_str)).map(|word| {
        AddressingStyle::ALL.into_iter().find(|style| style.as_str() == word).expect("no other word gets through")
    })
}

#[derive(Debug, Args)]
struct LimitArgs {
    /// How many claims are worked on at once.
    #[arg(long, env = "STOWAGE_MAX_CONCURRENT_RECONCILES", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    max_concurrent_reconciles: u16,
    /// How many calls may be under way at once to each backend.
    #[arg(long, env = "STOWAGE_MAX_UPSTREAM_CALLS", value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    max_upstream_calls: u16,
    /// Deadline of each call to a store, in seconds.
    #[arg(long, env = "STOWAGE_UPSTREAM_TIMEOUT", value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    upstream_timeout: u64,
    /// How many objects one pass deletes at most from a bucket that is emptied, before others get
    /// their turn.
    #[arg(long, env = "STOWAGE_PURGE_SLICE", value_name = "OBJECTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    purge_slice: u32,
    /// How often everything is looked at again even if nothing changed, in seconds, jittered.
    #[arg(long, env = "STOWAGE_RESYNC_INTERVAL", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86400))]
    resync_interval: u64,
}

#[derive(Debug, Args)]
struct ProcessArgs {
    /// Address to serve /metrics, /healthz and /readyz on.
    #[arg(long, env = "STOWAGE_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "[::]:8080")]
    admin_address: SocketAddr,
    /// How the log is written to stderr; RUST_LOG says how much, info by default.
    #[arg(long, env = "STOWAGE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    log_format: daemon::log::Format,
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// One sentence: what failed.
    pub fn execute(self) -> Result<(), String> {
        match self.command {
            Command::Crds => crds(),
            Command::Run(args) => {
                daemon::log::init(args.process.log_format);
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
                runtime.map_err(|error| format!("can't start: {error}"))?.block_on(run(*args))
            }
        }
    }
}

/// The CRDs as one YAML stream, as `crds/` holds them too.
///
/// # Errors
/// When they can't be written as YAML, which would be a defect.
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
    // From the first moment on: a start against a server that doesn't answer is to end as well.
    let terminated = signals::terminated().map_err(|error| format!("can't listen for signals: {error}"))?;
    let (client, own_namespace) =
        cluster::client(args.cluster.kubeconfig.as_deref(), args.cluster.context.as_deref()).await?;
    descriptors::raise();
    let unlabelled_credentials = unlabelled(args.cluster.accept_unlabelled_credentials);
    let timeout = Duration::from_secs(args.limits.upstream_timeout);
    let config = Config {
        operator_namespace: args.cluster.namespace.or(own_namespace).unwrap_or_else(|| "stowage-system".to_owned()),
        trusted_namespaces: args.cluster.trusted_secret_namespace.into_iter().collect::<BTreeSet<_>>(),
        unlabelled_credentials,
        gateway: Gateway {
            endpoint: args.gateway.gateway_endpoint,
            region: args.gateway.gateway_region,
            addressing_style: args.gateway.gateway_addressing_style,
        },
        installation: args.cluster.installation_id,
        read_only: args.cluster.read_only,
        election: if args.cluster.leader_elect { Some(election(timeout)?) } else { None },
        max_concurrent_reconciles: args.limits.max_concurrent_reconciles,
        limits: Limits { calls: usize::from(args.limits.max_upstream_calls), timeout },
        purge_slice: args.limits.purge_slice,
        resync_interval: Duration::from_secs(args.limits.resync_interval),
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

/// How this process takes part in an election: by the name of its machine, which is that of the
/// pod, and a number that no other start has.
fn election(timeout: Duration) -> Result<Election, String> {
    let mut start = [0; 8];
    getrandom::fill(&mut start).map_err(|error| format!("there are no random numbers here: {error}"))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let id = format!("{machine}_{}", HEXLOWER.encode(&start));
    Ok(Election { id, terms: Terms::for_calls_of(timeout) })
}

/// What `/readyz` says: whether every cache is filled, or another operator leads.
fn readable(is_ready: bool) -> Result<String, String> {
    if is_ready { Ok("ok".to_owned()) } else { Err("filling caches".to_owned()) }
}

/// What becomes of admin Secrets whose owner says nothing of what they are for.
fn unlabelled(accept: bool) -> Unlabelled {
    if !accept {
        return Unlabelled::Refused;
    }
    tracing::warn!(
        "--accept-unlabelled-credentials: whoever may edit an S3Backend can have any Secret sent anywhere that is not \
         opted in; opt the admin Secrets in and drop the flag"
    );
    Unlabelled::Accepted
}

/// Resolves a little before 10 s have passed since the signal (spec §5).
async fn deadline(terminated: impl Future<Output = ()>) {
    terminated.await;
    tokio::time::sleep(Duration::from_millis(9_500)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
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
        assert!(parse(&[&gateway[..], &["--upstream-timeout", "0"]].concat()).contains("1..=3600"));
        assert!(parse(&[&gateway[..], &["--gateway-addressing-style", "both"]].concat()).contains("path, virtual"));
        assert!(parse(&[&gateway[..], &["--gateway-region", ""]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--namespace", ""]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--trusted-secret-namespace", "a,B"]].concat()).contains("1 to 63 characters"));
        assert!(parse(&[&gateway[..], &["--leader-elect", "--read-only"]].concat()).contains("cannot be used with"));
        assert_eq!(parse(&gateway), "");
        assert_eq!(parse(&[&gateway[..], &["--trusted-secret-namespace", "a,b-1"]].concat()), "");
    }
}
