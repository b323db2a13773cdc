//! Inputs derived from others: cut, joined, and with inserted bytes and words.

use std::fs;
use std::path::Path;

use fastrand::Rng;

/// Maximum length of a derived input.
const LONGEST: usize = 4096;

/// Parses a dictionary in libFuzzer's format: one quoted word per line, with the escapes `\\`, `\"`
/// and `\xNN`.
pub(crate) fn words(file: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let word = |line: &str| {
        let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
        unescaped(quoted.unwrap_or_else(|| panic!("{}: {line} has no quotes", file.display())))
    };
    lines.map(word).collect()
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        rest = match (first, more) {
            (b'\\', [b'x', high, low, more @ ..]) => {
                let digits = [*high, *low];
                let digits = str::from_utf8(&digits).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("two hex digits"));
                more
            }
            (b'\\', [escaped, more @ ..]) => {
                bytes.push(*escaped);
                more
            }
            (byte, more) => {
                bytes.push(*byte);
                more
            }
        };
    }
    bytes
}

/// A sequence of inputs, which depends only on seed, corpus and words.
pub(crate) struct Mutation {
    random: Rng,
    corpus: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutation {
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>, words: Vec<Vec<u8>>) -> Self {
        assert!(!corpus.is_empty() && !words.is_empty(), "there is nothing to make inputs of");
        Self { random: Rng::with_seed(seed), corpus, words }
    }

    /// Returns the next input, with a few changes to one of the corpus.
    pub(crate) fn another(&mut self) -> Vec<u8> {
        let mut input = self.random.choice(&self.corpus).cloned().unwrap_or_default();
        for _ in 0..self.random.usize(1..6) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let place = self.place(input);
        match self.random.u8(0..7) {
            0 => {
                if let Some(byte) = input.get_mut(place.start) {
                    *byte ^= 1 << self.random.u8(0..8);
                }
            }
            1 => drop(input.drain(place)),
            2 => {
                let part = input[place.clone()].to_vec();
                input.splice(place.end..place.end, part);
            }
            3 => {
                let other = self.random.choice(&self.corpus).cloned().unwrap_or_default();
                let part = self.place(&other);
                input.splice(place, other[part].iter().copied());
            }
            4 => {
                let byte = self.random.u8(..);
                input.insert(place.start, byte);
            }
            _ => {
                let word = self.random.choice(&self.words).cloned().unwrap_or_default();
                let end = if self.random.bool() { place.start } else { place.end };
                input.splice(place.start..end, word);
            }
        }
    }

    fn place(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.random.usize(0..=input.len());
        let most = input.len() - start;
        // Usually short, because a text without its larger part would be rejected at once.
        let length = if self.random.u8(0..4) == 0 { most } else { most.min(16) };
        start..start + self.random.usize(0..=length)
    }
}
