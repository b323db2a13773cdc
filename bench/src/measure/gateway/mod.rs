//! Measures a gateway in front of a null store, and compares it with the minimum cost of a proxy.
//!
//! `args` is the command line. The `environment` is a simulated API server with the tenants'
//! Secrets, and a `null_store`. `subjects` are measured, each as a process on a separate core
//! (`cpus`). Clients (`load`) and store share the other cores, use a minimal HTTP implementation
//! (`message`), and check every byte against a `pattern`. `asks` are requests, signed in advance;
//! `play` runs clients with the requests of one `case`.

mod args;
mod asks;
mod bars;
mod case;
mod chunks;
mod copy;
mod environment;
mod hash;
mod load;
mod machine;
mod message;
mod null_store;
mod pattern;
mod play;
mod revoke;
mod settings;
mod slow;
mod subjects;
mod tls;

use anyhow::{Context as _, Result};
use stowage_testbed::console::{print, tell, unless_interrupted};

pub(crate) use self::args::GatewayArgs;
use self::case::{Case, Column, Figures, Shape};
pub(crate) use self::copy::{CopyArgs, copy};
use self::environment::Environment;
use self::play::Turn;
pub(crate) use self::settings::Settings;
use self::settings::{About, Form};
use self::subjects::{Running, Subject};
use crate::measure::figures::Part as _;
use crate::measure::table::Report;

/// Measures until all rounds are complete or a signal interrupts it, and prints the results.
///
/// # Errors
/// Fails if a program can't be started or ends, if a response is unexpected, or on a signal.
pub(crate) async fn run(settings: Settings) -> Result<()> {
    let columns = unless_interrupted(measure(&settings)).await?;
    let mut notes: Vec<String> = settings.missing.iter().map(|name| format!("{name} is not on this machine")).collect();
    if !settings.cpus.are_shared_out() {
        notes.push("there is but one processor: what is measured shares it with clients and store".to_owned());
    }
    let report = Report { about: settings.about(), columns, notes };
    match settings.output {
        Form::Text => print(report.table().trim_end()),
        Form::Json => print(&serde_json::to_string_pretty(&report).context("can't write the document")?),
        Form::Markdown => print(&page(&report)),
    }
}

/// Returns the page about a run.
fn page(report: &Report<About, Case>) -> String {
    let gateway = report.columns.first().map(|column| bars::table(&column.figures)).unwrap_or_default();
    format!("{}\n\n## The bars\n\n{gateway}\n## All numbers\n\n{}", machine::told(), report.markdown())
}

/// Adds to the values of gateways how they compare with the other subjects.
fn compare(settings: &Settings, figures: &mut [Figures]) {
    let of = |name: &str| {
        let at = settings.subjects.iter().position(|subject| subject.name() == name)?;
        figures.get(at).cloned()
    };
    let (copy, direct) = (of(Subject::Copy.name()), of(Subject::Direct.name()));
    for (subject, figures) in settings.subjects.iter().zip(figures) {
        if subject.is_gateway() {
            bars::compare(figures, copy.as_ref(), direct.as_ref(), &settings.cases);
        }
    }
}

/// Runs all subjects at once, and measures them in turns; an idle one costs nothing.
async fn measure(settings: &Settings) -> Result<Vec<Column>> {
    let mut rounds: Vec<Vec<Figures>> = vec![Vec::new(); settings.subjects.len()];
    let mut environment = Environment::start(settings.keys).await?;
    if let Some(program) = settings.real.as_ref().filter(|_| settings.plays(Shape::Real)) {
        environment.add_real(program, settings.patience, &settings.cpus).await?;
    }
    for round in 1..=settings.rounds {
        let mut running = Vec::new();
        for subject in &settings.subjects {
            running.push(subject.start(&environment, &settings.cpus, settings.patience).await?);
        }
        let mut figures = vec![Figures::default(); running.len()];
        for case in &settings.cases {
            tell(&format!("round {round} of {}, {}", settings.rounds, case.name()));
            let mut turns: Vec<(&Running, &mut Figures)> = running.iter().zip(&mut figures).collect();
            if round % 2 == 0 {
                turns.reverse();
            }
            for (running, figures) in turns {
                let turn = Turn { settings, environment: &environment, running };
                let played = turn.play(*case, figures).await;
                played.with_context(|| format!("{}, {}", case.name(), running.subject.name()))?;
            }
        }
        compare(settings, &mut figures);
        rounds.iter_mut().zip(figures).for_each(|(rounds, figures)| rounds.push(figures));
    }
    let columns = settings.subjects.iter().zip(rounds).map(|(subject, rounds)| {
        let new = if subject.is_gateway() { Column::new } else { Column::beside };
        new(subject.name(), subject.told(), rounds)
    });
    Ok(columns.collect())
}
