//! A null store with negligible cost: it answers from a pattern as fast as it can, reads uploads to
//! the end, and rejects an upload with a byte that differs from the pattern.
//!
//! An object's length is part of its key: `get-1024` has 1024 bytes. Signatures are not checked.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use super::message::{Head, Source, broken};
use super::pattern;

/// A store on a separate thread, until it is dropped.
pub(super) struct NullStore {
    pub(super) plain: SocketAddr,
    /// Address of its TLS endpoint, if it has a certificate.
    pub(super) tls: Option<SocketAddr>,
    requests: Arc<AtomicU64>,
    _stop: oneshot::Sender<()>,
    _thread: JoinHandle<()>,
}

impl NullStore {
    pub(super) fn start(acceptor: Option<TlsAcceptor>) -> Result<Self> {
        let listen = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").context("the store can't listen")?;
            listener.set_nonblocking(true).context("the store can't listen")?;
            let address = listener.local_addr().context("the store can't listen")?;
            anyhow::Ok((listener, address))
        };
        let ((plain, plain_at), (tls, tls_at)) = (listen()?, listen()?);
        let tls_at = acceptor.as_ref().map(|_| tls_at);
        let (stop, stopped) = oneshot::channel();
        let requests = Arc::new(AtomicU64::new(0));
        let counted = requests.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("can't start")?;
        let serve = move || {
            runtime.block_on(async {
                let (Ok(plain), Ok(tls)) = (TcpListener::from_std(plain), TcpListener::from_std(tls)) else { return };
                tokio::select! {
                    _ = stopped => (),
                    () = accept(plain, None, counted.clone()) => (),
                    () = accept(tls, acceptor, counted) => (),
                }
            });
        };
        let thread = std::thread::Builder::new().name("null-store".to_owned()).spawn(serve);
        let thread = thread.context("can't start a thread")?;
        Ok(Self { plain: plain_at, tls: tls_at, requests, _stop: stop, _thread: thread })
    }

    /// Returns the number of requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, requests: Arc<AtomicU64>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, requests) = (acceptor.clone(), requests.clone());
        let _ = stream.set_nodelay(true);
        // Errors are ignored: the other end sees that a connection broke.
        tokio::spawn(async move {
            match acceptor {
                None => drop(serve(stream, &requests).await),
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        drop(serve(stream, &requests).await);
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, requests: &AtomicU64) -> io::Result<()> {
    let mut source = Source::new(stream);
    while let Some(head) = source.head().await? {
        requests.fetch_add(1, Ordering::Relaxed);
        match head.word(0) {
            b"GET" => {
                let length = length_of(&head)?;
                give(source.get_mut(), length).await?;
            }
            b"HEAD" => {
                let length = length_of(&head)?;
                source.get_mut().write_all(&answer(length)).await?;
            }
            b"PUT" => {
                let whole = take(&mut source, head.length).await?;
                source.get_mut().write_all(if whole { STORED } else { REFUSED }).await?;
            }
            _ => return Err(broken("nothing that a measurement asks for")),
        }
        source.get_mut().flush().await?;
        if head.is_last {
            break;
        }
    }
    Ok(())
}

const STORED: &[u8] = b"HTTP/1.1 200 OK\r\nserver: null\r\ncontent-length: 0\r\n\
    etag: \"9b2cf535f27731c974343645a3985328\"\r\nx-amz-request-id: 0000000000000001\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 98\r\ncontent-type: application/xml\r\n\r\n\
    <Error><Code>BadDigest</Code><Message>These are not the bytes of the pattern.   </Message></Error>\n";

fn answer(length: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nserver: null\r\ncontent-length: {length}\r\ncontent-type: binary/octet-stream\r\n\
         accept-ranges: bytes\r\netag: \"9b2cf535f27731c974343645a3985328\"\r\n\
         last-modified: Fri, 01 Jan 2027 00:00:00 GMT\r\nx-amz-request-id: 0000000000000001\r\n\r\n"
    )
    .into_bytes()
}

/// Returns the length in the key of an object.
fn length_of(head: &Head) -> io::Result<u64> {
    let path = std::str::from_utf8(head.word(1)).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let length = path.rsplit('-').next().and_then(|length| length.parse().ok());
    length.ok_or_else(|| broken("a key that names no length"))
}

async fn give(to: &mut (impl AsyncWrite + Unpin), length: u64) -> io::Result<()> {
    let mut first = answer(length);
    first.extend_from_slice(pattern::piece(0, length));
    let mut given = pattern::piece(0, length).len() as u64;
    to.write_all(&first).await?;
    while given < length {
        let piece = pattern::piece(given, length - given);
        to.write_all(piece).await?;
        given += piece.len() as u64;
    }
    Ok(())
}

/// Reads a body; returns true if it equals the pattern.
async fn take<R: AsyncRead + Unpin>(source: &mut Source<R>, length: u64) -> io::Result<bool> {
    let (mut taken, mut is_right) = (0, true);
    while taken < length {
        let (some, right) = source.some(length - taken, |bytes| pattern::is(taken, bytes)).await?;
        is_right &= right;
        taken += some;
    }
    Ok(is_right)
}
