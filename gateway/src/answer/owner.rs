//! A filter of a store's documents that hides the store's own data.
//!
//! - Lists: every `Owner` and `Initiator` is replaced by the owner that all buckets have for
//!   tenants.
//! - Results of DeleteObjects: elements that S3 doesn't define there are omitted, and every
//!   `Message` is replaced by the gateway's. Stores name accounts, hosts and paths in theirs.
//!
//! Documents are streamed: only the current tag is buffered. Anything that can't be understood ends
//! the response, as it might reveal what is to be hidden.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use memchr::memchr;
use tower::BoxError;

use super::OWNER;
use crate::body::Body;
use crate::head::Operation;

/// Maximum length of a tag in bytes. Stores write names of elements and of a namespace.
const LONGEST_TAG: usize = 1024;

/// A filtered document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A list of objects, versions, uploads or parts.
    List,
    /// The result of a DeleteObjects.
    Deletion,
}

impl Document {
    /// Returns the document in the store's response to an operation, if it has to be filtered.
    #[must_use]
    pub fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::DeleteObjects => Some(Self::Deletion),
            operation => operation.lists().then_some(Self::List),
        }
    }

    /// Returns the treatment of an element by its name without prefix.
    fn shown(self, name: &[u8]) -> Shown {
        match (self, name) {
            (Self::List, b"Owner" | b"Initiator") => Shown::Owner,
            (Self::List, _) => Shown::AsItIs,
            (Self::Deletion, b"Message") => Shown::Message,
            (Self::Deletion, b"DeleteResult" | b"Deleted" | b"Error" | b"Key" | b"VersionId" | b"Code") => {
                Shown::AsItIs
            }
            (Self::Deletion, b"DeleteMarker" | b"DeleteMarkerVersionId") => Shown::AsItIs,
            (Self::Deletion, _) => Shown::Not,
        }
    }
}

/// The treatment of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    AsItIs,
    /// Replaced by the owner that all buckets have.
    Owner,
    /// Replaced by the gateway's message.
    Message,
    /// Omitted.
    Not,
}

/// The message for an object that was not deleted. Its code gives the reason.
const NOT_DELETED: &[u8] = b"The object was not deleted.";

/// Filters a document. The length of the result differs.
pub fn body(from_store: Body, document: Document) -> Body {
    Owned { body: from_store, filter: Filter::of(document), ended: false }.boxed_unsync()
}

struct Owned {
    body: Body,
    filter: Filter,
    ended: bool,
}

impl http_body::Body for Owned {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.ended {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()?;
            // Trailers would describe the original bytes.
            let Some(frame) = frame else {
                self.ended = true;
                let whole = self.filter.end();
                return Poll::Ready(whole.err().map(|malformed| Err(malformed.into())));
            };
            let Ok(data) = frame.into_data() else { continue };
            let mut out = BytesMut::with_capacity(data.len());
            if let Err(malformed) = self.filter.feed(&data, &mut out) {
                self.ended = true;
                return Poll::Ready(Some(Err(malformed.into())));
            }
            if !out.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(out.freeze()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// The document can't be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Malformed {
    #[error("a store's list is no XML in UTF-8")]
    NoXml,
    #[error("a store's list has a document type")]
    DocumentType,
    #[error("a store's list has too long a tag")]
    LongTag,
    #[error("an element of a store's list ends otherwise than it begins")]
    Nesting,
    #[error("a store's list ends too early")]
    Early,
}

/// The position in the document.
#[derive(Debug, Default)]
enum At {
    /// Between tags.
    #[default]
    Text,
    /// In a tag, and in an attribute value that ends with this quote.
    Tag(Option<u8>),
    /// In something other than an element, which ends with this; and its last three bytes.
    Other(&'static [u8], [u8; 3]),
}

/// An element that is being omitted.
#[derive(Debug)]
struct Hidden {
    /// Name of the element.
    name: Vec<u8>,
    /// The number of open elements in it, including itself.
    depth: usize,
}

#[derive(Debug)]
struct Filter {
    document: Document,
    at: At,
    /// The current tag so far, from `<` on.
    tag: Vec<u8>,
    hidden: Option<Hidden>,
    /// True once the first tag has begun.
    began: bool,
}

impl Filter {
    fn of(document: Document) -> Self {
        Self { document, at: At::default(), tag: Vec::new(), hidden: None, began: false }
    }

    /// Takes the next bytes of a document, and writes those that may be shown to `out`.
    fn feed(&mut self, mut bytes: &[u8], out: &mut BytesMut) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            let taken = match self.at {
                At::Text => self.text(bytes, out)?,
                At::Tag(quote) => self.in_tag(quote, bytes, out)?,
                At::Other(end, last) => self.other(end, last, bytes, out),
            };
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Checks that the document has ended between tags, with no element hidden.
    fn end(&self) -> Result<(), Malformed> {
        let is_whole = matches!(self.at, At::Text) && self.hidden.is_none();
        if is_whole { Ok(()) } else { Err(Malformed::Early) }
    }

    fn show(&self, bytes: &[u8], out: &mut BytesMut) {
        if self.hidden.is_none() {
            out.extend_from_slice(bytes);
        }
    }

    fn text(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<usize, Malformed> {
        let end = memchr(b'<', bytes);
        let text = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        // A document may begin with blanks and a UTF-8 byte order mark.
        if !self.began && !text.iter().all(|byte| b" \t\r\n\xef\xbb\xbf".contains(byte)) {
            return Err(Malformed::NoXml);
        }
        self.show(text, out);
        if end.is_none() {
            return Ok(text.len());
        }
        self.began = true;
        self.tag.clear();
        self.tag.push(b'<');
        self.at = At::Tag(None);
        Ok(text.len() + 1)
    }

    /// Takes one byte of a tag.
    fn in_tag(&mut self, quote: Option<u8>, bytes: &[u8], out: &mut BytesMut) -> Result<usize, Malformed> {
        const COMMENT: &[u8] = b"<!--";
        const CDATA: &[u8] = b"<![CDATA[";
        let Some(&byte) = bytes.first() else { return Ok(0) };
        if self.tag.len() == LONGEST_TAG {
            return Err(Malformed::LongTag);
        }
        self.tag.push(byte);
        let other = match self.tag.as_slice() {
            b"<?" => Some(&b"?>"[..]),
            COMMENT => Some(&b"-->"[..]),
            CDATA => Some(&b"]]>"[..]),
            tag if tag.starts_with(b"<!") && !COMMENT.starts_with(tag) && !CDATA.starts_with(tag) => {
                return Err(Malformed::DocumentType);
            }
            _ => None,
        };
        if let Some(end) = other {
            self.show(&self.tag, out);
            self.at = At::Other(end, [0; 3]);
            return Ok(1);
        }
        match (byte, quote) {
            (b'>', None) => {
                self.at = At::Text;
                self.end_of_tag(out)?;
            }
            (b'"' | b'\'', None) => self.at = At::Tag(Some(byte)),
            (_, Some(open)) if byte == open => self.at = At::Tag(None),
            _ => (),
        }
        Ok(1)
    }

    /// Passes on something other than an element, up to its end.
    fn other(&mut self, end: &'static [u8], mut last: [u8; 3], bytes: &[u8], out: &mut BytesMut) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            last = [last[1], last[2], *byte];
            if last.ends_with(end) {
                self.at = At::Text;
                self.show(bytes.get(..=at).unwrap_or_default(), out);
                return at + 1;
            }
        }
        self.at = At::Other(end, last);
        self.show(bytes, out);
        bytes.len()
    }

    fn end_of_tag(&mut self, out: &mut BytesMut) -> Result<(), Malformed> {
        let tag = Tag::of(&self.tag).ok_or(Malformed::NoXml)?;
        match (&mut self.hidden, tag.kind) {
            (Some(hidden), Kind::Start) => hidden.depth += 1,
            (Some(_), Kind::Empty) => (),
            (Some(hidden), Kind::End) => {
                hidden.depth -= 1;
                if hidden.depth == 0 {
                    if hidden.name != tag.name {
                        return Err(Malformed::Nesting);
                    }
                    self.hidden = None;
                }
            }
            (None, Kind::End) => out.extend_from_slice(&self.tag),
            (None, Kind::Start | Kind::Empty) => {
                let shown = self.document.shown(tag.parts().1);
                match shown {
                    Shown::AsItIs => out.extend_from_slice(&self.tag),
                    Shown::Owner => tag.owner(out),
                    Shown::Message => tag.with(out, |out| out.extend_from_slice(NOT_DELETED)),
                    Shown::Not => (),
                }
                if shown != Shown::AsItIs && tag.kind == Kind::Start {
                    self.hidden = Some(Hidden { name: tag.name.to_vec(), depth: 1 });
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Start,
    End,
    Empty,
}

/// A tag of an element.
#[derive(Clone, Copy, Debug)]
struct Tag<'a> {
    kind: Kind,
    name: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Parses a tag from `<` to `>`. Returns `None` if its name is missing or invalid.
    fn of(tag: &'a [u8]) -> Option<Self> {
        let within = tag.strip_prefix(b"<")?.strip_suffix(b">")?;
        let (kind, within) = match (within.strip_prefix(b"/"), within.strip_suffix(b"/")) {
            (Some(end), _) => (Kind::End, end),
            (None, Some(empty)) => (Kind::Empty, empty),
            (None, None) => (Kind::Start, within),
        };
        let name = within.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let may = |byte: &u8| byte.is_ascii_alphanumeric() || b":_-.".contains(byte) || !byte.is_ascii();
        (!name.is_empty() && name.iter().all(may)).then_some(Self { kind, name })
    }

    /// Returns the name's prefix, with its colon, and the rest.
    fn parts(&self) -> (&'a [u8], &'a [u8]) {
        let colon = memchr::memrchr(b':', self.name).map_or(0, |colon| colon + 1);
        self.name.split_at(colon)
    }

    /// Writes the element with other content.
    fn with(&self, out: &mut BytesMut, content: impl FnOnce(&mut BytesMut)) {
        let (prefix, local) = self.parts();
        element(out, prefix, local, content);
    }

    /// Writes the element with the gateway's owner.
    fn owner(&self, out: &mut BytesMut) {
        let (prefix, _) = self.parts();
        self.with(out, |out| {
            for name in [&b"ID"[..], b"DisplayName"] {
                element(out, prefix, name, |out| out.extend_from_slice(OWNER.as_bytes()));
            }
        });
    }
}

/// Writes an element without attributes.
fn element(out: &mut BytesMut, prefix: &[u8], name: &[u8], content: impl FnOnce(&mut BytesMut)) {
    let tag = |out: &mut BytesMut, begin: &[u8]| {
        for part in [begin, prefix, name, b">"] {
            out.extend_from_slice(part);
        }
    };
    tag(out, b"<");
    content(out);
    tag(out, b"</");
}

#[cfg(test)]
#[path = "owner_tests.rs"]
mod tests;
