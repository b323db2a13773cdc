//! A connection on which a response can be read that came before the whole request was sent.
//!
//! A store that refuses an upload by its head may respond and close at once. Writes then fail while
//! the response can still be read, but hyper gives up at the first failed write.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::{Sleep, sleep};
use tower::util::MapResponse;
use tower::{Service, ServiceExt};

/// Delay until a failed write is reported. A response that the store sent before it closed the
/// connection has been read by then.
const HEARD: Duration = Duration::from_secs(1);

/// A connection that reports a failed write a second later. If reads fail as well, it fails at
/// once.
pub(super) struct Heard<T> {
    connection: T,
    /// The result of a failed write, and the timer after which it is reported.
    failed: Option<(io::Error, Pin<Box<Sleep>>)>,
}

impl<T> Heard<T> {
    fn new(connection: T) -> Self {
        Self { connection, failed: None }
    }

    /// Returns the result of a write. A failure is returned after the delay.
    fn tell<V>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<V>>) -> Poll<io::Result<V>> {
        match ready!(done) {
            Ok(done) => Poll::Ready(Ok(done)),
            Err(error) => {
                self.failed = Some((error, Box::pin(sleep(HEARD))));
                self.wait(cx)
            }
        }
    }

    fn wait<V>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<V>> {
        if let Some((_, until)) = &mut self.failed {
            ready!(until.as_mut().poll(cx));
        }
        let broken = io::Error::from(io::ErrorKind::BrokenPipe);
        Poll::Ready(Err(self.failed.take().map_or(broken, |(error, _)| error)))
    }
}

impl<T: Write + Unpin> Write for Heard<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        if self.failed.is_some() {
            return self.wait(cx);
        }
        let done = Pin::new(&mut self.connection).poll_write(cx, buffer);
        self.tell(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failed.is_some() {
            return self.wait(cx);
        }
        let done = Pin::new(&mut self.connection).poll_flush(cx);
        self.tell(cx, done)
    }

    /// Does nothing. hyper calls this if a caller gave up in the middle of a body, and a FIN or a
    /// `close_notify` would tell the store that the body has ended. The connection is reset when it
    /// is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.failed.is_some() {
            return self.wait(cx);
        }
        let done = Pin::new(&mut self.connection).poll_write_vectored(cx, buffers);
        self.tell(cx, done)
    }
}

impl<T: Read + Unpin> Read for Heard<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(cx, buffer)
    }
}

impl<T: Connection> Connection for Heard<T> {
    fn connected(&self) -> Connected {
        self.connection.connected()
    }
}

/// Wraps the connections of a connector.
pub(super) fn heard<C, T>(connector: C) -> MapResponse<C, fn(T) -> Heard<T>>
where
    C: Service<Uri, Response = T>,
{
    connector.map_response(Heard::new)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use bytes::Bytes;
    use futures::stream;
    use http::Request;
    use http_body::Frame;
    use http_body_util::{BodyExt as _, StreamBody};
    use store_tls::Trust;

    use super::super::{Connect as _, RustlsConnect};
    use super::*;
    use crate::body::Body;

    /// Returns a store that sends this response to the beginning of a request, and closes.
    fn hasty(answer: &'static str) -> (SocketAddr, mpsc::Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (closed, is_closed) = mpsc::channel();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            // Some of the request is left unread, so that the close is a reset.
            client.read_exact(&mut [0; 16]).expect("a request");
            client.write_all(answer.as_bytes()).expect("an answer");
            drop(client);
            closed.send(()).expect("somebody waits");
        });
        (address, is_closed)
    }

    /// Returns a body during which the store responds and closes, after the connection was last
    /// polled for a response.
    fn body(is_closed: mpsc::Receiver<()>) -> Body {
        let piece = move |number| {
            if number == 1 {
                is_closed.recv().expect("the store closes");
                thread::sleep(Duration::from_millis(50));
            }
            Ok(Frame::data(Bytes::from_static(&[0; 64 << 10])))
        };
        StreamBody::new(stream::iter((0..1000).map(piece))).boxed_unsync()
    }

    async fn put(answer: &'static str) -> Result<(u16, Bytes), String> {
        let transport = RustlsConnect.connect(&Trust::Anything).expect("a transport");
        let (address, is_closed) = hasty(answer);
        let request = Request::put(format!("http://{address}/photos/a")).body(body(is_closed)).expect("a request");
        let answer = transport.oneshot(request).await.map_err(|why| why.to_string())?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|why| why.to_string())?;
        Ok((status, body.to_bytes()))
    }

    #[tokio::test]
    async fn a_refusal_before_the_end_of_the_upload_is_heard() {
        let answer = "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 5\r\n\r\nwords";
        assert_eq!(put(answer).await, Ok((412, Bytes::from_static(b"words"))));
    }

    #[tokio::test]
    async fn a_store_that_says_nothing_fails_at_once() {
        let began = Instant::now();
        assert!(put("").await.is_err());
        assert!(began.elapsed() < HEARD);
    }
}
