//! Comments: their width, and the plain English that they are written in.

use crate::code::code_and_tests;

/// Directories whose comments are checked.
const CHECKED: [&str; 11] =
    ["crates", "operator", "gateway", "world", "sim", "proof", "testbed", "e2e", "bench", "fuzz", "house"];

/// Maximum number of characters in a line of comment.
const COLUMNS: usize = 100;

/// Words that no doc comment begins with: it says what something is or does, not which question it
/// answers.
const OPENINGS: [&str; 12] =
    ["How", "That", "What", "Whatever", "When", "Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why"];

/// Phrases that are not plain English for a reader from another team, in lower case.
const REFUSED: [&str; 9] =
    [" are told", " by halves", " has a say", " is told", " lets go", " sees out", " so many", " whoever", " anew"];

/// A line of a comment with its number, counted from 1.
type Line<'a> = (usize, &'a str);

/// Returns the lines of a text that are comments and nothing else.
fn comments(text: &str) -> impl Iterator<Item = Line<'_>> {
    (1..).zip(text.lines().map(str::trim_start)).filter(|(_, line)| line.starts_with("//"))
}

/// Returns the text of a doc comment's line. `None`: it is no doc comment.
fn doc(line: &str) -> Option<&str> {
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

/// Returns the first lines of doc comments that begin with one of [`OPENINGS`].
fn badly_opened(text: &str) -> Vec<Line<'_>> {
    let mut last = None;
    let is_first = |(number, _): &Line<'_>| last.replace(*number).is_none_or(|last| last + 1 != *number);
    let docs = comments(text).filter_map(|(number, line)| Some((number, doc(line)?)));
    let word = |says: &str| says.split(|letter: char| !letter.is_alphabetic()).next().unwrap_or_default().to_owned();
    docs.filter(is_first).filter(|(_, says)| OPENINGS.contains(&word(says).as_str())).collect()
}

/// Returns the lines with one of the phrases of [`REFUSED`], also where a phrase begins the line.
fn refused(text: &str) -> Vec<Line<'_>> {
    let has_phrase = |line: &str| {
        let says = format!(" {}", line.trim_start_matches(['/', '!', ' ']).to_lowercase());
        REFUSED.iter().any(|phrase| {
            says.match_indices(phrase).any(|(at, _)| !says[at + phrase.len()..].starts_with(char::is_alphanumeric))
        })
    };
    comments(text).filter(|(_, line)| has_phrase(line)).collect()
}

/// Returns the lines that are too long. Exempt are a single word, which can't be broken, code
/// between backticks, and the row of a table.
fn too_long(text: &str) -> Vec<&str> {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let can_be_broken = |line: &&str| {
        let says = line.trim_start().trim_start_matches(['/', '!']).trim();
        let words: String = says.split('`').step_by(2).collect::<Vec<_>>().join("code");
        !says.starts_with('|') && words.split_whitespace().count() > 1
    };
    text.lines().filter(is_comment).filter(|line| line.chars().count() > COLUMNS).filter(can_be_broken).collect()
}

/// Returns the lines found in all crates, each with its file.
fn everywhere(find: impl Fn(&str) -> Vec<Line<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in code_and_tests(&CHECKED) {
        found.extend(find(&text).into_iter().map(|(number, line)| format!("{file}:{number}: {line}")));
    }
    found
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let found = everywhere(badly_opened);
    assert!(found.is_empty(), "these begin with one of {OPENINGS:?}:\n{}", found.join("\n"));
}

#[test]
fn comments_are_in_plain_english() {
    let found = everywhere(refused);
    assert!(found.is_empty(), "these have one of {REFUSED:?}:\n{}", found.join("\n"));
}

#[test]
fn comments_keep_to_their_columns() {
    let mut long = Vec::new();
    for (file, text) in code_and_tests(&CHECKED) {
        long.extend(too_long(&text).into_iter().map(|line| format!("{file}: {line}")));
    }
    assert_eq!(long, [] as [&str; 0], "these have more than {COLUMNS} characters");
}

#[test]
fn a_question_at_the_beginning_of_a_doc_comment_is_found() {
    let text = "/// What it is.\n/// Whether it works.\nfn f() {}\n//! Whose.\n// How.\n/// Whatsoever.\n";
    assert_eq!(badly_opened(text), [(1, "What it is."), (4, "Whose.")]);
}

#[test]
fn a_refused_phrase_is_found_at_word_boundaries() {
    let text = "// Whoever asks.\n/// It renews, and lets\n//! so many words\n// lets gold\nlet a = 1; // anew\n";
    let lines: Vec<usize> = refused(text).into_iter().map(|(number, _)| number).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn a_comment_that_is_too_long_is_found() {
    let line = |length: usize| format!("    /// {}", "ü ".repeat(length).chars().take(length).collect::<String>());
    assert_eq!(too_long(&line(COLUMNS - 8)), [] as [&str; 0], "characters count, not bytes");
    assert_eq!(too_long(&line(COLUMNS - 7)), [line(COLUMNS - 7)]);
    let url = format!("//! <https://example.com/{}>", "x".repeat(COLUMNS));
    assert_eq!(too_long(&url), [] as [&str; 0], "one word");
    let code = format!("/// `{}`.", "let x = 1; ".repeat(COLUMNS / 10));
    assert_eq!(too_long(&code), [] as [&str; 0], "code");
    assert_eq!(too_long(&format!("{code} And more")).len(), 1);
    assert_eq!(too_long(&format!("//! | {} |", "cell | ".repeat(COLUMNS / 5))), [] as [&str; 0], "a row");
    assert_eq!(too_long(&format!("let x = \"{}\"; // no line of comment", "x ".repeat(COLUMNS))), [] as [&str; 0]);
}
