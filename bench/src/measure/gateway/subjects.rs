//! Subjects of the measurement: gateways, and for comparison proxies that don't look at the bytes
//! they forward.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use stowage_testbed::control_plane::Process;
use stowage_testbed::gateway::{free_port, knows_its_keys};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::asks::Asking;
use super::environment::{Environment, HOME};
use super::load::{Target, connect, told};
use super::message::Source;
use crate::measure::cpus::Cpus;
use crate::measure::usage::Usage;

/// Interval between checks that a program listens.
const LOOK: Duration = Duration::from_millis(20);

/// A program between clients and store.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// A gateway, with its command.
    Gateway { name: &'static str, command: Vec<String> },
    /// The copy proxy of this program.
    Copy,
    /// haproxy, with the path of its program.
    Haproxy(PathBuf),
    /// nginx, with the path of its program.
    Nginx(PathBuf),
    /// No program: clients connect to the store.
    Direct,
}

/// A running subject, until it is dropped.
pub(super) struct Running {
    pub(super) subject: Subject,
    pub(super) address: SocketAddr,
    /// A gateway's separate process for TLS.
    pub(super) tls: Option<(SocketAddr, Process)>,
    process: Option<Process>,
}

impl Subject {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Gateway { name, .. } => name,
            Self::Copy => "copy proxy",
            Self::Haproxy(_) => "haproxy",
            Self::Nginx(_) => "nginx",
            Self::Direct => "direct",
        }
    }

    /// Returns a description.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Gateway { command, .. } => command.join(" "),
            Self::Copy => "tokio::io::copy both ways, one thread".to_owned(),
            Self::Haproxy(program) | Self::Nginx(program) => program.display().to_string(),
            Self::Direct => "clients and store without anything between: what they do at most".to_owned(),
        }
    }

    pub(super) fn is_gateway(&self) -> bool {
        matches!(self, Self::Gateway { .. })
    }

    pub(super) async fn start(&self, environment: &Environment, cpus: &Cpus, patience: Duration) -> Result<Running> {
        let address = free_port()?;
        let store = environment.store.plain;
        let start = |program: &Path, arguments: Vec<String>| {
            cpus.of_subject(|| Process::start(self.name(), program, arguments, environment.directory()))
        };
        let mut running = Running { subject: self.clone(), address, tls: None, process: None };
        match self {
            Self::Gateway { name, command } => {
                let gateway = |address, more: &[String]| {
                    let (program, before) = command.split_first().context("a gateway's command is empty")?;
                    let arguments = before.iter().cloned().chain(arguments(environment, address)).chain(more.to_vec());
                    cpus.of_subject(|| Process::start(name, &absolute(program)?, arguments, environment.directory()))
                };
                running.process = Some(gateway(address, &[])?);
                knows_its_keys(&format!("http://{address}"), patience)
                    .await
                    .with_context(|| last_words(environment, name))?;
                let address = free_port()?;
                let (certificate, key) = (environment.tls.certificate.display(), environment.tls.key.display());
                let more = [format!("--tls-cert={certificate}"), format!("--tls-key={key}")];
                running.tls = Some((address, gateway(address, &more)?));
                ready_over_tls(environment, address, patience).await?;
            }
            Self::Copy => {
                let this = std::env::current_exe().context("can't find this program")?;
                let words = ["bench", "copy", "--listen", &address.to_string(), "--to", &store.to_string()];
                running.process = Some(start(&this, words.map(str::to_owned).to_vec())?);
            }
            Self::Haproxy(program) => {
                let file = write(environment, "haproxy.cfg", &haproxy(address, store))?;
                running.process = Some(start(program, vec!["-db".to_owned(), "-f".to_owned(), file])?);
            }
            Self::Nginx(program) => {
                let file = write(environment, "nginx.conf", &nginx(address, store, environment.directory()))?;
                let words = ["-c", &file, "-e", "stderr", "-p", &environment.directory().display().to_string()];
                running.process = Some(start(program, words.map(str::to_owned).to_vec())?);
            }
            Self::Direct => running.address = store,
        }
        listens(running.address, patience).await.with_context(|| last_words(environment, self.name()))?;
        Ok(running)
    }
}

impl Running {
    /// Returns its use of processor and memory; zero without a process.
    pub(super) fn usage(&self) -> Result<Usage> {
        self.process.as_ref().map(|process| Usage::of_group(process.group())).transpose().map(Option::unwrap_or_default)
    }

    /// Returns the use of processor and memory of the process for TLS.
    pub(super) fn usage_over_tls(&self) -> Result<Usage> {
        self.tls
            .as_ref()
            .map(|(_, process)| Usage::of_group(process.group()))
            .transpose()
            .map(Option::unwrap_or_default)
    }
}

/// Returns the arguments of a gateway, with limits high enough not to affect the measurement.
fn arguments(environment: &Environment, listen: SocketAddr) -> Vec<String> {
    let kubeconfig = environment.kubeconfig().display().to_string();
    let listen = listen.to_string();
    let (many, few) = ("8192", "0");
    let words = [
        ["run", "--kubeconfig", &kubeconfig],
        ["--namespace", HOME, "--listen"],
        [&listen, "--admin-address", "127.0.0.1:0"],
    ];
    let bounds = ["max-connections", "max-connections-per-source", "max-backend-calls", "max-requests-per-claim"];
    let bounds = bounds.map(|name| format!("--{name}={many}"));
    let ending = ["drain", "shutdown-grace"].map(|name| format!("--{name}={few}"));
    words.into_iter().flatten().map(str::to_owned).chain(bounds).chain(ending).collect()
}

/// Returns an absolute path, because the program is started in another directory.
fn absolute(program: &str) -> Result<PathBuf> {
    if program.contains('/') {
        std::path::absolute(program).with_context(|| program.to_owned())
    } else {
        Ok(PathBuf::from(program))
    }
}

fn haproxy(listen: SocketAddr, store: SocketAddr) -> String {
    format!(
        "global\n  nbthread 1\n  maxconn 8192\ndefaults\n  mode http\n  option http-keep-alive\n  http-reuse always\n  \
         timeout connect 5s\n  timeout client 60s\n  timeout server 60s\nfrontend in\n  bind {listen}\n  \
         default_backend out\nbackend out\n  server store {store}\n"
    )
}

fn nginx(listen: SocketAddr, store: SocketAddr, directory: &Path) -> String {
    let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let places = places.map(|name| format!("{name}_temp_path {}/nginx-{name};", directory.display())).join(" ");
    format!(
        "daemon off; worker_processes 1; pid {}/nginx.pid; error_log stderr crit; events {{ worker_connections 8192; }}\n\
         http {{ access_log off; client_max_body_size 0; keepalive_requests 1000000; {places}\n\
         upstream store {{ server {store}; keepalive 128; keepalive_requests 1000000; }}\n\
         server {{ listen {listen}; location / {{ proxy_pass http://store; proxy_http_version 1.1; \
         proxy_set_header Connection \"\"; proxy_set_header Host $http_host; proxy_request_buffering off; \
         proxy_max_temp_file_size 0; proxy_buffers 8 64k; proxy_buffer_size 64k; }} }} }}\n",
        directory.display()
    )
}

fn write(environment: &Environment, name: &str, text: &str) -> Result<String> {
    let path = environment.directory().join(name);
    std::fs::write(&path, text).with_context(|| format!("can't write {name}"))?;
    Ok(path.display().to_string())
}

/// Returns the last lines of a program's log.
fn last_words(environment: &Environment, name: &str) -> String {
    let text = std::fs::read_to_string(environment.directory().join(format!("{name}.log"))).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    format!("{name} says: {}", lines.into_iter().rev().collect::<Vec<_>>().join(" | "))
}

async fn listens(address: SocketAddr, patience: Duration) -> Result<()> {
    let began = Instant::now();
    while TcpStream::connect(address).await.is_err() {
        if began.elapsed() > patience {
            bail!("nothing listens at {address} within {} s", patience.as_secs());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Waits until a gateway that serves TLS knows its keys.
async fn ready_over_tls(environment: &Environment, address: SocketAddr, patience: Duration) -> Result<()> {
    listens(address, patience).await?;
    let Some(tenant) = &environment.over_tls else { return Ok(()) };
    let target = Target { address, tls: Some(environment.tls.connector.clone()) };
    let mut connection = Source::new(connect(&target).await?);
    let began = Instant::now();
    let host = address.to_string();
    let ask = Asking { host: &host, now: Timestamp::now() }.buckets(tenant)?;
    while told(&mut connection, &ask).await?.0 != 200 {
        ensure!(began.elapsed() < patience, "the gateway over TLS does not know its keys");
        sleep(LOOK).await;
    }
    Ok(())
}

/// Returns the subjects for comparison on this machine, and the names of those that are missing.
pub(super) fn others(path: Option<&OsStr>) -> (Vec<Subject>, Vec<&'static str>) {
    let on_path = |name: &str| {
        let places = path.into_iter().flat_map(std::env::split_paths);
        // Debian puts daemons there, and only root's PATH has it.
        places.chain(["/usr/sbin".into()]).map(|it| it.join(name)).find(|it| it.is_file())
    };
    let (mut found, mut missing) = (vec![Subject::Copy], Vec::new());
    match on_path("haproxy") {
        Some(program) => found.push(Subject::Haproxy(program)),
        None => missing.push("haproxy"),
    }
    match on_path("nginx") {
        Some(program) => found.push(Subject::Nginx(program)),
        None => missing.push("nginx"),
    }
    found.push(Subject::Direct);
    (found, missing)
}
