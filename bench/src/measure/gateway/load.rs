//! Load generator: each client has a connection, sends a request, reads and checks the whole
//! response, and repeats. Heads are signed in advance, so that a request costs the client next to
//! nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::message::{Head, Source};
use super::pattern;

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) head: Bytes,
    pub(super) body: Body,
    pub(super) expect: Expect,
}

/// Body of a request.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// These bytes; empty for a request without a body.
    Bytes(Bytes),
    /// This number of bytes of the pattern.
    Pattern(u64),
}

/// Expected response.
#[derive(Clone, Debug)]
pub(super) struct Expect {
    pub(super) status: u16,
    pub(super) body: Answer,
}

/// Expected body of a response.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// No body, but this content length: a response to HEAD.
    Told(u64),
    /// This number of bytes of the pattern.
    Pattern(u64),
    /// A text that contains this.
    With(String),
}

/// Server that clients connect to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<TlsConnector>,
}

/// Work of the clients.
pub(super) struct Job {
    pub(super) target: Target,
    /// For each client, the requests that it sends in turns.
    pub(super) clients: Vec<Vec<Ask>>,
    /// Time after which no further request is started.
    pub(super) time: Duration,
}

/// Result of a job. Every response was as expected.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) answers: u64,
    /// Bytes of object data, in both directions.
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    /// Time that each response took, sorted.
    pub(super) times: Vec<Duration>,
}

/// Runs clients on a separate thread.
///
/// # Errors
/// Returns the first unexpected response, or the error of a connection.
pub(super) async fn play(job: Job) -> Result<Outcome> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let outcome = runtime.context("can't start").and_then(|runtime| runtime.block_on(all(job)));
        let _ = tell.send(outcome);
    };
    std::thread::Builder::new().name("clients".to_owned()).spawn(work).context("can't start a thread")?;
    told.await.context("the clients are gone")?
}

async fn all(job: Job) -> Result<Outcome> {
    let mut connected = Vec::new();
    for asks in job.clients {
        connected.push((connect(&job.target).await?, asks));
    }
    let began = Instant::now();
    let end = began + job.time;
    let target = Arc::new(job.target);
    let mut clients = tokio::task::JoinSet::new();
    for (connection, asks) in connected {
        clients.spawn(client(connection, asks, target.clone(), end));
    }
    let mut outcome = Outcome::default();
    while let Some(one) = clients.join_next().await {
        let one = one.map_err(|error| anyhow!("a client is gone: {error}"))??;
        outcome.answers += one.answers;
        outcome.bytes += one.bytes;
        outcome.times.extend(one.times);
    }
    outcome.elapsed = began.elapsed();
    outcome.times.sort_unstable();
    Ok(outcome)
}

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection with a reader of responses.
pub(super) type Connection = Source<Box<dyn Stream>>;

pub(super) async fn connect(target: &Target) -> Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(target.address).await.with_context(|| format!("can't reach {}", target.address))?;
    stream.set_nodelay(true).context("can't set an option of a socket")?;
    match &target.tls {
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let name = ServerName::from(target.address.ip());
            Ok(Box::new(tls.connect(name, stream).await.context("no TLS connection came about")?))
        }
    }
}

async fn client(first: Box<dyn Stream>, asks: Vec<Ask>, target: Arc<Target>, end: Instant) -> Result<Outcome> {
    let mut connection = Source::new(first);
    let mut outcome = Outcome::default();
    for ask in asks.iter().cycle() {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        let (bytes, is_last) = one(&mut connection, ask).await?;
        outcome.answers += 1;
        outcome.bytes += bytes;
        outcome.times.push(sent.elapsed());
        if is_last {
            connection = Source::new(connect(&target).await?);
        }
    }
    Ok(outcome)
}

/// Sends a request and checks its response. Returns the number of bytes of object data, and true if
/// the connection ends.
pub(super) async fn one(connection: &mut Connection, ask: &Ask) -> Result<(u64, bool)> {
    let (sent, head) = asked(connection, ask).await?;
    let status = status_of(&head);
    if status != ask.expect.status {
        let text = connection.whole(head.length.min(4096)).await.unwrap_or_default();
        let (line, text) = (String::from_utf8_lossy(head.line()), String::from_utf8_lossy(&text));
        bail!("{line} where {} was expected: {text}", ask.expect.status);
    }
    match &ask.expect.body {
        Answer::Told(length) if head.length == *length => Ok((sent, head.is_last)),
        Answer::Told(length) | Answer::Pattern(length) if head.length != *length => {
            bail!("an answer of {} bytes where {length} were expected", head.length)
        }
        Answer::Told(_) => bail!("an answer of another length"),
        Answer::Pattern(length) => {
            let mut got = 0;
            while got < *length {
                let (some, is_right) = connection.some(length - got, |bytes| pattern::is(got, bytes)).await?;
                if !is_right {
                    bail!("an answer with other bytes than were stored, after byte {got}");
                }
                got += some;
            }
            Ok((sent + got, head.is_last))
        }
        Answer::With(expected) => {
            let text = connection.whole(head.length).await?;
            let text = String::from_utf8_lossy(&text);
            if text.contains(expected.as_str()) {
                Ok((sent, head.is_last))
            } else {
                bail!("{expected} is not in {text}")
            }
        }
    }
}

/// Sends a request, and returns the response's status and text without checking them.
pub(super) async fn told(connection: &mut Connection, ask: &Ask) -> Result<(u16, String)> {
    let (_, head) = asked(connection, ask).await?;
    let text = connection.whole(head.length).await?;
    Ok((status_of(&head), String::from_utf8_lossy(&text).into_owned()))
}

/// Sends a request, and reads the head of its response.
async fn asked(connection: &mut Connection, ask: &Ask) -> Result<(u64, Head)> {
    let sent = send(connection.get_mut(), ask).await.context("a request could not be sent");
    // A server may refuse a request with a response before all of it is sent.
    let head = connection.head().await.context("an answer could not be read");
    match (sent, head) {
        (Ok(sent), Ok(Some(head))) => Ok((sent, head)),
        (Err(_), Ok(Some(head))) => Ok((0, head)),
        (Err(why), _) | (_, Err(why)) => Err(why),
        (_, Ok(None)) => bail!("no answer came"),
    }
}

fn status_of(head: &Head) -> u16 {
    std::str::from_utf8(head.word(1)).unwrap_or_default().parse().unwrap_or_default()
}

async fn send(to: &mut (impl AsyncWrite + Unpin), ask: &Ask) -> io::Result<u64> {
    let length = match &ask.body {
        Body::Bytes(bytes) if bytes.is_empty() => {
            to.write_all(&ask.head).await?;
            0
        }
        Body::Bytes(bytes) => {
            // A short body is sent together with its head, as clients do.
            if bytes.len() <= 4096 {
                to.write_all(&[&ask.head[..], bytes].concat()).await?;
            } else {
                to.write_all(&ask.head).await?;
                to.write_all(bytes).await?;
            }
            bytes.len() as u64
        }
        Body::Pattern(length) => {
            to.write_all(&ask.head).await?;
            let mut sent = 0;
            while sent < *length {
                let piece = pattern::piece(sent, length - sent);
                to.write_all(piece).await?;
                sent += piece.len() as u64;
            }
            *length
        }
    };
    to.flush().await?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::null_store::NullStore;
    use super::*;

    fn ask(head: &str, body: Body, status: u16, answer: Answer) -> Ask {
        let head = Bytes::from(format!("{head}\r\n\r\n"));
        Ask { head, body, expect: Expect { status, body: answer } }
    }

    fn none() -> Body {
        Body::Bytes(Bytes::new())
    }

    #[rstest]
    #[case("GET /b/get-70000 HTTP/1.1", none(), Answer::Pattern(70_000), "")]
    #[case("HEAD /b/get-70000 HTTP/1.1", none(), Answer::Told(70_000), "")]
    #[case("PUT /b/put-4 HTTP/1.1\r\ncontent-length: 4", Body::Pattern(4), Answer::Pattern(0), "")]
    #[case("PUT /b/put-300000 HTTP/1.1\r\ncontent-length: 300000", Body::Pattern(300_000), Answer::Pattern(0), "")]
    #[case("GET /b/get-70000 HTTP/1.1", none(), Answer::Pattern(70_001), "70000 bytes where 70001")]
    #[case("HEAD /b/get-1 HTTP/1.1", none(), Answer::Told(2), "1 bytes where 2")]
    #[case(
        "PUT /b/put-4 HTTP/1.1\r\ncontent-length: 4",
        Body::Bytes(Bytes::from_static(b"else")),
        Answer::Pattern(0),
        "BadDigest"
    )]
    #[case("GET /b/get-4 HTTP/1.1", none(), Answer::With("<Name>".to_owned()), "<Name> is not in")]
    #[tokio::test]
    async fn an_answer_that_is_not_as_it_has_to_be_ends_the_measurement(
        #[case] head: &str,
        #[case] body: Body,
        #[case] answer: Answer,
        #[case] expected: &str,
    ) {
        let store = NullStore::start(None).unwrap();
        let clients = vec![vec![ask(head, body, 200, answer)]; 2];
        let target = Target { address: store.plain, tls: None };
        let outcome = play(Job { target, clients, time: Duration::from_millis(50) }).await;
        if expected.is_empty() {
            let outcome = outcome.unwrap();
            assert!(outcome.answers >= 2);
            assert_eq!((store.requests(), outcome.times.len() as u64), (outcome.answers, outcome.answers));
        } else {
            assert!(outcome.unwrap_err().to_string().contains(expected));
        }
    }
}
