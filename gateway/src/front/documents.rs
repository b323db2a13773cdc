//! Requests with an XML document: the document is read whole, within bounds, and the store gets one
//! written from what was read (spec §6).

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use ring::digest;
use tokio::time::timeout;

use super::authentication::Known;
use super::deletions::Aside;
use super::record::Record;
use super::shared::Shared;
use super::store::Passed;
use crate::body::pace::Slow;
use crate::body::{Body, Broken, ChunkSignatures, Outgoing, Payload, Trailers, outgoing};
use crate::decide::{Caller, Verdict, Wanted, decide, denied, unknown_key};
use crate::deletion::{self, Deletion};
use crate::document;
use crate::head::{Ask, MAX_BODY, Operation};
use crate::limits::{Counted, Counts};
use crate::refusal::{Code, Refusal};
use crate::registry::{Backend, Key};
use crate::sigv4::Verified;
use crate::upstream::{Share, Shares, Tenant};

/// Maximum memory of all documents together, in KiB, by capacity.
const MOST_KIB: usize = 64 << 10;
/// Maximum number of documents per claim or access at once: those of DeleteObjects, and others
/// longer than [`SHORT`].
const MOST_OF_ONE: u32 = 4;
/// Maximum length of a document that doesn't count towards [`MOST_OF_ONE`], in bytes.
const SHORT: u64 = 64 << 10;
/// Time limit for a document to arrive. Unlike a streamed body, it occupies memory meanwhile.
const TO_COME: Duration = Duration::from_secs(60);

/// The memory budget for documents.
pub(super) struct Documents {
    kib: Arc<Shares>,
    of_one: Counts<String>,
}

/// A reservation for one document, released when dropped.
pub(super) struct Room {
    _kib: Share,
    _of_one: Option<Counted<String>>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { kib: Arc::new(Shares::new(MOST_KIB)), of_one: Counts::new(MOST_OF_ONE) }
    }
}

impl Documents {
    /// Reserves `held` bytes for one more document of the tenant. Counts it for the claim or access
    /// with the UID `holder`, if given.
    ///
    /// # Errors
    /// `SlowDown` if no memory or no document is left.
    fn take(&self, holder: Option<&str>, tenant: Tenant, held: u64) -> Result<Room, Refusal> {
        let full = || Refusal::new(Code::SlowDown, "Too many documents are being read at once. Please try again.");
        let of_one = holder.map(|holder| self.of_one.take(holder.to_owned()).ok_or_else(full)).transpose()?;
        let kib = usize::try_from(held.div_ceil(1024)).map_err(|_| full())?;
        let kib = self.kib.take(tenant, kib).map_err(|_| full())?;
        Ok(Room { _kib: kib, _of_one: of_one })
    }
}

impl Shared {
    /// Reads and authorises a DeleteObjects. Returns the request with a rewritten document, the
    /// objects that were set aside, and the memory reservation.
    ///
    /// Each key of the document has to be one that the caller may delete. The access log record
    /// gets the keys.
    ///
    /// # Errors
    /// `AccessDenied` if the caller may not delete one of the keys; `SlowDown` if there is no
    /// memory for the document; `RequestTimeout` if it doesn't arrive in time; the errors of
    /// reading a body and of [`Deletion::read`].
    pub(super) async fn read_deletion(
        &self,
        mut ask: Ask,
        body: Body,
        known: &Known,
        location: String,
        record: &mut Record,
    ) -> Result<(Passed, Aside, Room), Refusal> {
        let Known::Key(key, verified) = known else { return Err(denied()) };
        let held = Deletion::most_held(ask.payload.length());
        let room = self.documents.take(Some(key.holder_uid()), self.tenant(known, &ask), held)?;
        let document = read(body, ask.payload, verified).await?;
        deletion::verify(&ask.headers, &document)?;
        let read = Deletion::read(&document)?;
        drop(document);
        record.deletes(&read);
        let wanted = Wanted { deletion: Some(&read), ..Wanted::of(&ask) };
        let (backend, now) = self.decide_again(key, &wanted).await?;
        let (read, aside) = self.set_aside(read, &backend, &ask, known, now).await?;
        let written = read.written()?;
        let unwritable = |_| Refusal::new(Code::InternalError, "A header can't be written.");
        deletion::write_anew(&mut ask.headers, &written).map_err(unwritable)?;
        let body = put(&mut ask, written);
        Ok((Passed { ask, backend, body, now, location }, aside, room))
    }

    /// Rewrites the document of a request other than DeleteObjects. A request without a document is
    /// returned unchanged. The document's memory is released once it has been sent.
    ///
    /// # Errors
    /// `SlowDown` if there is no memory for the document; `RequestTimeout` if it doesn't arrive in
    /// time; the errors of reading a body, of [`document::rewritten`], and of the second
    /// authorisation.
    pub(super) async fn with_document(&self, passed: Passed, known: &Known) -> Result<Passed, Refusal> {
        if !document::is_rewritten(passed.ask.operation) {
            return Ok(passed);
        }
        let Passed { mut ask, body, location, .. } = passed;
        let Known::Key(key, verified) = known else { return Err(denied()) };
        let length = ask.payload.length();
        let holder = Some(key.holder_uid()).filter(|_| length > SHORT);
        let room = self.documents.take(holder, self.tenant(known, &ask), document::most_held(length))?;
        let document = read(body, ask.payload, verified).await?;
        let is_about_object = ask.operation == Operation::CompleteMultipartUpload;
        if is_about_object {
            deletion::verify_md5(&ask.headers, &document)?;
        } else {
            deletion::verify(&ask.headers, &document)?;
        }
        let written = document::rewritten(ask.operation, &document)?;
        drop(document);
        let (backend, now) = self.decide_again(key, &Wanted::of(&ask)).await?;
        if is_about_object {
            // S3 requires no digest of this document, and checksum headers on it are the object's.
            ask.headers.remove("content-md5");
            ask.headers.remove("x-amz-sdk-checksum-algorithm");
            ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
        } else {
            let unwritable = |_| Refusal::new(Code::InternalError, "A header can't be written.");
            deletion::write_anew(&mut ask.headers, &written).map_err(unwritable)?;
        }
        let body = put(&mut ask, written);
        let body = body.map_frame(move |frame| {
            let _until_sent = &room;
            frame
        });
        Ok(Passed { ask, backend, body: body.boxed_unsync(), now, location })
    }

    /// Authorises a request again once its document has arrived. Returns the backend and the
    /// current time. The key may have expired meanwhile, or consent may have been withdrawn.
    async fn decide_again(&self, key: &Key, wanted: &Wanted<'_>) -> Result<(Arc<Backend>, Timestamp), Refusal> {
        let now = (self.clock)();
        let key = self.key(key.id(), now).await.ok_or_else(unknown_key)?;
        match self.registry.ask(|tables| decide(Caller::Key(&key), wanted, tables, now))? {
            Verdict::Forward(backend) => Ok((backend, now)),
            Verdict::ReadDeletion | Verdict::TellBuckets(_) | Verdict::TellConfiguration | Verdict::TellRegion => {
                Err(denied())
            }
        }
    }
}

/// Reads a request's document, and verifies it against the request's signature.
async fn read(body: Body, payload: Payload, verified: &Verified) -> Result<Vec<u8>, Refusal> {
    check_trailer(payload)?;
    let signatures = Some(Box::new(verified.chain()) as Box<dyn ChunkSignatures>);
    let reading = async { whole(outgoing(body, payload, Trailers::Unknown, signatures).await?).await };
    timeout(TO_COME, reading).await.map_err(|_| Slow::Trickle.refusal())?
}

/// Refuses a trailing checksum that the gateway can't compute, even if the body is signed
/// otherwise.
fn check_trailer(payload: Payload) -> Result<(), Refusal> {
    match payload {
        Payload::SignedChunksTrailer { trailer: Some(checksum), .. } if checksum.start().is_none() => {
            let message = format!("{} can't be verified here. Use another checksum.", checksum.header());
            Err(Refusal::new(Code::NotImplemented, message))
        }
        _ => Ok(()),
    }
}

/// Reads the whole of a body that is verified while it is read. Allocates its length and no more.
async fn whole(out: Outgoing) -> Result<Vec<u8>, Refusal> {
    let length = usize::try_from(out.length.min(MAX_BODY)).unwrap_or_default();
    let (mut whole, mut body) = (Vec::with_capacity(length), out.body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Broken::refusal(&error))?;
        // Copied, because a piece may keep a larger buffer alive.
        whole.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    Ok(whole)
}

/// Replaces the client's document with this one as the body of the request.
fn put(ask: &mut Ask, document: Vec<u8>) -> Body {
    let mut sha256 = [0; 32];
    let digest = digest::digest(&digest::SHA256, &document);
    sha256.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    ask.payload = Payload::Hash { sha256, length: document.len() as u64 };
    Full::new(document.into()).map_err(|never| match never {}).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 6.deleteObjects.bound
    #[test]
    fn documents_have_room_by_what_they_may_come_to() {
        let documents = Documents::default();
        let held = Deletion::most_held(2 << 20);
        let of = |number: usize| Tenant::Namespace(format!("team-{number}"));
        let ours: Vec<Room> = (0..4).map_while(|_| documents.take(Some("one"), of(1), held).ok()).collect();
        assert_eq!(ours.len(), 4);
        let fifth = documents.take(Some("one"), of(1), 1).err().map(|refusal| refusal.code);
        assert_eq!(fifth, Some(Code::SlowDown), "a holder has four at once");
        let take = |holder: String, tenant: usize| documents.take(Some(&holder), of(tenant), held).ok();
        let own: Vec<Room> = (0..100).map_while(|it| take(format!("{it}"), 1)).collect();
        let one = (ours.len() + own.len()) as u64;
        assert!(one * held <= 32 << 20, "{one} of the longest of one namespace at once");
        let others: Vec<Room> = (0..100).map_while(|it| take(format!("o{it}"), it + 2)).collect();
        let all = one + others.len() as u64;
        assert!(all * held <= 64 << 20, "{all} of the longest at once");
        assert!((all + 1) * held > 64 << 20, "{all} of the longest at once");
        drop((ours, own));
        assert!(documents.take(Some("one"), of(1), held).is_ok(), "who is done leaves its room");
    }

    // covers: 6.documents
    #[test]
    fn short_documents_have_the_memory_alone_as_their_bound() {
        let documents = Documents::default();
        let of = |number: usize| Tenant::Namespace(format!("team-{number}"));
        let take = |number| documents.take(None, of(number), document::most_held(SHORT)).ok();
        let short: Vec<Room> = (0..2000).map_while(take).collect();
        let all = short.len() as u64 * document::most_held(SHORT);
        assert!((60 << 20..=64 << 20).contains(&all), "{} at once", short.len());
    }
}
