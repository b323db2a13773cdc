//! The one way of a body: decoded, verified, framed anew. What a store would need to keep the
//! object is held back until everything about the body is known to be right.

use bytes::Bytes;

use super::checksum::{Checksum, Running};
use super::decoder::{Decoder, Event, Layout};
use super::framer::Framer;
use super::{Failure, payload};
use crate::refusal::{Code, Refusal};

/// How many of the last bytes of an object are kept from the store, at most, while what verifies
/// them hasn't come yet. One would do; with this many a small object isn't sent in two parts, and a
/// thousand streams hold 4 MiB.
pub const WITHHELD: usize = 4 << 10;

/// The chain of signatures of one body: each covers the one before.
///
/// The signatures are 64 hexadecimal digits in lower case, as the client sent them. They are
/// compared in constant time.
pub trait ChunkSignatures: Send {
    /// Whether the next chunk, with this hash, has this signature.
    fn check_chunk(&mut self, sha256: &[u8; 32], signature: &str) -> bool;

    /// Whether the trailer, with this hash, has this signature.
    fn check_trailer(&mut self, sha256: &[u8; 32], signature: &str) -> bool;
}

/// A checksum that is computed here, and where the value comes from that it is compared with.
pub(super) enum Check {
    /// The SHA-256 that the head has.
    Body(Running, [u8; 32]),
    /// What the trailer will have.
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

/// Whether anything about the body is only known when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: the store or nobody verifies it.
    Elsewhere,
    /// Framing, signatures or checksums.
    AtTheEnd,
}

/// A body on its way, without the socket it comes from.
pub(super) struct Filter {
    decoder: Decoder,
    signatures: Option<Box<dyn ChunkSignatures>>,
    check: Option<Check>,
    framer: Framer,
    verdict: Verdict,
    /// Bytes of the object that may go to the store.
    piece: Bytes,
    /// The last bytes of the object, which may not yet.
    tail: Tail,
    /// The trailer's value.
    value: Option<String>,
    /// Whether what follows the object may go, and hasn't.
    end: End,
    failure: Failure,
}

#[derive(PartialEq, Eq)]
enum End {
    /// Something is still to be verified.
    Open,
    Due,
    Gone,
}

enum Tail {
    Nothing,
    /// A part of what came in: it keeps that alive.
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

    /// The next bytes for the store. When there are none, `input` is used up, and nothing of it is
    /// held but a copy of the last [`WITHHELD`] bytes of the object.
    ///
    /// # Errors
    /// What the client is told. Nothing may go to the store after it.
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

    /// The input has ended: what was held back may go.
    ///
    /// # Errors
    /// What the client is told, if it ended before its time.
    pub(super) fn finish(&mut self) -> Result<(), Refusal> {
        self.decoder.finish()?;
        if let Tail::Shared(tail) | Tail::Own(tail) = std::mem::replace(&mut self.tail, Tail::Nothing) {
            self.pass(tail);
        }
        self.end = End::Due;
        Ok(())
    }

    /// The first reason why the body failed stays.
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

    /// Before more is waited for: takes what is held out of the buffer that it came in. Whether
    /// something may go.
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
