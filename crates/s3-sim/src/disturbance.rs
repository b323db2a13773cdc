//! What a client of a real store must live with and a store at rest never shows: answers that are
//! old, half done or cut.
//!
//! A request that carries a [`Disturbance`] among its extensions is answered so; requests that it
//! can't happen to are answered as ever.

use bytes::Bytes;
use http::{Response, StatusCode};
use s3s::Body;

use super::Store;
use super::state::State;

/// What is wrong with the answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// A read is answered from the state before the last write, see [`Store::remember_past`].
    Stale,
    /// Of the keys of a DeleteObjects the first stays, with an `InternalError` of its own in an
    /// answer of 200.
    PartialDelete,
    /// The second half of the answer's body is missing.
    Truncated,
}

/// The state before the last write.
#[derive(Default)]
pub(super) enum Past {
    /// Nobody has asked for it to be kept.
    #[default]
    NotKept,
    /// It is kept from the next write on.
    Kept(Option<Box<State>>),
}

impl Store {
    /// From now on the store can answer reads from the state before the last write. Each write
    /// costs a copy of all but the data of objects.
    pub fn remember_past(&self) {
        let mut past = self.past();
        if matches!(*past, Past::NotKept) {
            *past = Past::Kept(None);
        }
    }

    /// The state as it will be the past after a write, if that is asked for.
    pub(super) fn past_of(&self, state: &State) -> Option<Box<State>> {
        match &*self.past() {
            Past::Kept(_) => Some(Box::new(state.clone())),
            Past::NotKept => None,
        }
    }

    /// Keeps the state before a write that was carried out.
    pub(super) fn keep_past(&self, before: Option<Box<State>>) {
        if let (Past::Kept(past), Some(before)) = (&mut *self.past(), before) {
            *past = Some(before);
        }
    }

    /// The state that a read is answered from, where it isn't the current one.
    pub(super) fn state_read(&self, disturbance: Option<Disturbance>) -> Option<State> {
        match &*self.past() {
            Past::Kept(Some(past)) if disturbance == Some(Disturbance::Stale) => Some((**past).clone()),
            Past::Kept(_) | Past::NotKept => None,
        }
    }
}

/// Cuts the body of an answer in half. What said how long it was goes too: the answer looks
/// complete.
pub(super) fn truncate(response: &mut Response<Body>) {
    let Some(whole) = response.body().bytes().filter(|_| response.status() != StatusCode::NO_CONTENT) else { return };
    *response.body_mut() = Body::from(Bytes::copy_from_slice(&whole[..whole.len() / 2]));
    response.headers_mut().remove(http::header::CONTENT_LENGTH);
}
