//! The command line (spec §5).

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use stowage_testbed::failure::Failure;

use crate::clients::heads::{self, HeadsArgs};
use crate::clients::suite::{self, SuiteArgs};
use crate::clients::{self, ClientsArgs, Wanted};
use crate::measure::BenchArgs;
use crate::operators::{self, OperatorsArgs};

/// Measures operators and gateways, and plays the clients, suites and operators of others.
#[derive(Debug, Parser)]
#[command(name = "stowage-bench", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure an operator, or two in turns: claims made and deleted at once, at rest, after a
    /// restart, beside purges and a store that hangs. `bench gateway` measures gateways.
    ///
    /// Starts a control plane, from the programs that `run --cluster control-plane` finds, and a
    /// store behind a proxy that counts; both end with the measurement. Needs Linux. Progress goes
    /// to stderr. What is what in the table stands in docs/guide/bench.md.
    Bench(Box<BenchArgs>),
    /// Play the clients of others through the gateway, each with a claim's Secret: every operation
    /// that it has, over http and https.
    ///
    /// Starts what `bench` starts, and a gateway. Clients are installed into the user's cache
    /// directory, once; one that can't be had on this machine is left out, and told. What is played
    /// stands in docs/reference/clients.md. From the project's root.
    Clients(Box<ClientsArgs>),
    /// Play ceph/s3-tests through the gateway, with a claim's bucket where it would make one, and
    /// compare with what each test is expected to do.
    ///
    /// Starts what `clients` starts; the store is versitygw, whose access log shows that what the
    /// gateway refuses comes to no call. The suite is fetched into the user's cache directory,
    /// once, at its pinned commit, from where it is developed or from the repository that
    /// S3_TESTS_SOURCE names. What the lists mean stands in docs/reference/s3-tests.md. From the
    /// project's root.
    S3Tests(Box<SuiteArgs>),
    /// Send generated requests through the gateway, written in odd ways, and hold what the store
    /// received of them against what their senders may do.
    ///
    /// Heads, documents, sources of copies, forms, and headers by operation are sent with the key
    /// of a claim and with that of an access. Every byte that the gateway sends to the store is
    /// kept and read by another reader: no key, version, header or source beyond what the sender's
    /// key opens is among it. The store says which operation it understood, and that has to be the
    /// gateway's own. At the end nothing of others has changed at the store. Fails otherwise, and
    /// shows the first requests that went wrong. Starts what `s3-tests` starts.
    Heads(Box<HeadsArgs>),
    /// Play operators of others on the simulator's API server and on a real one, and run the test
    /// fixtures that the guide shows.
    ///
    /// Each operator is built into the user's cache directory, once, and started twice beside
    /// `stowage-sim up` and on a control plane, from the programs that `run --cluster
    /// control-plane` finds. What can't be had on this machine is left out, and told. From the
    /// project's root.
    Operators(Box<OperatorsArgs>),
}

impl Cli {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Wrong usage, or what failed.
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
