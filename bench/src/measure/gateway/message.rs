//! As much of HTTP/1.1 as clients and store of a measurement need: complete heads, and bodies of
//! known length. Anything else is an error, as no measured program has a reason to send it.

use std::io;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum length of a head.
const LONGEST_HEAD: usize = 64 << 10;
/// Maximum number of bytes per read.
const AT_ONCE: usize = 256 << 10;

/// A reader of messages.
pub(super) struct Source<R> {
    from: R,
    buffer: BytesMut,
}

/// The head of a message, with the fields that every reader needs.
pub(super) struct Head {
    text: BytesMut,
    /// Content length.
    pub(super) length: u64,
    /// True if the connection ends after this message.
    pub(super) is_last: bool,
}

impl Head {
    /// Returns the first line.
    pub(super) fn line(&self) -> &[u8] {
        self.text.as_ref().split(|byte: &u8| *byte == b'\r').next().unwrap_or_default()
    }

    /// Returns the word at this position of the first line.
    pub(super) fn word(&self, at: usize) -> &[u8] {
        self.line().split(|byte| *byte == b' ').nth(at).unwrap_or_default()
    }

    fn read(text: BytesMut) -> io::Result<Self> {
        let mut head = Self { text, length: 0, is_last: false };
        let (mut length, mut is_last) = (0, false);
        for line in head.text.as_ref().split(|byte: &u8| *byte == b'\n').skip(1) {
            let Some(colon) = memchr(line) else { continue };
            let (name, value) = line.split_at(colon);
            let value = || std::str::from_utf8(value.get(1..).unwrap_or_default()).unwrap_or_default().trim();
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    length = value().parse().map_err(|_| broken("a length that is no number"))?;
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    return Err(broken("a body whose length is not told"));
                }
                10 if name.eq_ignore_ascii_case(b"connection") => is_last = value().eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        (head.length, head.is_last) = (length, is_last);
        Ok(head)
    }
}

fn memchr(line: &[u8]) -> Option<usize> {
    line.iter().position(|byte| *byte == b':')
}

/// Returns the error for a message that no measured program has a reason to send.
pub(super) fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

impl<R: AsyncRead + Unpin> Source<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, buffer: BytesMut::with_capacity(16 << 10) }
    }

    pub(super) fn get_mut(&mut self) -> &mut R {
        &mut self.from
    }

    /// Returns the next head; `None` if the other end closed the connection between two messages.
    pub(super) async fn head(&mut self) -> io::Result<Option<Head>> {
        let mut looked_at = 0;
        loop {
            if let Some(end) = end_of_head(&self.buffer, looked_at) {
                return Head::read(self.buffer.split_to(end)).map(Some);
            }
            looked_at = self.buffer.len().saturating_sub(3);
            if self.buffer.len() > LONGEST_HEAD {
                return Err(broken("a head without an end"));
            }
            self.buffer.reserve(16 << 10);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(broken("half a head")) };
            }
        }
    }

    /// Reads and consumes a part of a body with `left` remaining bytes, after passing it to `look`.
    pub(super) async fn some<T>(&mut self, left: u64, look: impl FnOnce(&[u8]) -> T) -> io::Result<(u64, T)> {
        if self.buffer.is_empty() {
            self.buffer.reserve(usize::try_from(left).unwrap_or(AT_ONCE).min(AT_ONCE));
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Err(broken("half a body"));
            }
        }
        let some = self.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let seen = look(self.buffer.get(..some).unwrap_or_default());
        self.buffer.advance(some);
        Ok((some as u64, seen))
    }

    /// Reads a whole short body.
    pub(super) async fn whole(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while (body.len() as u64) < length {
            self.some(length - body.len() as u64, |bytes| body.extend_from_slice(bytes)).await?;
        }
        Ok(body)
    }
}

/// Returns the end of the empty line, if there is one. The bytes before `from` were searched
/// before.
fn end_of_head(buffer: &[u8], from: usize) -> Option<usize> {
    let new = buffer.get(from..)?;
    new.windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_follow_each_other_however_they_are_cut() {
        let text = b"PUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\nconnection: close\r\n\r\n";
        for size in 1..text.len() {
            let mut source = Source::new(tokio_test_pieces(text, size));
            let first = source.head().await.unwrap().unwrap();
            assert_eq!((first.line(), first.length, first.is_last), (&b"PUT /a HTTP/1.1"[..], 3, false));
            assert_eq!(source.whole(3).await.unwrap(), b"abc");
            let second = source.head().await.unwrap().unwrap();
            assert_eq!((second.word(1), second.length, second.is_last), (&b"/b"[..], 0, true));
            assert!(source.head().await.unwrap().is_none());
        }
    }

    /// Returns a reader that yields a text in pieces.
    fn tokio_test_pieces(text: &[u8], size: usize) -> impl AsyncRead + Unpin + use<> {
        let (mut to, from) = tokio::io::duplex(size);
        let text = text.to_vec();
        tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut to, &text).await });
        from
    }

    #[tokio::test]
    async fn what_has_no_length_or_no_end_is_broken() {
        for text in ["GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nhost"] {
            assert!(Source::new(text.as_bytes()).head().await.is_err(), "{text}");
        }
        let mut source = Source::new(&b"PUT / HTTP/1.1\r\ncontent-length: 2\r\n\r\na"[..]);
        source.head().await.unwrap();
        assert!(source.whole(2).await.is_err());
    }
}
