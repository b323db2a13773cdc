//! The table and the JSON document of a measurement. No I/O.

use std::fmt::Write as _;

use serde::Serialize;

use std::fmt::Display;

use super::figures::{Figure, Figures, Part, Unit, medians};

/// Results of a measurement.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report<A, P> {
    /// Description of the run, at the beginning of the table.
    #[serde(flatten)]
    pub(crate) about: A,
    pub(crate) columns: Vec<Column<P>>,
    /// Notes that are required to interpret the values.
    pub(crate) notes: Vec<String>,
}

/// Results of one command, or of something it is compared with.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Column<P> {
    pub(crate) name: String,
    pub(crate) command: String,
    /// Median of each value over the rounds.
    pub(crate) figures: Figures<P>,
    pub(crate) rounds: Vec<Figures<P>>,
    /// True for a measured command, which is compared with a second one.
    #[serde(skip)]
    is_subject: bool,
}

impl<P: Part> Column<P> {
    /// Creates the column of a measured command.
    pub(crate) fn new(name: &str, command: String, rounds: Vec<Figures<P>>) -> Self {
        Self { name: name.to_owned(), command, figures: medians(&rounds), rounds, is_subject: true }
    }

    /// Creates a column that only shows what is possible.
    pub(crate) fn beside(name: &str, command: String, rounds: Vec<Figures<P>>) -> Self {
        Self { is_subject: false, ..Self::new(name, command, rounds) }
    }
}

/// Cells of one line: its title, then one per column.
type Line = Vec<String>;

impl<A: Display, P: Part> Report<A, P> {
    /// Returns a table with a line for each value and a column for each command. For two commands
    /// it also has their ratio.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("{}\n", self.about);
        for column in &self.columns {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}: {}, {}", column.name, column.command, rounds(column.rounds.len()));
        }
        let lines = self.lines();
        let width = |at: usize| lines.iter().filter_map(|line| line.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..).map_while(width).collect();
        text.push('\n');
        for line in &lines {
            text.push_str(&aligned(line, &widths));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nNote: {note}");
        }
        text
    }

    /// Returns the table in Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("{}.\n\n", self.about);
        for column in &self.columns {
            let _ = writeln!(text, "- {}: {}, {}", column.name, column.command, rounds(column.rounds.len()));
        }
        let mut lines = self.lines();
        let head = if lines.is_empty() { Line::new() } else { lines.remove(0) };
        let rule = head.iter().map(|_| "---|").collect::<String>();
        let _ = writeln!(text, "\n| {} |\n|{rule}", head.join(" | "));
        for line in lines {
            // The heading of a phase has no values.
            let title = if line.len() == 1 { format!("**{}**", line.concat()) } else { line.join(" | ") };
            let _ = writeln!(text, "| {} |", title.trim_start());
        }
        for note in &self.notes {
            let _ = writeln!(text, "\nNote: {note}.");
        }
        text
    }

    fn lines(&self) -> Vec<Line> {
        let mut head: Line = vec![String::new()];
        head.extend(self.columns.iter().map(|column| column.name.clone()));
        let compared = self.compared();
        if let Some((first, second)) = compared {
            head.push(format!("{} / {}", first.name, second.name));
        }
        let mut lines = vec![head];
        for &phase in P::all() {
            let rows = self.rows(phase);
            if !rows.is_empty() {
                lines.push(vec![phase.name().to_owned()]);
            }
            for (name, unit) in rows {
                let value = |column: &Column<P>| column.figures.get(phase, &name);
                let mut line = vec![format!("  {name}")];
                line.extend(
                    self.columns.iter().map(|column| value(column).map_or_else(String::new, |it| unit.show(it))),
                );
                if let Some((first, second)) = compared {
                    line.push(ratio(value(first), value(second)));
                }
                lines.push(line);
            }
        }
        lines
    }

    /// Returns the values of a phase in any column, in the order of the first column that has them.
    fn rows(&self, phase: P) -> Vec<(String, Unit)> {
        let mut rows: Vec<(String, Unit)> = Vec::new();
        let figures = self.columns.iter().flat_map(|column| column.figures.iter());
        for Figure { name, unit, .. } in figures.filter(|figure| figure.phase == phase) {
            if rows.iter().all(|(known, _)| known != name) {
                rows.push((name.clone(), *unit));
            }
        }
        rows
    }

    /// Returns the two commands, if two were measured.
    fn compared(&self) -> Option<(&Column<P>, &Column<P>)> {
        let mut commands = self.columns.iter().filter(|column| column.is_subject);
        commands.next().zip(commands.next())
    }
}

fn rounds(count: usize) -> String {
    if count == 1 { "one round".to_owned() } else { format!("median of {count} rounds") }
}

fn ratio(first: Option<f64>, second: Option<f64>) -> String {
    match first.zip(second) {
        Some((first, second)) if second != 0.0 => format!("{:.2}", first / second),
        _ => String::new(),
    }
}

/// Formats a line with its first cell left-aligned and all others right-aligned.
fn aligned(line: &Line, widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).enumerate();
    let text = cells.fold(String::new(), |mut text, (at, (cell, width))| {
        let _ = if at == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        text
    });
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::operator::About;
    use crate::measure::operator::phase::{Figures, Phase};

    fn figures(numbers: &[(Phase, &str, Unit, f64)]) -> Figures {
        numbers.iter().fold(Figures::default(), |mut figures, (phase, name, unit, value)| {
            figures.add(*phase, *name, *unit, *value);
            figures
        })
    }

    fn report() -> Report<About, Phase> {
        let ours = figures(&[
            (Phase::Create, "claims/s", Unit::PerSecond, 90.0),
            (Phase::Create, "to Bound, p50", Unit::Milliseconds, 1234.5),
            (Phase::Delete, "deletions/s", Unit::PerSecond, 50.0),
        ]);
        let theirs = figures(&[
            (Phase::Create, "claims/s", Unit::PerSecond, 60.0),
            (Phase::Create, "update bucketclaims", Unit::PerClaim, 2.0),
        ]);
        let bare = figures(&[(Phase::Create, "claims/s", Unit::PerSecond, 100.0)]);
        Report {
            about: About { store: "versitygw".to_owned(), claims: 1000 },
            columns: vec![
                Column::new("A", "a".to_owned(), vec![ours]),
                Column::new("B", "b".to_owned(), vec![theirs.clone(), theirs]),
                Column::beside("ceiling", "a bare loop".to_owned(), vec![bare]),
            ],
            notes: vec!["the machine is busy".to_owned()],
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_number_and_compares_two_commands() {
        let expected = "\
1000 claims on versitygw
A: a, one round
B: b, median of 2 rounds
ceiling: a bare loop, one round

                             A     B  ceiling  A / B
create
  claims/s                90.0  60.0    100.0   1.50
  to Bound, p50        1234 ms
  update bucketclaims           2.00
delete
  deletions/s             50.0

Note: the machine is busy
";
        let told = report().table();
        assert_eq!(told, expected, "{told}");
    }

    #[test]
    fn the_same_is_told_in_markdown() {
        let told = report().markdown();
        for line in ["|  | A | B | ceiling | A / B |", "|---|---|---|---|---|", "| **create** |"] {
            assert!(told.lines().any(|it| it == line), "{told}");
        }
        assert!(told.contains("| claims/s | 90.0 | 60.0 | 100.0 | 1.50 |"), "{told}");
    }

    #[test]
    fn one_command_is_compared_with_nothing() {
        let mut report = report();
        report.columns.remove(1);
        assert!(!report.table().contains(" / "), "{}", report.table());
    }

    #[test]
    fn the_document_has_medians_and_rounds() {
        let document = serde_json::to_value(report()).unwrap();
        assert_eq!(document["columns"][0]["figures"][0]["value"], 90.0);
        assert_eq!(document["columns"][0]["figures"][0]["phase"], "create");
        assert_eq!(document["columns"][1]["rounds"].as_array().unwrap().len(), 2);
    }
}
