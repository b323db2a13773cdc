//! Where a file ends: bytes of the body in, bytes of the file out, the last ones not before the
//! delimiter behind them.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memmem::Finder;

use super::parts::Boundary;
use super::refusals::{incomplete, malformed};
use crate::refusal::Refusal;

/// How many bytes may follow the file: fields that count no more.
const MAX_ENVELOPE: usize = 64 << 10;

/// Tells a file from what follows it. Holds back as many bytes as a delimiter has.
pub(super) struct Splitter {
    finder: Finder<'static>,
    at: At,
    /// How long the file has to be, once that is settled.
    expected: Option<u64>,
    length: u64,
}

enum At {
    /// In the file, with its last bytes, which may be a delimiter's first.
    File(Bytes),
    /// Behind a delimiter, with the file's last piece and what came of the delimiter's last two
    /// bytes.
    Delimiter { last: Bytes, mark: Option<u8> },
    /// Behind the file, with so many bytes of no meaning.
    Envelope(usize),
    /// Refused.
    Broken,
}

impl Splitter {
    pub(super) fn new(boundary: &Boundary) -> Self {
        let finder = Finder::new(&boundary.delimiter()).into_owned();
        Self { finder, at: At::File(Bytes::new()), expected: None, length: 0 }
    }

    /// What ends the file.
    pub(super) fn delimiter(&self) -> &[u8] {
        self.finder.needle()
    }

    /// Whether the file's end has been seen.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.at, At::Envelope(_))
    }

    /// How many bytes of the file are out.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// From now on the file has to be so long. It is refused before its last byte is out if it
    /// isn't: a store that has so many bytes keeps them. `length` is more than is out, or the
    /// file's end has been seen.
    pub(super) fn expect(&mut self, length: u64) {
        self.expected = Some(length);
    }

    /// Takes a piece of the body; appends what is of the file.
    pub(super) fn push(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        match std::mem::replace(&mut self.at, At::Broken) {
            At::File(held) => self.file(held, piece, out),
            At::Delimiter { last, mark } => self.mark(last, mark, piece, out),
            At::Envelope(seen) => self.envelope(seen + piece.len()),
            At::Broken => Err(incomplete()),
        }
    }

    fn file(&mut self, held: Bytes, piece: Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        let width = self.finder.needle().len();
        // A delimiter that begins in what is held, or right behind it, ends within its width of the
        // piece. The last byte before it must not be out yet.
        let joined = piece.len().min(width);
        let bridge = Bytes::from([&held[..], piece.get(..joined).unwrap_or_default()].concat());
        if let Some(at) = self.finder.find(&bridge).filter(|at| *at <= held.len()) {
            // It ends behind what was held: else it had been found there.
            let behind = (at + width).saturating_sub(held.len()).min(piece.len());
            return self.mark(bridge.slice(..at), None, piece.slice(behind..), out);
        }
        if joined == piece.len() {
            return self.hold(&bridge, out);
        }
        self.go_on(held, out)?;
        match self.finder.find(&piece) {
            Some(at) => self.mark(piece.slice(..at), None, piece.slice((at + width).min(piece.len())..), out),
            None => self.hold(&piece, out),
        }
    }

    /// Lets all go but the last bytes.
    fn hold(&mut self, piece: &Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        let kept = piece.len().saturating_sub(self.finder.needle().len());
        // A copy, so that a few bytes don't hold the memory of the whole piece.
        let held = Bytes::copy_from_slice(piece.get(kept..).unwrap_or_default());
        self.go_on(piece.slice(..kept), out)?;
        self.at = At::File(held);
        Ok(())
    }

    /// Behind a delimiter: two dashes end the form, the end of the line begins another part.
    fn mark(&mut self, last: Bytes, mark: Option<u8>, piece: Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        let mut bytes = mark.into_iter().chain(piece.iter().copied());
        match (bytes.next(), bytes.next()) {
            (Some(b'-'), Some(b'-')) | (Some(b'\r'), Some(b'\n')) => {}
            (first @ (None | Some(b'-' | b'\r')), None) => {
                self.at = At::Delimiter { last, mark: first };
                return Ok(());
            }
            _ => return Err(malformed("A boundary of the form is not alone on its line.")),
        }
        let follows = piece.len() + usize::from(mark.is_some()) - 2;
        let whole = self.length + length_of(&last);
        if self.expected.is_some_and(|expected| expected != whole) {
            return Err(malformed("The file has to be the last field of the form."));
        }
        self.envelope(follows)?;
        self.emit(last, out);
        Ok(())
    }

    fn envelope(&mut self, seen: usize) -> Result<(), Refusal> {
        if seen > MAX_ENVELOPE {
            self.at = At::Broken;
            return Err(malformed("Too much follows the file in the form."));
        }
        self.at = At::Envelope(seen);
        Ok(())
    }

    /// Lets a piece out that is not the last: at least a byte of the file is behind it, because no
    /// delimiter is. So the expected length can't be reached with it.
    fn go_on(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        let length = self.length.saturating_add(length_of(&piece));
        if !piece.is_empty() && self.expected.is_some_and(|expected| expected <= length) {
            return Err(malformed("The file is longer than the form."));
        }
        self.emit(piece, out);
        Ok(())
    }

    fn emit(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) {
        self.length = self.length.saturating_add(length_of(&piece));
        if !piece.is_empty() {
            out.push_back(piece);
        }
    }

    /// The body has ended.
    pub(super) fn end(&self) -> Result<(), Refusal> {
        if self.is_ended() { Ok(()) } else { Err(incomplete()) }
    }
}

fn length_of(piece: &Bytes) -> u64 {
    u64::try_from(piece.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "splitter_tests.rs"]
mod tests;
