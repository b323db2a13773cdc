//! Measurements: of an `operator` on a real API server and a real store, or of a `gateway` in front
//! of a null store and compared with the best possible proxy.
//!
//! Both find real stores with `stores`, and measure processes with `usage`. Results are `figures`,
//! printed by a `table`.

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

/// Subject of the measurement; by default, an operator.
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
    /// Measure an operator, or two in turns; the default of `bench`.
    Operator(Box<OperatorArgs>),
    /// Measure a gateway, or two in turns, beside a bare copy proxy, haproxy and nginx.
    ///
    /// The gateway is a process on one core. Clients and a null store, which does no work of its
    /// own, are on the others, and check every byte of every response and upload. haproxy, nginx
    /// and a real store are measured if they are found; otherwise they are left out and reported.
    /// Needs Linux. Progress is written to stderr. The table is explained in docs/guide/bench.md.
    Gateway(Box<GatewayArgs>),
    /// Copy bytes between connections: the cost of a proxy that doesn't parse anything.
    #[command(hide = true)]
    Copy(CopyArgs),
}

impl BenchArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns a usage error, or the error of the command.
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
                // Before any thread is started, so that all of them stay off the gateway's core.
                settings.stay_off_its_core()?;
                Ok(runtime()?.block_on(gateway::run(settings))?)
            }
            Some(What::Copy(args)) => Ok(gateway::copy(&args)?),
        }
    }
}
