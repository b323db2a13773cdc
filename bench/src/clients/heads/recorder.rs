//! A recorder of requests in front of a store: it keeps every byte that a gateway sends before it
//! forwards it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::Uri;
use parking_lot::Mutex;
use stowage_testbed::gateway::LOOPBACK;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Maximum length of a head or a body, above that of any generated request.
const LONGEST: usize = 16 << 20;

/// A recorded request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Received {
    /// Request line and headers, without the empty line.
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// True if it was complete, and was forwarded to the store.
    pub(super) is_whole: bool,
}

/// A proxy that records requests before it forwards them.
pub(super) struct Recorder {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    _work: JoinSet<()>,
}

impl Recorder {
    /// Starts a recorder in front of the store at this endpoint. Requests with `other` in their
    /// heads are forwarded without being recorded.
    ///
    /// # Errors
    /// Fails if the endpoint is not the URL of an address, or if there is no free port.
    pub(super) async fn start(endpoint: &str, other: &'static str) -> Result<Self> {
        let endpoint: Uri = endpoint.parse().context("the store's endpoint is no URL")?;
        let store: SocketAddr = endpoint.authority().context("the store has no host")?.as_str().parse()?;
        let listener = TcpListener::bind(LOOPBACK).await.context("can't serve before the store")?;
        let address = listener.local_addr().context("can't serve before the store")?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let to = received.clone();
        let mut work = JoinSet::new();
        work.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((gateway, _)) = listener.accept().await {
                let keep = Keep { to: to.clone(), other };
                // A broken connection is not handled here, because the gateway notices it.
                connections.spawn(async move { drop(pass(gateway, store, keep).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, received, _work: work })
    }

    /// Returns the URL of the recorder.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests recorded since the last call.
    pub(super) fn take(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock())
    }
}

struct Keep {
    to: Arc<Mutex<Vec<Received>>>,
    other: &'static str,
}

impl Keep {
    fn push(&self, received: Received) {
        if !String::from_utf8_lossy(&received.head).contains(self.other) {
            self.to.lock().push(received);
        }
    }
}

async fn pass(gateway: TcpStream, store: SocketAddr, keep: Keep) -> Result<()> {
    let store = TcpStream::connect(store).await?;
    store.set_nodelay(true)?;
    gateway.set_nodelay(true)?;
    let (from, mut back) = gateway.into_split();
    let (mut answers, to) = store.into_split();
    tokio::select! {
        passed = requests(from, to, &keep) => passed,
        copied = tokio::io::copy(&mut answers, &mut back) => Ok(copied.map(|_| ())?),
    }
}

/// Forwards requests, each once it is complete.
async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, keep: &Keep) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        let (received, length) = one(&mut from, &mut buffer).await?;
        let Some(received) = received else { return Ok(()) };
        let is_whole = received.is_whole;
        keep.push(received);
        if !is_whole {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await?;
        buffer.drain(..length);
    }
}

/// Returns the next request, and its length in the buffer; `None` if the connection ends before it.
async fn one(from: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Result<(Option<Received>, usize)> {
    let mut received = Received::default();
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            received.head = buffer[..end].to_vec();
            let body = end + 4;
            // Without a content length its end is unknown, and it never counts as complete.
            let length = announced(&received.head);
            let is_whole = length.is_some_and(|length| buffer.len() >= body + length);
            let end = length.map_or(buffer.len(), |length| buffer.len().min(body + length));
            if is_whole || length.is_none() {
                received.body = buffer[body..end].to_vec();
                return Ok((Some(Received { is_whole, ..received }), end));
            }
        }
        if buffer.len() > LONGEST || from.read_buf(buffer).await? == 0 {
            let has_begun = !buffer.is_empty();
            if received.head.is_empty() {
                received.head.clone_from(buffer);
            }
            return Ok((has_begun.then_some(received), buffer.len()));
        }
    }
}

/// Returns the content length in a head; 0 if there is none, and `None` for chunked or invalid
/// lengths.
fn announced(head: &[u8]) -> Option<usize> {
    let head = String::from_utf8_lossy(head);
    let mut length = 0;
    for (name, value) in head.split("\r\n").filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that answers each piece of a request with its length.
    async fn store() -> SocketAddr {
        let listener = TcpListener::bind(LOOPBACK).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut taken = vec![0; 1024];
                    while let Ok(count @ 1..) = connection.read(&mut taken).await {
                        connection.write_all(format!("{count};").as_bytes()).await.unwrap();
                    }
                });
            }
        });
        address
    }

    async fn answer(connection: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        while answer.last() != Some(&b';') {
            answer.push(connection.read_u8().await.unwrap());
        }
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_request_is_kept_before_it_is_answered() {
        let recorder = Recorder::start(&format!("http://{}", store().await), "operator").await.unwrap();
        let mut connection = TcpStream::connect(recorder.address).await.unwrap();
        connection.write_all(b"PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\na").await.unwrap();
        connection.write_all(b"bc").await.unwrap();
        assert_eq!(answer(&mut connection).await, "41;");
        connection.write_all(b"GET /b HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut connection).await, "19;");
        connection.write_all(b"GET /b HTTP/1.1\r\nuser-agent: operator\r\n\r\n").await.unwrap();
        assert_eq!(answer(&mut connection).await, "41;");
        let received = recorder.take();
        let put =
            Received { head: b"PUT /a HTTP/1.1\r\nContent-Length: 3".to_vec(), body: b"abc".to_vec(), is_whole: true };
        let get = Received { head: b"GET /b HTTP/1.1".to_vec(), body: Vec::new(), is_whole: true };
        assert_eq!(received, [put, get]);
        assert!(recorder.take().is_empty());
    }

    #[tokio::test]
    async fn half_a_request_is_kept_as_such() {
        let recorder = Recorder::start(&format!("http://{}", store().await), "operator").await.unwrap();
        let mut connection = TcpStream::connect(recorder.address).await.unwrap();
        connection.write_all(b"PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\na").await.unwrap();
        drop(connection);
        let mut received = Vec::new();
        while received.is_empty() {
            tokio::task::yield_now().await;
            received = recorder.take();
        }
        assert!(!received[0].is_whole);
    }

    #[test]
    fn a_body_in_chunks_has_no_length() {
        assert_eq!(announced(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked"), None);
        assert_eq!(announced(b"GET / HTTP/1.1\r\nhost: a"), Some(0));
        assert_eq!(announced(b"PUT / HTTP/1.1\r\ncontent-length: x"), None);
    }
}
