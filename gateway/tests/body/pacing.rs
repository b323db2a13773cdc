//! Slow peers, on a paused clock.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use rstest::rstest;
use stowage_gateway::body::pace::{Floor, Meter, Pace, Slow, Writer, paced, paced_above};
use stowage_gateway::body::{Body, Broken};
use stowage_gateway::refusal::Code;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, sleep};
use tower::BoxError;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const PACE: Pace = Pace { idle: seconds(30), window: seconds(60), least: 6000 };

/// Returns a body whose pieces have these delays in seconds and these lengths.
fn body(pieces: Vec<(u64, usize)>) -> Body {
    let frames = stream::iter(pieces).then(|(after, bytes)| async move {
        sleep(seconds(after)).await;
        Ok::<_, BoxError>(Frame::data(Bytes::from(vec![0; bytes])))
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Returns the number of bytes, the seconds until the end, and the error, if any.
async fn read(mut body: Body, rest: Duration) -> (usize, u64, Option<Code>) {
    let (began, mut bytes) = (Instant::now(), 0);
    loop {
        let frame = body.frame().await;
        let took = began.elapsed().as_secs();
        match frame {
            None => return (bytes, took, None),
            Some(Err(error)) => {
                assert!(body.frame().await.is_none());
                return (bytes, took, Some(Broken::refusal(&error).code));
            }
            Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
        }
        sleep(rest).await;
    }
}

const LATE: Option<Code> = Some(Code::RequestTimeout);

#[rstest]
#[case::at_once(vec![(0, 10)], (10, 0, None))]
#[case::just_in_time(vec![(29, 6000), (29, 6000), (29, 6000)], (18_000, 87, None))]
#[case::silent_from_the_start(vec![(31, 10)], (0, 30, LATE))]
#[case::silent_after_much(vec![(0, 1 << 30), (31, 10)], (1 << 30, 30, LATE))]
#[case::empty_pieces_are_no_sign_of_life(vec![(20, 0), (20, 0)], (0, 30, LATE))]
#[case::a_trickle(vec![(10, 900); 9], (6 * 900, 60, LATE))]
#[case::enough(vec![(10, 1100); 9], (9900, 90, None))]
#[case::a_trickle_after_much([vec![(0, 1 << 30)], vec![(20, 100); 9]].concat(), ((1 << 30) + 600, 120, LATE))]
#[tokio::test(start_paused = true)]
async fn a_sender_is_held_to_its_pace(#[case] pieces: Vec<(u64, usize)>, #[case] expected: (usize, u64, Option<Code>)) {
    assert_eq!(read(paced(body(pieces), PACE), Duration::ZERO).await, expected);
}

/// Time in which no data is polled does not count against the sender.
#[tokio::test(start_paused = true)]
async fn a_sender_does_not_pay_for_who_takes() {
    let pieces = vec![(1, 100); 50];
    let (bytes, took, code) = read(paced(body(pieces), PACE), seconds(100)).await;
    assert_eq!((bytes, took, code), (5000, 50 + 50 * 100, None));
}

#[tokio::test(start_paused = true)]
async fn a_rate_may_be_left_free() {
    let pace = Pace { least: 0, ..PACE };
    let pieces = vec![(29, 1); 20];
    assert_eq!(read(paced(body(pieces), pace), Duration::ZERO).await, (20, 580, None));
}

#[tokio::test(start_paused = true)]
async fn any_pace_is_a_pace() {
    let none = Pace { idle: Duration::ZERO, window: Duration::ZERO, least: 1 };
    assert_eq!(read(paced(body(vec![(1, 1)]), none), Duration::ZERO).await, (0, 0, LATE));
    let all = Pace { idle: Duration::MAX, window: Duration::MAX, least: u64::MAX };
    assert_eq!(read(paced(body(vec![(100_000, 1)]), all), Duration::ZERO).await, (1, 100_000, None));
}

/// A floor that rises after this many seconds.
struct Rising(Instant, u64);

impl Floor for Rising {
    fn bytes_per_second(&self) -> u64 {
        if self.0.elapsed().as_secs() < self.1 { 0 } else { 1000 }
    }
}

// covers: 6.share.floor
#[rstest]
#[case::while_it_asks_for_nothing(1000, vec![(100, 1); 3], (3, 300, None))]
#[case::a_trickle(25, vec![(1, 999); 60], (30 * 999, 30, LATE))]
#[case::enough(25, vec![(1, 1001); 60], (60_060, 60, None))]
#[tokio::test(start_paused = true)]
async fn a_sender_is_held_to_a_floor(
    #[case] rises: u64,
    #[case] pieces: Vec<(u64, usize)>,
    #[case] expected: (usize, u64, Option<Code>),
) {
    let floor = Arc::new(Rising(Instant::now(), rises));
    assert_eq!(read(paced_above(body(pieces), floor), Duration::ZERO).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_meter_counts_what_was_waited() {
    let (start, mut meter) = (Instant::now(), Meter::new(PACE));
    assert_eq!(meter.wait(start), Ok(start + seconds(30)));
    assert_eq!(meter.wait(start + seconds(29)), Ok(start + seconds(30)));
    meter.moved(start + seconds(29), 1);
    // After an hour without waiting, the window continues at the same place.
    let later = start + seconds(3629);
    assert_eq!(meter.wait(later), Ok(later + seconds(30)));
    meter.moved(later + seconds(29), 1);
    assert_eq!(meter.wait(later + seconds(29)), Ok(later + seconds(31)));
    assert_eq!(meter.wait(later + seconds(31)), Err(Slow::Trickle));
}

/// Writes to a client that makes these reads: delay in seconds, and number of bytes.
async fn written(reads: Vec<(u64, usize)>, bytes: usize) -> (u64, Result<(), std::io::ErrorKind>) {
    let (gateway, mut client) = tokio::io::duplex(1000);
    let mut writer = Writer::new(gateway, PACE);
    let reader = tokio::spawn(async move {
        for (after, bytes) in reads {
            sleep(seconds(after)).await;
            if client.read_exact(&mut vec![0; bytes]).await.is_err() {
                break;
            }
        }
        sleep(seconds(1000)).await;
    });
    let began = Instant::now();
    let result = writer.write_all(&vec![0; bytes]).await.map_err(|error| error.kind());
    let took = began.elapsed().as_secs();
    reader.abort();
    (took, result)
}

#[rstest]
#[case::reads_all(vec![(0, 5000)], 5000, (0, Ok(())))]
#[case::reads_nothing(vec![], 5000, (30, Err(std::io::ErrorKind::TimedOut)))]
#[case::it_fits(vec![], 1000, (0, Ok(())))]
#[case::reads_little(vec![(10, 500); 90], 50_000, (60, Err(std::io::ErrorKind::TimedOut)))]
#[case::reads_enough(vec![(10, 1000); 90], 50_000, (490, Ok(())))]
#[tokio::test(start_paused = true)]
async fn a_reader_is_held_to_its_pace(
    #[case] reads: Vec<(u64, usize)>,
    #[case] bytes: usize,
    #[case] expected: (u64, Result<(), std::io::ErrorKind>),
) {
    assert_eq!(written(reads, bytes).await, expected);
}

// covers: 6.share.floor
#[tokio::test(start_paused = true)]
async fn a_reader_is_held_to_a_floor() {
    let (gateway, mut client) = tokio::io::duplex(1000);
    let mut writer = Writer::above(gateway, Arc::new(Rising(Instant::now(), 25)));
    let reader = tokio::spawn(async move {
        while client.read_exact(&mut [0; 999]).await.is_ok() {
            sleep(seconds(1)).await;
        }
    });
    let began = Instant::now();
    let result = writer.write_all(&vec![0; 100_000]).await.map_err(|error| error.kind());
    assert_eq!((began.elapsed().as_secs(), result), (30, Err(std::io::ErrorKind::TimedOut)));
    reader.abort();
}

/// A window that ends before the timer fires is still checked.
#[tokio::test(start_paused = true)]
async fn a_window_ends_on_time() {
    let pieces = vec![(25, 1), (10, 1), (24, 1), (29, 1)];
    assert_eq!(read(paced(body(pieces), PACE), Duration::ZERO).await, (3, 60, LATE));
}

/// A connection whose first flush takes a second.
struct SlowFlush(std::pin::Pin<Box<tokio::time::Sleep>>, usize);

impl tokio::io::AsyncWrite for SlowFlush {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.1 += 1;
        // The second write waits too.
        if self.1 == 2 {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.0.as_mut().poll(context).map(Ok)
    }

    fn poll_shutdown(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_waited_is_no_debt() {
    let mut writer = Writer::new(SlowFlush(Box::pin(sleep(seconds(1))), 0), PACE);
    writer.write_all(b"one").await.expect("it is written");
    writer.flush().await.expect("it is flushed");
    sleep(seconds(1000)).await;
    writer.write_all(b"two").await.expect("silence is not held against it");
}

/// A client may be silent between two responses.
#[tokio::test(start_paused = true)]
async fn silence_between_answers_is_nobodys() {
    let (gateway, mut client) = tokio::io::duplex(1000);
    let mut writer = Writer::new(gateway, PACE);
    for _ in 0..5 {
        writer.write_all(&[0; 1000]).await.expect("it fits");
        writer.flush().await.expect("it is flushed");
        client.read_exact(&mut [0; 1000]).await.expect("it is read");
        sleep(seconds(1000)).await;
    }
    let read = tokio::spawn(async move {
        client.write_all(b"next").await.expect("it is written");
        client
    });
    let mut next = [0; 4];
    writer.read_exact(&mut next).await.expect("reads go through");
    assert_eq!(&next, b"next");
    drop(read);
}
