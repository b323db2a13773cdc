//! A command line in words.

use anyhow::ensure;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Words(pub(crate) Vec<String>);

/// Reads one; words are separated by spaces.
pub(crate) fn words(text: &str) -> anyhow::Result<Words> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    ensure!(!words.is_empty(), "a program is needed");
    Ok(Words(words))
}
