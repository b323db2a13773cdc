//! A search for the end of a file: takes bytes of the body and yields those of the file. The last
//! ones are yielded only after the delimiter behind them.

use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memmem::Finder;

use super::parts::Boundary;
use super::refusals::{incomplete, malformed};
use crate::refusal::Refusal;

/// Maximum number of bytes after the file: fields that are ignored.
const MAX_ENVELOPE: usize = 64 << 10;

/// Separates a file from what follows it. Holds back as many bytes as a delimiter has.
pub(super) struct Splitter {
    finder: Finder<'static>,
    at: At,
    /// The required length of the file, once it is determined.
    expected: Option<u64>,
    length: u64,
}

enum At {
    /// In the file. Holds its last bytes, which may be the beginning of a delimiter.
    File(Bytes),
    /// After a delimiter. Holds the file's last piece, and the first of the two bytes after the
    /// delimiter, if it has come.
    Delimiter { last: Bytes, mark: Option<u8> },
    /// After the file, with this many ignored bytes.
    Envelope(usize),
    /// Refused.
    Broken,
}

impl Splitter {
    pub(super) fn new(boundary: &Boundary) -> Self {
        let finder = Finder::new(&boundary.delimiter()).into_owned();
        Self { finder, at: At::File(Bytes::new()), expected: None, length: 0 }
    }

    /// Returns the delimiter at the end of the file.
    pub(super) fn delimiter(&self) -> &[u8] {
        self.finder.needle()
    }

    /// Returns true if the file's end has been found.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.at, At::Envelope(_))
    }

    /// Returns the number of bytes of the file that were yielded.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Sets the required length of the file. A file of another length is refused before its last
    /// byte is yielded, because a store keeps an object once it has that many bytes. `length` has
    /// to be more than was yielded, unless the file's end has been found.
    pub(super) fn expect(&mut self, length: u64) {
        self.expected = Some(length);
    }

    /// Takes a piece of the body, and appends the file's part of it to `out`.
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
        // A delimiter that begins in the held bytes, or right after them, ends within its width of
        // the piece. The last byte before it must not be yielded yet.
        let joined = piece.len().min(width);
        let bridge = Bytes::from([&held[..], piece.get(..joined).unwrap_or_default()].concat());
        if let Some(at) = self.finder.find(&bridge).filter(|at| *at <= held.len()) {
            // It ends after the held bytes: otherwise it would have been found in them.
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

    /// Yields a piece without its last bytes, which are held back.
    fn hold(&mut self, piece: &Bytes, out: &mut VecDeque<Bytes>) -> Result<(), Refusal> {
        let kept = piece.len().saturating_sub(self.finder.needle().len());
        // A copy, so that a few bytes don't keep the whole piece in memory.
        let held = Bytes::copy_from_slice(piece.get(kept..).unwrap_or_default());
        self.go_on(piece.slice(..kept), out)?;
        self.at = At::File(held);
        Ok(())
    }

    /// Handles the bytes after a delimiter: two dashes end the form, a line end begins another
    /// part.
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

    /// Yields a piece that is not the last. At least one more byte of the file follows it, as no
    /// delimiter does. So the expected length must not be reached with it.
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

    /// Checks that the file has ended. Called at the end of the body.
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
