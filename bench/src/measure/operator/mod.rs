//! Measures an operator on a real API server and a real store.
//!
//! `args` is the command line. Each command has a turn in a separate `environment`: a control
//! plane, and a store behind a counting proxy (`counter`). The `phases` of a turn create and delete
//! `claims`, and measure their cost: requests by the audit log (`counts`), processor and memory.
//! `ceiling` is a bare loop of the same requests.

mod args;
mod ceiling;
mod claims;
mod counter;
mod counts;
mod environment;
pub(crate) mod phase;
mod phases;
mod settings;

use std::fmt;

use anyhow::{Context as _, Result, anyhow};
use serde::Serialize;
use stowage_testbed::console::{Output, print, tell, unless_interrupted};
use stowage_testbed::log::Log;
use stowage_testbed::process::Process;

pub(crate) use self::args::OperatorArgs;
use self::ceiling::Mix;
use self::environment::Environment;
use self::phase::{Column, Figures, Phase};
use self::phases::{Asked, Turn};
pub(crate) use self::settings::Settings;
use self::settings::Subject;
use crate::measure::figures::Unit;
use crate::measure::table::Report;

/// Description of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct About {
    /// Name of the store.
    pub(crate) store: String,
    pub(crate) claims: usize,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} claims on {}", self.claims, self.store)
    }
}

/// Name of the bare loop's column.
const CEILING: &str = "ceiling";

/// Measures until all rounds are complete or a signal interrupts it, and prints the results.
///
/// # Errors
/// Fails if something can't be started, if an operator ends, or on a signal.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let mut notes = Vec::new();
    let columns = unless_interrupted(measure(&settings, &mut notes)).await?;
    let about = About { store: settings.store.name().to_owned(), claims: settings.claims };
    let report = Report { about, columns, notes };
    match settings.output {
        Output::Text => print(report.table().trim_end()),
        Output::Json => print(&serde_json::to_string_pretty(&report).context("can't write the document")?),
    }
}

/// Measures the commands in turns, in each round followed by the bare loop of the first one.
async fn measure(settings: &Settings, notes: &mut Vec<String>) -> Result<Vec<Column>> {
    let names: &[&str] = if settings.subjects.len() > 1 { &["A", "B"] } else { &["operator"] };
    let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); names.len()];
    let (mut bare, mut loop_told) = (Vec::new(), String::new());
    for round in 1..=settings.rounds {
        let mut first = None;
        for ((subject, name), rounds) in settings.subjects.iter().zip(names).zip(&mut rounds) {
            let title = format!("round {round} of {}, {name}", settings.rounds);
            let (figures, asked) = turn(settings, subject, title, notes).await?;
            first = first.or(asked);
            rounds.push(figures);
        }
        if let (true, Some(asked), Some(subject)) =
            (settings.phases.contains(&Phase::Ceiling), first, settings.subjects.first())
        {
            let title = format!("round {round} of {}, {CEILING}", settings.rounds);
            let mix = Mix::of(&asked);
            loop_told = mix.told();
            if !mix.left_out.is_empty() && round == 1 {
                notes.push(format!("the bare loop leaves out: {}", mix.left_out.join(", ")));
            }
            let environment = Environment::start(&settings.plan(subject)).await?;
            let ceiling = ceiling::play(settings, &environment, mix, &title).await?;
            rounds
                .iter_mut()
                .filter_map(|rounds| rounds.last_mut())
                .for_each(|round| round.append(share(round, &ceiling)));
            bare.push(ceiling);
        }
    }
    let commands = settings.subjects.iter().map(|subject| subject.command.join(" "));
    let columns = names.iter().zip(commands).zip(rounds);
    let mut columns: Vec<Column> =
        columns.map(|((name, command), rounds)| Column::new(name, command, rounds)).collect();
    if !bare.is_empty() {
        columns.push(Column::beside(CEILING, loop_told, bare));
    }
    Ok(columns)
}

/// Measures one command in a new environment.
async fn turn(
    settings: &Settings,
    subject: &Subject,
    title: String,
    notes: &mut Vec<String>,
) -> Result<(Figures, Option<Asked>)> {
    tell(&format!("{title}: {}", subject.command.join(" ")));
    let environment = Environment::start(&settings.plan(subject)).await?;
    let log = Log::default();
    let mut operator = Process::start("operator", environment.launch(&subject.command), &log)?;
    let mut turn = Turn {
        settings,
        environment: &environment,
        title,
        figures: Figures::default(),
        notes: Vec::new(),
        asked: None,
    };
    let played = turn.play(&mut operator).await;
    played.map_err(|why| match log.tail().as_slice() {
        [] => why,
        lines => {
            anyhow!("{}; the operator's log ends: {}", stowage_testbed::failure::sentence(&why), lines.join(" | "))
        }
    })?;
    notes.append(&mut turn.notes);
    Ok((turn.figures, turn.asked))
}

/// Returns an operator's rate as a percentage of the ceiling.
fn share(round: &Figures, ceiling: &Figures) -> Figures {
    let mut share = Figures::default();
    let rate = |figures: &Figures| figures.get(Phase::Create, "claims/s");
    if let (Some(rate), Some(most)) = (rate(round), rate(ceiling)) {
        share.add(Phase::Ceiling, "claims/s, of the ceiling", Unit::Percent, 100.0 * rate / most.max(f64::EPSILON));
    }
    share
}
