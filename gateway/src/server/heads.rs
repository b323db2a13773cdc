//! A check for bare line feeds in the heads of requests.
//!
//! A recipient may take a bare line feed as the end of a line (RFC 9112, section 2.2), and hyper
//! does. A proxy that doesn't sees one header where the gateway sees two, and the second may
//! announce the end of the request. So a bare line feed in a head is refused. The check is here
//! because hyper has no setting for it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection on which a bare line feed in a head is read as NUL. No head may contain one, so
/// hyper answers 400 and closes. Nothing more is read from it.
pub(super) struct Heads<T> {
    connection: T,
    scanner: Scanner,
}

impl<T> Heads<T> {
    pub(super) fn new(connection: T) -> Self {
        Self { connection, scanner: Scanner::default() }
    }
}

/// The position in the client's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In a head.
    Head,
    /// In a body, with this many bytes left.
    Body(u64),
    /// In the line with the size of a chunk.
    ChunkSize,
    /// In a chunk's data, with this many bytes left.
    Chunk(u64),
    /// In the line end after a chunk's data.
    ChunkEnd,
    /// In the lines after the last chunk.
    Trailers,
    /// After something that hyper should refuse. Nothing more is read, in case it does not.
    Refused,
}

/// Maximum number of bytes kept of a line: the longest header name of interest, and a number.
const KEPT: usize = 64;

/// A scanner of the requests on a connection.
#[derive(Debug)]
struct Scanner {
    at: At,
    /// The first bytes of the current line.
    line: Vec<u8>,
    /// True if the line is empty so far.
    is_blank: bool,
    last: u8,
    /// True if the head has a line. Blank lines may precede it.
    has_begun: bool,
    /// The state after the head.
    body: At,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { at: At::Head, line: Vec::with_capacity(KEPT), is_blank: true, last: 0, has_begun: false, body: At::Head }
    }
}

impl Scanner {
    /// Scans the next bytes, and replaces a bare line feed in a head by NUL.
    fn look(&mut self, mut bytes: &mut [u8]) {
        while let Some(first) = bytes.first_mut() {
            let taken = match self.at {
                At::Refused => return,
                At::Body(left) | At::Chunk(left) => self.skip(left, bytes.len()),
                At::Head | At::Trailers | At::ChunkSize | At::ChunkEnd => {
                    self.byte(first);
                    1
                }
            };
            bytes = bytes.get_mut(taken..).unwrap_or_default();
        }
    }

    fn skip(&mut self, left: u64, there: usize) -> usize {
        let taken = usize::try_from(left).map_or(there, |left| left.min(there));
        let left = left - taken as u64;
        self.at = match self.at {
            At::Chunk(_) if left == 0 => At::ChunkEnd,
            At::Chunk(_) => At::Chunk(left),
            _ if left == 0 => At::Head,
            _ => At::Body(left),
        };
        taken
    }

    fn byte(&mut self, byte: &mut u8) {
        if *byte != b'\n' {
            self.is_blank &= *byte == b'\r' && self.line.is_empty();
            if self.line.len() < KEPT {
                self.line.push(*byte);
            }
            self.last = *byte;
            return;
        }
        if self.last != b'\r' {
            // In the line of a chunk's size hyper refuses a line feed, but accepts NUL.
            if self.at != At::ChunkSize {
                *byte = 0;
            }
            self.at = At::Refused;
            return;
        }
        self.at = self.after_line();
        if self.at == At::Refused {
            // Hyper has to refuse it as well, so that both agree.
            *byte = 0;
        }
        self.line.clear();
        (self.is_blank, self.last) = (true, 0);
    }

    /// Returns the position after the line that has ended.
    fn after_line(&mut self) -> At {
        match (self.at, self.is_blank) {
            (At::Head, true) if self.has_begun => {
                self.has_begun = false;
                std::mem::replace(&mut self.body, At::Head)
            }
            (At::Head, true) | (At::Trailers, true) => At::Head,
            (At::Head, false) => {
                self.has_begun = true;
                self.header().map_or(At::Refused, |()| At::Head)
            }
            (At::ChunkSize, false) => match chunk_size(&self.line) {
                Some(0) => At::Trailers,
                Some(size) => At::Chunk(size),
                None => At::Refused,
            },
            (At::ChunkEnd, true) => At::ChunkSize,
            (At::Trailers, false) => At::Trailers,
            (At::ChunkSize | At::ChunkEnd | At::Body(_) | At::Chunk(_) | At::Refused, _) => At::Refused,
        }
    }

    /// Records the body announced by a header. Returns `None` for an invalid length.
    fn header(&mut self) -> Option<()> {
        let colon = memchr::memchr(b':', &self.line).unwrap_or(self.line.len());
        let (name, value) = self.line.split_at(colon);
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.body = At::ChunkSize;
        } else if name.eq_ignore_ascii_case(b"content-length") && self.body != At::ChunkSize {
            // The number in a longer line may be cut off.
            let value = value.get(1..).filter(|_| self.line.len() < KEPT)?;
            let digits = std::str::from_utf8(value.trim_ascii()).ok()?;
            let length: u64 = digits.parse().ok()?;
            self.body = if length == 0 { At::Head } else { At::Body(length) };
        }
        Some(())
    }
}

/// Parses the size of a chunk from its line.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| !byte.is_ascii_hexdigit())?;
    u64::from_str_radix(std::str::from_utf8(line.get(..end)?).ok()?, 16).ok()
}

impl<T: AsyncRead + Unpin> AsyncRead for Heads<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.scanner.at == At::Refused {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is none of HTTP")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.connection).poll_read(cx, buffer))?;
        self.scanner.look(buffer.filled_mut().get_mut(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heads<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, pieces)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::BodyExt;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use rstest::rstest;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Returns the statuses of the responses to requests sent in pieces of this size.
    async fn statuses(sent: &str, size: usize, is_scanned: bool) -> Vec<String> {
        let (mut client, server) = duplex(1 << 20);
        let service = service_fn(|request: Request<Incoming>| async move {
            drop(request.into_body().collect().await);
            Ok::<_, Infallible>(Response::new(String::new()))
        });
        let serving = tokio::spawn(async move {
            if is_scanned {
                http1::Builder::new().half_close(true).serve_connection(TokioIo::new(Heads::new(server)), service).await
            } else {
                http1::Builder::new().half_close(true).serve_connection(TokioIo::new(server), service).await
            }
        });
        for piece in sent.as_bytes().chunks(size) {
            // A server that has refused the head may have closed.
            if client.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(client.shutdown().await);
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.expect("text");
        drop(serving.await.expect("no panic"));
        let statuses = answers.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3));
        statuses.map(str::to_owned).collect()
    }

    /// Checks that all requests but the last are served, and that the last is refused: by a 400, or
    /// by the end of the connection if hyper waits for the rest of a head in pieces.
    async fn assert_refused(sent: &str, size: usize, served: usize) {
        let found = statuses(sent, size, true).await;
        let (before, last) = found.split_at(served.min(found.len()));
        assert_eq!(before, vec!["200"; served]);
        assert!(last.is_empty() || last == ["400"], "{last:?}");
    }

    const CHUNKED: &str = "PUT /a HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    // covers: 6.lines
    #[rstest]
    #[case("GET /a HTTP/1.1\nhost: a\r\n\r\n")]
    #[case("GET /a HTTP/1.1\r\nhost: a\nx: y\r\n\r\n")]
    #[case("GET /a HTTP/1.1\r\nhost: a\r\n\n")]
    #[case("GET /a HTTP/1.1\r\nhost: a\r\nx: y\n\ttransfer-encoding: chunked\r\n\r\n")]
    #[case("\nGET /a HTTP/1.1\r\nhost: a\r\n\r\n")]
    #[tokio::test]
    async fn a_bare_line_feed_ends_no_line(#[case] head: &str, #[values(1, 7, 4096)] size: usize) {
        assert_refused(head, size, 0).await;
        let good = "GET /a HTTP/1.1\r\nhost: a\r\n\r\n";
        let second = format!("{good}{head}");
        assert_refused(&second, size, 1).await;
        let put = "PUT /a HTTP/1.1\r\nhost: a\r\nContent-Length: 4\r\n\r\na\n\nb";
        assert_refused(&format!("{put}{good}{head}"), size, 2).await;
        let put = format!("{CHUNKED}3;x=y\r\n\nab\r\n10\r\n0123456789abcde\n\r\n0\r\nx: y\r\n\r\n");
        assert_refused(&format!("{put}{good}{head}"), size, 2).await;
    }

    // covers: 6.lines
    /// A length that hyper can read but the scanner can't is refused: otherwise they would see
    /// different heads.
    #[tokio::test]
    async fn what_cannot_be_followed_is_refused() {
        let padded = format!("PUT /a HTTP/1.1\r\nhost: a\r\ncontent-length:{}1\r\n\r\na", " ".repeat(64));
        assert_eq!(statuses(&padded, 4096, true).await, ["400"]);
        assert_refused("PUT /a HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n", 1, 0).await;
        let zeros = format!("{CHUNKED}{}1\r\na\r\n0\r\n\r\n", "0".repeat(64));
        let behind = format!("{zeros}GET / HTTP/1.1\nhost: a\r\n\r\n");
        assert!(statuses(&behind, 4096, true).await.len() <= 1, "the second one is not served");
    }

    // covers: 6.lines
    /// Hyper refuses a line feed in the line of a chunk's size, but accepts NUL: the scanner and
    /// hyper once disagreed there.
    #[rstest]
    #[case("5;a\nb\r\nhello\r\n0\r\n\r\n")]
    #[case("5\nhello\r\n0\r\n\r\n")]
    #[case("5;a\r\nhello\n0\r\n\r\n")]
    #[case("5\r\nhello\r\n0\r\nx: a\ny: b\r\n\r\n")]
    #[tokio::test]
    async fn nothing_is_served_behind_a_line_that_is_refused(#[case] body: &str, #[values(1, 7, 4096)] size: usize) {
        for behind in ["GET /a HTTP/1.1\r\nhost: a\r\n\r\n", "GET /a HTTP/1.1\r\nhost: a\nx: y\r\n\r\n"] {
            let found = statuses(&format!("{CHUNKED}{body}{behind}"), size, true).await;
            assert!(found.len() <= 1, "{found:?}");
        }
    }

    /// The reason for the scanner. This test fails once hyper refuses a bare line feed itself.
    #[tokio::test]
    async fn hyper_takes_a_bare_line_feed() {
        assert_eq!(statuses("GET /a HTTP/1.1\r\nhost: a\nx: y\r\n\r\n", 4096, false).await, ["200"]);
    }

    #[rstest]
    #[case("\r\nGET /a HTTP/1.1\r\nhost: a\r\n\r\n", &["200"])]
    #[case("PUT /a HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", &["200", "200"])]
    #[case("PUT /a HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n\n\nGET / HTTP/1.1\r\nhost: a\r\n\r\n", &["200", "200"])]
    #[tokio::test]
    async fn the_rest_is_for_hyper_to_judge(
        #[case] sent: &str,
        #[case] expected: &[&str],
        #[values(1, 4096)] size: usize,
    ) {
        assert_eq!(statuses(sent, size, true).await, expected);
    }
}
