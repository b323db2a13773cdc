//! Third-party S3 clients, through the gateway with a claim's Secret.
//!
//! `args` is the command line. A client is a directory (`catalogue`) with a script that installs it
//! and one that performs every operation of the matrix. They are played (`play`) in an
//! `environment`: a control plane, a store, operator and gateway, with a separate claim for each
//! client. `means` lists the programs, and `table` shows the results. `suite` plays a third-party
//! test suite of S3 in the same environment, and `heads` sends requests that no client would write.

mod args;
pub(crate) mod catalogue;
mod environment;
pub(crate) mod heads;
mod means;
mod play;
pub(crate) mod suite;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use stowage_testbed::console::{Output, print, tell, unless_interrupted};

pub(crate) use self::args::{ClientsArgs, Wanted, cache};
use self::catalogue::Client;
use self::environment::Cluster;
use self::means::{Means, Over};
use self::play::Play;
use self::table::{LeftOut, Report};

/// Settings of a run.
pub(crate) struct Settings {
    clients: Vec<Client>,
    over: Vec<Over>,
    /// Directory of installations.
    cache: PathBuf,
    means: Means,
    /// Size of the object for multipart uploads.
    multipart: u64,
    /// Time limit for all operations of a client.
    patience: Duration,
    output: Output,
}

/// Plays the matrix until it is complete or a signal interrupts it, and prints the results.
///
/// # Errors
/// Fails if an operation fails, if something can't be started, or on a signal.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let report = unless_interrupted(play_all(&settings)).await?;
    match settings.output {
        Output::Text => print(report.text().trim_end())?,
        Output::Json => print(&serde_json::to_string_pretty(&report)?)?,
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(anyhow!("{failed} operations failed")),
    }
}

/// Prints the list of clients.
///
/// # Errors
/// Fails if stdout can't be written.
pub(crate) fn list(clients: &[Client]) -> Result<()> {
    clients.iter().try_for_each(|client| print(&format!("{:<16} {}", client.name, client.version)))
}

async fn play_all(settings: &Settings) -> Result<Report> {
    let mut report = Report::default();
    let mut installed = Vec::new();
    for client in &settings.clients {
        match client.installed(&settings.cache).await {
            Ok(home) => installed.push((client, home)),
            Err(why) => {
                let why = stowage_testbed::failure::sentence(&why);
                tell(&format!("left out {}: {why}", client.name));
                report.left_out.push(LeftOut { client: client.name.clone(), why });
            }
        }
    }
    for over in &settings.over {
        let serving = settings.means.store.start(environment::PATIENCE, None).await?;
        let cluster = Cluster::start(&settings.means, serving, *over).await?;
        let mut installation = cluster.installation().await?;
        for (client, home) in &installed {
            let access = installation.access(&client.name).await?;
            let play = Play { client, home, over: *over, multipart: settings.multipart, patience: settings.patience };
            let rows = play.run(&access).await?;
            rows.iter().for_each(|row| tell(&row.line()));
            report.rows.extend(rows);
        }
        installation.end().await?;
    }
    Ok(report)
}
