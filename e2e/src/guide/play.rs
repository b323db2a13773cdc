//! Plays a page on a separate simulator, like a reader with a shell.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use stowage_sim::up::Up;
use stowage_testbed::console::tell;
use stowage_testbed::failure::sentence;
use stowage_testbed::script::Script;
use tempfile::TempDir;

use super::left_out;
use super::page::{Page, Step};
use super::table::{self, Setup};
use crate::simulator;
use stowage_testbed::tools::beside;

/// Time limit for a command.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of output lines in the message about a failed command.
const TAIL: usize = 5;
/// The project's programs that pages call.
const OWN: [&str; 4] = ["stowage-sim", "stowage-proof", "stowage-operator", "stowage-gateway"];
/// Environment of a second simulator that a page starts: it listens on free ports and ends as soon
/// as it serves.
const ANOTHER: [(&str, &str); 5] = [
    ("STOWAGE_KUBE_ADDRESS", "127.0.0.1:0"),
    ("STOWAGE_S3_ADDRESS", "127.0.0.1:0"),
    ("STOWAGE_STORE_ADDRESS", "127.0.0.1:0"),
    ("STOWAGE_ADMIN_ADDRESS", "127.0.0.1:0"),
    ("STOWAGE_ON_READY", "kill -TERM $PPID"),
];

/// Programs that pages call, with their names.
pub(super) struct Programs(Vec<(&'static str, PathBuf)>);

impl Programs {
    /// Takes kubectl and helm from these paths, and the project's programs from the directory of
    /// this one.
    ///
    /// # Errors
    /// Fails if one doesn't exist.
    pub(super) fn new(kubectl: PathBuf, helm: PathBuf) -> Result<Self> {
        let mut all = vec![("kubectl", kubectl), ("helm", helm)];
        for name in OWN {
            all.push((name, beside(name)?.into_iter().collect()));
        }
        Ok(Self(all))
    }
}

/// Result of a page.
pub(super) struct Played {
    pub(super) page: String,
    pub(super) played: usize,
    /// Number of skipped steps, by reason.
    pub(super) left_out: BTreeMap<&'static str, usize>,
    pub(super) failed: Vec<String>,
}

impl Played {
    pub(super) fn left_out(&self) -> usize {
        self.left_out.values().sum()
    }
}

impl Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: played {}, left out {}", self.page, self.played, self.left_out())?;
        let reasons: Vec<String> = self.left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        if !reasons.is_empty() {
            write!(f, " ({})", reasons.join("; "))?;
        }
        self.failed.iter().try_for_each(|failed| write!(f, "\nFAILED {failed}"))
    }
}

/// Plays all steps of a page that are not left out.
///
/// # Errors
/// Fails if the page's simulator or its prerequisites can't be set up.
pub(super) async fn play(page: &Page, programs: &Programs, root: &Path, verbose: bool) -> Result<Played> {
    let mut outcome = Played { page: page.path.clone(), played: 0, left_out: BTreeMap::new(), failed: Vec::new() };
    let mut steps = Vec::new();
    for step in &page.steps {
        match left_out::reason(step) {
            Some(reason) => *outcome.left_out.entry(reason).or_default() += 1,
            None => steps.push(step),
        }
    }
    if steps.is_empty() {
        return Ok(outcome);
    }
    let setup = table::setup(&page.path).with_context(|| format!("nobody has said what {} needs", page.path))?;
    let session = Session::build(setup, programs, root).await.with_context(|| page.path.clone())?;
    let mut manifests = 0;
    for step in steps {
        let command = match step {
            Step::Command(command) => setup.fill(command),
            Step::Manifest(text) => {
                manifests += 1;
                let name = format!("manifest-{manifests}.yaml");
                std::fs::write(session.work().join(&name), setup.fill(text)).context("no room")?;
                format!("kubectl apply -f {name}")
            }
        };
        for script in setup.happened(step.text()).into_iter().chain([command.as_str()]) {
            if verbose {
                tell(&format!("{}$ {script}", page.path));
            }
            outcome.failed.extend(session.run(script).await);
        }
        outcome.played += 1;
    }
    session.up.stop().await;
    Ok(outcome)
}

/// A simulator with a working directory.
struct Session {
    up: Up,
    environment: Vec<(String, String)>,
    folder: TempDir,
}

impl Session {
    /// Starts a simulator and sets up a page's prerequisites.
    async fn build(setup: &Setup, programs: &Programs, root: &Path) -> Result<Self> {
        let folder = tempfile::TempDir::new().context("there is no room for temporary files")?;
        let place = folder.path();
        for name in ["work", "bin", "home"] {
            std::fs::create_dir(place.join(name)).context("no room")?;
        }
        for (name, program) in &programs.0 {
            symlink(program, place.join("bin").join(name)).context("no room")?;
        }
        // Symbolic links keep the commands' files in the working directory out of the project.
        for entry in root.read_dir().with_context(|| root.display().to_string())? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with('.') {
                symlink(entry.path(), place.join("work").join(entry.file_name())).context("no room")?;
            }
        }
        let up = simulator::start_whole(place, setup.ground.operator()).await?;
        let environment = environment(place, &up);
        let session = Self { up, environment, folder };
        for script in setup.ground.scripts().iter().chain(setup.prepare) {
            if let Some(why) = session.run(script).await {
                bail!("what it takes for granted can't be made: {why}");
            }
        }
        Ok(session)
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Runs a script, and returns a message if it failed.
    async fn run(&self, script: &str) -> Option<String> {
        let directory = self.work();
        let bash = Script { program: Path::new("bash"), directory: &directory, environment: Some(&self.environment) };
        let done = match bash.run(&["-ec", script], LONGEST).await {
            Ok(done) if done.status.code().is_some_and(|code| table::ends_well(script, code)) => return None,
            Ok(done) => done,
            Err(why) => return Some(format!("{script}\n  {}", sentence(&why))),
        };
        let mut said: Vec<&str> = done.stderr.lines().rev().filter(|line| !line.trim().is_empty()).take(TAIL).collect();
        said.reverse();
        Some(format!("{script}\n  {}: {}", done.status, said.join("\n  ")))
    }
}

/// Returns the environment of a reader's shell, without variables of the current process except for
/// `PATH`.
fn environment(place: &Path, up: &Up) -> Vec<(String, String)> {
    let path = |name: &str| place.join(name).display().to_string();
    let programs = std::env::var("PATH").unwrap_or_default();
    let served = up.served();
    let own = [
        ("PATH", format!("{}:{}:{programs}", path("home/.local/bin"), path("bin"))),
        ("HOME", path("home")),
        ("LC_ALL", "C".to_owned()),
        ("KUBECONFIG", served.kubeconfig.display().to_string()),
        ("STOWAGE_SIM", served.admin.clone()),
        ("STOWAGE_KUBECONFIG_OUT", path("another/kubeconfig")),
    ];
    let another = ANOTHER.map(|(name, value)| (name, value.to_owned()));
    own.into_iter().chain(another).map(|(name, value)| (name.to_owned(), value)).collect()
}
