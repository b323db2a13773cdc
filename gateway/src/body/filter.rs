//! The filter of every body: decodes, verifies and frames it again. Withholds the last bytes of the
//! object, without which a store doesn't keep it, until the whole body is verified.

use bytes::Bytes;

use super::checksum::{Checksum, Running};
use super::decoder::{Decoder, Event, Layout};
use super::framer::Framer;
use super::{Failure, payload};
use crate::refusal::{Code, Refusal};

/// Maximum number of bytes at the end of an object that are withheld from the store while their
/// verification is pending. One byte would suffice. With this many, a small object isn't sent in
/// two parts, and a thousand streams take 4 MiB.
pub const WITHHELD: usize = 4 << 10;

/// The chain of signatures of one body: each covers the one before.
///
/// The signatures are 64 hexadecimal digits in lower case, as the client sent them. They are
/// compared in constant time.
pub trait ChunkSignatures: Send {
    /// Returns true if the next chunk, with this hash, has this signature.
    fn check_chunk(&mut self, sha256: &[u8; 32], signature: &str) -> bool;

    /// Returns true if the trailer, with this hash, has this signature.
    fn check_trailer(&mut self, sha256: &[u8; 32], signature: &str) -> bool;
}

/// A checksum that the gateway computes, and its expected value.
pub(super) enum Check {
    /// The SHA-256 in the head.
    Body(Running, [u8; 32]),
    /// The value of the trailer that will come.
    Trailer(Running, Checksum),
}

impl Check {
    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Body(running, _) | Self::Trailer(running, _) => running.update(bytes),
        }
    }

    fn verify(&self, value: Option<&str>) -> Result<(), Refusal> {
        match self {
            Self::Body(running, expected) if running.is(expected) => Ok(()),
            Self::Body(..) => Err(payload::hash_differs()),
            Self::Trailer(running, checksum) => {
                if running.is(&checksum.value(value.unwrap_or_default())?) {
                    return Ok(());
                }
                let message = format!("The {} you specified did not match the calculated checksum.", checksum.header());
                Err(Refusal::new(Code::BadDigest, message))
            }
        }
    }
}

/// The time at which a body can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Never: the gateway has nothing to verify.
    Elsewhere,
    /// At its end, by framing, signatures or checksums.
    AtTheEnd,
}

/// A body in transit, without its source.
pub(super) struct Filter {
    decoder: Decoder,
    signatures: Option<Box<dyn ChunkSignatures>>,
    check: Option<Check>,
    framer: Framer,
    verdict: Verdict,
    /// Bytes of the object that may be sent to the store.
    piece: Bytes,
    /// The last bytes of the object, which are withheld.
    tail: Tail,
    /// The trailer's value.
    value: Option<String>,
    /// The state of the bytes that follow the object.
    end: End,
    failure: Failure,
}

#[derive(PartialEq, Eq)]
enum End {
    /// Verification is pending.
    Open,
    Due,
    Gone,
}

enum Tail {
    Nothing,
    /// A slice of the input, whose buffer it keeps alive.
    Shared(Bytes),
    /// A copy of at most [`WITHHELD`] bytes.
    Own(Bytes),
}

impl Filter {
    pub(super) fn new(
        (layout, length): (Layout, u64),
        (signatures, check): (Option<Box<dyn ChunkSignatures>>, Option<Check>),
        (framer, verdict): (Framer, Verdict),
        failure: Failure,
    ) -> Self {
        let decoder = Decoder::new(layout, length);
        let (piece, tail) = (Bytes::new(), Tail::Nothing);
        Self { decoder, signatures, check, framer, verdict, piece, tail, value: None, end: End::Open, failure }
    }

    /// Returns the next bytes for the store. If there are none, `input` is used up, and only a copy
    /// of the last [`WITHHELD`] bytes of the object is kept.
    ///
    /// # Errors
    /// Returns the refusal for the client. Nothing may be sent to the store after it.
    pub(super) fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        loop {
            if let Some(frame) = self.framer.next(&mut self.piece) {
                return Ok(Some(frame));
            }
            if self.end == End::Due {
                self.end = End::Gone;
                let end = self.framer.end(self.value.as_deref().unwrap_or_default());
                return Ok(Some(end).filter(|end| !end.is_empty()));
            }
            match self.decoder.next(input)? {
                Some(event) => self.take(event)?,
                None if self.detach() => {}
                None => {
                    // An empty slice may keep its buffer alive.
                    *input = Bytes::new();
                    return Ok(None);
                }
            }
        }
    }

    /// Releases the withheld bytes at the end of the input.
    ///
    /// # Errors
    /// Returns the refusal for the client, if the input ended early.
    pub(super) fn finish(&mut self) -> Result<(), Refusal> {
        self.decoder.finish()?;
        if let Tail::Shared(tail) | Tail::Own(tail) = std::mem::replace(&mut self.tail, Tail::Nothing) {
            self.pass(tail);
        }
        self.end = End::Due;
        Ok(())
    }

    /// Records the reason why the body failed. The first one is kept.
    pub(super) fn fail(&mut self, refusal: Refusal) {
        self.piece = Bytes::new();
        self.tail = Tail::Nothing;
        self.failure.fail(refusal);
    }

    fn take(&mut self, event: Event) -> Result<(), Refusal> {
        match event {
            Event::Data(piece) => {
                if let Some(check) = &mut self.check {
                    check.update(&piece);
                }
                if self.decoder.left() == 0 && self.verdict == Verdict::AtTheEnd {
                    self.tail = Tail::Shared(piece);
                } else {
                    self.pass(piece);
                }
                Ok(())
            }
            Event::Chunk(chunk) => {
                let good = self.signatures.as_mut().is_some_and(|by| by.check_chunk(&chunk.sha256, &chunk.signature));
                good.then_some(()).ok_or_else(wrong_signature)
            }
            Event::Last { value, trailer } => {
                let mut signed = |part: &super::decoder::Signed| {
                    self.signatures.as_mut().is_some_and(|by| by.check_trailer(&part.sha256, &part.signature))
                };
                if trailer.as_ref().is_some_and(|part| !signed(part)) {
                    return Err(wrong_signature());
                }
                if let Some(check) = &self.check {
                    check.verify(value.as_deref())?;
                }
                self.value = value;
                Ok(())
            }
        }
    }

    fn pass(&mut self, piece: Bytes) {
        self.failure.pass(piece.len());
        self.piece = piece;
    }

    /// Copies the withheld bytes out of their buffer, before the filter waits for more input.
    /// Returns true if bytes for the store were released.
    fn detach(&mut self) -> bool {
        let Tail::Shared(tail) = &mut self.tail else { return false };
        let front = tail.split_to(tail.len().saturating_sub(WITHHELD));
        self.tail = Tail::Own(Bytes::copy_from_slice(tail));
        self.pass(front);
        !self.piece.is_empty()
    }
}

fn wrong_signature() -> Refusal {
    let message = "The signature of a chunk or of the trailer does not match the one that was calculated. Check your \
        secret access key and signing method.";
    Refusal::new(Code::SignatureDoesNotMatch, message)
}
