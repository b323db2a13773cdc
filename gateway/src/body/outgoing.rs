//! The conversion of the client's body to the store's.

use std::borrow::Cow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty, Full};
use tower::BoxError;

use super::checksum::{Checksum, Running};
use super::decoder::Layout;
use super::filter::{Check, ChunkSignatures, Filter, Verdict};
use super::framer::Framer;
use super::payload::hash_differs;
use super::{Body, Broken, Failure, Payload};
use crate::refusal::{Code, Refusal};

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
const UNSIGNED_TRAILER: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

/// The store's support of `STREAMING-UNSIGNED-PAYLOAD-TRAILER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailers {
    /// Supported: the store keeps the checksum.
    Understood,
    /// Not supported: the gateway verifies checksums itself, and the store keeps none.
    Unknown,
}

/// A body for the store, with the headers that describe it.
pub struct Outgoing {
    /// The bytes. Ends in an error, a [`Broken`], if the client's body is not as announced; the
    /// store has then got fewer bytes than `length`.
    pub body: Body,
    /// `Content-Length`, in bytes.
    pub length: u64,
    /// `x-amz-content-sha256`
    pub payload: Cow<'static, str>,
    /// `x-amz-decoded-content-length`, in bytes, for a body in chunks.
    pub decoded_length: Option<u64>,
    /// `x-amz-trailer`
    pub trailer: Option<&'static str>,
    /// The outcome, once the call has ended.
    pub failure: Failure,
}

/// Converts a client's `body` to the store's.
///
/// An object of no bytes has nothing that could be withheld from the store. Its body is read to the
/// end and verified *before* this returns, which takes one line and a trailer. In all other cases
/// nothing is read before the store's connection polls for it, so that a client that waits for
/// `100 Continue` doesn't get it too early.
///
/// `signatures` is the chain of the request. A request without one (presigned, anonymous) has
/// `None`.
///
/// # Errors
/// `InvalidRequest` for signed chunks without `signatures`; `NotImplemented` for a checksum that
/// neither the store nor the gateway can verify; and for an object of no bytes, every error of a
/// body.
pub async fn outgoing(
    body: Body,
    payload: Payload,
    trailers: Trailers,
    signatures: Option<Box<dyn ChunkSignatures>>,
) -> Result<Outgoing, Refusal> {
    let Plan { layout, framer, check, verdict, payload: hash } = Plan::of(payload, trailers)?;
    if matches!(layout, Layout::Signed | Layout::SignedTrailer(_)) && signatures.is_none() {
        let message = "Signed chunks need a signature in the Authorization header.";
        return Err(Refusal::new(Code::InvalidRequest, message));
    }
    let object = payload.length();
    let too_large = || Refusal::new(Code::EntityTooLarge, "Your proposed upload exceeds the maximum allowed size.");
    let length = framer.total(object).ok_or_else(too_large)?;
    let trailer = match &framer {
        Framer::Plain => None,
        Framer::Chunked { checksum, .. } => Some(checksum.header()),
    };
    let failure = Failure::default();
    let filter = Filter::new((layout, object), (signatures, check), (framer, verdict), failure.clone());
    let checked = Checked { source: body, input: Bytes::new(), filter, left: length, stage: Stage::Flowing };
    let body = match (layout, object) {
        (Layout::Plain, 0) => empty(),
        (_, 0) => settled(checked).await?,
        _ => checked.boxed_unsync(),
    };
    Ok(Outgoing { body, length, payload: hash, decoded_length: trailer.map(|_| object), trailer, failure })
}

struct Plan {
    layout: Layout,
    framer: Framer,
    check: Option<Check>,
    verdict: Verdict,
    payload: Cow<'static, str>,
}

impl Plan {
    fn of(payload: Payload, trailers: Trailers) -> Result<Self, Refusal> {
        let plain = |payload| Self {
            layout: Layout::Plain,
            framer: Framer::Plain,
            check: None,
            verdict: Verdict::Elsewhere,
            payload,
        };
        match payload {
            Payload::Empty | Payload::Unsigned { .. } => Ok(plain(UNSIGNED.into())),
            // Some stores compare it, and some don't.
            Payload::Hash { sha256, length } => match Checksum::Sha256.start() {
                Some(running) if length > 0 || running.is(&sha256) => Ok(Self {
                    check: Some(Check::Body(running, sha256)),
                    verdict: Verdict::AtTheEnd,
                    ..plain(hex::encode(sha256).into())
                }),
                _ => Err(hash_differs()),
            },
            Payload::SignedChunks { .. } => Ok(Self::chunks(Layout::Signed, None, None)),
            Payload::SignedChunksTrailer { decoded, trailer } => {
                let framer = trailer.filter(|_| trailers == Trailers::Understood);
                let framer = framer.map(|checksum| Framer::chunked(checksum, decoded));
                let check = trailer.and_then(|checksum| Some((checksum.start()?, checksum)));
                Ok(Self::chunks(Layout::SignedTrailer(trailer), framer, check))
            }
            Payload::UnsignedTrailer { decoded, trailer } => {
                let layout = Layout::UnsignedTrailer(trailer);
                let (framer, check) = match (trailer, trailers) {
                    (None, _) => (None, None),
                    (Some(checksum), Trailers::Understood) => (Some(Framer::chunked(checksum, decoded)), None),
                    (Some(checksum), Trailers::Unknown) => (None, Some(start(checksum)?)),
                };
                Ok(Self::chunks(layout, framer, check))
            }
        }
    }

    fn chunks(layout: Layout, framer: Option<Framer>, check: Option<(Running, Checksum)>) -> Self {
        let payload = if framer.is_some() { UNSIGNED_TRAILER } else { UNSIGNED };
        Self {
            layout,
            framer: framer.unwrap_or(Framer::Plain),
            check: check.map(|(running, checksum)| Check::Trailer(running, checksum)),
            verdict: Verdict::AtTheEnd,
            payload: payload.into(),
        }
    }
}

fn start(checksum: Checksum) -> Result<(Running, Checksum), Refusal> {
    let message = || format!("The store of this bucket can't verify {}. Use another checksum.", checksum.header());
    let running = checksum.start().ok_or_else(|| Refusal::new(Code::NotImplemented, message()))?;
    Ok((running, checksum))
}

fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Reads and verifies the body of an empty object. The result is its framing, a few hundred bytes
/// at most.
async fn settled(mut checked: Checked) -> Result<Body, Refusal> {
    let mut whole = BytesMut::new();
    while let Some(frame) = checked.frame().await {
        let frame = frame.map_err(|error| Broken::refusal(&error))?;
        whole.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
    }
    Ok(Full::new(whole.freeze()).map_err(|never| match never {}).boxed_unsync())
}

/// A client's body, passed through a filter.
struct Checked {
    source: Body,
    /// Unused input: one piece at most.
    input: Bytes,
    filter: Filter,
    /// Bytes that the store still has to get.
    left: u64,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Flowing,
    /// The client's body has ended and is verified.
    Settled,
    Failed,
}

impl Checked {
    fn fail(&mut self, refusal: Refusal) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.stage = Stage::Failed;
        self.input = Bytes::new();
        self.filter.fail(refusal.clone());
        Poll::Ready(Some(Err(Broken(refusal).into())))
    }
}

impl HttpBody for Checked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.stage == Stage::Failed {
            return Poll::Ready(None);
        }
        loop {
            match this.filter.next(&mut this.input) {
                Ok(Some(bytes)) => {
                    this.left = this.left.saturating_sub(bytes.len() as u64);
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(None) if this.stage == Stage::Settled => return Poll::Ready(None),
                Ok(None) => {}
                Err(refusal) => return this.fail(refusal),
            }
            match ready!(Pin::new(&mut this.source).poll_frame(context)) {
                // HTTP trailers are not S3's: they are not signed, so they are dropped.
                Some(Ok(frame)) => this.input = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return this.fail(Broken::refusal(&error)),
                None => {
                    if let Err(refusal) = this.filter.finish() {
                        return this.fail(refusal);
                    }
                    this.stage = Stage::Settled;
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.stage == Stage::Settled
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
