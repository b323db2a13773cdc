//! Limits on slow peers: on time without any progress, and on the minimum progress per time.
//!
//! Only the time for which the gateway waits for the metered peer counts: from the moment that a
//! read or write would block until it continues. While the peer on the other side doesn't accept
//! data, the metered peer isn't polled and its time stands still. So a store that is slow to accept
//! an upload is not held against the client, nor a client that is slow to read against the store.
//! Each peer has its own meter: [`paced`] for the sender, [`Writer`] for the receiver. A body can't
//! see that a client doesn't read, because the body isn't polled then. The writer of the connection
//! can, and its timer wakes the connection.
//!
//! An average over a whole body would let a client that began fast trickle for days, so the minimum
//! applies to each window separately. A [`Floor`] can raise it while other requests wait for the
//! peer's place.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

use super::{Body, Broken};
use crate::refusal::{Code, Refusal};

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The slowest pace allowed to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Maximum time without any progress.
    pub idle: Duration,
    /// Length of a window, in time waited. The first window is also the time allowed for a slow
    /// start.
    pub window: Duration,
    /// Minimum number of bytes per window. 0 for a response that is slow by nature, such as that of
    /// a long CompleteMultipartUpload.
    pub least: u64,
}

impl Default for Pace {
    /// Returns 30 s, and 1 KiB/s over each minute.
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), window: Duration::from_secs(60), least: 60 << 10 }
    }
}

/// A minimum speed for peers, which may change at any time.
pub trait Floor: Send + Sync {
    /// Returns the minimum in bytes per second; 0 for none.
    fn bytes_per_second(&self) -> u64;
}

/// Time waited over which a peer has to keep up with a [`Floor`].
const FLOOR_WINDOW: Duration = Duration::from_secs(10);

/// The peer was too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Slow {
    /// Nothing moved for too long.
    #[error("nothing moved for too long")]
    Idle,
    /// Too little moved.
    #[error("too little moved for too long")]
    Trickle,
}

impl Slow {
    /// Returns S3's refusal of a slow request.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        let message = "Your socket connection to the server was not read from or written to within the timeout period.";
        Refusal::new(Code::RequestTimeout, message)
    }
}

/// The arithmetic of a [`Pace`] for one peer, without a clock.
#[derive(Debug)]
pub struct Meter {
    pace: Pace,
    wait: Option<Wait>,
    /// Time waited in this window.
    waited: Duration,
    /// Bytes moved in this window.
    moved: u64,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    began: Instant,
    counted: Instant,
}

impl Meter {
    /// Creates a meter. Nothing has moved yet, and the peer is not waited for. Clamps the times to
    /// the range of a timer.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        let bounded = |time: Duration| time.clamp(SHORTEST, LONGEST);
        let pace = Pace { idle: bounded(pace.idle), window: bounded(pace.window), ..pace };
        Self { pace, wait: None, waited: Duration::ZERO, moved: 0 }
    }

    /// Sets another minimum per window from now on, including the present window.
    fn ask_for(&mut self, least: u64) {
        self.pace.least = least;
    }

    /// Records that the peer is waited for at `now`. Returns when to call again if it doesn't move
    /// before, which is later than `now`.
    ///
    /// # Errors
    /// Returns an error if the peer has been too slow.
    pub fn wait(&mut self, now: Instant) -> Result<Instant, Slow> {
        let wait = self.wait.get_or_insert(Wait { began: now, counted: now });
        self.waited = self.waited.saturating_add(now.saturating_duration_since(wait.counted));
        wait.counted = now;
        let idle = wait.began + self.pace.idle;
        if now >= idle {
            return Err(Slow::Idle);
        }
        if self.waited >= self.pace.window {
            if self.moved < self.pace.least {
                return Err(Slow::Trickle);
            }
            (self.waited, self.moved) = (Duration::ZERO, 0);
        }
        Ok(idle.min(now + (self.pace.window - self.waited)))
    }

    /// Records that `bytes` have moved at `now`. Zero bytes are not progress.
    pub fn moved(&mut self, now: Instant, bytes: usize) {
        if bytes > 0 {
            self.rest(now);
            self.moved = self.moved.saturating_add(bytes as u64);
        }
    }

    /// Records that the peer is no longer waited for.
    pub fn rest(&mut self, now: Instant) {
        if let Some(wait) = self.wait.take() {
            self.waited = self.waited.saturating_add(now.saturating_duration_since(wait.counted));
        }
    }
}

/// A meter with a timer, for a task that waits.
struct Timed {
    meter: Meter,
    floor: Option<Arc<dyn Floor>>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Timed {
    fn new(pace: Pace) -> Self {
        Self { meter: Meter::new(pace), floor: None, timer: None }
    }

    fn above(floor: Arc<dyn Floor>) -> Self {
        let pace = Pace { idle: LONGEST, window: FLOOR_WINDOW, least: 0 };
        Self { floor: Some(floor), ..Self::new(pace) }
    }

    fn moved(&mut self, bytes: usize) {
        self.meter.moved(Instant::now(), bytes);
    }

    fn rest(&mut self) {
        self.meter.rest(Instant::now());
    }

    /// Waits for the peer. The task is woken when the peer would be too slow.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Slow> {
        if let Some(floor) = &self.floor {
            self.meter.ask_for(floor.bytes_per_second().saturating_mul(FLOOR_WINDOW.as_secs()));
        }
        loop {
            let until = match self.meter.wait(Instant::now()) {
                Ok(until) => until,
                Err(slow) => return Poll::Ready(slow),
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(until)));
            // A timer that fires too early is cheaper than resetting it for each piece. It never
            // fires too late: the next deadline is never sooner.
            if timer.is_elapsed() {
                timer.as_mut().reset(until);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Limits a body's sender to `pace`. If it is slower, the body ends in a [`Broken`] with
/// `RequestTimeout`. Wrap the body that comes from the socket: a client's body before
/// [`outgoing`](super::outgoing()).
#[must_use]
pub fn paced(body: Body, pace: Pace) -> Body {
    Paced { body, timed: Timed::new(pace), stage: Stage::Flowing }.boxed_unsync()
}

/// Limits a body's sender to `floor`; otherwise like [`paced`].
#[must_use]
pub fn paced_above(body: Body, floor: Arc<dyn Floor>) -> Body {
    Paced { body, timed: Timed::above(floor), stage: Stage::Flowing }.boxed_unsync()
}

struct Paced {
    body: Body,
    timed: Timed,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Flowing,
    Ended,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.stage == Stage::Ended {
            return Poll::Ready(None);
        }
        // Data that has arrived counts, even if it is polled late.
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            match &frame {
                Some(Ok(frame)) => this.timed.moved(frame.data_ref().map_or(0, Bytes::len)),
                Some(Err(_)) | None => this.stage = Stage::Ended,
            }
            return Poll::Ready(frame);
        }
        this.timed.poll(context).map(|slow| {
            this.stage = Stage::Ended;
            Some(Err(Broken(slow.refusal()).into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.stage == Stage::Ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose peer has to accept writes at a [`Pace`]. Reads are not limited: between
/// requests, a waiting client is not slow.
///
/// Wrap the socket below TLS: there, only a peer that doesn't read makes writes block. A connection
/// that is broken off returns [`io::ErrorKind::TimedOut`].
pub struct Writer<T> {
    io: T,
    timed: Timed,
}

impl<T> Writer<T> {
    /// Limits the connection's peer to `pace`.
    pub fn new(io: T, pace: Pace) -> Self {
        Self { io, timed: Timed::new(pace) }
    }

    /// Limits the connection's peer to `floor`.
    pub fn above(io: T, floor: Arc<dyn Floor>) -> Self {
        Self { io, timed: Timed::above(floor) }
    }

    /// Returns the connection.
    pub fn get_ref(&self) -> &T {
        &self.io
    }
}

impl<T: Unpin> Writer<T> {
    fn paced<R>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
        bytes: impl FnOnce(&R) -> usize,
    ) -> Poll<io::Result<R>> {
        let this = &mut *self;
        match write(Pin::new(&mut this.io), context) {
            Poll::Ready(result) => {
                // A finished flush ends the wait as well, although it moves no bytes: the time
                // until the next write is not the peer's.
                this.timed.rest();
                this.timed.moved(result.as_ref().map_or(0, bytes));
                Poll::Ready(result)
            }
            Poll::Pending => this.timed.poll(context).map(|slow| Err(io::Error::new(io::ErrorKind::TimedOut, slow))),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Writer<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, to)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Writer<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.paced(context, |io, context| io.poll_write(context, bytes), |written| *written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.paced(context, |io, context| io.poll_write_vectored(context, bytes), |written| *written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.paced(context, |io, context| io.poll_flush(context), |()| 0)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.paced(context, |io, context| io.poll_shutdown(context), |()| 0)
    }
}
