//! Output of the results as text and as JSON.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::run::{ModelReport, Violation, WorldReport};

/// Returns the name of the CPU; the architecture if the system does not provide it.
pub fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// Writes the row of one world.
///
/// # Errors
/// Returns an error if writing fails.
pub fn write_world(out: &mut impl Write, world: &WorldReport) -> io::Result<()> {
    let rate = rate(world.states, world.seconds);
    let end = match (world.violations.is_empty(), world.complete) {
        (false, _) => "BROKEN",
        (true, true) => "complete",
        (true, false) if world.is_explored() => "bounded",
        (true, false) => "not explored",
    };
    let limits = if world.limits > 0 { format!(", {} honest limits", world.limits) } else { String::new() };
    writeln!(
        out,
        "{:<22} {:>9} states  depth {:>3}  {:>7.2} s  {:>7} states/s  {end}{limits}",
        world.name, world.states, world.depth, world.seconds, rate
    )
}

/// Writes a broken promise and the path to it.
///
/// # Errors
/// Returns an error if writing fails.
pub fn write_violation(out: &mut impl Write, world: &str, violation: &Violation) -> io::Result<()> {
    let what = if violation.what.is_empty() { String::new() } else { format!(" ({})", violation.what) };
    writeln!(out, "\n{world} breaks {}{what}:", violation.promise)?;
    for (number, line) in violation.trace.iter().enumerate() {
        writeln!(out, "  {:>3}  {line}", number + 1)?;
    }
    Ok(())
}

/// Writes the summary.
///
/// # Errors
/// Returns an error if writing fails.
pub fn write_summary(out: &mut impl Write, report: &ModelReport) -> io::Result<()> {
    for (world, violation) in report.violations() {
        write_violation(out, world, violation)?;
    }
    let (states, seconds) = (report.states(), report.seconds());
    writeln!(
        out,
        "\n{} worlds, {states} states, {seconds:.1} s, {} states/s with {} threads on {}",
        report.worlds.len(),
        rate(states, seconds),
        report.jobs,
        cpu_name()
    )?;
    match report.left[..] {
        [] => Ok(()),
        ref left => writeln!(out, "not begun: {}", left.join(", ")),
    }
}

/// Returns the JSON document (spec §5). Fields may be added, never renamed.
pub fn document(report: &ModelReport) -> Value {
    let violation = |world: &str, violation: &Violation| {
        json!({
            "world": world, "promise": violation.promise.name(), "message": violation.promise.to_string(),
            "detail": violation.what, "trace": violation.trace,
        })
    };
    let world = |world: &WorldReport| {
        json!({
            "name": world.name, "about": world.about, "states": world.states, "transitions": world.transitions,
            "views": world.views, "depth": world.depth, "seconds": world.seconds,
            "states_per_second": rate(world.states, world.seconds), "explored": world.is_explored(),
            "complete": world.complete,
            "honest_limits": world.limits,
            "violations": world.violations.iter().map(|v| violation(world.name, v)).collect::<Vec<Value>>(),
        })
    };
    json!({
        "states": report.states(),
        "depth": report.worlds.iter().map(|world| world.depth).max().unwrap_or(0),
        "seconds": report.seconds(),
        "states_per_second": rate(report.states(), report.seconds()),
        "complete": report.complete(),
        "left": report.left,
        "jobs": report.jobs,
        "cpu": cpu_name(),
        "violations": report.violations().map(|(name, v)| violation(name, v)).collect::<Vec<Value>>(),
        "worlds": report.worlds.iter().map(world).collect::<Vec<Value>>(),
    })
}

fn rate(states: usize, seconds: f64) -> u64 {
    if seconds > 0.0 { (states as f64 / seconds) as u64 } else { 0 }
}
