//! Measures: an `operator` on a real API server and a real store, or a `gateway` before a store
//! that costs nothing, and beside what a proxy can be at best.
//!
//! Both find real stores (`stores`) and read what processes take of the machine (`usage`) in one
//! way. What comes of a measurement are `figures`, told by a `table`.

mod built;
mod cpus;
mod figures;
mod gateway;
mod operator;
pub(crate) mod stores;
mod table;
mod usage;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use stowage_testbed::failure::Failure;

use self::gateway::{CopyArgs, GatewayArgs};
use self::operator::OperatorArgs;

/// What is measured; an operator where nothing is said.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    operator: OperatorArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Measure an operator, or two in turns: what `bench` does without a word.
    Operator(Box<OperatorArgs>),
    /// Measure a gateway, or two in turns, beside a bare copy proxy, haproxy and nginx.
    ///
    /// The gateway is a process on one core. Clients and a store that costs nothing are on the
    /// others, and check every byte of every answer and upload. haproxy, nginx and a real store are
    /// measured where they are found, and left out by name otherwise. Needs Linux. Progress goes to
    /// stderr. What is what in the table stands in docs/guide/bench.md.
    Gateway(Box<GatewayArgs>),
    /// Copy bytes between connections: what a proxy costs that looks at nothing.
    #[command(hide = true)]
    Copy(CopyArgs),
}

impl BenchArgs {
    /// Does what the command line says.
    ///
    /// # Errors
    /// Wrong usage, or what failed.
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().context("can't start");
        match self.what {
            None => {
                let settings = self.operator.settings()?;
                Ok(runtime()?.block_on(operator::run(settings))?)
            }
            Some(What::Operator(args)) => {
                let settings = args.settings()?;
                Ok(runtime()?.block_on(operator::run(settings))?)
            }
            Some(What::Gateway(args)) => {
                let settings = args.settings()?;
                // Before there is any thread: all are to be where the gateway is not.
                settings.stay_off_its_core()?;
                Ok(runtime()?.block_on(gateway::run(settings))?)
            }
            Some(What::Copy(args)) => Ok(gateway::copy(&args)?),
        }
    }
}
