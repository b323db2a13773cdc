//! Runs kubectl commands on a real API server and on the simulator's. Exit code and output must be
//! equal, or differ for a stated reason.
//!
//! `table` lists the commands, and `mask` makes their output comparable.

mod mask;
mod table;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use stowage_testbed::console::{print, tell, unless_interrupted};
use stowage_testbed::control_plane::{ControlPlane, Programs};
use tokio::process::Command;
use tokio::time::timeout;

use self::mask::masked;
use self::table::{Compared, STEPS, Step};
use crate::simulator;

/// Time limit for the start of the API server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for a command.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct KubectlArgs {
    /// Directory of the manifests that the commands name.
    #[arg(long, env = "STOWAGE_KUBECTL_MANIFESTS", value_name = "DIR", default_value = "e2e/kubectl")]
    manifests: PathBuf,
    /// Print each command with its output, not only those that differ.
    #[arg(long, env = "STOWAGE_VERBOSE", value_parser = clap::builder::BoolishValueParser::new())]
    verbose: bool,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    /// `None` if it was ended by a signal.
    code: Option<i32>,
    /// Output on both streams, masked.
    stdout: String,
    stderr: String,
}

/// One of the two servers.
struct Side {
    kubeconfig: PathBuf,
    /// kubectl's home directory, with its discovery cache.
    home: PathBuf,
    kubectl: PathBuf,
    manifests: PathBuf,
}

impl Side {
    /// Creates a side with a copy of the kubeconfig, because commands change it.
    fn new(kubeconfig: &Path, home: &Path, kubectl: &Path, manifests: &Path) -> Result<Self> {
        std::fs::create_dir_all(home).with_context(|| home.display().to_string())?;
        let own = home.join("kubeconfig");
        std::fs::copy(kubeconfig, &own).with_context(|| kubeconfig.display().to_string())?;
        let manifests = std::path::absolute(manifests).context("the folder of manifests has no path")?;
        Ok(Self { kubeconfig: own, home: home.to_owned(), kubectl: kubectl.to_owned(), manifests })
    }

    async fn run(&self, step: &Step) -> Result<Outcome> {
        let folder = self.kubectl.parent().context("kubectl is in no folder")?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)))?;
        let mut shell = Command::new("bash");
        shell.args(["-c", step.command]).current_dir(&self.manifests).env("PATH", path);
        shell.env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.home).env("LC_ALL", "C");
        shell.stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(LONGEST, shell.output()).await.map_err(|_| anyhow!("it takes longer than {LONGEST:?}"))?;
        let output = output.context("can't run bash")?;
        let text = |bytes: &[u8]| masked(&String::from_utf8_lossy(bytes));
        Ok(Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }
}

/// Compares all commands, until they are done or a signal interrupts them.
///
/// # Errors
/// Fails with the number of unexpected differences, or if a program is missing.
pub(crate) async fn run(args: KubectlArgs) -> Result<()> {
    unless_interrupted(play(&args)).await
}

async fn play(args: &KubectlArgs) -> Result<()> {
    let kubectl = Programs::kubectl()?;
    let folder = tempfile::TempDir::new().context("there is no room for temporary files")?;
    let (mut plane, up) = tokio::try_join!(
        async { ControlPlane::start(&Programs::find()?, PATIENCE).await },
        simulator::start(folder.path(), false)
    )?;
    let real = Side::new(&plane.kubeconfig(), &folder.path().join("real"), &kubectl, &args.manifests)?;
    let simulated = Side::new(&up.served().kubeconfig, &folder.path().join("simulated"), &kubectl, &args.manifests)?;
    let began = Instant::now();
    let (mut unlike, mut by_code) = (0, 0);
    for step in STEPS {
        let (real, simulated) =
            tokio::try_join!(real.run(step), simulated.run(step)).with_context(|| step.command.to_owned())?;
        if let Some(how) = difference(step, &real, &simulated) {
            unlike += 1;
            tell(&format!("UNLIKE  {}\n{how}", step.command));
        } else if let Compared::ExitCode(why) = step.compared {
            by_code += 1;
            tell(&format!("exit    {}: {why}", step.command));
        } else if args.verbose {
            tell(&format!("alike   {}\n{}", step.command, told(&simulated)));
        }
    }
    plane.check()?;
    up.stop().await;
    let seconds = began.elapsed().as_secs_f64();
    let count = STEPS.len();
    ensure!(unlike == 0, "{unlike} of {count} commands of kubectl differ");
    let whole = count - by_code;
    print(&format!(
        "{whole} commands of kubectl end and print alike on both servers, {by_code} end alike, in {seconds:.1} s"
    ))?;
    Ok(())
}

fn told(it: &Outcome) -> String {
    format!("exit {:?}\n{}{}", it.code, it.stdout, it.stderr)
}

/// Returns a description of the difference, if two outcomes differ that should be equal.
fn difference(step: &Step, real: &Outcome, simulated: &Outcome) -> Option<String> {
    let alike = match step.compared {
        Compared::Whole => real == simulated,
        Compared::ExitCode(_) => real.code == simulated.code,
    };
    (!alike).then(|| format!("--- real: {}--- simulated: {}", told(real), told(simulated)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: i32, stdout: &str) -> Outcome {
        Outcome { code: Some(code), stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn a_difference_is_told_in_all_that_is_compared() {
        let step = |compared| Step { command: "kubectl", compared };
        let (one, other, failed) = (outcome(0, "a\n"), outcome(0, "b\n"), outcome(1, "a\n"));
        assert_eq!(difference(&step(Compared::Whole), &one, &one), None);
        assert!(difference(&step(Compared::Whole), &one, &other).is_some_and(|told| told.contains("exit Some(0)\nb")));
        assert_eq!(difference(&step(Compared::ExitCode("why")), &one, &other), None);
        assert!(difference(&step(Compared::ExitCode("why")), &one, &failed).is_some());
    }

    #[test]
    fn of_hardly_any_command_the_exit_code_alone_is_compared() {
        let reasons = STEPS.iter().filter_map(|step| match step.compared {
            Compared::ExitCode(why) => Some(why),
            Compared::Whole => None,
        });
        assert!(reasons.clone().all(|why| !why.is_empty()));
        assert!(reasons.count() <= 10 && STEPS.len() >= 130);
    }
}
