//! The bytes of objects and parts, in memory or in a keeper.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3ErrorCode, S3Result};
use tokio::task::JoinHandle;

use super::blob::{Blob, Home};
use super::errors::refuse;
use super::keeper::BlobReader;

/// Number of bytes to read at once.
const CHUNK: usize = 256 << 10;

/// The bytes of an object or of a part. Cheap to clone.
#[derive(Clone)]
pub(super) enum Data {
    Memory(Bytes),
    /// Concatenated pieces of blobs.
    Kept(Vec<Piece>),
}

/// A part of a blob.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) blob: Arc<Blob>,
    pub(super) from: u64,
    pub(super) length: u64,
}

impl Default for Data {
    fn default() -> Self {
        Self::Memory(Bytes::new())
    }
}

/// Returns the error for bytes that cannot be read.
pub(super) fn unreadable(error: io::Error) -> S3Error {
    let mut refusal = refuse(S3ErrorCode::InternalError);
    refusal.set_source(Box::new(error));
    refusal
}

impl Data {
    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Kept(pieces) => {
                let total: u64 = pieces.iter().map(|piece| piece.length).sum();
                usize::try_from(total).unwrap_or(usize::MAX)
            }
        }
    }

    /// Returns a range of the bytes. The range must be within bounds.
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        let pieces = match self {
            Self::Memory(bytes) => return Self::Memory(bytes.slice(range)),
            Self::Kept(pieces) => pieces,
        };
        let (first, end) = (range.start as u64, range.end as u64);
        let (mut at, mut kept) = (0, Vec::new());
        for piece in pieces {
            let (from, to) = (first.max(at), end.min(at + piece.length));
            if from < to {
                kept.push(Piece { blob: piece.blob.clone(), from: piece.from + (from - at), length: to - from });
            }
            at += piece.length;
        }
        Self::Kept(kept)
    }

    /// Concatenates several byte sequences.
    pub(super) fn joined<'a>(parts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mut pieces = Vec::new();
        let mut bytes = bytes::BytesMut::new();
        for part in parts {
            match part {
                Self::Memory(part) => bytes.extend_from_slice(part),
                Self::Kept(part) => pieces.extend_from_slice(part),
            }
        }
        if pieces.is_empty() { Self::Memory(bytes.freeze()) } else { Self::Kept(pieces) }
    }

    /// Receives a body into a blob of this store.
    ///
    /// # Errors
    /// `IncompleteBody` if the body ends early; `InternalError` if it cannot be stored.
    pub(super) async fn receive(home: &Arc<Home>, body: Option<StreamingBlob>) -> S3Result<Self> {
        let (mut writer, mut length) = (None, 0);
        let mut body = body;
        while let Some(chunk) = match &mut body {
            Some(body) => body.next().await,
            None => None,
        } {
            let chunk = chunk.map_err(|source| {
                let mut error = refuse(S3ErrorCode::IncompleteBody);
                error.set_source(source);
                error
            })?;
            if chunk.is_empty() {
                continue;
            }
            if writer.is_none() {
                writer = Some(home.keeper.begin().map_err(unreadable)?);
            }
            if let Some(writer) = &mut writer {
                writer.write(&chunk).map_err(unreadable)?;
            }
            length += chunk.len() as u64;
        }
        let Some(writer) = writer else { return Ok(Self::Kept(Vec::new())) };
        let finished = tokio::task::spawn_blocking(move || writer.finish()).await;
        let id = finished.map_err(io::Error::other).and_then(|id| id).map_err(unreadable)?;
        Ok(Self::whole(home, id, length))
    }

    /// Stores bytes in a blob of this store.
    ///
    /// # Errors
    /// Returns an error if there is no space for them.
    pub(super) fn store(home: &Arc<Home>, bytes: &[u8]) -> io::Result<Self> {
        if bytes.is_empty() {
            return Ok(Self::Kept(Vec::new()));
        }
        let mut writer = home.keeper.begin()?;
        writer.write(bytes)?;
        Ok(Self::whole(home, writer.finish()?, bytes.len() as u64))
    }

    fn whole(home: &Arc<Home>, id: u64, length: u64) -> Self {
        Self::Kept(vec![Piece { blob: home.blob(id), from: 0, length }])
    }

    /// Calls `take` for all bytes in order, in chunks.
    ///
    /// # Errors
    /// Returns an error if a blob cannot be read.
    pub(super) fn read(&self, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let pieces = match self {
            Self::Memory(bytes) => {
                take(bytes);
                return Ok(());
            }
            Self::Kept(pieces) => pieces,
        };
        for piece in pieces {
            let mut open = Open::new(piece);
            while let Some(chunk) = open.next_chunk()? {
                take(&chunk);
            }
        }
        Ok(())
    }

    /// Returns all bytes at once.
    ///
    /// # Errors
    /// Returns an error if a blob cannot be read.
    pub(super) fn bytes(&self) -> io::Result<Bytes> {
        if let Self::Memory(bytes) = self {
            return Ok(bytes.clone());
        }
        let mut all = bytes::BytesMut::with_capacity(self.len());
        self.read(|chunk| all.extend_from_slice(chunk))?;
        Ok(all.freeze())
    }

    /// Returns the bytes as a response body. It can be read to its end even if the object is
    /// deleted, because it refers to the blobs.
    ///
    /// # Errors
    /// `InternalError` if the first blob cannot be read.
    pub(super) fn body(&self) -> S3Result<StreamingBlob> {
        let pieces = match self {
            Self::Kept(pieces) if self.len() > CHUNK => pieces,
            _ => return Ok(StreamingBlob::from(s3s::Body::from(self.bytes().map_err(unreadable)?))),
        };
        let mut open: VecDeque<Open> = pieces.iter().map(Open::new).collect();
        if let Some(first) = open.front_mut() {
            first.reader().map_err(unreadable)?;
        }
        Ok(StreamingBlob::wrap(Chunks { open, reading: None }))
    }
}

/// Result of reading a chunk, and its piece.
type Read = (io::Result<Option<Bytes>>, Open);

/// A stream of chunks from pieces.
struct Chunks {
    open: VecDeque<Open>,
    /// Chunk being read, which may take a while.
    reading: Option<JoinHandle<Read>>,
}

impl Stream for Chunks {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(reading) = &mut self.reading else {
                let Some(mut open) = self.open.pop_front() else { return Poll::Ready(None) };
                self.reading = Some(tokio::task::spawn_blocking(move || (open.next_chunk(), open)));
                continue;
            };
            let read = ready!(Pin::new(reading).poll(context));
            self.reading = None;
            match read {
                Ok((Ok(None), _)) => {}
                Ok((Ok(Some(chunk)), open)) => {
                    self.open.push_front(open);
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Ok((Err(error), _)) => {
                    self.open.clear();
                    return Poll::Ready(Some(Err(error)));
                }
                Err(error) => {
                    self.open.clear();
                    return Poll::Ready(Some(Err(io::Error::other(error))));
                }
            }
        }
    }
}

/// A piece being read. Its blob is opened only when it is reached, because an object with thousands
/// of parts would otherwise need as many file descriptors.
struct Open {
    piece: Piece,
    reader: Option<Arc<dyn BlobReader>>,
    /// Number of bytes read so far.
    read: u64,
}

impl Open {
    fn new(piece: &Piece) -> Self {
        Self { piece: piece.clone(), reader: None, read: 0 }
    }

    fn reader(&mut self) -> io::Result<Arc<dyn BlobReader>> {
        if let Some(reader) = &self.reader {
            return Ok(reader.clone());
        }
        let reader = self.piece.blob.open()?;
        Ok(self.reader.insert(reader).clone())
    }

    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        let left = self.piece.length - self.read;
        if left == 0 {
            return Ok(None);
        }
        let length = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let mut chunk = vec![0; length];
        self.reader()?.read_at(self.piece.from + self.read, &mut chunk)?;
        self.read += length as u64;
        Ok(Some(chunk.into()))
    }
}
