//! `stowage-sim up`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{Args, ValueEnum};
use daemon::{descriptors, memory};
use terminal::terminated;
use terminal::{Failure, Output, printed};
use tokio::process::Command;
use tracing_subscriber::EnvFilter;

use crate::demo::Source;
use crate::up::{Authorization, KUBECONFIG, Listen, Options, Served, Up, is_private, use_of};

pub(super) const HELP: &str = "\
Examples:
  stowage-sim up
  stowage-sim up -f examples/ --on-ready 'kubectl wait --for=condition=Ready bucketclaim --all -A'
  stowage-sim up -o json --kube-address 127.0.0.1:0 --s3-address 127.0.0.1:0 --store-address 127.0.0.1:0 \\
    --admin-address 127.0.0.1:0

Once everything is served it prints one line. With -o json that is {kubeconfig, kubernetes, s3, store, admin}.
Everything is kept in memory, and gone when it ends, unless --data names a directory for it. Beside it:
  stowage-sim env team-a/photos         how a claim's bucket is reached, for a shell; an access's too
  stowage-sim calls -f                  what the operator calls
  stowage-sim fault add '…'             have a call to come go wrong
  stowage-sim clock advance 90d         move time ahead
  stowage-sim history seen.yaml         what was done, and the line that plays it again
RUST_LOG says how much is told on stderr; warnings by default.

Exit codes: 0 ended by SIGTERM or SIGINT; 1 it could not start, or --on-ready failed, said in one sentence on stderr;
2 wrong usage.";

#[derive(Debug, Args)]
pub(super) struct UpArgs {
    /// Manifests to apply at the start: files, directories, or - for standard input; repeatable. If
    /// they contain an S3Backend, the default backend is not created.
    #[arg(short, long = "filename", env = "STOWAGE_FILENAME", value_name = "FILE", num_args = 1..)]
    filename: Vec<PathBuf>,
    /// Shell command to run once everything is served, with KUBECONFIG and STOWAGE_SIM set. If it
    /// fails, the simulator exits.
    #[arg(long, env = "STOWAGE_ON_READY", value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    on_ready: Option<String>,
    /// Don't run the operator; run your own with the kubeconfig.
    #[arg(long, env = "STOWAGE_NO_OPERATOR", value_parser = BoolishValueParser::new())]
    no_operator: bool,
    /// Serve ObjectBucketClaims too, with a storage class `buckets` for the first backend.
    #[arg(long, env = "STOWAGE_OBC", value_parser = BoolishValueParser::new())]
    obc: bool,
    /// Handling of Deployments, StatefulSets and Jobs, which don't run: `kept` unchanged, or marked
    /// as `ready`, so that `helm --wait` returns.
    #[arg(long, env = "STOWAGE_WORKLOADS", value_name = "HOW", default_value = "kept")]
    workloads: Workloads,
    /// Authorize requests by RBAC: `kubectl --as` is limited to what the user's roles and bindings
    /// allow. Without it every user may do everything.
    #[arg(long, env = "STOWAGE_RBAC", value_parser = BoolishValueParser::new())]
    rbac: bool,
    /// Directory to keep all state in, even if the process crashes; created if it doesn't exist.
    /// Without it all state is in memory and lost when the process ends.
    #[arg(long, env = "STOWAGE_DATA", value_name = "DIR")]
    data: Option<PathBuf>,
    /// File to write the kubeconfig to; no other kubeconfig is changed.
    #[arg(long, env = "STOWAGE_KUBECONFIG_OUT", value_name = "FILE", default_value = KUBECONFIG)]
    kubeconfig_out: PathBuf,
    #[command(flatten, next_help_heading = "Addresses, with port 0 for any that is free")]
    addresses: Addresses,
    /// Output format once everything is served: a line of text for people, or one of JSON.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Workloads {
    /// Unchanged.
    Kept,
    /// Marked as ready.
    Ready,
}

#[derive(Debug, Args)]
struct Addresses {
    /// Address of the Kubernetes API.
    #[arg(long, env = "STOWAGE_KUBE_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:6443")]
    kube_address: SocketAddr,
    /// Address of the gateway, which tenants use.
    #[arg(long, env = "STOWAGE_S3_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    s3_address: SocketAddr,
    /// Address of the store behind the gateway.
    #[arg(long, env = "STOWAGE_STORE_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9001")]
    store_address: SocketAddr,
    /// Address of the admin API, which the other commands use.
    #[arg(long, env = "STOWAGE_ADMIN_ADDRESS", value_name = "ADDRESS", default_value = "127.0.0.1:9002")]
    admin_address: SocketAddr,
    /// Allow addresses that other machines can reach. Anyone who can reach them has full access.
    #[arg(long, env = "STOWAGE_SERVE_OTHERS", value_parser = BoolishValueParser::new())]
    serve_others: bool,
}

impl Addresses {
    fn listen(&self) -> Result<Listen, String> {
        let &Self { kube_address: kube, s3_address: s3, store_address: store, admin_address: admin, .. } = self;
        let reached = [kube, s3, store, admin].into_iter().find(|address| !is_private(address));
        match reached.filter(|_| !self.serve_others) {
            Some(address) => {
                Err(format!("{address} may be reached by other machines; --serve-others says that it may"))
            }
            None => Ok(Listen { kube, s3, store, admin }),
        }
    }
}

/// Runs a simulator until the process is terminated.
pub(super) fn run(args: UpArgs) -> Result<(), Failure> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,s3s=off"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false).init();
    let listen = args.addresses.listen().map_err(Failure::Usage)?;
    descriptors::raise();
    memory::without_huge_pages();
    let manifests = Source::Paths(args.filename).read()?;
    let authorization = if args.rbac { Authorization::Rbac } else { Authorization::AllowAll };
    let (kubeconfig, operator, data) = (args.kubeconfig_out, !args.no_operator, args.data);
    let workloads_ready = args.workloads == Workloads::Ready;
    let obc = args.obc;
    let options = Options { listen, kubeconfig, operator, authorization, obc, workloads_ready, data, manifests };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("can't start: {error}"))?;
    runtime.block_on(async {
        let up = Up::start(options).await?;
        // Listen for signals first: a reader of the announcement may terminate this process at
        // once.
        let terminated = terminated();
        announce(up.served(), args.output)?;
        let outcome = tokio::select! {
            outcome = until_the_end(terminated, args.on_ready, up.served()) => outcome,
            // Without its data the simulator can't answer requests any more.
            why = up.failure() => return Err(Failure::Found(why)),
        };
        up.stop().await;
        outcome.map_err(Failure::Found)
    })
}

/// Waits for termination, or for a failure of the `--on-ready` command.
async fn until_the_end(
    terminated: impl Future<Output = ()>,
    on_ready: Option<String>,
    served: &Served,
) -> Result<(), String> {
    tokio::pin!(terminated);
    if let Some(command) = on_ready {
        tokio::select! {
            outcome = ready(&command, served) => outcome?,
            () = &mut terminated => return Ok(()),
        }
    }
    terminated.await;
    Ok(())
}

/// Runs the `--on-ready` command.
async fn ready(command: &str, served: &Served) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("KUBECONFIG", &served.kubeconfig).env("STOWAGE_SIM", &served.admin);
    let status = shell.stdin(Stdio::null()).kill_on_drop(true).status().await;
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("--on-ready failed: {status}")),
        Err(error) => Err(format!("can't run --on-ready: {error}")),
    }
}

/// Announces on stdout that everything is served, in one line.
fn announce(served: &Served, output: Output) -> Result<(), String> {
    let line = match output {
        Output::Text => format!(
            "{}   # S3 for tenants: {}   store behind it: {}   page: {}",
            use_of(&served.kubeconfig),
            served.s3,
            served.store,
            served.admin
        ),
        Output::Json => serde_json::to_string(served).map_err(|error| error.to_string())?,
    };
    let mut out = io::stdout();
    printed(writeln!(out, "{line}").and_then(|()| out.flush()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rstest::rstest;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(arguments: &[&str]) -> UpArgs {
        match Cli::try_parse_from([&["stowage-sim", "up"][..], arguments].concat()) {
            Ok(Cli { command: Command::Up(args) }) => *args,
            other => panic!("it is no good usage of up: {other:?}"),
        }
    }

    #[rstest]
    #[case(&[], true)]
    #[case(&["--s3-address", "[::1]:0"], true)]
    #[case(&["--s3-address", "0.0.0.0:9000"], false)]
    #[case(&["--admin-address", "[::]:9002"], false)]
    #[case(&["--admin-address", "10.0.0.1:9002", "--serve-others"], true)]
    fn other_machines_reach_it_only_where_that_is_said(#[case] arguments: &[&str], #[case] taken: bool) {
        assert_eq!(parse(arguments).addresses.listen().is_ok(), taken);
    }
}
