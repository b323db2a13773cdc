//! `stowage-sim serve`.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use http::Uri;
use s3_sim::{Dialect, Store};
use stowage_world::effects::Plan;
use stowage_world::serve::proxy::{Proxy, Upstream, router};
use stowage_world::serve::{self, RequestLog, Server};
use stowage_world::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY};
use terminal::kubeconfig;
use terminal::printed;
use terminal::terminated;
use tracing_subscriber::EnvFilter;

pub(super) const EXAMPLES: &str = "\
Examples:
  stowage-sim serve store --address 127.0.0.1:9000 --request-log store.jsonl
  stowage-sim serve proxy --kubeconfig F --store http://127.0.0.1:9000 --plan 's3:CreateBucket@1 lost-answer'

Once it serves, it prints one line: `ready`, and what is served where, such as `ready store=http://127.0.0.1:9000`.
RUST_LOG says how much is told on stderr; warnings by default.

Exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not serve, said in one sentence on stderr; 2 wrong usage.";

/// The part to serve.
#[derive(Debug, Subcommand)]
pub(super) enum ServeCommand {
    /// Serve a simulated S3 store with one account, in memory.
    #[command(after_long_help = EXAMPLES)]
    Store(StoreArgs),
    /// Serve a proxy that injects faults between an operator and a real API server and store.
    ///
    /// The operator needs a kubeconfig with the proxy's http:// address as server and with a bearer
    /// token, which is passed on to the API server, and an S3Backend with the proxy's other address
    /// as endpoint. Credentials in the proxy's own kubeconfig are not used. Every call gets a
    /// number and the fault that the plan has for it, except calls to the store that are signed
    /// with a key of --unnumbered-key.
    #[command(after_long_help = PROXY_HELP)]
    Proxy(ProxyArgs),
}

const PROXY_HELP: &str = "\
Admin API, with JSON in bodies and answers:
  GET  /effects   {effects: [{number, life, call, fault, world, answer, began_ms}], unfired};
                  /effects/after/N: those with a higher number
  POST /begin     {plan}: begin anew with this plan; numbers count from 1
  PUT  /plan      {plan}: from now on this is the plan; numbers go on
  POST /life      the old process is dead, calls pass again: {life}
  DELETE /life    the process was killed: no call passes until the next life
  GET  /crash     wait up to 30 s for a planned crash: {life, effect}, else 204
A plan that can't happen here is answered with 422 {error}.

Example:
  stowage-sim serve proxy --kubeconfig F --store http://127.0.0.1:9000 --plan 's3:CreateBucket@1 lost-answer'

Exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not serve, said in one sentence on stderr; 2 wrong usage.";

#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    /// Address to serve S3 on; port 0 takes any free port.
    #[arg(long, env = "STOWAGE_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    address: SocketAddr,
    #[command(flatten)]
    keys: Keys,
    /// A further key of the same account, so that the log shows which client sent a request;
    /// repeatable, or separated by commas. Prefer the environment variable: arguments are visible
    /// to other users.
    #[arg(long, env = "STOWAGE_FURTHER_KEY", value_name = "ID=SECRET", hide_env_values = true, value_delimiter = ',', value_parser = further_key)]
    further_key: Vec<FurtherKey>,
    #[command(flatten)]
    log: LogArgs,
}

/// A further key of the store's account.
#[derive(Clone)]
struct FurtherKey {
    id: String,
    secret: String,
}

impl fmt::Debug for FurtherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FurtherKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The store's one account.
#[derive(Debug, Args)]
struct Keys {
    /// Access key id of the store's account.
    #[arg(long, env = "STOWAGE_ACCESS_KEY", value_name = "ID", default_value = ADMIN_ACCESS_KEY)]
    access_key: String,
    /// Secret key of the store's account. Prefer the environment variable: arguments are visible to
    /// other users.
    #[arg(long, env = "STOWAGE_SECRET_KEY", value_name = "KEY", hide_env_values = true, default_value = ADMIN_SECRET_KEY)]
    secret_key: String,
    /// Region of the store.
    #[arg(long, env = "STOWAGE_REGION", value_name = "REGION", default_value = "us-east-1")]
    region: String,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// Append a line of JSON to this file for each request: {at, who, operation, bucket, key,
    /// status}; - is stdout.
    #[arg(long, env = "STOWAGE_REQUEST_LOG", value_name = "FILE")]
    request_log: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ClusterArgs {
    /// Kubeconfig file; without it and without --context, the pod's service account is used.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig, if not its current one.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME")]
    context: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ProxyArgs {
    /// Address to serve the API server on.
    #[arg(long, env = "STOWAGE_KUBE_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    kube_address: SocketAddr,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// http URL of the store behind the proxy.
    #[arg(long, env = "STOWAGE_STORE", value_name = "URL")]
    store: Uri,
    /// Address to serve the store on.
    #[arg(long, env = "STOWAGE_S3_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9001")]
    s3_address: SocketAddr,
    /// An access key id whose calls to the store get no number and no fault, such as the gateway's;
    /// repeatable, or separated by commas.
    #[arg(long, env = "STOWAGE_UNNUMBERED_KEY", value_name = "ID", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    unnumbered_key: Vec<String>,
    /// Address of the admin API.
    #[arg(long, env = "STOWAGE_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9002")]
    admin_address: SocketAddr,
    /// Initial faults, in the syntax of `stowage-proof replay`; none by default.
    #[arg(long, env = "STOWAGE_PLAN", value_name = "PLAN", default_value = "", hide_default_value = true, value_parser = |text: &str| text.parse::<Plan>())]
    plan: Plan,
}

fn further_key(text: &str) -> Result<FurtherKey, String> {
    match text.split_once('=') {
        Some((id, secret)) if !id.is_empty() && !secret.is_empty() => {
            Ok(FurtherKey { id: id.to_owned(), secret: secret.to_owned() })
        }
        _ => Err("expected ID=SECRET".to_owned()),
    }
}

/// Serves until the process is terminated.
pub(super) fn run_serve(command: ServeCommand) -> Result<(), String> {
    // s3s logs every refusal as an error; refusals are in the request log instead.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,s3s=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| format!("can't start: {error}"))?.block_on(async {
        let serving = match command {
            ServeCommand::Store(args) => store(args).await?,
            ServeCommand::Proxy(args) => proxy(args).await?,
        };
        // Listen for signals first: a reader of the announcement may terminate this process at
        // once.
        let terminated = terminated();
        announce(&serving)?;
        terminated.await;
        let servers = serving.into_iter().map(|(_, server)| server.stop());
        futures::future::join_all(servers).await;
        Ok(())
    })
}

/// Servers with the names of what they serve.
type Serving = Vec<(&'static str, Server)>;

async fn store(args: StoreArgs) -> Result<Serving, String> {
    let dialect = Dialect { region: args.keys.region.clone(), ..Dialect::default() };
    let store = Store::new(Arc::new(jiff::Timestamp::now), dialect);
    store.add_account(ADMIN_ACCOUNT, &args.keys.access_key, &args.keys.secret_key);
    for key in &args.further_key {
        store.add_account(ADMIN_ACCOUNT, &key.id, &key.secret);
    }
    let served = serve::store(args.address, &store, &request_log(args.log.request_log.as_deref())?).await;
    Ok(vec![("store", served.map_err(|error| taken(args.address, &error))?)])
}

async fn proxy(args: ProxyArgs) -> Result<Serving, String> {
    let proxy = Proxy::new(args.plan).map_err(|error| error.to_string())?;
    let kube = Upstream::kube(&cluster(&args.cluster).await?).map_err(|error| error.to_string())?;
    let s3 = Upstream::s3(&args.store).map_err(|error| error.to_string())?.unnumbered(args.unnumbered_key);
    let kube = proxy.serve_kube(args.kube_address, kube).await;
    let s3 = proxy.serve_s3(args.s3_address, s3).await;
    let admin = Server::start(args.admin_address, router(proxy)).await;
    Ok(vec![
        ("kube", kube.map_err(|error| taken(args.kube_address, &error))?),
        ("s3", s3.map_err(|error| taken(args.s3_address, &error))?),
        ("admin", admin.map_err(|error| taken(args.admin_address, &error))?),
    ])
}

fn taken(address: SocketAddr, error: &io::Error) -> String {
    format!("can't serve at {address}: {error}")
}

/// Returns the address and the credentials of the cluster.
async fn cluster(args: &ClusterArgs) -> Result<kube::Config, String> {
    if args.kubeconfig.is_none() && args.context.is_none() {
        return kube::Config::incluster().map_err(|error| {
            format!("not in a cluster ({error}); give --kubeconfig or --context to serve outside of one")
        });
    }
    kubeconfig::read(args.kubeconfig.as_deref(), args.context.as_deref()).await
}

fn request_log(file: Option<&Path>) -> Result<RequestLog, String> {
    match file {
        None => Ok(RequestLog::default()),
        Some(file) if file == Path::new("-") => Ok(RequestLog::written_to(io::stdout())),
        Some(file) => {
            let opened = OpenOptions::new().create(true).append(true).open(file);
            let opened = opened.map_err(|error| format!("can't write to {}: {error}", file.display()))?;
            Ok(RequestLog::written_to(opened))
        }
    }
}

/// Announces on stdout that everything is served, in one line.
fn announce(serving: &Serving) -> Result<(), String> {
    let parts: Vec<String> = serving.iter().map(|(what, server)| format!("{what}={}", server.url())).collect();
    let mut out = io::stdout();
    printed(writeln!(out, "ready {}", parts.join(" ")).and_then(|()| out.flush()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(arguments: &[&str]) -> Result<ServeCommand, String> {
        match Cli::try_parse_from([&["stowage-sim", "serve"][..], arguments].concat()) {
            Ok(Cli { command: Command::Serve { command } }) => Ok(command),
            Ok(other) => panic!("it is another command: {other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[rstest]
    #[case(&["store", "--address", "here"], "invalid socket address")]
    #[case(&["proxy"], "--store <URL>")]
    #[case(&["proxy", "--store", "http://a", "--plan", "#1 hagn"], "unknown fault `hagn`")]
    #[case(&["proxy", "--store", "http://a", "--unnumbered-key", ""], "a value is required for '--unnumbered-key")]
    fn wrong_values_are_refused_with_what_was_expected(#[case] arguments: &[&str], #[case] problem: &str) {
        let error = parse(arguments).expect_err("it is wrong usage");
        assert!(error.contains(problem), "{error}");
    }
}
