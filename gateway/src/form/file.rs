//! The file of a form as the body of a PUT.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tower::BoxError;

use super::parts::{Boundary, without_line};
use super::refusals::{incomplete, malformed, two_readings};
use super::splitter::Splitter;
use crate::body::{Body, Broken};
use crate::refusal::{Code, Refusal};

/// Number of bytes of a file that are read before its length is derived from the request's.
const LOOK_AHEAD: usize = 64 << 10;

/// A form's file: its first bytes, and the body with the rest.
pub struct File {
    inner: Body,
    splitter: Splitter,
    /// The first bytes of the file, in one piece: a client chooses the number of pieces, and each
    /// has a cost beyond its length.
    ahead: BytesMut,
    /// Bytes after `ahead`, from one piece of the body.
    ready: VecDeque<Bytes>,
    /// Number of bytes of the form outside the file, if only the end follows it.
    envelope: u64,
}

/// A file of known length.
pub struct Measured {
    /// Length of the file: the body yields this many bytes, or fails before the last.
    pub length: u64,
    /// The file.
    pub body: Upload,
}

impl File {
    pub(super) fn new(inner: Body, boundary: &Boundary, prefix: u64, rest: [Bytes; 2]) -> Result<Self, Refusal> {
        let splitter = Splitter::new(boundary);
        // Two dashes and the line end, as all current clients write it.
        let closing = u64::try_from(boundary.delimiter().len() + 4).unwrap_or(u64::MAX);
        let envelope = prefix.saturating_add(closing);
        let mut file = Self { inner, splitter, ahead: BytesMut::new(), ready: VecDeque::new(), envelope };
        for piece in rest {
            file.take(piece)?;
        }
        Ok(file)
    }

    /// Takes a piece of the body.
    fn take(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.splitter.push(piece, &mut self.ready)?;
        while let Some(piece) = self.ready.pop_front() {
            if self.ahead.len() + piece.len() > LOOK_AHEAD {
                // This piece is the last one of the look-ahead.
                self.ready.push_front(piece);
                break;
            }
            self.ahead.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// Reads until the file's end is found, or the look-ahead is exceeded.
    async fn look_ahead(&mut self) -> Result<(), Refusal> {
        while !self.splitter.is_ended() && usize::try_from(self.splitter.length()).is_ok_and(|out| out <= LOOK_AHEAD) {
            let frame = self.inner.frame().await.ok_or_else(incomplete)?.map_err(|_| incomplete())?;
            if let Ok(data) = frame.into_data() {
                self.take(data)?;
            }
        }
        Ok(())
    }

    /// Returns true if the file begins with the boundary. At least a delimiter's length of it is
    /// known, if it has that many bytes.
    fn begins_with_boundary(&self) -> bool {
        let boundary = without_line(self.splitter.delimiter());
        let known = self.ahead.iter().chain(self.ready.iter().flatten());
        known.take(boundary.len()).eq(boundary)
    }

    /// Determines the length of the file, which a store needs in advance.
    ///
    /// A file of up to 64 KiB is read to its end. The length of a longer one is derived from the
    /// request's, assuming that nothing follows the file. If something does, the body fails before
    /// the file's last byte.
    ///
    /// # Errors
    /// `MissingContentLength` for a longer file in a form without a length, `IncompleteBody`, and
    /// `MalformedPOSTRequest`.
    pub async fn measured(mut self, content_length: Option<u64>) -> Result<Measured, Refusal> {
        self.look_ahead().await?;
        if self.begins_with_boundary() {
            return Err(two_readings());
        }
        let length = if self.splitter.is_ended() {
            self.splitter.length()
        } else {
            let message = "You must provide the Content-Length HTTP header.";
            let whole = content_length.ok_or_else(|| Refusal::new(Code::MissingContentLength, message))?;
            // Some of the file is still held back.
            let length = whole.checked_sub(self.envelope).filter(|length| *length > self.splitter.length());
            length.ok_or_else(|| malformed("The form's length is less than its parts have."))?
        };
        self.splitter.expect(length);
        let Self { inner, splitter, ahead, mut ready, .. } = self;
        if !ahead.is_empty() {
            ready.push_front(ahead.freeze());
        }
        Ok(Measured { length, body: Upload { inner, splitter, ready, left: length } })
    }
}

/// A file being sent to a store. Its last bytes are yielded after the delimiter behind them has
/// been found. If the form is cut off, or the file has another length, it ends with [`Broken`].
pub struct Upload {
    inner: Body,
    splitter: Splitter,
    ready: VecDeque<Bytes>,
    left: u64,
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        loop {
            if let Some(piece) = this.ready.pop_front() {
                let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
                this.left = this.left.saturating_sub(length);
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            if this.splitter.is_ended() {
                return Poll::Ready(None);
            }
            let pushed = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.splitter.push(data, &mut this.ready),
                    Err(_) => Ok(()),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.splitter.end(),
            };
            if let Err(refusal) = pushed {
                this.ready.clear();
                return Poll::Ready(Some(Err(Broken(refusal).into())));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.splitter.is_ended()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
