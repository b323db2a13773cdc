//! A timeline for people at a terminal, with a column for each actor. Colours are escape sequences,
//! which the given stream may strip.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::columns::{lines, widths, wrap};
use super::moments::clock;
use super::row::{Row, Weight};
use super::{Broken, Timeline};

const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();
const FAULT: Style = AnsiColor::Yellow.on_default();
const BROKEN: Style = AnsiColor::Red.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default();

/// Layout of a printed timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Characters per line.
    pub width: usize,
    /// True to print lists, watches, Events and repeated uses of keys on their own lines.
    pub all: bool,
}

/// Writes a timeline.
///
/// # Errors
/// Returns the errors of the stream.
pub fn write(out: &mut impl Write, timeline: &Timeline, layout: Layout) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}\n", timeline.line)?;
    let shown = fold(&timeline.events, layout.all);
    let table: Vec<[String; 8]> = shown.iter().map(Shown::cells).collect();
    let heads = ["time", "call"].iter().chain(&Row::COLUMNS).map(ToString::to_string).collect::<Vec<_>>();
    let natural: Vec<usize> = (0..heads.len()).map(|column| natural(&heads, &table, &shown, column)).collect();
    let widths = widths(&natural, layout.width);
    write_lines(out, STRONG, &lines(&borrowed(&heads), &widths))?;
    for (shown, cells) in shown.iter().zip(&table) {
        match shown.row.weight {
            Weight::Part => writeln!(out, "{FAINT}{} ── {} ──{FAINT:#}", cells[0], shown.row.operator)?,
            _ => write_lines(out, shown.style(), &lines(&borrowed(cells), &widths))?,
        }
        for place in shown.places.clone() {
            for broken in timeline.broken_at(place) {
                write_broken(out, broken, layout.width)?;
            }
        }
    }
    let hidden = timeline.events.len() - shown.iter().map(|shown| shown.times).sum::<usize>();
    if hidden > 0 {
        writeln!(out, "{FAINT}{hidden} lists, watches and Events are not shown{FAINT:#}")?;
    }
    write_end(out, timeline, layout.width)
}

fn write_end(out: &mut impl Write, timeline: &Timeline, width: usize) -> io::Result<()> {
    writeln!(out, "\n{:.1} s of virtual time, trace hash {}", timeline.took, timeline.trace_hash)?;
    if !timeline.unmet.is_empty() {
        writeln!(out, "{FAULT}⚠ met no call: {}{FAULT:#}", timeline.unmet.join("; "))?;
    }
    if timeline.violations.is_empty() {
        return writeln!(out, "{GOOD}✓ no promise was broken{GOOD:#}");
    }
    timeline.violations.iter().try_for_each(|broken| write_broken(out, broken, width))
}

fn write_broken(out: &mut impl Write, broken: &Broken, width: usize) -> io::Result<()> {
    let text = format!("{} is broken ({}): {}", broken.promise, broken.words, broken.message);
    for (number, line) in wrap(&text, width.saturating_sub(2)).iter().enumerate() {
        writeln!(out, "{BROKEN}{} {line}{BROKEN:#}", if number == 0 { "✗" } else { " " })?;
    }
    Ok(())
}

fn write_lines(out: &mut impl Write, style: Style, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(out, "{style}{line}{style:#}"))
}

fn borrowed(cells: &[String]) -> Vec<&str> {
    cells.iter().map(String::as_str).collect()
}

/// Returns the natural width of a column. Headings across the whole width don't count.
fn natural(heads: &[String], table: &[[String; 8]], shown: &[Shown<'_>], column: usize) -> usize {
    let rows = shown.iter().zip(table).filter(|(shown, _)| shown.row.weight != Weight::Part || column == 0);
    let cells = rows.map(|(_, cells)| cells[column].chars().count());
    cells.chain([heads[column].chars().count()]).max().unwrap_or_default()
}

/// A displayed row, and the rows folded into it.
pub struct Shown<'a> {
    /// The first of these rows.
    pub row: &'a Row,
    /// Indices of the rows folded into it, and of the routine rows after them.
    pub places: std::ops::Range<usize>,
    /// Number of equal uses folded into the row.
    times: usize,
}

impl Shown<'_> {
    /// Returns time, call, and the text of each column.
    pub fn cells(&self) -> [String; 8] {
        let row = self.row;
        let call = row.effect.map_or_else(String::new, |effect| format!("#{effect}"));
        let [user, operator, kubernetes, store, gateway, mut tenant] = row.cells().map(str::to_owned);
        let operator = match &row.fault {
            Some(fault) => format!("⚡{fault}: {operator}"),
            None => operator,
        };
        if self.times > 1 {
            tenant.push_str(&format!(", {} times", self.times));
        }
        [clock(row.at_ms), call, user, operator, kubernetes, store, gateway, tenant]
    }

    fn style(&self) -> Style {
        match self.row.weight {
            _ if self.row.fault.is_some() => FAULT,
            Weight::Routine => FAINT,
            _ => Style::new(),
        }
    }
}

/// Folds rows for display: routine rows are dropped, and repeated uses become one row.
pub fn fold(rows: &[Row], all: bool) -> Vec<Shown<'_>> {
    let mut shown: Vec<Shown<'_>> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        match shown.last_mut().filter(|_| !all) {
            Some(last) if row.is_routine() => last.places.end = place + 1,
            Some(last) if last.row.repeats(row) => {
                last.places.end = place + 1;
                last.times += 1;
            }
            _ => shown.push(Shown { row, places: place..place + 1, times: 1 }),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn plain(layout: Layout) -> String {
        let mut out = Vec::new();
        write(&mut out, &samples::timeline(), layout).expect("a vector takes everything");
        anstream::adapter::strip_bytes(&out).into_vec().try_into().expect("UTF-8")
    }

    #[test]
    fn people_read_columns() {
        insta::assert_snapshot!(plain(Layout { width: 140, all: false }));
    }

    #[test]
    fn narrow_columns_go_on_below_themselves() {
        let text = plain(Layout { width: 90, all: false });
        assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
        assert!(text.contains("✗ I6 is broken"), "{text}");
    }

    #[test]
    fn all_is_shown_where_it_is_asked_for() {
        let text = plain(Layout { width: 140, all: true });
        assert_eq!(text.matches("list secrets").count(), 2, "{text}");
        assert_eq!(text.matches("allowed").count(), 2, "{text}");
    }
}
