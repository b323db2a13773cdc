//! DeleteObjects: its body is read whole, within bounds, and the store gets a document that is
//! written from what was read (spec §6).

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use ring::digest;
use tokio::time::timeout;

use super::record::Record;
use super::{Known, Passed, Shared};
use crate::body::pace::Slow;
use crate::body::{Ability, Body, BodyHashes, Broken, Outgoing, Payload, Trailers, outgoing};
use crate::decide::{Caller, Verdict, Wanted, decide, denied, unknown_key};
use crate::deletion::{self, Deletion};
use crate::head::{Ask, MAX_BODY};
use crate::limits::{Counted, Counts};
use crate::refusal::{Code, Refusal};
use crate::upstream::{Share, Shares, Tenant};

/// How much memory documents hold together, in KiB, by capacity.
const MOST_KIB: usize = 64 << 10;
/// How many documents each claim or access may have at once.
const MOST_OF_ONE: u32 = 4;
/// How long a document may take to come. It holds memory meanwhile, which a body that flows does
/// not.
const TO_COME: Duration = Duration::from_secs(60);

/// Room for documents that are held in memory.
pub(super) struct Documents {
    kib: Arc<Shares>,
    of_one: Counts<String>,
}

/// Room for one document, until this is dropped.
pub(super) struct Room {
    _kib: Share,
    _of_one: Counted<String>,
}

impl Default for Documents {
    fn default() -> Self {
        Self { kib: Arc::new(Shares::new(MOST_KIB)), of_one: Counts::new(MOST_OF_ONE) }
    }
}

impl Documents {
    /// Room for one more document of this length, of the claim or access with this UID, which is
    /// the tenant's.
    ///
    /// # Errors
    /// `SlowDown` where there is none now.
    fn take(&self, holder: &str, tenant: Tenant, length: u64) -> Result<Room, Refusal> {
        let full = || Refusal::new(Code::SlowDown, "Too many objects are being deleted at once. Please try again.");
        let of_one = self.of_one.take(holder.to_owned()).ok_or_else(full)?;
        let kib = usize::try_from(Deletion::most_held(length).div_ceil(1024)).map_err(|_| full())?;
        let kib = self.kib.take(tenant, kib).map_err(|_| full())?;
        Ok(Room { _kib: kib, _of_one: of_one })
    }
}

impl Shared {
    /// A request that deletes many objects, with a document of ours, once each of its keys was
    /// found to be the caller's; and the room that it takes. The record names the keys.
    ///
    /// # Errors
    /// `AccessDenied` where one of its keys is not; `SlowDown` where there is no room for its
    /// document; `RequestTimeout` where that doesn't come; all that a body can fail with, and that
    /// [`Deletion::read`] can.
    pub(super) async fn read_deletion(
        &self,
        mut ask: Ask,
        body: Body,
        known: &Known,
        location: String,
        record: &mut Record,
    ) -> Result<(Passed, Room), Refusal> {
        let Known::Key(key, verified) = known else { return Err(denied()) };
        let room = self.documents.take(key.holder_uid(), self.tenant(known, &ask), ask.payload.length())?;
        check_trailer(ask.payload)?;
        let here = Ability { trailers: Trailers::Unknown, hashes: BodyHashes::Here };
        let reading = async { whole(outgoing(body, ask.payload, here, Some(Box::new(verified.chain()))).await?).await };
        let document = timeout(TO_COME, reading).await.map_err(|_| Slow::Trickle.refusal())??;
        deletion::verify(&ask.headers, &document)?;
        let read = Deletion::read(&document)?;
        drop(document);
        record.deletes(&read);
        // While the document came, the key may have ended, and consent may have been withdrawn.
        let now = (self.clock)();
        let key = self.key(key.id(), now).await.ok_or_else(unknown_key)?;
        let wanted = Wanted { deletion: Some(&read), ..Wanted::of(&ask) };
        let verdict = self.registry.ask(|tables| decide(Caller::Key(&key), &wanted, tables, now))?;
        let Verdict::Forward(backend) = verdict else { return Err(denied()) };
        let body = put(&mut ask, read.written()?)?;
        Ok((Passed { ask, backend, body, now, location }, room))
    }
}

/// What can't be computed here can't be verified here, whatever else is signed of the body.
fn check_trailer(payload: Payload) -> Result<(), Refusal> {
    match payload {
        Payload::SignedChunksTrailer { trailer: Some(checksum), .. } if checksum.start().is_none() => {
            let message = format!("{} can't be verified here. Use another checksum.", checksum.header());
            Err(Refusal::new(Code::NotImplemented, message))
        }
        _ => Ok(()),
    }
}

/// All of a body that is verified while it is read. What is taken is its length, and no more.
async fn whole(out: Outgoing) -> Result<Vec<u8>, Refusal> {
    let length = usize::try_from(out.length.min(MAX_BODY)).unwrap_or_default();
    let (mut whole, mut body) = (Vec::with_capacity(length), out.body);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Broken::refusal(&error))?;
        // A copy: a piece may keep a larger buffer alive.
        whole.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    Ok(whole)
}

/// Makes this document the body of a request, in the place of the client's.
fn put(ask: &mut Ask, document: Vec<u8>) -> Result<Body, Refusal> {
    let unwritable = |_| Refusal::new(Code::InternalError, "A header can't be written.");
    deletion::write_anew(&mut ask.headers, &document).map_err(unwritable)?;
    let mut sha256 = [0; 32];
    let digest = digest::digest(&digest::SHA256, &document);
    sha256.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    ask.payload = Payload::Hash { sha256, length: document.len() as u64 };
    ask.encoding = None;
    Ok(Full::new(document.into()).map_err(|never| match never {}).boxed_unsync())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 6.deleteObjects.bound
    #[test]
    fn documents_have_room_by_what_they_may_come_to() {
        let documents = Documents::default();
        let longest = 2 << 20;
        let of = |number: usize| Tenant::Namespace(format!("team-{number}"));
        let held: Vec<Room> = (0..4).map_while(|_| documents.take("one", of(1), longest).ok()).collect();
        assert_eq!(held.len(), 4);
        let fifth = documents.take("one", of(1), 1).err().map(|refusal| refusal.code);
        assert_eq!(fifth, Some(Code::SlowDown), "a holder has four at once");
        let own: Vec<Room> = (0..100).map_while(|it| documents.take(&format!("{it}"), of(1), longest).ok()).collect();
        let one = (held.len() + own.len()) as u64;
        assert!(one * Deletion::most_held(longest) <= 32 << 20, "{one} of the longest of one namespace at once");
        let others: Vec<Room> =
            (0..100).map_while(|it| documents.take(&format!("o{it}"), of(it + 2), longest).ok()).collect();
        let all = one + others.len() as u64;
        assert!(all * Deletion::most_held(longest) <= 64 << 20, "{all} of the longest at once");
        assert!((all + 1) * Deletion::most_held(longest) > 64 << 20, "{all} of the longest at once");
        drop((held, own));
        assert!(documents.take("one", of(1), longest).is_ok(), "who is done leaves its room");
    }
}
