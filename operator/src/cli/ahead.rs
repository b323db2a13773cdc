//! The `plan` and `why` commands, which report and change nothing (spec §5).

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use daemon::cluster;

use crate::Clock;
use crate::plan::Reach;
use crate::preview::{self, GivenGateway, Means, Paint, Plan, Scope, Setup};
use crate::upstream::{Limits, RustlsConnect};

use super::args::{ClusterArgs, GivenGatewayArgs, LimitArgs, ObcArgs, PublishingArgs};
use super::names::{Named, meant, object};

/// Exit code if there is something to do.
const SOMETHING: u8 = 2;

/// Maximum number of names on the command line. For more, a namespace or everything can be planned.
const MOST_NAMES: usize = 1000;

/// Number of objects between two progress reports.
const STRIDE: usize = 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 there is nothing to do, 2 there is something, 1 something failed, or can't be told."
)]
pub(super) struct PlanArgs {
    /// Objects to report on; without any, all. Claims: NAME with -n, or NAMESPACE/NAME. Accesses:
    /// bucketaccess/NAME with -n, or bucketaccess/NAMESPACE/NAME. ObjectBucketClaims: likewise with
    /// obc/. Backends: s3backend/NAME.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    claims: ClaimArgs,
    /// Check the bucket of each claim as well, like the operator's drift check; makes a call to the
    /// store for each.
    #[arg(long, env = "STOWAGE_LOOK_AT_BUCKETS")]
    look_at_buckets: bool,
    /// Report instead whose deletion would hang if the operator were uninstalled now: claims,
    /// accesses and ObjectBucketClaims whose finalizer only it removes, and what would become of
    /// their buckets.
    #[arg(long, env = "STOWAGE_UNINSTALL", conflicts_with_all = ["look_at_buckets", "pending"])]
    uninstall: bool,
    /// Leave out objects without anything to do.
    #[arg(long, env = "STOWAGE_PENDING")]
    pending: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    setup: SetupArgs,
}

#[derive(Debug, Args)]
pub(super) struct WhyArgs {
    /// Object to explain. A claim: NAME with -n, or NAMESPACE/NAME. An access: bucketaccess/NAME
    /// with -n, or bucketaccess/NAMESPACE/NAME. An ObjectBucketClaim: likewise with obc/.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    claims: ClaimArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    setup: SetupArgs,
}

#[derive(Debug, Args)]
struct ClaimArgs {
    /// Namespace of the claims, accesses and ObjectBucketClaims.
    #[arg(short = 'n', long, env = "STOWAGE_CLAIM_NAMESPACE", value_name = "NAMESPACE", value_parser = cluster::namespace)]
    claim_namespace: Option<String>,
}

#[derive(Debug, Args)]
struct OutputArgs {
    /// Output format: text for people, or one JSON document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Format,
    /// Use of colours in text; auto uses them on a terminal, unless NO_COLOR is set.
    #[arg(long, env = "STOWAGE_COLOR", value_name = "WHEN", default_value = "auto")]
    color: When,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Args)]
struct SetupArgs {
    #[command(flatten, next_help_heading = "Cluster, as the operator is told")]
    cluster: ClusterArgs,
    #[command(flatten, next_help_heading = "Cluster, as the operator is told")]
    obc: ObcArgs,
    #[command(flatten, next_help_heading = "Gateway, as the operator is told")]
    gateway: GivenGatewayArgs,
    #[command(flatten, next_help_heading = "Secrets, as the operator is told")]
    publishing: PublishingArgs,
    #[command(flatten, next_help_heading = "Limits")]
    limits: LimitArgs,
}

pub(super) async fn plan(args: PlanArgs) -> Result<ExitCode, String> {
    let scope = scope(args.names, args.claims.claim_namespace)?;
    let (setup, means) = prepare(args.setup, args.look_at_buckets).await?;
    let plan = if args.uninstall {
        preview::departure(&setup, means, &scope).await?
    } else {
        let told = Cell::new(0);
        let plan = preview::plan(&setup, means, &scope, |done, all| tell_progress(&told, done, all)).await;
        end_progress();
        plan?
    };
    match args.output.output {
        Format::Json => print(&format!("{:#}\n", plan.json()))?,
        Format::Text => {
            print(&plan.text(args.output.paint(), args.pending))?;
            note(&plan.assumed);
        }
    }
    Ok(if args.uninstall && !plan.lines.is_empty() { ExitCode::from(SOMETHING) } else { code(&plan) })
}

pub(super) async fn why(args: WhyArgs) -> Result<(), String> {
    let named = object(&args.name, args.claims.claim_namespace.as_deref())?;
    let (setup, means) = prepare(args.setup, true).await?;
    let (clock, paint) = (means.clock.clone(), args.output.paint());
    let (text, document, assumed) = match &named {
        Named::Claim(at) => {
            let why = preview::why(&setup, means, at).await.map_err(|why| meant(why, at))?;
            (why.text(paint, clock.now()), why.json(), why.assumed)
        }
        Named::Access(at) => {
            let why = preview::why_access(&setup, means, at).await?;
            (why.text(paint, clock.now()), why.json(), why.assumed)
        }
        Named::Obc(at) => {
            let why = preview::why_obc(&setup, means, at).await?;
            (why.text(paint, clock.now()), why.json(), why.assumed)
        }
    };
    match args.output.output {
        Format::Json => print(&format!("{document:#}\n")),
        Format::Text => {
            print(&text)?;
            note(&assumed);
            Ok(())
        }
    }
}

fn code(plan: &Plan) -> ExitCode {
    match (plan.unknown(), plan.to_do()) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(SOMETHING),
        _ => ExitCode::FAILURE,
    }
}

/// Parses the names on the command line.
fn scope(names: Vec<String>, namespace: Option<String>) -> Result<Scope, String> {
    if names.len() > MOST_NAMES {
        return Err(format!("more than {MOST_NAMES} names: give a namespace with -n, or none of both for everything"));
    }
    let mut scope = Scope::default();
    for name in &names {
        if let Some(backend) = name.strip_prefix("s3backend/").filter(|name| !name.is_empty()) {
            scope.backends.insert(backend.to_owned());
            continue;
        }
        match object(name, namespace.as_deref())? {
            Named::Claim(at) => drop(scope.claims.insert(at)),
            Named::Access(at) => drop(scope.accesses.insert(at)),
            Named::Obc(at) => drop(scope.obcs.insert(at)),
        }
    }
    // With names, -n is only their namespace.
    scope.namespace = namespace.filter(|_| names.is_empty());
    Ok(scope)
}

async fn prepare(args: SetupArgs, look_at_buckets: bool) -> Result<(Setup, Means), String> {
    if std::env::var_os("RUST_LOG").is_some() {
        daemon::log::init(daemon::log::Format::Text);
    }
    let (client, own_namespace) =
        cluster::client_of_user(args.cluster.kubeconfig.as_deref(), args.cluster.context.as_deref()).await?;
    let unlabelled_credentials = args.cluster.unlabelled();
    let (publishing, ca) = args.publishing.read()?;
    let setup = Setup {
        operator_namespace: args.cluster.namespace.or(own_namespace).unwrap_or_else(|| "stowage-system".to_owned()),
        usage_namespace: args.cluster.usage_namespace,
        reach: Reach::of(args.cluster.watch_namespace)?,
        trusted_namespaces: args.cluster.trusted_secret_namespace.into_iter().collect(),
        unlabelled_credentials,
        installation: args.cluster.installation_id,
        gateway: GivenGateway {
            endpoint: args.gateway.gateway_endpoint,
            region: args.gateway.gateway_region,
            addressing_style: args.gateway.gateway_addressing_style,
            ca,
        },
        publishing,
        limits: Limits {
            calls: usize::from(args.limits.max_upstream_calls),
            timeout: Duration::from_secs(args.limits.upstream_timeout),
        },
        purge_slice: args.limits.purge_slice,
        obc: args.obc.provisioner(),
        at_once: usize::from(args.limits.max_concurrent_reconciles),
        look_at_buckets,
    };
    Ok((setup, Means { client, connect: Arc::new(RustlsConnect), clock: Clock::system() }))
}

impl OutputArgs {
    fn paint(&self) -> Paint {
        Paint(match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty()),
        })
    }
}

fn print(text: &str) -> Result<(), String> {
    io::stdout().write_all(text.as_bytes()).map_err(|error| format!("can't write to stdout: {error}"))
}

/// Prints the assumptions on stderr.
fn note(assumed: &[String]) {
    for what in assumed {
        let _ = writeln!(io::stderr(), "note: {what}");
    }
}

fn tell_progress(told: &Cell<usize>, done: usize, all: usize) {
    if done >= told.get() + STRIDE && io::stderr().is_terminal() {
        told.set(done);
        let _ = write!(io::stderr(), "\r{done} of {all}");
    }
}

/// Clears the progress from the line.
fn end_progress() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\u{1b}[K");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::api::ClaimRef;

    fn of(names: &[&str], namespace: Option<&str>) -> Result<Scope, String> {
        scope(names.iter().map(|it| (*it).to_owned()).collect(), namespace.map(str::to_owned))
    }

    #[test]
    fn names_are_of_claims_with_a_namespace_and_of_backends() {
        let photos = ClaimRef { namespace: "team-a".into(), name: "photos".into() };
        let named = of(&["photos"], Some("team-a")).expect("a name");
        assert_eq!((named.claims, named.namespace), (BTreeSet::from([photos.clone()]), None));
        let both = of(&["team-a/photos", "s3backend/main"], None).expect("names");
        assert_eq!((both.claims, both.backends), (BTreeSet::from([photos]), BTreeSet::from(["main".to_owned()])));
        let all = of(&["ba/team-b/reader", "obc/team-b/reader", "team-b/reader"], None).expect("names");
        assert_eq!((all.accesses.len(), all.obcs.len(), all.claims.len()), (1, 1, 1));
        assert_eq!(of(&[], Some("team-a")).expect("a namespace").namespace.as_deref(), Some("team-a"));
        for (names, namespace, why) in [
            (&["photos"][..], None, "in which namespace"),
            (&["team-b/photos"], Some("team-a"), "is not in namespace team-a"),
            (&["team-a/"], None, "no claim is called"),
            (&["team-a/a/b"], None, "no claim is called"),
            (&["Team/a"], None, "1 to 63 characters"),
            (&["a"; MOST_NAMES + 1], Some("team-a"), "more than 1000 names"),
        ] {
            let refused = of(names, namespace).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
    }
}
