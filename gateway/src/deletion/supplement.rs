//! The result of a DeleteObjects for objects that the store is not asked for: those that are
//! deleted already, and those that the document names again. S3 answers for each object that is
//! named.

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
/// Entries of a result: their first and last tags.
const ENTRIES: [(&[u8], &[u8]); 2] = [(b"<Deleted>", b"</Deleted>"), (b"<Error>", b"</Error>")];
/// Longest entry that is repeated: a key of a kilobyte, every byte of it escaped, and more.
const LONGEST_ENTRY: usize = 16 << 10;

/// Results beside those of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supplement {
    /// Keys whose entry comes again, and how often.
    repeated: HashMap<String, usize>,
    /// Entries that the store has none of.
    further: String,
}

impl Supplement {
    /// Of keys that are named again.
    pub(super) fn of(repeated: impl IntoIterator<Item = String>) -> Self {
        let mut supplement = Self::default();
        for key in repeated {
            *supplement.repeated.entry(key).or_default() += 1;
        }
        supplement
    }

    /// Adds an object that is deleted already, by a marker of this version where that is known. One
    /// that is meant only as it was is told as an error.
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

    /// The whole result, where the store is asked for nothing.
    #[must_use]
    pub fn alone(&self) -> String {
        let mut text = String::new();
        begin(ROOT, &mut |part: &str| text.push_str(part));
        text.push_str(&self.further);
        text.push_str("</DeleteResult>");
        text
    }

    /// A store's result with what is told beside it.
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
    /// The end of what has come: the beginning of a tag, or of an entry.
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
    /// Passes one thing on: an entry, what stands before it, or the end. False where more has to
    /// come first.
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
                // Behind it comes nothing that matters.
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

    /// Passes on the entry that has begun, as often as its object is named.
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

/// The key in an entry.
fn key_of(entry: &[u8]) -> Option<String> {
    let text = str::from_utf8(entry).ok()?;
    let (_, behind) = text.split_once("<Key>")?;
    let (key, _) = behind.split_once("</Key>")?;
    Some(quick_xml::escape::unescape(key).ok()?.into_owned())
}

#[cfg(test)]
#[path = "supplement_tests.rs"]
mod tests;
