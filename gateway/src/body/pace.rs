//! Slow peers: how long nothing may come or go, and how little.
//!
//! Only time in which the gateway waits for *this* peer counts: from the moment that a read or a
//! write would block until it goes on. While the other side doesn't take what came, nobody asks
//! this one, so its time stands still; a store that is slow to take an upload is not held against
//! the client, nor a client that is slow to read against the store. Whoever is slow has its own
//! meter: [`paced`] is for whom bytes come from, [`Writer`] for whom they go to. A body can't see
//! that a client doesn't read, because it just isn't polled then. The writer of the connection can,
//! and its timer wakes the connection.
//!
//! An average over a whole body would let a client that began fast trickle for days, so the least
//! is asked of each window anew. A [`Floor`] may raise it while others wait for the peer's place.

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

/// How slow a peer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long nothing at all may move.
    pub idle: Duration,
    /// How long a window is, in time waited: the first one is the time that a slow start may take.
    pub window: Duration,
    /// How many bytes must move in each window; 0 where an answer may be slow by nature, as that of
    /// a long CompleteMultipartUpload.
    pub least: u64,
}

impl Default for Pace {
    /// 30 s, and 1 KiB/s over each minute.
    fn default() -> Self {
        Self { idle: Duration::from_secs(30), window: Duration::from_secs(60), least: 60 << 10 }
    }
}

/// A speed that peers have to keep up, which may change at any time.
pub trait Floor: Send + Sync {
    /// Bytes a second; 0 asks for nothing.
    fn bytes_per_second(&self) -> u64;
}

/// Time waited over which a peer has to keep up a [`Floor`].
const FLOOR_WINDOW: Duration = Duration::from_secs(10);

/// A peer was slower than it may be.
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
    /// What S3 says of it.
    #[must_use]
    pub fn refusal(self) -> Refusal {
        let message = "Your socket connection to the server was not read from or written to within the timeout period.";
        Refusal::new(Code::RequestTimeout, message)
    }
}

/// The arithmetic of a [`Pace`] for one peer; it has no clock of its own.
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
    /// Nothing has moved, nothing is waited for. Times are taken into the bounds of what a timer
    /// can do.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        let bounded = |time: Duration| time.clamp(SHORTEST, LONGEST);
        let pace = Pace { idle: bounded(pace.idle), window: bounded(pace.window), ..pace };
        Self { pace, wait: None, waited: Duration::ZERO, moved: 0 }
    }

    /// Asks for other bytes in each window from now on, the present one included.
    fn ask_for(&mut self, least: u64) {
        self.pace.least = least;
    }

    /// The peer is waited for at `now`. When to ask again, if it doesn't move before; that is later
    /// than `now`.
    ///
    /// # Errors
    /// If it has been too slow.
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

    /// `bytes` have moved at `now`. None at all are no sign of life.
    pub fn moved(&mut self, now: Instant, bytes: usize) {
        if bytes > 0 {
            self.rest(now);
            self.moved = self.moved.saturating_add(bytes as u64);
        }
    }

    /// The peer is not waited for any more.
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

    /// The peer is waited for: the task is woken when it would be too slow.
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
            // A timer that rings too early costs less than one that is set for each piece. It never
            // rings too late: what is waited for next is due no sooner.
            if timer.is_elapsed() {
                timer.as_mut().reset(until);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// A body whose sender may not be slower than `pace`: it ends in a [`Broken`] with `RequestTimeout`
/// then. It goes around what comes from a socket, so a client's body before
/// [`outgoing`](super::outgoing()).
#[must_use]
pub fn paced(body: Body, pace: Pace) -> Body {
    Paced { body, timed: Timed::new(pace), stage: Stage::Flowing }.boxed_unsync()
}

/// A body whose sender may not be slower than `floor`; as [`paced`] otherwise.
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
        // What is there counts, however late it is fetched.
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

/// A connection whose peer may not be slower than a [`Pace`] in taking what is written. Reads are
/// left alone: between requests, who waits is not slow.
///
/// It goes under TLS, onto the socket: there a peer that doesn't read makes writes block, and
/// nothing else does. A connection that is broken off answers [`io::ErrorKind::TimedOut`].
pub struct Writer<T> {
    io: T,
    timed: Timed,
}

impl<T> Writer<T> {
    /// This connection, its peer held to `pace`.
    pub fn new(io: T, pace: Pace) -> Self {
        Self { io, timed: Timed::new(pace) }
    }

    /// This connection, its peer held to `floor`.
    pub fn above(io: T, floor: Arc<dyn Floor>) -> Self {
        Self { io, timed: Timed::above(floor) }
    }

    /// The connection.
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
                // Also what moves no bytes, a flush, is over: the time until the next write is
                // nobody's.
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
