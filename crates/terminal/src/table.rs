//! Tables in kubectl's format: upper-case headers, columns as wide as their longest cell, three
//! spaces between columns.

use crate::{Line, Span, Tone};

/// Spaces between columns, as in kubectl.
const GUTTER: usize = 3;

/// Minimum width of a wrapped last column, in characters.
const LEAST_LAST: usize = 20;

/// A table, formatted once all its rows are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Line>,
}

impl Table {
    /// Creates a table with these column headers and no rows.
    pub fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, with one cell per column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Span>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Renders the table as lines of at most `width` characters, without trailing spaces. Text that
    /// is too long in the last column is wrapped between words, within the column.
    pub fn lines(&self, width: usize) -> Vec<Line> {
        let heads: Line = self.heads.iter().map(|head| Span::new(Tone::Strong, *head)).collect();
        let last = heads.len().saturating_sub(1);
        let widths: Vec<usize> = (0..last).map(|column| self.width(column)).collect();
        let offset: usize = widths.iter().map(|width| width + GUTTER).sum();
        let room = width.saturating_sub(offset).max(LEAST_LAST);
        let mut lines = Vec::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let tail = row.get(last).cloned().unwrap_or_default();
            let mut pieces = wrap(&tail.text, room).into_iter().map(|text| Span::new(tail.tone, text));
            let mut line: Line = row.iter().zip(&widths).map(|(cell, width)| pad(cell, width + GUTTER)).collect();
            line.extend(pieces.next());
            lines.push(trimmed(line));
            lines.extend(pieces.map(|piece| vec![Span::from(" ".repeat(offset)), piece]));
        }
        lines
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
        cells.chain([self.heads[column].len()]).max().unwrap_or_default()
    }
}

fn pad(cell: &Span, width: usize) -> Span {
    Span::new(cell.tone, format!("{:width$}", cell.text))
}

/// Removes trailing spaces from a line.
fn trimmed(mut line: Line) -> Line {
    while let Some(last) = line.last_mut() {
        let kept = last.text.trim_end().len();
        last.text.truncate(kept);
        if kept > 0 {
            break;
        }
        line.pop();
    }
    line
}

/// Breaks text between words into lines of at most `width` characters. A longer word gets a
/// separate line. Returns at least one line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        let used = last.chars().count();
        if used == 0 {
            last.push_str(word);
        } else if used + 1 + word.chars().count() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Formats an age as kubectl does (`duration.HumanDuration` of apimachinery): the unit grows with
/// the age, and short ages also show the next smaller unit.
pub fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let with = |whole: i64, unit: &str, rest: i64, smaller: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{smaller}"),
    };
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, "d", hours % 24, "h"),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => with(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.iter().map(|span| span.text.as_str()).collect()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["NAME", "PHASE", "AGE"]);
        table.row(["a-longer-name".into(), "Bound".into(), "0s".into()]);
        table.row(["b".into(), "".into(), "".into()]);
        assert_eq!(text(&table.lines(80)), ["NAME            PHASE   AGE", "a-longer-name   Bound   0s", "b"]);
    }

    #[test]
    fn width_counts_characters_not_bytes() {
        let mut table = Table::new(&["A", "B"]);
        table.row(["…é".into(), "x".into()]);
        assert_eq!(text(&table.lines(80)), ["A    B", "…é   x"]);
    }

    #[test]
    fn the_last_column_wraps_below_itself() {
        let mut table = Table::new(&["REASON", "NOTE"]);
        table.row(["Bound".into(), "one two three four five six".into()]);
        let lines = text(&table.lines(9 + 20));
        assert_eq!(lines, ["REASON   NOTE", "Bound    one two three four", "         five six"]);
    }

    #[test]
    fn a_word_too_long_for_a_line_has_one_of_its_own() {
        assert_eq!(wrap("a bbbbbb c", 4), ["a", "bbbbbb", "c"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn tones_stay_with_their_cells() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Span::new(Tone::Good, "x"), Span::new(Tone::Bad, "y")]);
        let tones: Vec<Tone> = table.lines(80)[1].iter().map(|span| span.tone).collect();
        assert_eq!(tones, [Tone::Good, Tone::Bad]);
    }

    #[test]
    fn ages_read_as_in_kubectl() {
        let day = 86_400;
        let cases = [
            (-5, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_000, "3h20m"),
            (28_800, "8h"),
            (2 * day, "2d"),
            (2 * day + 3 * 3600, "2d3h"),
            (8 * day + 3600, "8d"),
            (2 * 365 * day + 4 * day, "2y4d"),
            (9 * 365 * day, "9y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(age(seconds), expected, "{seconds} s");
        }
    }
}
