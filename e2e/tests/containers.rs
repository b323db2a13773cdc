//! Real S3 servers in containers started by the tests. The simulated store is compared with them,
//! and claims are bound on one.
//!
//! Needs a Docker engine that has the server's image or can pull it, and for claims the programs of
//! a control plane. If one of these is missing, the tests that need it are listed as ignored, with
//! the reason. Images are pulled from the default registry unless `STOWAGE_MINIO_IMAGE` and
//! `STOWAGE_VERSITYGW_IMAGE` name others, which must accept the same arguments.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures::future::join;
use http::Uri;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use stowage_proof::conformance::s3::{Keys, S3Pair};
use stowage_proof::conformance::{self, Limits, Start};
use stowage_testbed::control_plane::missing as missing_of_a_control_plane;
use testcontainers::core::client::docker_client_instance;
use testcontainers::core::{IntoContainerPort as _, Mount};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Number of operations compared for each server, which takes seconds. `stowage-proof conformance`
/// has an option for more.
const OPERATIONS: u64 = 1_000;
/// Scenarios that exercise a bucket with one key, for a store that isn't the simulated one.
const SCENARIOS: [&str; 4] = ["bind-and-delete", "adoption", "forced-deletion", "refused-deletion"];
/// Time limit from the start of a container until its server answers.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for pulling an image of some hundred megabytes.
const PULL: Duration = Duration::from_secs(180);

const ACCESS_KEY: &str = "STOWAGEADMIN";
const SECRET_KEY: &str = "stowage-admin-secret";
const REGION: &str = "us-east-1";

/// A test on one server.
struct Case {
    name: &'static str,
    server: &'static Server,
    needs_control_plane: bool,
    run: fn(&Server) -> Result<(), String>,
}

static CASES: [Case; 3] = [
    Case { name: "the_simulated_store_is_like_minio", server: &MINIO, needs_control_plane: false, run: compare },
    Case {
        name: "the_simulated_store_is_like_versitygw",
        server: &VERSITYGW,
        needs_control_plane: false,
        run: compare,
    },
    Case { name: "claims_are_kept_on_minio", server: &MINIO, needs_control_plane: true, run: claims_on },
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let missing = match Runtime::new() {
        Ok(runtime) => runtime.block_on(missing(&arguments)),
        Err(error) => {
            let why = format!("no Docker engine can be asked: {error}");
            [Some(why.clone()), Some(why)]
        }
    };
    let no_plane = missing_of_a_control_plane().map(|program| program.to_string());
    let [minio, versitygw] = missing;
    let trials = CASES.iter().map(|case| {
        let image = if case.server.variable == MINIO.variable { &minio } else { &versitygw };
        let plane = no_plane.as_ref().filter(|_| case.needs_control_plane);
        trial(case, image.as_ref().or(plane))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(case: &'static Case, missing: Option<&String>) -> Trial {
    let trial = Trial::test(case.name, || (case.run)(case.server).map_err(Failed::from));
    let trial = trial.with_ignored_flag(missing.is_some());
    match missing {
        Some(why) => trial.with_kind(why),
        None => trial,
    }
}

/// Returns the reasons why no container of MinIO and of versitygw can be started; `None` if it can.
/// An image is neither looked up nor pulled if all its server's tests are filtered out.
async fn missing(arguments: &Arguments) -> [Option<String>; 2] {
    let of = async |server: &Server| {
        let is_asked_for = |case: &Case| case.server.variable == server.variable && is_selected(arguments, case.name);
        if CASES.iter().any(is_asked_for) { server.missing().await } else { None }
    };
    let (minio, versitygw) = join(of(&MINIO), of(&VERSITYGW)).await;
    [minio, versitygw]
}

/// True for a test that the filters of the command line select.
fn is_selected(arguments: &Arguments, name: &str) -> bool {
    let is_named = |filter: &String| if arguments.exact { filter == name } else { name.contains(filter.as_str()) };
    arguments.filter.as_ref().is_none_or(is_named) && !arguments.skip.iter().any(is_named)
}

/// Formats an error as one line, to be printed before the name of a test.
fn one_line(error: &dyn Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A store that runs in a container.
struct Server {
    /// Environment variable that names another image.
    variable: &'static str,
    image: (&'static str, &'static str),
    port: u16,
    environment: [(&'static str, &'static str); 2],
    arguments: &'static [&'static str],
    /// Directories that must exist in the container.
    directories: &'static [&'static str],
}

const MINIO: Server = Server {
    variable: "STOWAGE_MINIO_IMAGE",
    image: ("minio/minio", "RELEASE.2025-09-07T16-13-09Z"),
    port: 9000,
    environment: [("MINIO_ROOT_USER", ACCESS_KEY), ("MINIO_ROOT_PASSWORD", SECRET_KEY)],
    arguments: &["server", "/data"],
    directories: &["/data"],
};

const VERSITYGW: Server = Server {
    variable: "STOWAGE_VERSITYGW_IMAGE",
    image: ("versity/versitygw", "v1.8.0"),
    port: 7070,
    environment: [("ROOT_ACCESS_KEY", ACCESS_KEY), ("ROOT_SECRET_KEY", SECRET_KEY)],
    // Without a directory of accounts, its errors for unknown access keys are not those of S3.
    arguments: &["--port", ":7070", "--iam-dir", "/accounts", "posix", "--versioning-dir", "/versions", "/data"],
    directories: &["/accounts", "/data", "/versions"],
};

/// A server that answers. Dropping it removes its container.
struct Started {
    _container: ContainerAsync<GenericImage>,
    url: Uri,
}

impl Server {
    /// Returns name and tag of the image.
    fn image(&self) -> (String, String) {
        let (name, tag) = self.image;
        let Ok(other) = std::env::var(self.variable) else { return (name.to_owned(), tag.to_owned()) };
        match other.rsplit_once(':') {
            // A colon before a slash separates a registry's port, not a tag.
            Some((name, tag)) if !tag.contains('/') => (name.to_owned(), tag.to_owned()),
            _ => (other, "latest".to_owned()),
        }
    }

    /// Returns the reason why no container can be started; `None` if one can. Pulls the image if
    /// the engine doesn't have it, because only a pull shows that an engine can't reach a registry.
    async fn missing(&self) -> Option<String> {
        let engine = match docker_client_instance().await {
            Ok(engine) => engine,
            Err(error) => return Some(format!("no Docker engine answers: {}", one_line(&error))),
        };
        if let Err(error) = engine.ping().await {
            return Some(format!("no Docker engine answers: {}", one_line(&error)));
        }
        let (name, tag) = self.image();
        let image = format!("{name}:{tag}");
        if engine.inspect_image(&image).await.is_ok() {
            return None;
        }
        let why = match timeout(PULL, GenericImage::new(&name, &tag).pull_image()).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => one_line(&error),
            Err(_) => format!("a pull did not end within {} s", PULL.as_secs()),
        };
        Some(format!("the Docker engine has no {image}, which {} replaces: {why}", self.variable))
    }

    async fn start(&self) -> Result<Started, String> {
        let (name, tag) = self.image();
        let unusable = |error: &dyn Display| format!("{name}:{tag}, which {} replaces: {error}", self.variable);
        let image = GenericImage::new(&name, &tag).with_exposed_port(self.port.tcp());
        let mut request = image.with_cmd(self.arguments.iter().copied());
        for (variable, value) in self.environment {
            request = request.with_env_var(variable, value);
        }
        for directory in self.directories {
            request = request.with_mount(Mount::tmpfs_mount(*directory));
        }
        let container = request.start().await.map_err(|error| unusable(&error))?;
        let host = container.get_host().await.map_err(|error| unusable(&error))?;
        let port = container.get_host_port_ipv4(self.port).await.map_err(|error| unusable(&error))?;
        let url = format!("http://{host}:{port}/").parse().map_err(|error| unusable(&error))?;
        let started = Started { _container: container, url };
        started.answers().await.map_err(|error| unusable(&error))?;
        Ok(started)
    }
}

impl Started {
    /// Polls the server until it answers.
    async fn answers(&self) -> Result<(), String> {
        let start = Instant::now();
        loop {
            match S3Pair::connect(&self.url, keys()).await {
                Ok(_) => return Ok(()),
                Err(why) if start.elapsed() > PATIENCE => return Err(format!("not ready: {why}")),
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

fn keys() -> Keys {
    Keys { access_key: ACCESS_KEY.to_owned(), secret_key: SECRET_KEY.to_owned(), region: REGION.to_owned() }
}

fn block_on<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    Runtime::new().map_err(|error| error.to_string())?.block_on(work)
}

/// Compares the simulated store with a real one, operation by operation.
fn compare(server: &Server) -> Result<(), String> {
    block_on(async {
        let started = server.start().await?;
        let mut pair = S3Pair::connect(&started.url, keys()).await?;
        let limits = Limits {
            seed: 1,
            operations: OPERATIONS,
            time: None,
            shrink: true,
            start: Start::From(0),
            prefix: "containers".to_owned(),
            command: format!(
                "stowage-proof conformance --s3 {} --s3-access-key ID --s3-secret-key-file F",
                started.url
            ),
        };
        let report = conformance::run(&mut pair, &limits, |_| ()).await?;
        if report.operations < OPERATIONS {
            return Err(format!("only {} operations were compared", report.operations));
        }
        match report.differences.as_slice() {
            [] if report.unexplained == 0 => Ok(()),
            differences => Err(differences.iter().map(|difference| format!("{difference}\n")).collect()),
        }
    })
}

/// Runs scenarios with the operator on a real store and a control plane.
fn claims_on(server: &Server) -> Result<(), String> {
    let operator = built_operator()?;
    block_on(async {
        let started = server.start().await?;
        let mut run = Command::new(env!("CARGO_BIN_EXE_stowage-e2e"));
        run.args(["run", "--cluster", "control-plane", "-o", "json", "--operator-command"]).arg(operator);
        run.args(["--s3-endpoint", started.url.to_string().trim_end_matches('/'), "--s3-region", REGION]);
        run.args(["--s3-access-key", ACCESS_KEY]).args(SCENARIOS).env("STOWAGE_S3_SECRET_KEY", SECRET_KEY);
        let output = run.output().await.map_err(|error| error.to_string())?;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {told}"))?;
        let played = report["scenarios"].as_array().map(Vec::as_slice).unwrap_or_default();
        let ok = played.iter().filter(|scenario| scenario["ok"] == true).count();
        if output.status.success() && ok == SCENARIOS.len() { Ok(()) } else { Err(told) }
    })
}

/// Returns the operator's binary, which `cargo test --workspace` puts beside this package's.
fn built_operator() -> Result<PathBuf, String> {
    let operator = Path::new(env!("CARGO_BIN_EXE_stowage-e2e")).with_file_name("stowage-operator");
    if operator.is_file() {
        Ok(operator)
    } else {
        Err(format!("there is no {}: `cargo build --workspace --all-targets` makes it", operator.display()))
    }
}
