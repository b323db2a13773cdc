//! aws-chunked, read: a state machine without a clock, a socket or a buffer for data.
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
//! `LF CRLF` after the checksum is how minio-go writes it. Chunks of any size are read, also those
//! below 8 KiB that Amazon S3 refuses: other stores take them, and nothing is kept per chunk.

use bytes::{Buf, Bytes};
use ring::digest;

use super::checksum::Checksum;
use super::incomplete;
use crate::refusal::{Code, Refusal};

/// How long a line may be, its end included, in bytes: the longest that is right has less than 128.
pub const MAX_LINE: usize = 256;

const CHUNK_SIGNATURE: &str = ";chunk-signature=";
const TRAILER_SIGNATURE: &str = "x-amz-trailer-signature";

/// How the bytes of an object lie in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As they are.
    Plain,
    /// In chunks that are signed.
    Signed,
    /// In chunks that are signed, with a signed trailer after them.
    SignedTrailer(Option<Checksum>),
    /// In chunks, with a trailer after them.
    UnsignedTrailer(Option<Checksum>),
}

impl Layout {
    fn is_signed(self) -> bool {
        matches!(self, Self::Signed | Self::SignedTrailer(_))
    }
}

/// Something with its signature, both as the client sent them: still to be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The SHA-256 of what is signed.
    pub sha256: [u8; 32],
    /// 64 hexadecimal digits in lower case.
    pub signature: String,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes of the object, a part of what was put in.
    Data(Bytes),
    /// A signed chunk has ended; the last one is empty.
    Chunk(Signed),
    /// The body has ended as it should.
    Last {
        /// The value of the trailer that was announced.
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
    /// The CRLF that follows a value which ended in a bare LF.
    Blank,
    Signature,
    End,
}

/// Reads one body. After an error it must not be used any more.
pub struct Decoder {
    layout: Layout,
    state: State,
    /// Bytes of the object that are still to come.
    left: u64,
    line: Vec<u8>,
    /// Of the chunk at hand, if chunks are signed.
    hash: Option<digest::Context>,
    signature: String,
    value: Option<String>,
    trailer: Option<Signed>,
}

impl Decoder {
    /// For an object of `length` bytes.
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

    /// How many bytes of the object are still to come.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// How many bytes the decoder itself holds: never data.
    #[must_use]
    pub fn held(&self) -> usize {
        let value = self.value.as_ref().map_or(0, String::capacity);
        self.line.capacity() + self.signature.capacity() + value
    }

    /// Takes the next thing from the front of `input`; nothing if it needs more of it.
    ///
    /// # Errors
    /// `IncompleteBody` where the framing or the length is not what was announced,
    /// `MalformedTrailerError` for a trailer that is none.
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

    /// The input has ended, and [`Self::next`] has nothing more to tell.
    ///
    /// # Errors
    /// `IncompleteBody` if that is before its time.
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
        // The last chunk must come when all has come, and no other chunk may have more than is
        // left.
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

    /// A chunk has all its bytes: its hash is told, if one is kept.
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

    /// What a trailer's signature covers is `name:value` and a line feed, whatever ended the line.
    fn trailer_hash(&self) -> [u8; 32] {
        let text = match (self.layout, &self.value) {
            (Layout::SignedTrailer(Some(checksum)), Some(value)) => format!("{}:{value}\n", checksum.header()),
            _ => String::new(),
        };
        array(&digest::digest(&digest::SHA256, text.as_bytes()))
    }

    /// Whether a CRLF has come; nothing else may.
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

    /// Whether the line is whole now, its line feed included.
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

/// The size and the signature of a chunk; no signature where chunks have none.
fn read_chunk_line(line: &[u8], signed: bool) -> Option<(u64, String)> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let (size, signature) = match signed {
        true => line.split_at_checked(line.find(';')?)?,
        false => (line, ""),
    };
    // 16 digits fill 64 bits. A sign would pass `from_str_radix`.
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

/// The value of the trailer, and whether its line ended in a bare LF.
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
