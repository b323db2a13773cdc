//! The command line (spec §5).

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use stowage_testbed::failure::Failure;

use crate::clients::heads::{self, HeadsArgs};
use crate::clients::suite::{self, SuiteArgs};
use crate::clients::{self, ClientsArgs, Wanted};
use crate::measure::BenchArgs;
use crate::operators::{self, OperatorsArgs};

/// Measures operators and gateways, and plays third-party clients, test suites and operators.
#[derive(Debug, Parser)]
#[command(name = "stowage-bench", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure an operator, or two in turns: claims created and deleted at once, at rest, after a
    /// restart, beside purges and a hanging store. `bench gateway` measures gateways.
    ///
    /// Starts a control plane, from the programs that `run --cluster control-plane` finds, and a
    /// store behind a counting proxy; both end with the measurement. Needs Linux. Progress is
    /// written to stderr. The table is explained in docs/guide/bench.md.
    Bench(Box<BenchArgs>),
    /// Play third-party clients through the gateway, each with a claim's Secret: all their
    /// operations, over http and https.
    ///
    /// Starts the same as `bench`, and a gateway. Clients are installed once, into the user's cache
    /// directory; a client that can't be installed on this machine is left out and reported. The
    /// operations are listed in docs/reference/clients.md. Run it in the project's root.
    Clients(Box<ClientsArgs>),
    /// Play ceph/s3-tests through the gateway, with a claim's bucket where it would create one, and
    /// compare the results with the expected ones.
    ///
    /// Starts the same as `clients`; the store is versitygw, and its access log shows that requests
    /// refused by the gateway cause no call. The suite is fetched once, at its pinned commit, into
    /// the user's cache directory, from its upstream repository or from the one in S3_TESTS_SOURCE.
    /// The lists are explained in docs/reference/s3-tests.md. Run it in the project's root.
    S3Tests(Box<SuiteArgs>),
    /// Send generated requests with unusual encodings through the gateway, and check what the store
    /// receives against the rights of the senders.
    ///
    /// Heads, documents, sources of copies, forms, and headers by operation are sent with the key
    /// of a claim and with that of an access. Every byte that the gateway sends to the store is
    /// recorded and parsed by a second parser: it must contain no key, version, header or source
    /// beyond what the sender's key opens. The store logs the operation that it understood, which
    /// must be the one that the gateway understood. At the end nothing else in the store may have
    /// changed. Otherwise the command fails and prints the first requests that went wrong. Starts
    /// the same as `s3-tests`.
    Heads(Box<HeadsArgs>),
    /// Play third-party operators on the simulator's API server and on a real one, and run the test
    /// fixtures that the guide shows.
    ///
    /// Each operator is built once, into the user's cache directory, and two replicas of it are
    /// started beside `stowage-sim up` and on a control plane, from the programs that `run
    /// --cluster control-plane` finds. An operator that can't be built on this machine is left out
    /// and reported. Run it in the project's root.
    Operators(Box<OperatorsArgs>),
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns a usage error, or the error of the command.
    pub fn execute(self) -> Result<(), Failure> {
        let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().context("can't start");
        match self.command {
            Command::Bench(args) => args.execute(),
            Command::S3Tests(args) => Ok(runtime()?.block_on(suite::run(args.settings()?))?),
            Command::Heads(args) => Ok(runtime()?.block_on(heads::run(args.settings()?))?),
            Command::Operators(args) => Ok(runtime()?.block_on(operators::run(*args))?),
            Command::Clients(args) => match args.wanted()? {
                Wanted::List(clients) => Ok(clients::list(&clients)?),
                Wanted::Play(settings) => Ok(runtime()?.block_on(clients::run(*settings))?),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
