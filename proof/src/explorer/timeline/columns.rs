//! Columns of text that fit into a width; long text is wrapped within its column.

/// Number of spaces between columns.
pub const GUTTER: usize = 2;
/// Minimum width of a column that is not empty.
const LEAST: usize = 8;

/// Returns widths of columns that fit into `width` together if possible. The widest ones are
/// reduced first.
pub fn widths(natural: &[usize], width: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let room = width.saturating_sub(GUTTER * natural.len().saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > LEAST) else { break };
        *widest -= 1;
    }
    widths
}

/// Breaks text into lines of at most `width` characters, between words, and within words that are
/// longer. Returns at least one line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let (width, mut lines, mut line) = (width.max(1), Vec::new(), String::new());
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = line.chars().count();
        if used > 0 && used + 1 + word.len() <= width {
            line.push(' ');
        } else if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.push(String::from_iter(word));
            word = rest;
        }
        line.extend(word);
    }
    lines.push(line);
    lines
}

/// Returns the lines of a row of cells, without trailing spaces.
pub fn lines(cells: &[&str], widths: &[usize]) -> Vec<String> {
    let wrapped: Vec<Vec<String>> = cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
    let line = |number: usize| {
        let mut line = String::new();
        for (cell, width) in wrapped.iter().zip(widths) {
            let text = cell.get(number).map_or("", String::as_str);
            line.push_str(&format!("{text:width$}{:GUTTER$}", ""));
        }
        line.trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", &[""])]
    #[case("one two three", &["one two", "three"])]
    #[case("ab abcdefghijkl m", &["ab", "abcdefgh", "ijkl m"])]
    #[case("größeren", &["größeren"])]
    fn text_is_broken_between_words_and_within_long_ones(#[case] text: &str, #[case] expected: &[&str]) {
        assert_eq!(wrap(text, 8), expected);
    }

    #[test]
    fn the_widest_columns_give_way() {
        assert_eq!(widths(&[4, 30, 20], 44), [4, 18, 18]);
        assert_eq!(widths(&[4, 10], 44), [4, 10], "what fits stays as it is");
        assert_eq!(widths(&[30, 30], 10), [8, 8], "there is a limit");
    }

    #[test]
    fn a_row_is_as_high_as_its_highest_cell() {
        assert_eq!(lines(&["1", "one two", "x"], &[2, 4, 1]), ["1   one   x", "    two"]);
    }
}
