//! DeleteObjects results for objects that the store is not asked about: those already deleted, and
//! those listed again. S3 returns a result for each object listed.

use std::collections::HashMap;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::Frame;
use http_body_util::BodyExt;
use memchr::memmem;
use tower::BoxError;

use super::objects::{Answer, Doomed};
use crate::body::Body;
use crate::refusal::Code;
use crate::xml::{begin, element};

const ROOT: &str = "DeleteResult";
const END: &[u8] = b"</DeleteResult>";
/// The first and last tags of a result's entries.
const ENTRIES: [(&[u8], &[u8]); 2] = [(b"<Deleted>", b"</Deleted>"), (b"<Error>", b"</Error>")];
/// Maximum length in bytes of an entry that can be repeated: a key of a kilobyte, every byte
/// escaped, and more.
const LONGEST_ENTRY: usize = 16 << 10;

/// Results to be added to a store's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supplement {
    /// Keys whose entry has to be repeated, and the number of repetitions.
    repeated: HashMap<String, usize>,
    /// Entries for objects that the store was not asked about.
    further: String,
}

impl Supplement {
    /// Creates a supplement for keys that occur again in a request.
    pub(super) fn of(repeated: impl IntoIterator<Item = String>) -> Self {
        let mut supplement = Self::default();
        for key in repeated {
            *supplement.repeated.entry(key).or_default() += 1;
        }
        supplement
    }

    /// Adds an object that is already deleted, by a marker with this version id if it is known. An
    /// object with a condition gets an error.
    pub(super) fn add(&mut self, object: &Doomed, marker: Option<&str>, answer: Answer) {
        let times = 1 + self.repeated.remove(object.key.as_str()).unwrap_or_default();
        let has_condition = object.etag.is_some() || object.modified.is_some() || object.size.is_some();
        if !has_condition && answer == Answer::Errors {
            return;
        }
        let mut entry = String::new();
        let mut put = |part: &str| entry.push_str(part);
        let name = if has_condition { "Error" } else { "Deleted" };
        ["<", name, ">"].into_iter().for_each(&mut put);
        element("Key", Some(object.key.as_str()), &mut put);
        if has_condition {
            element("Code", Some(Code::PreconditionFailed.as_str()), &mut put);
            element("Message", Some("The object was not deleted."), &mut put);
        } else {
            element("DeleteMarker", marker.map(|_| "true"), &mut put);
            element("DeleteMarkerVersionId", marker, &mut put);
        }
        ["</", name, ">"].into_iter().for_each(&mut put);
        self.further.push_str(&entry.repeat(times));
    }

    /// Returns the whole result, if nothing is left for the store.
    #[must_use]
    pub fn alone(&self) -> String {
        let mut text = String::new();
        begin(ROOT, &mut |part: &str| text.push_str(part));
        text.push_str(&self.further);
        text.push_str("</DeleteResult>");
        text
    }

    /// Adds these results to a store's response.
    #[must_use]
    pub fn within(self, from_store: Body) -> Body {
        if self == Self::default() {
            return from_store;
        }
        Within { body: from_store, supplement: self, held: BytesMut::new(), ended: false }.boxed_unsync()
    }
}

struct Within {
    body: Body,
    supplement: Supplement,
    /// The unprocessed end of the input: the beginning of a tag or of an entry.
    held: BytesMut,
    ended: bool,
}

impl http_body::Body for Within {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while !self.ended {
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)).transpose()?;
            let mut out = BytesMut::new();
            match frame.map(Frame::into_data) {
                Some(Ok(data)) => {
                    self.held.extend_from_slice(&data);
                    while self.step(&mut out) {}
                }
                Some(Err(_)) => {}
                None => {
                    self.ended = true;
                    out.extend_from_slice(&self.held.split());
                }
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

impl Within {
    /// Passes on one item: an entry, the text before it, or the end. Returns false if more input is
    /// needed.
    fn step(&mut self, out: &mut BytesMut) -> bool {
        let entries = ENTRIES.iter().filter_map(|(first, last)| Some((memmem::find(&self.held, first)?, *last)));
        let next = entries.min_by_key(|(at, _)| *at);
        let end = memmem::find(&self.held, END);
        match (next, end) {
            (Some((at, last)), end) if end.is_none_or(|end| at < end) => {
                out.extend_from_slice(&self.held.split_to(at));
                self.entry(last, out)
            }
            (_, Some(end)) => {
                out.extend_from_slice(&self.held.split_to(end));
                out.extend_from_slice(std::mem::take(&mut self.supplement.further).as_bytes());
                // Nothing relevant follows.
                out.extend_from_slice(&self.held.split());
                false
            }
            _ => {
                // A tag may have begun.
                let whole = (self.held.len() + 1).saturating_sub(END.len());
                out.extend_from_slice(&self.held.split_to(whole));
                false
            }
        }
    }

    /// Passes on the entry that has begun, once for each time its object is listed.
    fn entry(&mut self, last: &[u8], out: &mut BytesMut) -> bool {
        let Some(at) = memmem::find(&self.held, last) else {
            if self.held.len() > LONGEST_ENTRY {
                out.extend_from_slice(&self.held.split());
            }
            return false;
        };
        let entry = self.held.get(..at + last.len()).unwrap_or_default();
        let again = key_of(entry).and_then(|key| self.supplement.repeated.remove(&key)).unwrap_or_default();
        (0..=again).for_each(|_| out.extend_from_slice(entry));
        self.held.advance(at + last.len());
        true
    }
}

/// Returns the key in an entry.
fn key_of(entry: &[u8]) -> Option<String> {
    let text = str::from_utf8(entry).ok()?;
    let (_, behind) = text.split_once("<Key>")?;
    let (key, _) = behind.split_once("</Key>")?;
    Some(quick_xml::escape::unescape(key).ok()?.into_owned())
}

#[cfg(test)]
#[path = "supplement_tests.rs"]
mod tests;
