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

/// The gateway's program, where its command isn't given.
const GATEWAY: &str = "stowage-gateway";
/// The image that `just image` makes.
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
    /// Play the scenarios; everything they make is taken away again.
    ///
    /// On an existing cluster it needs the rights of an administrator, and no other Stowage
    /// operator in the cluster; definitions that were there before are replaced by this version's
    /// and stay. A control plane is started from the programs that are in KUBEBUILDER_ASSETS, in
    /// the user's cache directory (`just control-plane` puts them there) or on the PATH, and ended
    /// with the run; with --s3-endpoint its store is one that is there, not a simulated one. A kind
    /// cluster is made by the programs kind, docker and kubectl of the images that `just image`
    /// makes, from the project's root, and deleted with the run.
    Run(Box<RunArgs>),
    /// Play the Helm chart: what it renders and refuses, and its life on an API server.
    ///
    /// Starts a control plane, from the programs that `run --cluster control-plane` finds. Needs
    /// the program helm, from where `e2e/helm/build` puts it or from the PATH. From the project's
    /// root.
    Chart(Box<ChartArgs>),
    /// Play each trouble that an alert is for, and look which alerts fire.
    ///
    /// Plays in the simulator, with the production operator and gateway, and has the chart's alerts
    /// evaluated over what they serve at /metrics. Needs the program promtool, from where
    /// `e2e/promtool/build` puts it or from the PATH. From the project's root.
    Alerts(Box<AlertsArgs>),
    /// Run kubectl on a real API server and on the one of `stowage-sim up`, command by command, and
    /// tell where exit code or output differ.
    ///
    /// Starts a control plane, from the programs that `run --cluster control-plane` finds, kubectl
    /// among them. From the project's root.
    Kubectl(Box<KubectlArgs>),
    /// Play the commands on the pages of docs/guide and docs/operate, page by page, each page on a
    /// simulator of its own, as `stowage-sim up` serves it.
    ///
    /// What is not played is told, with the reason. Needs bash, and the programs kubectl and helm,
    /// from where `chart` and `kubectl` find them. From the project's root.
    Guide(Box<GuideArgs>),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Scenarios to play; all that the stage has room for when none is named.
    #[arg(value_enum, value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// Where the scenarios run.
    #[arg(long, env = "STOWAGE_CLUSTER", value_name = "STAGE")]
    cluster: ClusterKind,
    /// How many scenarios run at once, on as many clusters; by default, the number of CPUs. On an
    /// existing cluster they run one after the other.
    #[arg(long, env = "STOWAGE_JOBS", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// The operator under test: program and arguments that come before `run`, separated by spaces.
    /// On kind the image of one, which the Docker engine has; by default stowage-operator:dev.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", required_if_eq_any([("cluster", "control-plane"), ("cluster", "existing")]), value_parser = words)]
    operator_command: Option<Words>,
    /// The gateway on a control plane: program and arguments that come before `run`, separated by
    /// spaces; by default stowage-gateway from beside the operator's program.
    #[arg(long, env = "STOWAGE_GATEWAY_COMMAND", value_name = "COMMAND", value_parser = words)]
    gateway_command: Option<Words>,
    /// How long to wait for each thing that should happen, in seconds.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Form of the report on stdout.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// Where to put a folder for each scenario that fails: logs, objects, events, without any
    /// Secret's values.
    #[arg(long, env = "STOWAGE_ARTIFACTS", value_name = "DIR")]
    artifacts: Option<PathBuf>,
    /// Faults that the calls of the scenario's operator meet, in the words of
    /// `stowage-proof replay`, such as 's3:CreateBucket@1 lost-answer; #17 crash(before)'. For one
    /// scenario, in a cluster of its own.
    #[arg(long, env = "STOWAGE_PLAN", value_name = "PLAN", default_value = "", hide_default_value = true, value_parser = playable)]
    plan: Faults,
    /// Have the operator of the crash scenarios die at every point of each effect: before, after
    /// it, after its answer. Otherwise it dies at one of them, which takes turns.
    #[arg(long, env = "STOWAGE_THOROUGH")]
    thorough: bool,
    #[command(flatten, next_help_heading = "A kind cluster")]
    kind: KindArgs,
    #[command(flatten, next_help_heading = "A cluster and an S3 store that are there")]
    existing: ExistingArgs,
}

/// What counts only for `--cluster kind`.
#[derive(Debug, Args)]
struct KindArgs {
    /// Image of the nodes, and with it the version of Kubernetes; kind's own default by default.
    #[arg(long, env = "KIND_NODE_IMAGE", value_name = "IMAGE")]
    node_image: Option<String>,
    /// Image of the gateway; the Docker engine has to have it.
    #[arg(long, env = "STOWAGE_GATEWAY_IMAGE", value_name = "IMAGE", default_value = "stowage-gateway:dev")]
    gateway_image: String,
    /// Image of the simulator, from which store and fault proxy run; the Docker engine has to have
    /// it.
    #[arg(long, env = "STOWAGE_SIM_IMAGE", value_name = "IMAGE", default_value = "stowage-sim:dev")]
    sim_image: String,
    /// The project's directory of manifests.
    #[arg(long, env = "STOWAGE_MANIFESTS", value_name = "DIR", default_value = "kind-config")]
    manifests: PathBuf,
    /// Leave the clusters when all is done, to look around.
    #[arg(long, env = "STOWAGE_KEEP")]
    keep: bool,
}

/// What there has to be for `--cluster existing`; the store can be given to a control plane too.
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
    /// File that holds the administrator's secret key; blanks around it are dropped.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY_FILE", value_name = "FILE")]
    s3_secret_key_file: Option<PathBuf>,
    /// The secret key itself. Better given by the environment, where other users don't see it.
    #[arg(long, env = "STOWAGE_S3_SECRET_KEY", value_name = "KEY", hide_env_values = true)]
    s3_secret_key: Option<String>,
}

/// A plan whose faults can all happen between real servers.
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
    /// Does what the command line says.
    ///
    /// # Errors
    /// Wrong usage, or what failed.
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
                // First: what is wrong with the command line is told whatever this machine has.
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

    /// The cluster whose scenarios have room here: beside a store that is there, even a control
    /// plane is but a cluster.
    fn room(&self) -> ClusterKind {
        match self.cluster {
            ClusterKind::ControlPlane if self.existing.s3_endpoint.is_some() => ClusterKind::Existing,
            cluster => cluster,
        }
    }

    /// The scenarios to play, and those that are left out because nobody named them and they can't
    /// be played here. One that was named and that the cluster has no room for is wrong usage.
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

    /// Faults that are given are for one scenario with an operator, where there is a way for them
    /// to happen.
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

/// The gateway that was built with the operator of this command.
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
