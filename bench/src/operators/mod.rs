//! Third-party operators on the API server of `stowage-sim up` and on a real one, with the same
//! checks on both, so that a difference is the simulator's.
//!
//! An operator is a directory of `bench/operators` in the form of a client's
//! (`clients::catalogue`). It is started twice (`replicas`) in an `environment`, and observed from
//! outside by a `cluster`'s API. `play` runs the checks in order. `faces` compares the objects that
//! it left in both environments. `fixtures` runs the test fixtures that the guide shows.

mod cluster;
mod environment;
mod faces;
mod fixtures;
mod play;
mod replicas;
mod sites;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use futures::future::try_join_all;
use serde_json::Value;
use stowage_testbed::console::{print, tell, unless_interrupted};
use stowage_testbed::control_plane::Programs;
use stowage_testbed::failure::sentence;

use self::environment::{ControlPlaneEnvironment, Environment, SimulatorEnvironment};
use self::play::Play;
use crate::clients::cache;
use crate::clients::catalogue::{self, Client as Operator};
use stowage_testbed::tools::beside;

/// The CustomResourceDefinition of websites, for all operators.
const DEFINITION: &str = "websites.yaml";

#[derive(Debug, Args)]
pub(crate) struct OperatorsArgs {
    /// Names of operators to play, separated by commas; by default, all.
    #[arg(long, env = "STOWAGE_ONLY", value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Directory of the project's operators.
    #[arg(long, env = "STOWAGE_OPERATORS", value_name = "DIR", default_value = "bench/operators")]
    operators: PathBuf,
    /// Page with the fixtures to run.
    #[arg(long, env = "STOWAGE_GUIDE", value_name = "FILE", default_value = "docs/guide/simulator.md")]
    guide: PathBuf,
    /// Path of the simulator; by default, stowage-sim in the directory of this program.
    #[arg(long, env = "STOWAGE_SIMULATOR", value_name = "PROGRAM")]
    simulator: Option<PathBuf>,
}

/// Plays all operators, and prints the results.
///
/// # Errors
/// Fails with the number of failed checks, or if something can't be started.
pub(crate) async fn run(args: OperatorsArgs) -> Result<()> {
    unless_interrupted(play_all(&args)).await
}

async fn play_all(args: &OperatorsArgs) -> Result<()> {
    let simulator = match &args.simulator {
        Some(program) => std::path::absolute(program).context("the simulator has no path")?,
        None => beside("stowage-sim")?.into_iter().map(PathBuf::from).collect(),
    };
    let cache = cache()?.with_file_name("operators");
    let mut installed = Vec::new();
    for operator in chosen(catalogue::read(&args.operators)?, &args.only)? {
        match operator.installed(&cache).await {
            Ok(home) => installed.push((operator, home)),
            Err(why) => print(&format!("left out {}: {}", operator.name, sentence(&why)))?,
        }
    }
    // Concurrently, because each one spends most of its time waiting for a Lease to expire or for
    // the garbage collector.
    let plays = installed.iter().map(|(operator, home)| on_both(operator, home, &args.operators, &simulator));
    let mut failed: usize = try_join_all(plays).await?.into_iter().sum();
    failed += fixtures::run(&args.guide, &args.operators, &simulator).await?;
    ensure!(failed == 0, "{failed} checks failed");
    Ok(())
}

/// Returns the named operators; all if none is named.
fn chosen(operators: Vec<Operator>, only: &[String]) -> Result<Vec<Operator>> {
    if let Some(unknown) = only.iter().find(|name| !operators.iter().any(|it| it.name == **name)) {
        let known: Vec<&str> = operators.iter().map(|it| it.name.as_str()).collect();
        return Err(anyhow!("there is no operator {unknown}; there are {}", known.join(", ")));
    }
    Ok(operators.into_iter().filter(|it| only.is_empty() || only.contains(&it.name)).collect())
}

/// Result of an operator in an environment.
enum Outcome {
    /// This environment is not available here.
    LeftOut,
    /// A check failed, and was reported.
    Failed,
    /// All checks passed; these are the objects that it left, masked.
    Left(Vec<Value>),
}

/// Plays an operator in both environments at once, and returns the number of failed checks.
async fn on_both(operator: &Operator, home: &Path, operators: &Path, simulator: &Path) -> Result<usize> {
    let definition = operators.join(DEFINITION);
    let simulated = on_simulator(operator, home, &definition, simulator);
    let (simulated, real) = tokio::try_join!(simulated, on_control_plane(operator, home, &definition))?;
    let failed = [&simulated, &real].into_iter().filter(|it| matches!(it, Outcome::Failed)).count();
    let (Outcome::Left(simulated), Outcome::Left(real)) = (simulated, real) else { return Ok(failed) };
    let unlike = faces::differences(&simulated, &real);
    let outcome = if unlike.is_empty() { "alike".to_owned() } else { format!("UNLIKE\n  {}", unlike.join("\n  ")) };
    print(&format!("{} objects and events on both servers: {outcome}", operator.name))?;
    Ok(failed + usize::from(!unlike.is_empty()))
}

async fn on_simulator(operator: &Operator, home: &Path, definition: &Path, simulator: &Path) -> Result<Outcome> {
    let environment = SimulatorEnvironment::start(simulator, definition).await?;
    on(Environment::Simulator(Box::new(environment)), operator, home).await
}

async fn on_control_plane(operator: &Operator, home: &Path, definition: &Path) -> Result<Outcome> {
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(why) => {
            print(&format!("left out {} on a control plane: {why}", operator.name))?;
            return Ok(Outcome::LeftOut);
        }
    };
    let environment = ControlPlaneEnvironment::start(&programs, definition).await?;
    on(Environment::ControlPlane(Box::new(environment)), operator, home).await
}

/// Plays an operator in an environment.
async fn on(environment: Environment, operator: &Operator, home: &Path) -> Result<Outcome> {
    let name = format!("{} {}", operator.name, environment.name());
    let mut play = Play::begin(environment, operator, home).await?;
    match play.all(&name).await {
        Ok(faces) => Ok(Outcome::Left(faces)),
        Err(why) => {
            print(&format!("{name} FAILED {}", sentence(&why)))?;
            play.last_words().iter().for_each(|line| tell(line));
            Ok(Outcome::Failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATORS: &str = "operators";

    #[test]
    fn the_operators_of_the_project_are_found_and_others_are_named() {
        let known = || catalogue::read(Path::new(OPERATORS)).unwrap();
        let names: Vec<String> = chosen(known(), &[]).unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["controller-runtime", "kube-rs"]);
        let why = chosen(known(), &["moon".to_owned()]).unwrap_err().to_string();
        assert_eq!(why, "there is no operator moon; there are controller-runtime, kube-rs");
    }
}
