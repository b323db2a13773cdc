//! Command lines as lists of words.

use anyhow::ensure;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Words(pub Vec<String>);

/// Splits a command line at whitespace. There is no quoting.
pub fn words(text: &str) -> anyhow::Result<Words> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    ensure!(!words.is_empty(), "a program is needed");
    Ok(Words(words))
}
