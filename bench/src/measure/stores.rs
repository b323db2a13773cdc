//! Stores for claims: a real server, found on this machine and started for the measurement, or the
//! simulator's store over a socket.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use stowage_testbed::control_plane::Process;
use stowage_testbed::simulated::{REGION, Simulated};
use stowage_testbed::store::{Key, Store};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::cpus::Cpus;

/// Interval between checks that a store answers.
const LOOK: Duration = Duration::from_millis(25);

/// Directories for the server's users, for noncurrent versions of objects, and for objects.
const DIRECTORIES: [&str; 3] = ["accounts", "versions", "data"];

/// A store to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Versitygw(PathBuf),
    Minio(PathBuf),
    /// The simulator's store, in this process.
    Simulated,
}

/// A store that serves until this is dropped.
pub(crate) struct Serving {
    pub(crate) endpoint: String,
    /// Key of operator and harness.
    pub(crate) key: Key,
    /// Killed before its directory is removed.
    process: Option<Process>,
    directory: Option<TempDir>,
    _simulated: Option<Simulated>,
}

impl Serving {
    /// Returns the process group of the server, unless the store is in this process.
    pub(crate) fn group(&self) -> Option<i32> {
        self.process.as_ref().map(Process::group)
    }
}

impl Program {
    /// Finds a store: `auto`, `simulated`, or the name or path of a program.
    pub(crate) fn find(asked: &str, path: Option<&OsStr>) -> Result<Self> {
        let on_path = |name: &str| {
            path.into_iter().flat_map(std::env::split_paths).map(|it| it.join(name)).find(|it| it.is_file())
        };
        match asked {
            "simulated" => Ok(Self::Simulated),
            "auto" => {
                let found = on_path("versitygw").map(Self::Versitygw).or_else(|| on_path("minio").map(Self::Minio));
                Ok(found.unwrap_or(Self::Simulated))
            }
            program => {
                let there = if program.contains('/') {
                    Some(PathBuf::from(program)).filter(|it| it.is_file())
                } else {
                    on_path(program)
                };
                let there: PathBuf = there.with_context(|| {
                    format!(
                        "there is no {program}: --store takes auto, simulated, or the program of versitygw or MinIO"
                    )
                })?;
                Self::named(there)
            }
        }
    }

    /// Returns the kind of a program, by its name.
    fn named(program: PathBuf) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match name.as_str() {
            name if name.contains("versitygw") => Ok(Self::Versitygw(program)),
            name if name.contains("minio") => Ok(Self::Minio(program)),
            name => bail!("{name} is not known to be a store: its name has to tell versitygw or minio"),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Versitygw(_) => "versitygw",
            Self::Minio(_) => "MinIO",
            Self::Simulated => "the simulator's store, as no real one was given or found: its own work is in no figure",
        }
    }

    /// Starts it; a real server on the core of the measured program, if that has a separate one.
    pub(crate) async fn start(&self, patience: Duration, cpus: Option<&Cpus>) -> Result<Serving> {
        match self {
            Self::Simulated => {
                let simulated = Simulated::start().await?;
                let (endpoint, key) = (simulated.endpoint(), simulated.operator.clone());
                Ok(Serving { endpoint, key, process: None, directory: None, _simulated: Some(simulated) })
            }
            Self::Versitygw(program) => {
                let keys = ["ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"];
                serve("versitygw", program, keys, versitygw, (patience, cpus)).await
            }
            Self::Minio(program) => {
                serve("minio", program, ["MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"], minio, (patience, cpus)).await
            }
        }
    }
}

impl Program {
    /// Starts a store with an access log, and returns the path of the log. It has a line for each
    /// request, written before the response is sent.
    ///
    /// # Errors
    /// Fails if the store isn't versitygw, or doesn't start.
    pub(crate) async fn start_with_log(&self, patience: Duration) -> Result<(Serving, PathBuf)> {
        let Self::Versitygw(program) = self else {
            bail!("this needs the access log of versitygw: it is on no PATH, or --store names another store");
        };
        let keys = ["ROOT_ACCESS_KEY", "ROOT_SECRET_KEY"];
        let serving = serve("versitygw", program, keys, versitygw_with_log, (patience, None)).await?;
        let directory = serving.directory.as_ref().context("a server has a directory")?;
        let log = access_log(directory.path());
        Ok((serving, log))
    }
}

fn access_log(directory: &Path) -> PathBuf {
    directory.join("access.log")
}

fn versitygw_with_log(address: &str, directory: &Path) -> Vec<String> {
    let log = access_log(directory).display().to_string();
    ["--access-log".to_owned(), log].into_iter().chain(versitygw(address, directory)).collect()
}

/// Returns the arguments of versitygw. It changes its working directory, so paths are absolute. By
/// default it closes each connection after one response, hence `--keep-alive`.
fn versitygw(address: &str, directory: &Path) -> Vec<String> {
    let [accounts, versions, data] = DIRECTORIES.map(|name| directory.join(name).display().to_string());
    let words = ["--port", address, "--quiet", "--keep-alive", "--iam-dir", &accounts];
    words.into_iter().chain(["posix", "--versioning-dir", &versions, &data]).map(str::to_owned).collect()
}

/// Returns the arguments of MinIO.
fn minio(address: &str, directory: &Path) -> Vec<String> {
    let [_, _, data] = DIRECTORIES.map(|name| directory.join(name).display().to_string());
    let words = ["server", "--quiet", "--address", address, "--console-address", "127.0.0.1:0", &data];
    words.map(str::to_owned).to_vec()
}

/// Starts a server with this key in its environment, in a new directory, and waits until it
/// answers.
async fn serve(
    name: &'static str,
    program: &Path,
    variables: [&str; 2],
    arguments: fn(&str, &Path) -> Vec<String>,
    (patience, cpus): (Duration, Option<&Cpus>),
) -> Result<Serving> {
    let mut secret = [0; 20];
    getrandom::fill(&mut secret).context("no random numbers")?;
    let key = Key { id: "STOWAGEBENCH".to_owned(), secret: hex::encode(secret) };
    let directory = tempfile::Builder::new().prefix("stowage-bench-").tempdir();
    let directory = directory.context("can't make a temporary directory")?;
    for needed in DIRECTORIES {
        std::fs::create_dir(directory.path().join(needed)).context("can't make the store's directories")?;
    }
    // The listener is dropped here, because the server has to bind the port.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|held| held.local_addr()).context("no free port")?;
    let program = std::path::absolute(program).with_context(|| program.display().to_string())?;
    let environment = variables.iter().zip([&key.id, &key.secret]).map(|(name, value)| format!("{name}={value}"));
    // `env` replaces itself by the program it starts, so the process id is the server's.
    let launch =
        environment.chain([program.display().to_string()]).chain(arguments(&port.to_string(), directory.path()));
    let start = || Process::start(name, Path::new("env"), launch, directory.path());
    let mut process = match cpus {
        Some(cpus) => cpus.of_subject(start)?,
        None => start()?,
    };
    let endpoint = format!("http://{port}");
    let store = Store::without_retries(&endpoint, REGION, &key)?;
    let start = Instant::now();
    while let Err(why) = store.probe().await {
        if let Some(ended) = process.ended() {
            return Err(ended.into());
        }
        if start.elapsed() > patience {
            return Err(anyhow!(why).context(format!("{name} was not ready within {} s", patience.as_secs())));
        }
        sleep(LOOK).await;
    }
    Ok(Serving { endpoint, key, process: Some(process), directory: Some(directory), _simulated: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(programs: &[&str]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        programs.iter().for_each(|name| std::fs::write(directory.path().join(name), "").unwrap());
        directory
    }

    #[test]
    fn a_real_store_goes_before_the_simulated_one() {
        let find = |programs: &[&str]| {
            let directory = place(programs);
            Program::find("auto", Some(directory.path().as_os_str())).unwrap()
        };
        assert!(matches!(find(&["minio", "versitygw"]), Program::Versitygw(_)));
        assert!(matches!(find(&["minio"]), Program::Minio(_)));
        assert_eq!(find(&[]), Program::Simulated);
        assert!(find(&[]).name().contains("no real one"), "that is told");
    }

    #[test]
    fn a_program_is_found_by_name_or_path_and_known_by_its_name() {
        let directory = place(&["versitygw-1.8", "swift"]);
        let path = Some(directory.path().as_os_str());
        let at = directory.path().join("versitygw-1.8");
        assert_eq!(Program::find(&at.display().to_string(), None).unwrap(), Program::Versitygw(at.clone()));
        assert_eq!(Program::find("versitygw-1.8", path).unwrap(), Program::Versitygw(at));
        assert!(Program::find("swift", path).unwrap_err().to_string().contains("not known to be a store"));
        let why = Program::find("./nowhere", path).unwrap_err().to_string();
        assert!(why.contains("no ./nowhere") && why.contains("--store takes auto"), "{why}");
    }
}
