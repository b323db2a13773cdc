//! A decoder of aws-chunked: a state machine without a clock, a socket or a data buffer.
//!
//! The framing is that of
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html> and
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>:
//!
//! ```text
//! body      = *chunk last
//! chunk     = size [";chunk-signature=" 64hex] CRLF data CRLF
//! last      = "0" [";chunk-signature=" 64hex] CRLF (CRLF | trailers)
//! trailers  = [name ":" value (CRLF | LF CRLF)] ["x-amz-trailer-signature:" 64hex CRLF] CRLF
//! ```
//!
//! minio-go writes `LF CRLF` after the checksum. Chunks of any size are read, also those below 8
//! KiB that Amazon S3 refuses: other stores accept them, and the decoder keeps nothing per chunk.

use bytes::{Buf, Bytes};
use ring::digest;

use super::checksum::Checksum;
use super::incomplete;
use crate::refusal::{Code, Refusal};

/// Maximum length of a line in bytes, including its end. The longest valid one has less than 128.
pub const MAX_LINE: usize = 256;

const CHUNK_SIGNATURE: &str = ";chunk-signature=";
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// The layout of an object's bytes in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Unframed.
    Plain,
    /// In signed chunks.
    Signed,
    /// In signed chunks, followed by a signed trailer.
    SignedTrailer(Option<Checksum>),
    /// In chunks, followed by a trailer.
    UnsignedTrailer(Option<Checksum>),
}

impl Layout {
    fn is_signed(self) -> bool {
        matches!(self, Self::Signed | Self::SignedTrailer(_))
    }
}

/// A hash and its signature, as the client sent it and not verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The SHA-256 of the signed data.
    pub sha256: [u8; 32],
    /// 64 hexadecimal digits in lower case.
    pub signature: String,
}

/// An item of a decoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes of the object, a slice of the input.
    Data(Bytes),
    /// The end of a signed chunk. The last one is empty.
    Chunk(Signed),
    /// The regular end of the body.
    Last {
        /// The value of the announced trailer.
        value: Option<String>,
        /// The trailer with its signature, if trailers are signed.
        trailer: Option<Signed>,
    },
}

enum State {
    ChunkLine,
    Data { left: u64 },
    DataEnd,
    Trailer(Expected),
    Ended,
}

/// The next line after the last chunk.
#[derive(Clone, Copy)]
enum Expected {
    Value(Checksum),
    /// The CRLF after a value that ended in a bare LF.
    Blank,
    Signature,
    End,
}

/// A decoder of one body. It must not be used after an error.
pub struct Decoder {
    layout: Layout,
    state: State,
    /// Remaining bytes of the object.
    left: u64,
    line: Vec<u8>,
    /// The hash of the current chunk, if chunks are signed.
    hash: Option<digest::Context>,
    signature: String,
    value: Option<String>,
    trailer: Option<Signed>,
}

impl Decoder {
    /// Creates a decoder for an object of `length` bytes.
    #[must_use]
    pub fn new(layout: Layout, length: u64) -> Self {
        let state = match layout {
            Layout::Plain => State::Data { left: length },
            _ => State::ChunkLine,
        };
        let hash = layout.is_signed().then(|| digest::Context::new(&digest::SHA256));
        let (line, signature) = (Vec::new(), String::new());
        Self { layout, state, left: length, line, hash, signature, value: None, trailer: None }
    }

    /// Returns the number of remaining bytes of the object.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns the number of bytes allocated by the decoder itself. It allocates none for data.
    #[must_use]
    pub fn held(&self) -> usize {
        let value = self.value.as_ref().map_or(0, String::capacity);
        self.line.capacity() + self.signature.capacity() + value
    }

    /// Takes the next item from the front of `input`, or returns `None` if it needs more input.
    ///
    /// # Errors
    /// `IncompleteBody` if the framing is wrong or the length is not the announced one,
    /// `MalformedTrailerError` for a malformed trailer.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<Event>, Refusal> {
        loop {
            let step = match self.state {
                State::ChunkLine => self.chunk_line(input)?,
                State::Data { left: 0 } => self.data_end()?,
                State::Data { left } => return Ok(self.data(left, input)),
                State::DataEnd => self.blank(input)?.then_some(Step::To(State::ChunkLine)),
                State::Trailer(expected) => self.trailer_line(expected, input)?,
                State::Ended if input.has_remaining() => return Err(incomplete()),
                State::Ended => None,
            };
            match step {
                None => return Ok(None),
                Some(Step::To(state)) => self.state = state,
                Some(Step::Tell(state, event)) => {
                    self.state = state;
                    return Ok(Some(event));
                }
            }
        }
    }

    /// Checks that the body is complete. Called at the end of the input, once [`Self::next`]
    /// returns `None`.
    ///
    /// # Errors
    /// `IncompleteBody` if the input ended early.
    pub fn finish(&self) -> Result<(), Refusal> {
        if matches!(self.state, State::Ended) { Ok(()) } else { Err(incomplete()) }
    }

    fn chunk_line(&mut self, input: &mut Bytes) -> Result<Option<Step>, Refusal> {
        if !self.fill_line(input).map_err(|TooLong| incomplete())? {
            return Ok(None);
        }
        let (size, signature) = read_chunk_line(&self.line, self.layout.is_signed()).ok_or_else(incomplete)?;
        self.line.clear();
        self.signature = signature;
        // The last chunk must come when nothing is left, and no other chunk may be longer than the
        // rest.
        if size > self.left || (size == 0 && self.left > 0) {
            return Err(incomplete());
        }
        if size > 0 {
            return Ok(Some(Step::To(State::Data { left: size })));
        }
        let after = match self.layout {
            Layout::SignedTrailer(Some(checksum)) | Layout::UnsignedTrailer(Some(checksum)) => {
                Expected::Value(checksum)
            }
            Layout::SignedTrailer(None) => Expected::Signature,
            Layout::UnsignedTrailer(None) | Layout::Signed | Layout::Plain => Expected::End,
        };
        Ok(Some(self.close_chunk(State::Trailer(after))))
    }

    fn data(&mut self, left: u64, input: &mut Bytes) -> Option<Event> {
        if !input.has_remaining() {
            return None;
        }
        let take = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let piece = input.split_to(take);
        if let Some(hash) = &mut self.hash {
            hash.update(&piece);
        }
        self.left -= take as u64;
        self.state = State::Data { left: left - take as u64 };
        Some(Event::Data(piece))
    }

    fn data_end(&mut self) -> Result<Option<Step>, Refusal> {
        if self.layout == Layout::Plain {
            return Ok(Some(Step::Tell(State::Ended, Event::Last { value: None, trailer: None })));
        }
        Ok(Some(self.close_chunk(State::DataEnd)))
    }

    /// Ends a chunk, all of whose bytes have come. Emits its hash if chunks are signed.
    fn close_chunk(&mut self, next: State) -> Step {
        let Some(hash) = &mut self.hash else { return Step::To(next) };
        let done = std::mem::replace(hash, digest::Context::new(&digest::SHA256)).finish();
        let signature = std::mem::take(&mut self.signature);
        Step::Tell(next, Event::Chunk(Signed { sha256: array(&done), signature }))
    }

    fn trailer_line(&mut self, expected: Expected, input: &mut Bytes) -> Result<Option<Step>, Refusal> {
        let next = match expected {
            Expected::End => {
                if !self.blank(input)? {
                    return Ok(None);
                }
                let last = Event::Last { value: self.value.take(), trailer: self.trailer.take() };
                return Ok(Some(Step::Tell(State::Ended, last)));
            }
            Expected::Blank => {
                if !self.blank(input)? {
                    return Ok(None);
                }
                self.after_value()
            }
            Expected::Value(checksum) => {
                if !self.fill_line(input).map_err(|TooLong| malformed())? {
                    return Ok(None);
                }
                let (value, bare) = read_value(&self.line, checksum)?;
                self.value = Some(value);
                self.line.clear();
                if bare { Expected::Blank } else { self.after_value() }
            }
            Expected::Signature => {
                if !self.fill_line(input).map_err(|TooLong| malformed())? {
                    return Ok(None);
                }
                let signature = read_trailer_signature(&self.line).ok_or_else(malformed)?;
                self.line.clear();
                self.trailer = Some(Signed { sha256: self.trailer_hash(), signature });
                Expected::End
            }
        };
        Ok(Some(Step::To(State::Trailer(next))))
    }

    fn after_value(&self) -> Expected {
        if self.layout.is_signed() { Expected::Signature } else { Expected::End }
    }

    /// Returns the hash that a trailer's signature covers: of `name:value` and a line feed, even if
    /// the line ended otherwise.
    fn trailer_hash(&self) -> [u8; 32] {
        let text = match (self.layout, &self.value) {
            (Layout::SignedTrailer(Some(checksum)), Some(value)) => format!("{}:{value}\n", checksum.header()),
            _ => String::new(),
        };
        array(&digest::digest(&digest::SHA256, text.as_bytes()))
    }

    /// Returns true if a CRLF has come. Anything else is an error.
    fn blank(&mut self, input: &mut Bytes) -> Result<bool, Refusal> {
        while let Some(byte) = input.first().copied() {
            self.line.push(byte);
            input.advance(1);
            match self.line.as_slice() {
                b"\r\n" => {
                    self.line.clear();
                    return Ok(true);
                }
                b"\r" => {}
                _ => return Err(incomplete()),
            }
        }
        Ok(false)
    }

    /// Returns true if the line is complete, with its line feed.
    fn fill_line(&mut self, input: &mut Bytes) -> Result<bool, TooLong> {
        let end = memchr::memchr(b'\n', input);
        let part = input.split_to(end.map_or(input.len(), |at| at + 1));
        if self.line.len() + part.len() > MAX_LINE {
            return Err(TooLong);
        }
        self.line.extend_from_slice(&part);
        Ok(end.is_some())
    }
}

enum Step {
    To(State),
    Tell(State, Event),
}

struct TooLong;

fn malformed() -> Refusal {
    let message = "The request contained trailing data that was not well-formed or did not conform to our published \
        schema.";
    Refusal::new(Code::MalformedTrailerError, message)
}

fn array(digest: &digest::Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    bytes
}

/// Parses the size and the signature of a chunk. The signature is empty if chunks are not signed.
fn read_chunk_line(line: &[u8], signed: bool) -> Option<(u64, String)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let (size, signature) = match signed {
        true => line.split_at_checked(line.find(';')?)?,
        false => (line, ""),
    };
    // 16 digits fill 64 bits. `from_str_radix` would accept a sign.
    let plain = (1..=16).contains(&size.len()) && size.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = u64::from_str_radix(size, 16).ok().filter(|_| plain)?;
    let signature = if signed { read_signature(signature.strip_prefix(CHUNK_SIGNATURE)?)? } else { String::new() };
    Some((size, signature))
}

fn read_signature(text: &str) -> Option<String> {
    let hex = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    hex.then(|| text.to_owned())
}

fn read_trailer_signature(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case(TRAILER_SIGNATURE).then(|| read_signature(trimmed(value)))?
}

/// Parses the value of the trailer. Also returns true if its line ended in a bare LF.
fn read_value(line: &[u8], checksum: Checksum) -> Result<(String, bool), Refusal> {
    let (line, bare) = match (line.strip_suffix(b"\r\n"), line.strip_suffix(b"\n")) {
        (Some(line), _) => (line, false),
        (None, Some(line)) => (line, true),
        (None, None) => return Err(malformed()),
    };
    let line = std::str::from_utf8(line).map_err(|_| malformed())?;
    let (name, value) = line.split_once(':').ok_or_else(malformed)?;
    if !name.eq_ignore_ascii_case(checksum.header()) {
        return Err(malformed());
    }
    let value = trimmed(value);
    checksum.value(value)?;
    Ok((value.to_owned(), bare))
}

fn trimmed(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}
