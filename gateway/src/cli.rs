//! The command line.

use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};
use daemon::{admin, cluster, descriptors, signals};
use ipnet::IpNet;
use kube::runtime::watcher;
use stowage_api::Unlabelled;
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::audit::Log;
use crate::front::{Config, Gateway, Gears, Proxies};
use crate::head::Domains;
use crate::metrics::Metrics;
use crate::registry::{Live, Registry, Setting, Source};
use crate::server::{self, Certificate, Gauges};
use crate::upstream::RustlsConnect;

/// The S3 gateway of Stowage: verifies virtual credentials, authorises requests and forwards them
/// to stores.
#[derive(Debug, Parser)]
#[command(name = "stowage-gateway", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway until SIGTERM or SIGINT.
    Run(Box<RunArgs>),
}

#[derive(Debug, Args)]
struct RunArgs {
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "Clients")]
    clients: ClientArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
    #[command(flatten, next_help_heading = "Process")]
    process: ProcessArgs,
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Kubeconfig file. Without it and --context, the pod's service account is used.
    #[arg(long, env = "STOWAGE_GATEWAY_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_GATEWAY_CONTEXT", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    context: Option<String>,
    /// Namespace of the operator's Secrets. Default: the pod's own namespace, or stowage-system
    /// outside of a cluster.
    #[arg(long, env = "STOWAGE_GATEWAY_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    namespace: Option<String>,
    /// Namespace of the ConfigMaps and Leases by which gateways share the usage of buckets. The
    /// gateway writes them. Default: the namespace of --namespace. The operator needs the same
    /// value.
    #[arg(long, env = "STOWAGE_GATEWAY_USAGE_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    usage_namespace: Option<String>,
    /// Further namespace from which Secrets of backends are read. Repeatable, or separated by
    /// commas.
    #[arg(long, env = "STOWAGE_GATEWAY_TRUSTED_SECRET_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', value_parser = cluster::namespace)]
    trusted_secret_namespace: Vec<String>,
    /// Seconds for which the gateway keeps serving from its cache while the API server can't be
    /// reached. A key that is revoked meanwhile stays valid for that long.
    #[arg(long, env = "STOWAGE_GATEWAY_MAX_STALENESS", value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(10..=604_800))]
    max_staleness: u64,
}

#[derive(Debug, Args)]
struct ClientArgs {
    /// Address to serve S3 on.
    #[arg(long, env = "STOWAGE_GATEWAY_LISTEN", value_name = "ADDRESS", default_value = "[::]:8000")]
    listen: SocketAddr,
    /// Certificate chain in PEM. With it and --tls-key, S3 is served over TLS. Both files are read
    /// again when they change.
    #[arg(long, env = "STOWAGE_GATEWAY_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of that certificate, in PEM.
    #[arg(long, env = "STOWAGE_GATEWAY_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Domain below which a host names a bucket (virtual-host style). Repeatable, or separated by
    /// commas.
    #[arg(long, env = "STOWAGE_GATEWAY_DOMAIN", value_name = "DOMAIN", value_delimiter = ',', value_parser = domain)]
    domain: Vec<String>,
    /// Region that requests are signed for.
    #[arg(long, env = "STOWAGE_GATEWAY_REGION", value_name = "REGION", default_value = "us-east-1", value_parser = region)]
    region: String,
    /// Network of proxies that are trusted to report a client's address, such as 10.0.0.0/8.
    /// Repeatable, or separated by commas. Default: none.
    #[arg(long, env = "STOWAGE_GATEWAY_TRUSTED_PROXY", value_name = "CIDR", value_delimiter = ',')]
    trusted_proxy: Vec<IpNet>,
    /// Expect a PROXY protocol header at the beginning of connections: of those from trusted
    /// proxies, or of all if there is no --trusted-proxy.
    #[arg(long, env = "STOWAGE_GATEWAY_PROXY_PROTOCOL")]
    proxy_protocol: bool,
    /// Destination of the access log, one JSON object per line: off, stdout, or a file to append
    /// to.
    #[arg(long, env = "STOWAGE_GATEWAY_ACCESS_LOG", value_name = "off|stdout|FILE", default_value = "off")]
    access_log: AccessLog,
}

#[derive(Debug, Args)]
struct LimitArgs {
    /// Maximum number of concurrent client connections.
    #[arg(long, env = "STOWAGE_GATEWAY_MAX_CONNECTIONS", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,
    /// Maximum number of concurrent connections from one source: an IPv4 address, or the /64 of an
    /// IPv6 address. Default: an eighth of --max-connections.
    #[arg(long, env = "STOWAGE_GATEWAY_MAX_CONNECTIONS_PER_SOURCE", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections_per_source: Option<u32>,
    /// Maximum number of concurrent calls to each backend. A namespace gets at most half of them.
    /// Further requests are answered 503 SlowDown.
    #[arg(long, env = "STOWAGE_GATEWAY_MAX_BACKEND_CALLS", value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_backend_calls: u32,
    /// Maximum number of concurrent requests by the keys of one claim, and by all clients without a
    /// key to one public bucket.
    #[arg(long, env = "STOWAGE_GATEWAY_MAX_REQUESTS_PER_CLAIM", value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_requests_per_claim: u32,
    /// Maximum number of requests per second from one source to one public bucket, if its claim
    /// sets none.
    #[arg(long, env = "STOWAGE_GATEWAY_ANONYMOUS_RPS", value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    anonymous_rps: u32,
}

#[derive(Debug, Args)]
struct ProcessArgs {
    /// Address to serve /metrics, /healthz and /readyz on.
    #[arg(long, env = "STOWAGE_GATEWAY_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "[::]:8080")]
    admin_address: SocketAddr,
    /// Seconds for which new connections are still accepted after the stop signal, until no traffic
    /// is routed here any more.
    #[arg(long, env = "STOWAGE_GATEWAY_DRAIN", value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u64).range(0..=600))]
    drain: u64,
    /// Seconds that requests in progress then get to finish. The pod's
    /// terminationGracePeriodSeconds has to exceed the sum of both.
    #[arg(long, env = "STOWAGE_GATEWAY_SHUTDOWN_GRACE", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    shutdown_grace: u64,
    /// Format of the log on stderr. RUST_LOG sets its level, which is info by default.
    #[arg(long, env = "STOWAGE_GATEWAY_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    log_format: daemon::log::Format,
}

/// The destination of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AccessLog {
    Off,
    Stdout,
    File(PathBuf),
}

impl std::str::FromStr for AccessLog {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it is off, stdout, or the name of a file".to_owned()),
            "off" => Ok(Self::Off),
            "stdout" => Ok(Self::Stdout),
            file => Ok(Self::File(file.into())),
        }
    }
}

impl AccessLog {
    fn open(&self) -> Result<Option<Log>, String> {
        let log = match self {
            Self::Off => return Ok(None),
            Self::Stdout => Log::to(io::stdout()),
            Self::File(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file = file.map_err(|error| format!("can't write the access log {}: {error}", path.display()))?;
                Log::to(io::BufWriter::new(file))
            }
        };
        log.map(Some).map_err(|error| format!("can't start the access log: {error}"))
    }
}

/// Parses a domain of a host name.
fn domain(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let fits = text.len() <= 253 && text.split('.').all(is_label);
    if fits { Ok(text.to_owned()) } else { Err("a domain has labels of a-z, 0-9 and -, with dots between".to_owned()) }
}

/// Parses a region, with the same syntax as in a backend.
fn region(text: &str) -> Result<String, String> {
    let fits = (1..=63).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if fits {
        Ok(text.to_owned())
    } else {
        Err("a region has 1 to 63 visible characters, none of them a slash".to_owned())
    }
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns an error message.
    pub fn execute(self) -> Result<(), String> {
        let Command::Run(args) = self.command;
        daemon::log::init(args.process.log_format);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime.map_err(|error| format!("can't start: {error}"))?.block_on(run(*args))
    }
}

async fn run(args: RunArgs) -> Result<(), String> {
    // First of all, so that the start can be stopped while the API server doesn't answer.
    let terminated = signals::terminated().map_err(|error| format!("can't listen for signals: {error}"))?;
    let (client, own_namespace) =
        cluster::client(args.cluster.kubeconfig.as_deref(), args.cluster.context.as_deref()).await?;
    descriptors::raise();
    let certificate = certificate(&args.clients)?;
    let log = args.clients.access_log.open()?;
    let namespace = args.cluster.namespace.clone().or(own_namespace).unwrap_or_else(|| "stowage-system".to_owned());
    let mut namespaces = std::collections::BTreeSet::from([namespace.clone()]);
    namespaces.extend(args.cluster.trusted_secret_namespace.iter().cloned());
    let registry = Registry::new(Setting { namespaces, unlabelled: Unlabelled::Refused });
    let live = Live::new(client.clone(), &namespace);
    let proxies = Proxies::new(args.clients.trusted_proxy.clone());
    let gateway = gateway(&args, registry.clone(), live, proxies.clone(), log.clone())?;
    let gauges = Gauges::default();
    let listener = TcpListener::bind(args.clients.listen).await;
    let listener = listener.map_err(|error| format!("can't serve S3 on {}: {error}", args.clients.listen))?;
    let address = listener.local_addr().map_err(|error| format!("can't serve S3: {error}"))?;
    let most = args.limits.max_connections;
    let server = server::Config {
        connections: usize::try_from(most).unwrap_or(usize::MAX),
        per_source: args.limits.max_connections_per_source.unwrap_or(most.div_ceil(8)),
        proxies,
        proxy_protocol: args.clients.proxy_protocol,
        drain: Duration::from_secs(args.process.drain),
        grace: Duration::from_secs(args.process.shutdown_grace),
    };
    let admin_listener = admin::listen(args.process.admin_address)?;
    let admin = admin::serve(admin_listener, pages(&gateway, &gauges, log.clone(), terminated.clone()));
    let source = Source { client, namespace, watch: watcher::Config::default() };
    let usage = args.cluster.usage_namespace.clone().unwrap_or_else(|| source.namespace.clone());
    let usage = Source { namespace: usage, ..source.clone() };
    tracing::info!(%address, tls = certificate.is_some(), "serving S3");
    let end = async {
        terminated.await;
        tracing::info!("told to stop: draining");
    };
    let ended = tokio::select! {
        ended = server::serve(listener, gateway.clone(), certificate.clone(), server, gauges, end) => {
            ended.map_err(|error| format!("can't go on serving S3: {error}"))
        }
        never = registry.follow(source) => match never {},
        never = gateway.keep_quotas(usage.clone()) => match never {},
        never = admin => match never {},
        () = follow(certificate) => Ok(()),
    };
    gateway.part(&usage).await;
    if let Some(log) = log {
        log.flush().await;
    }
    ended
}

/// Creates the gateway from the command line's options.
fn gateway(
    args: &RunArgs,
    registry: Registry,
    live: Live,
    proxies: Proxies,
    log: Option<Log>,
) -> Result<Gateway, String> {
    let gears = Gears {
        registry,
        live,
        connect: Box::new(RustlsConnect),
        clock: Arc::new(jiff::Timestamp::now),
        clock_of_clients: Arc::new(jiff::Timestamp::now),
        first_id: first_id()?,
        log,
        metrics: Metrics::new(),
    };
    let config = Config {
        region: args.clients.region.clone(),
        proxies,
        domains: Domains::new(args.clients.domain.iter().cloned()),
        backend_calls: usize::try_from(args.limits.max_backend_calls).unwrap_or(usize::MAX),
        per_claim: args.limits.max_requests_per_claim,
        anonymous_rps: args.limits.anonymous_rps,
        max_staleness: Duration::from_secs(args.cluster.max_staleness),
    };
    Ok(Gateway::new(gears, config))
}

fn certificate(args: &ClientArgs) -> Result<Option<Certificate>, String> {
    let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    Certificate::read(certificate.clone(), key.clone()).map(Some).map_err(|error| error.to_string())
}

/// Reloads the certificate when its files change, if there is one. Never returns.
async fn follow(certificate: Option<Certificate>) {
    match certificate {
        Some(certificate) => certificate.follow().await,
        None => std::future::pending().await,
    }
}

/// Returns a random start for request ids, so that two replicas or two runs have none in common.
fn first_id() -> Result<u64, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system has no random numbers: {error}"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Builds the pages of the admin port.
fn pages(
    gateway: &Gateway,
    gauges: &Gauges,
    log: Option<Log>,
    terminated: impl Future<Output = ()> + Clone + Send + Sync + 'static,
) -> admin::Pages {
    use futures::FutureExt as _;
    let (of_ready, of_metrics, gauges) = (gateway.clone(), gateway.clone(), gauges.clone());
    admin::Pages::new(
        move || match of_ready.fitness(Instant::now()) {
            _ if terminated.clone().now_or_never().is_some() => Err("draining".to_owned()),
            fitness => fitness,
        },
        move || {
            let dropped = log.as_ref().map_or(0, Log::dropped);
            of_metrics.measure(Instant::now(), dropped, &gauges)
        },
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case(&[], "")]
    #[case(&["--domain", "s3.example,eu.s3.example", "--access-log", "stdout"], "")]
    #[case(&["--domain", "s3..example"], "a domain has labels")]
    #[case(&["--region", "a/b"], "none of them a slash")]
    #[case(&["--max-staleness", "1"], "10..=604800")]
    #[case(&["--max-connections", "0"], "1..=1000000")]
    #[case(&["--tls-cert", "/tls.crt"], "--tls-key")]
    #[case(&["--access-log", ""], "off, stdout, or the name of a file")]
    #[case(&["--namespace", ""], "1 to 63 characters")]
    fn a_wrong_value_is_refused_with_what_was_expected(#[case] args: &[&str], #[case] expected: &str) {
        let args = [&["stowage-gateway", "run"], args].concat();
        let told = Cli::try_parse_from(args).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(if expected.is_empty() { told.is_empty() } else { told.contains(expected) }, "{told}");
    }
}
