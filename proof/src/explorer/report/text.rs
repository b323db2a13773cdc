//! A report for people at a terminal. Colours are escape sequences, which the given stream may
//! strip.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::explorer::timeline::clock;
use crate::oracles::Promise;

use super::{CampaignReport, Failure, ScenarioCoverage, Slow};

const STRONG: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BUSY: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Writes a report: a table of scenarios, sums, and one line per failure, which is a shell command
/// that replays it, with a comment; one more line for the smaller schedule.
///
/// # Errors
/// Returns the errors of the stream.
pub fn write(out: &mut impl Write, report: &CampaignReport) -> io::Result<()> {
    writeln!(
        out,
        "{STRONG}{:18} {:8} {:>9} {:>7} {:>13} {:>6} {:>12} {:>12}{STRONG:#}",
        "SCENARIO", "PHASE", "SCHEDULES", "EFFECTS", "CRASH POINTS", "LIMITS", "SLOWEST", "LONGEST"
    )?;
    for (name, row) in &report.scenarios {
        write_scenario(out, name, row)?;
    }
    writeln!(out)?;
    write_sums(out, report)?;
    for failure in &report.failures {
        write_failure(out, failure)?;
    }
    Ok(())
}

/// Writes the row of a scenario, with the real time of its slowest schedule and the virtual time of
/// its longest.
fn write_scenario(out: &mut impl Write, name: &str, row: &ScenarioCoverage) -> io::Result<()> {
    let crashes = format!("{} of {}", row.crash_points, row.crash_points_expected);
    let slowest = row.slowest.as_ref().map_or_else(String::new, |it| format!("{:.0} ms", it.seconds * 1000.0));
    let longest = row.longest.as_ref().map_or_else(String::new, virtual_time);
    writeln!(
        out,
        "{name:18} {:8} {:9} {:7} {crashes:>13} {:6} {slowest:>12} {longest:>12}",
        row.phase, row.schedules, row.effects, row.limits
    )
}

/// Formats the virtual time of a schedule.
pub(super) fn virtual_time(slow: &Slow) -> String {
    clock((slow.seconds * 1000.0) as i64)
}

fn write_sums(out: &mut impl Write, report: &CampaignReport) -> io::Result<()> {
    let (cells, expected) = report.coverage();
    writeln!(
        out,
        "{} schedules in {:.1} s with {} on {}: {:.0}/s for each",
        report.schedules,
        report.seconds,
        counted(report.jobs as u64, "job"),
        report.cpu,
        report.rate(),
    )?;
    writeln!(out, "{cells} of {expected} pairs of fault and phase, {} reasons of Ready", report.reasons.len())?;
    for (promise, count) in &report.limited {
        writeln!(out, "{promise} ended at a limit that the contract states in {}", counted(*count, "schedule"))?;
    }
    if !report.complete {
        writeln!(out, "{BUSY}not all was run: cut short{BUSY:#}")?;
    }
    for gap in report.gaps() {
        writeln!(out, "{BUSY}{gap}{BUSY:#}")?;
    }
    let conclusion = report.conclusion();
    match conclusion {
        _ if conclusion.is_failure() => writeln!(out, "{BAD}✗ {conclusion}{BAD:#}"),
        _ if conclusion.is_good() => writeln!(out, "{GOOD}✓ {conclusion}{GOOD:#}"),
        _ => writeln!(out, "{BUSY}{conclusion}{BUSY:#}"),
    }
}

/// Writes lines that can be pasted into a shell: a command, with the description of the failure as
/// its comment.
fn write_failure(out: &mut impl Write, failure: &Failure) -> io::Result<()> {
    let words = Promise::ALL.into_iter().find(|promise| promise.name() == failure.promise).map_or("", Promise::words);
    let (promise, message) = (&failure.promise, failure.message.replace(['\n', '\r'], " "));
    writeln!(out, "\n{}  # {BAD}{promise}{BAD:#} ({words}): {message}", failure.command())?;
    match failure.smaller_command() {
        Some(command) => writeln!(out, "{command}  # {promise}, smaller"),
        None => Ok(()),
    }
}

/// `1 job`, `2 jobs`.
fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn plain(report: &CampaignReport) -> String {
        let mut out = Vec::new();
        write(&mut out, report).expect("a vector takes everything");
        anstream::adapter::strip_bytes(&out).into_vec().try_into().expect("UTF-8")
    }

    #[test]
    fn people_read_a_table_sums_and_failures() {
        insta::assert_snapshot!(plain(&samples::report()));
    }

    #[test]
    fn a_failure_is_a_line_for_a_shell_and_one_for_the_smaller_schedule() {
        let mut report = samples::report();
        report.failures[0].message = "two\nlines".to_owned();
        let text = plain(&report);
        let [.., last, smaller] = text.lines().collect::<Vec<_>>()[..] else { panic!("there are lines: {text}") };
        assert!(last.starts_with(&format!("stowage-proof replay '{}'  # I6 (", samples::LINE)), "{last}");
        assert!(last.ends_with("): two lines"), "{last}");
        assert_eq!(smaller, "stowage-proof replay 'rotate 1 #17 crash(before)'  # I6, smaller");
    }

    #[test]
    fn what_was_cut_short_is_not_told_as_whole() {
        let report = CampaignReport { complete: false, failures: Vec::new(), ..samples::report() };
        let text = plain(&report);
        assert!(text.contains("not all was run") && text.contains("✓ no promise was broken by what was run"), "{text}");
        assert!(!text.contains("every promise"), "{text}");
    }

    #[test]
    fn where_nothing_was_run_nothing_was_kept() {
        for report in [samples::nothing(), CampaignReport { complete: true, ..samples::nothing() }] {
            let text = plain(&report);
            assert!(text.contains("no schedule") && !text.contains('✓') && !text.contains("kept"), "{text}");
        }
    }

    #[test]
    fn what_was_not_met_is_told() {
        let text = plain(&samples::gaps());
        assert!(text.contains("\nlost-answer met no call in rotate\n"), "{text}");
        assert!(text.ends_with("✗ no promise was broken, but not all was tried\n"), "{text}");
    }
}
