//! The command line (spec §5).

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum as _};
use stowage_testbed::console::Output;
use stowage_testbed::control_plane::Programs;
use stowage_testbed::failure::Failure;
use stowage_testbed::fault_proxy;
use stowage_testbed::kind;
use stowage_testbed::store::Key;
use stowage_testbed::words::{Words, words};
use stowage_world::effects::Plan as Faults;

use crate::alerts::{self, AlertsArgs};
use crate::chart::{self, ChartArgs};
use crate::cluster_kind::ClusterKind;
use crate::guide::{self, GuideArgs};
use crate::kubectl::{self, KubectlArgs};
use crate::report::LeftOut;
use crate::run::{Place, Plan, Reached, TheirStore, run};
use crate::scenarios::Scenario;

/// File name of the gateway's program, if its command isn't given.
const GATEWAY: &str = "stowage-gateway";
/// The image that `just image` builds.
const OPERATOR_IMAGE: &str = "stowage-operator:dev";

/// Plays scenarios with the Stowage operator on a real API server and a real S3 store.
#[derive(Debug, Parser)]
#[command(name = "stowage-e2e", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play the scenarios, and remove everything they created.
    ///
    /// On an existing cluster this needs administrator rights, and there must be no other Stowage
    /// operator in the cluster. CustomResourceDefinitions that exist already are replaced by those
    /// of this version and are kept. A control plane is started from the programs in
    /// KUBEBUILDER_ASSETS, in the user's cache directory (`just control-plane` puts them there) or
    /// on the PATH, and ends with the run; with --s3-endpoint it uses an existing store instead of
    /// a simulated one. A kind cluster is created with the programs kind, docker and kubectl from
    /// the images that `just image` builds, and deleted after the run; start the program in the
    /// project's root for that.
    Run(Box<RunArgs>),
    /// Test the Helm chart: the objects it renders, the values it rejects, and its life on an API
    /// server.
    ///
    /// Starts a control plane from the programs that `run --cluster control-plane` finds. Needs the
    /// program helm, where `e2e/helm/build` puts it or on the PATH. Run it in the project's root.
    Chart(Box<ChartArgs>),
    /// Play the problem that each alert is for, and check which alerts fire.
    ///
    /// Plays in the simulator with the production operator and gateway, and evaluates the chart's
    /// alerts over the metrics they serve. Needs the program promtool, where `e2e/promtool/build`
    /// puts it or on the PATH. Run it in the project's root.
    Alerts(Box<AlertsArgs>),
    /// Run kubectl commands on a real API server and on that of `stowage-sim up`, and report
    /// differences in exit code or output.
    ///
    /// Starts a control plane from the programs that `run --cluster control-plane` finds, which
    /// include kubectl. Run it in the project's root.
    Kubectl(Box<KubectlArgs>),
    /// Play the commands on the pages of docs/guide and docs/operate, each page on a separate
    /// simulator, as served by `stowage-sim up`.
    ///
    /// Skipped commands are reported with the reason. Needs bash, and the programs kubectl and
    /// helm, found like those of the commands `kubectl` and `chart`. Run it in the project's root.
    Guide(Box<GuideArgs>),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Scenarios to play; by default, all that can be played on this kind of cluster.
    #[arg(value_enum, value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// Kind of cluster to play on.
    #[arg(long, env = "STOWAGE_CLUSTER", value_name = "STAGE")]
    cluster: ClusterKind,
    /// Number of scenarios to play at the same time, each on a separate cluster; by default, the
    /// number of CPUs. On an existing cluster scenarios are played one after the other.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// Operator under test: program and arguments that come before `run`, separated by spaces. With
    /// kind, its image, which the Docker engine must have; by default stowage-operator:dev.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", required_if_eq_any([("cluster", "control-plane"), ("cluster", "existing")]), value_parser = words)]
    operator_command: Option<Words>,
    /// Gateway on a control plane: program and arguments that come before `run`, separated by
    /// spaces; by default, stowage-gateway in the directory of the operator's program.
    #[arg(long, env = "STOWAGE_GATEWAY_COMMAND", value_name = "COMMAND", value_parser = words)]
    gateway_command: Option<Words>,
    /// Seconds to wait for each expected event.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Format of the report on stdout.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// Directory for artefacts: one folder per failed scenario with logs, objects and events,
    /// without any Secret's values.
    #[arg(long, env = "STOWAGE_ARTIFACTS", value_name = "DIR")]
    artifacts: Option<PathBuf>,
    /// Faults for the calls of the scenario's operator, in the syntax of `stowage-proof replay`,
    /// such as 's3:CreateBucket@1 lost-answer; #17 crash(before)'. Requires exactly one scenario,
    /// and a cluster that is started for the run.
    #[arg(long, env = "STOWAGE_PLAN", value_name = "PLAN", default_value = "", hide_default_value = true, value_parser = playable)]
    plan: Faults,
    /// In crash scenarios, crash the operator at every point of each effect: before it, after it,
    /// and after its answer. By default it crashes at one of them in rotation.
    #[arg(long, env = "STOWAGE_THOROUGH")]
    thorough: bool,
    #[command(flatten, next_help_heading = "A kind cluster")]
    kind: KindArgs,
    #[command(flatten, next_help_heading = "A cluster and an S3 store that are there")]
    existing: ExistingArgs,
}

/// Options of `--cluster kind` only.
#[derive(Debug, Args)]
struct KindArgs {
    /// Image of the nodes, which determines the version of Kubernetes; by default, kind's own.
    #[arg(long, env = "KIND_NODE_IMAGE", value_name = "IMAGE")]
    node_image: Option<String>,
    /// Image of the gateway; the Docker engine must have it.
    #[arg(long, env = "STOWAGE_GATEWAY_IMAGE", value_name = "IMAGE", default_value = "stowage-gateway:dev")]
    gateway_image: String,
    /// Image of the simulator, for store and fault proxy; the Docker engine must have it.
    #[arg(long, env = "STOWAGE_SIM_IMAGE", value_name = "IMAGE", default_value = "stowage-sim:dev")]
    sim_image: String,
    /// Directory of the project's manifests.
    #[arg(long, env = "STOWAGE_MANIFESTS", value_name = "DIR", default_value = "kind-config")]
    manifests: PathBuf,
    /// Keep the clusters after the run, for inspection.
    #[arg(long, env = "STOWAGE_KEEP")]
    keep: bool,
}

/// Options of `--cluster existing`; those of the store are also for a control plane.
#[derive(Debug, Args)]
struct ExistingArgs {
    /// Kubeconfig file of an existing cluster, for the scenarios and for the operator.
    #[arg(long, env = "STOWAGE_KUBECONFIG", value_name = "FILE", required_if_eq("cluster", "existing"))]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; its current one by default.
    #[arg(long, env = "STOWAGE_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// URL of the S3 store, as the operator reaches it.
    #[arg(
        long,
        env = "STOWAGE_S3_ENDPOINT",
        value_name = "URL",
        required_if_eq("cluster", "existing"),
        requires = "s3_access_key"
    )]
    s3_endpoint: Option<String>,
    /// Region of the store.
    #[arg(long, env = "STOWAGE_S3_REGION", value_name = "REGION", default_value = "us-east-1")]
    s3_region: String,
    /// Access key id of the store's administrator.
    #[arg(long, env = "STOWAGE_S3_ACCESS_KEY", value_name = "ID", required_if_eq("cluster", "existing"))]
    s3_access_key: Option<String>,
    /// File with the administrator's secret key; surrounding whitespace is ignored.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY_FILE", value_name = "FILE")]
    s3_secret_key_file: Option<PathBuf>,
    /// The secret key itself. Prefer the environment variable: other users can see arguments.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY", value_name = "KEY", hide_env_values = true)]
    s3_secret_key: Option<String>,
}

/// Parses a plan, and checks that all its faults can happen between real servers.
fn playable(text: &str) -> anyhow::Result<Faults> {
    let plan: Faults = text.parse()?;
    fault_proxy::check(&plan)?;
    Ok(plan)
}

fn wrong_usage(kind: ErrorKind, why: impl Display) -> Failure {
    Cli::command().error(kind, why).into()
}

fn missing(flag: &str) -> Failure {
    wrong_usage(ErrorKind::MissingRequiredArgument, format!("{flag} is missing"))
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns a usage error, or the error of the command.
    pub fn execute(self) -> Result<(), Failure> {
        let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().context("can't start");
        match self.command {
            Command::Run(args) => {
                let plan = args.plan()?;
                Ok(runtime()?.block_on(run(plan))?)
            }
            Command::Chart(args) => Ok(runtime()?.block_on(chart::run(*args))?),
            Command::Alerts(args) => Ok(runtime()?.block_on(alerts::run(*args))?),
            Command::Kubectl(args) => Ok(runtime()?.block_on(kubectl::run(*args))?),
            Command::Guide(args) => Ok(runtime()?.block_on(guide::run(*args))?),
        }
    }
}

impl RunArgs {
    fn plan(self) -> Result<Plan, Failure> {
        let (scenarios, left_out) = self.chosen()?;
        self.check_faults(&scenarios)?;
        let command = self.operator_command.clone().map(|Words(words)| words);
        let command = command.ok_or_else(|| missing("--operator-command"));
        let programs = || Programs::find().map_err(anyhow::Error::from);
        let place = match self.cluster {
            ClusterKind::ControlPlane if self.existing.s3_endpoint.is_some() => Place::Existing {
                // First, so that a usage error doesn't depend on the programs of this machine.
                store: self.existing.store()?,
                cluster: Reached::Started(programs()?),
                command: command?,
            },
            ClusterKind::ControlPlane => {
                let (programs, command) = (programs()?, command?);
                let gateway = self.gateway_command.map_or_else(|| beside(&command), |Words(words)| words);
                Place::ControlPlane { programs, command, gateway, jobs: jobs(self.jobs) }
            }
            ClusterKind::Existing => {
                let (cluster, store) = (self.existing.cluster()?, self.existing.store()?);
                Place::Existing { cluster, store, command: command? }
            }
            ClusterKind::Kind => {
                let image = self.operator_command.map(|Words(words)| words.join(" "));
                Place::Kind { settings: self.kind.settings(image), jobs: jobs(self.jobs) }
            }
        };
        Ok(Plan {
            scenarios,
            left_out,
            place,
            patience: Duration::from_secs(self.timeout),
            output: self.output,
            artifacts: self.artifacts,
            faults: self.plan,
            thorough: self.thorough,
        })
    }

    /// Returns the kind of cluster that decides which scenarios can be played. A control plane with
    /// an existing store counts as an existing cluster.
    fn room(&self) -> ClusterKind {
        match self.cluster {
            ClusterKind::ControlPlane if self.existing.s3_endpoint.is_some() => ClusterKind::Existing,
            cluster => cluster,
        }
    }

    /// Returns the scenarios to play, and those left out because they can't be played here. Naming
    /// a scenario that this kind of cluster can't play is a usage error.
    fn chosen(&self) -> Result<(Vec<Scenario>, Vec<LeftOut>), Failure> {
        if self.scenarios.is_empty() {
            let (mut played, mut left_out) = (Vec::new(), Vec::new());
            for scenario in Scenario::value_variants() {
                match scenario.misfit(self.room()).or_else(|| scenario.missing()) {
                    Some(why) => left_out.push(LeftOut { name: scenario.name(), why }),
                    None => played.push(*scenario),
                }
            }
            return Ok((played, left_out));
        }
        for scenario in &self.scenarios {
            if let Some(why) = scenario.misfit(self.room()) {
                return Err(wrong_usage(ErrorKind::ArgumentConflict, format!("{}: {why}", scenario.name())));
            }
        }
        Ok((self.scenarios.clone(), Vec::new()))
    }

    /// Checks that `--plan` is given only for one scenario with an operator, on a cluster with a
    /// fault proxy.
    fn check_faults(&self, scenarios: &[Scenario]) -> Result<(), Failure> {
        if self.plan.is_empty() {
            return Ok(());
        }
        let why = match (self.room(), scenarios) {
            (ClusterKind::Existing, _) => "--plan needs cluster and store to be made for the run".to_owned(),
            (_, [scenario]) if scenario.takes_faults() => return Ok(()),
            (_, [scenario]) => format!("{} takes no --plan", scenario.name()),
            (_, _) => "--plan is for one scenario, which has to be named".to_owned(),
        };
        Err(wrong_usage(ErrorKind::ArgumentConflict, why))
    }
}

/// Returns the gateway's program in the directory of the operator's program.
fn beside(operator: &[String]) -> Vec<String> {
    let program = operator.first().map(PathBuf::from).unwrap_or_default();
    vec![program.with_file_name(GATEWAY).display().to_string()]
}

impl KindArgs {
    fn settings(self, operator_image: Option<String>) -> kind::Settings {
        kind::Settings {
            operator_image: operator_image.unwrap_or_else(|| OPERATOR_IMAGE.to_owned()),
            gateway_image: self.gateway_image,
            sim_image: self.sim_image,
            node_image: self.node_image,
            manifests: self.manifests,
            keep: self.keep,
        }
    }
}

fn jobs(given: Option<u16>) -> usize {
    given.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

impl ExistingArgs {
    fn cluster(&self) -> Result<Reached, Failure> {
        let kubeconfig = self.kubeconfig.clone().ok_or_else(|| missing("--kubeconfig"))?;
        Ok(Reached::There { kubeconfig, context: self.context.clone() })
    }

    fn store(self) -> Result<TheirStore, Failure> {
        let secret = match (self.s3_secret_key, self.s3_secret_key_file) {
            (Some(key), _) => key,
            (None, Some(file)) => {
                let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
                text.trim().to_owned()
            }
            (None, None) => {
                let why = "--s3-secret-key-file or --s3-secret-key is required with --s3-endpoint";
                return Err(wrong_usage(ErrorKind::MissingRequiredArgument, why));
            }
        };
        Ok(TheirStore {
            endpoint: self.s3_endpoint.ok_or_else(|| missing("--s3-endpoint"))?,
            region: self.s3_region,
            key: Key { id: self.s3_access_key.ok_or_else(|| missing("--s3-access-key"))?, secret },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[rstest]
    #[case(&["target/debug/stowage-operator"], "target/debug/stowage-gateway")]
    #[case(&["stowage-operator", "--further"], "stowage-gateway")]
    fn the_gateway_is_the_one_beside_the_operator(#[case] operator: &[&str], #[case] expected: &str) {
        let operator: Vec<String> = operator.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(beside(&operator), [expected]);
    }
}
