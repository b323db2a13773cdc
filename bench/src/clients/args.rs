//! The command line of `clients`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use stowage_testbed::console::Output;
use stowage_testbed::control_plane::Programs;
use stowage_testbed::failure::Failure;
use stowage_testbed::tools::beside;
use stowage_testbed::words::{Words, words};

use super::Settings;
use super::catalogue::{self, Client};
use super::means::{Means, Over};
use crate::measure::stores::Program;

#[derive(Debug, Args)]
pub(crate) struct ClientsArgs {
    /// List the clients and exit.
    #[arg(long)]
    list: bool,
    /// Names of clients to play, separated by commas; by default, all.
    #[arg(long, env = "STOWAGE_ONLY", value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// Endpoints that they call, separated by commas: the gateway over http or https, or the store
    /// itself.
    #[arg(long, env = "STOWAGE_OVER", value_name = "WAYS", value_enum, value_delimiter = ',', default_values_t = [Over::Http, Over::Https])]
    over: Vec<Over>,
    /// Directory of the project's clients.
    #[arg(long, env = "STOWAGE_CLIENTS", value_name = "DIR", default_value = "bench/clients")]
    clients: PathBuf,
    /// Size of the object for multipart uploads, in MiB.
    #[arg(long, env = "STOWAGE_MULTIPART_SIZE", value_name = "MIB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=4096))]
    multipart_size: u64,
    #[command(flatten)]
    means: MeansArgs,
    /// Time limit for all operations of a client over one endpoint, in seconds.
    #[arg(long, env = "STOWAGE_TIMEOUT", value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=36_000))]
    timeout: u64,
    /// Format of stdout: a table, or one JSON document.
    #[arg(short, long, env = "STOWAGE_OUTPUT", value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Programs with which clients are played.
#[derive(Debug, Args)]
pub(super) struct MeansArgs {
    /// Store: a program of versitygw or MinIO, `simulated`, or `auto`, which is versitygw or MinIO
    /// on the PATH, else the simulated one.
    #[arg(long, env = "STOWAGE_STORE", value_name = "PROGRAM", default_value = "auto")]
    store: String,
    /// Operator: program and arguments that come before `run`, separated by spaces; by default,
    /// stowage-operator in the directory of this program.
    #[arg(long, env = "STOWAGE_OPERATOR_COMMAND", value_name = "COMMAND", value_parser = words)]
    operator_command: Option<Words>,
    /// Gateway: program and arguments that come before `run`, separated by spaces; by default,
    /// stowage-gateway in the directory of this program.
    #[arg(long, env = "STOWAGE_GATEWAY_COMMAND", value_name = "COMMAND", value_parser = words)]
    gateway_command: Option<Words>,
}

impl MeansArgs {
    /// Finds the programs on this machine.
    ///
    /// # Errors
    /// Fails if one is missing.
    pub(super) fn means(self) -> anyhow::Result<Means> {
        Ok(Means {
            store: Program::find(&self.store, std::env::var_os("PATH").as_deref())?,
            programs: Programs::find().map_err(anyhow::Error::from)?,
            operator: self.operator_command.map_or_else(|| beside("stowage-operator"), |Words(it)| Ok(it))?,
            gateway: self.gateway_command.map_or_else(|| beside("stowage-gateway"), |Words(it)| Ok(it))?,
        })
    }
}

/// Action of the command line.
pub(crate) enum Wanted {
    /// List these clients.
    List(Vec<Client>),
    /// Play them.
    Play(Box<Settings>),
}

impl ClientsArgs {
    /// Validates the command line.
    ///
    /// # Errors
    /// Fails for an unknown client, or if a program is missing on this machine.
    pub(crate) fn wanted(self) -> Result<Wanted, Failure> {
        let clients = chosen(catalogue::read(&self.clients)?, &self.only)?;
        if self.list {
            return Ok(Wanted::List(clients));
        }
        let mut over = self.over;
        over.sort_unstable();
        over.dedup();
        Ok(Wanted::Play(Box::new(Settings {
            clients,
            over,
            cache: cache()?,
            means: self.means.means()?,
            multipart: self.multipart_size << 20,
            patience: Duration::from_secs(self.timeout),
            output: self.output,
        })))
    }
}

/// Returns the named clients in their order; all if none is named.
fn chosen(clients: Vec<Client>, only: &[String]) -> anyhow::Result<Vec<Client>> {
    if let Some(unknown) = only.iter().find(|name| !clients.iter().any(|client| client.name == **name)) {
        let known: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
        return Err(anyhow!("there is no client {unknown}; there are {}", known.join(", ")));
    }
    Ok(clients.into_iter().filter(|client| only.is_empty() || only.contains(&client.name)).collect())
}

/// Returns the directory of installations, below the user's cache directory.
///
/// # Errors
/// Fails if the environment names no cache directory.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let of_user = given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")));
    of_user.map(|it| it.join("stowage/clients")).context("neither XDG_CACHE_HOME nor HOME is set")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn names(only: &[&str]) -> anyhow::Result<Vec<String>> {
        let known = ["a", "b", "c"].map(|name| Client::new(name, "1", Path::new(name)));
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        Ok(chosen(known.into(), &only)?.into_iter().map(|client| client.name).collect())
    }

    #[test]
    fn all_are_played_or_those_that_are_named() {
        assert_eq!(names(&[]).unwrap(), ["a", "b", "c"]);
        assert_eq!(names(&["c", "a"]).unwrap(), ["a", "c"]);
        let why = names(&["a", "d"]).unwrap_err().to_string();
        assert_eq!(why, "there is no client d; there are a, b, c");
    }
}
