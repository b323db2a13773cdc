//! The command line of a measurement of gateways.

use std::time::Duration;

use clap::Args;
use stowage_testbed::failure::Failure;
use stowage_testbed::words::{Words, words};

use super::case::Case;
use super::settings::{Form, Settings};
use super::subjects::{Subject, others};
use crate::measure::built::{built, places};
use crate::measure::cpus::Cpus;
use crate::measure::figures::Part as _;
use crate::measure::stores::Program;

/// The program that is measured by default.
const GATEWAY: &str = "stowage-gateway";

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Gateway to measure: program and arguments that come before `run`, separated by spaces. By
    /// default, stowage-gateway in the directory of this program or in target/release.
    #[arg(long, env = "STOWAGE_GATEWAY_COMMAND", value_name = "COMMAND", value_parser = words)]
    gateway_command: Option<Words>,
    /// Another gateway, measured in turns with it.
    #[arg(long, env = "STOWAGE_AGAINST", value_name = "COMMAND", value_parser = words)]
    against: Option<Words>,
    /// Number of measurements of each subject, in an order that alternates; the result is the
    /// median.
    #[arg(long, env = "STOWAGE_ROUNDS", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=99))]
    rounds: u16,
    /// Cases to measure, separated by commas; they run in the order of the list below.
    #[arg(long, env = "STOWAGE_CASES", value_name = "CASES", value_enum, value_delimiter = ',', default_values_t = Case::all().to_vec())]
    cases: Vec<Case>,
    /// Duration of each case, in seconds. A large object in transfer is completed after that.
    #[arg(long, env = "STOWAGE_SECONDS", value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Number of concurrent clients for small requests.
    #[arg(long, env = "STOWAGE_CONNECTIONS", value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    connections: u16,
    /// Number of concurrent clients for large objects.
    #[arg(long, env = "STOWAGE_LARGE_CONNECTIONS", value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    large_connections: u16,
    /// Size of a large object, in MiB.
    #[arg(long, env = "STOWAGE_LARGE", value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=5120))]
    large: u64,
    /// Number of keys that the gateway knows.
    #[arg(long, env = "STOWAGE_KEYS", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..=99_999))]
    keys: u32,
    /// Number of concurrent slow clients.
    #[arg(long, env = "STOWAGE_STREAMS", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=4000))]
    streams: u16,
    /// Number of keys that are revoked one after the other.
    #[arg(long, env = "STOWAGE_REVOCATIONS", value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    revocations: u16,
    /// Real store, on the gateway's core: a program of versitygw or MinIO, or `auto`, which is
    /// versitygw or MinIO on the PATH, else none.
    #[arg(long, env = "STOWAGE_STORE", value_name = "PROGRAM", default_value = "auto")]
    store: String,
    /// Longest time to wait for a program to be ready, in seconds.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Format of stdout.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text", value_enum)]
    output: Form,
}

impl GatewayArgs {
    /// Validates the command line.
    ///
    /// # Errors
    /// Fails if a program is missing on this machine.
    pub(crate) fn settings(self) -> Result<Settings, Failure> {
        let mut cases = self.cases;
        cases.sort_unstable();
        cases.dedup();
        let command = match self.gateway_command {
            Some(Words(command)) => command,
            None => vec![built(GATEWAY, "--gateway-command", &places())?.display().to_string()],
        };
        let name = if self.against.is_some() { "gateway A" } else { "gateway" };
        let mut subjects = vec![Subject::Gateway { name, command }];
        subjects.extend(self.against.map(|Words(command)| Subject::Gateway { name: "gateway B", command }));
        let path = std::env::var_os("PATH");
        let (found, mut missing) = others(path.as_deref());
        // Leaves out the simulator's store: its own speed would be measured, not the gateway's.
        let real = Some(Program::find(&self.store, path.as_deref())?).filter(|it| *it != Program::Simulated);
        if real.is_none() {
            missing.push("a real store (versitygw, MinIO)");
        }
        subjects.extend(found);
        Ok(Settings {
            subjects,
            missing,
            rounds: usize::from(self.rounds),
            cases,
            time: Duration::from_secs(self.seconds),
            connections: usize::from(self.connections),
            large_connections: usize::from(self.large_connections),
            large: self.large << 20,
            keys: self.keys as usize,
            streams: usize::from(self.streams),
            revocations: usize::from(self.revocations),
            real,
            patience: Duration::from_secs(self.timeout),
            cpus: Cpus::found()?,
            output: self.output,
        })
    }
}
