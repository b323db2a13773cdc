//! A command line in words.

use anyhow::ensure;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Words(pub Vec<String>);

/// Reads one; words are separated by spaces.
pub fn words(text: &str) -> anyhow::Result<Words> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    ensure!(!words.is_empty(), "a program is needed");
    Ok(Words(words))
}
