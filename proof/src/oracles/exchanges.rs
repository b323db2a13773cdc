//! Requests of tenants to gateways, and their effects (G1 to G7): each exchange is judged alone.
//!
//! The requests that the stores received are parsed independently of the gateway and compared with
//! the tenant's intention; changes at the stores are compared with the signed request.

use std::collections::BTreeSet;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use stowage_world::history::{Act, Contents, Exchange, Meant, Received, Right};

use super::Promise;
use super::findings::Findings;
use super::reading::{self, Reading};
use super::state::{HistoryStep, Seen, State};
use super::views::{Claim, Secret};

/// Judges a step.
pub(super) fn see(state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
    let Seen::Exchanged(exchange) = &step.seen else { return };
    let told = Told::of(exchange);
    let asked = format!("{} {}/{}", exchange.meant.method, exchange.meant.bucket, exchange.meant.key);
    let who = if exchange.tenant.is_empty() { "somebody" } else { &exchange.tenant };
    let mut broken = |promise, what: &str| {
        found.broken(promise, step, format!("{who} asks gateway {} for {asked}: {what}", exchange.gateway));
    };
    let wrong = match exchange.right {
        Right::TooMuch if !is_too_much(state, exchange) => None,
        right => refused(right),
    };
    if let Some(promise) = wrong {
        if told == Told::Done {
            broken(promise, "it is answered as if that was right");
        }
        if exchange.right != Right::OtherBody && !exchange.received.is_empty() {
            broken(promise, "a store is asked for it");
        }
    }
    if state.setting.is_undisturbed && exchange.right == Right::Good && told != Told::Done {
        broken(Promise::G6, &format!("it is refused ({}), and nothing ails anybody", exchange.answer.status));
    }
    if let Some(problem) = overfull(state, exchange) {
        broken(Promise::G7, &problem);
    }
    for problem in asked_otherwise(exchange) {
        broken(Promise::G3, &problem);
    }
    if let Some((promise, problem)) = stored_otherwise(exchange, told, wrong.is_some()) {
        broken(promise, &problem);
    }
    if told == Told::Done
        && let Some(problem) = read_otherwise(exchange)
    {
        broken(Promise::G5, &problem);
    }
    if let Some(word) = shows(state, exchange) {
        broken(Promise::G4, &format!("the answer shows {word}"));
    }
}

/// The meaning of an answer to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// The request was carried out.
    Done,
    /// The request was invalid: nothing was changed.
    Refused,
    /// The outcome is unknown.
    Unknown,
}

impl Told {
    fn of(exchange: &Exchange) -> Self {
        let answer = &exchange.answer;
        let Ok(body) = &answer.body else { return Self::Unknown };
        let text = String::from_utf8_lossy(body);
        // A document under 200 may contain an error, and the outcome of a truncated one is unknown.
        let has_document = match exchange.meant.act {
            Act::Copy | Act::Join(_) => true,
            Act::Remove(_) => exchange.meant.method == "POST",
            Act::Look | Act::Read(_) | Act::Write | Act::Part => false,
        };
        match answer.status {
            200..300 if has_document && text.contains("<Error>") => Self::Unknown,
            200..300 if has_document && !text.trim_end().ends_with("Result>") => Self::Unknown,
            200..300 => Self::Done,
            400..500 => Self::Refused,
            _ => Self::Unknown,
        }
    }
}

/// Returns the promise that is broken if an invalid request is served.
fn refused(right: Right) -> Option<Promise> {
    match right {
        Right::Good | Right::Either => None,
        Right::Unsigned | Right::OtherBody => Some(Promise::G2),
        Right::Beyond => Some(Promise::I15),
        Right::Over => Some(Promise::I7),
        Right::TooMuch => Some(Promise::G7),
    }
}

/// Returns true if a write exceeds the quota, and the gateway has to know that.
///
/// A gateway that has not heard from others may admit a part of its share; of two gateways that is
/// less than a quarter of the quota.
fn is_too_much(state: &State<'_>, exchange: &Exchange) -> bool {
    let Some(hard) = hard_quota(state, exchange) else { return false };
    let length = u64::try_from(exchange.meant.body.len()).unwrap_or(u64::MAX);
    let is_beyond = bytes_in(&exchange.before, &exchange.meant.bucket).saturating_add(length) > hard;
    is_beyond && (state.setting.is_undisturbed || length > hard / 4)
}

/// Returns a description of an overfull bucket: all gateways together may admit less than half of
/// the quota before they have informed each other.
fn overfull(state: &State<'_>, exchange: &Exchange) -> Option<String> {
    let hard = hard_quota(state, exchange)?;
    let holds = |contents| bytes_in(contents, &exchange.meant.bucket);
    let (before, after) = (holds(&exchange.before), holds(&exchange.after));
    (after > before && after > hard + hard / 2)
        .then(|| format!("the bucket holds {after} bytes then, its hard quota is {hard}"))
}

fn hard_quota(state: &State<'_>, exchange: &Exchange) -> Option<u64> {
    let of_bucket = |claim: &&Claim<'_>| claim.told_bucket() == Some(&exchange.meant.bucket);
    state.lives.values().map(|life| &life.claim).find(of_bucket)?.hard_quota()
}

fn bytes_in(contents: &Contents, bucket: &str) -> u64 {
    let objects = contents.iter().filter(|((_, name), _)| name == bucket).flat_map(|(_, objects)| objects.values());
    objects.map(|object| u64::try_from(object.len()).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
}

/// Describes differences between the requests to the stores and the tenant's intention.
///
/// Before a deletion, a HEAD of each object is permitted: the gateway sends it unless it knows that
/// the bucket keeps no versions (spec `6.delete.again`).
fn asked_otherwise(exchange: &Exchange) -> Vec<String> {
    let mut problems = Vec::new();
    let mut looked = BTreeSet::new();
    for received in &exchange.received {
        match Reading::of(received) {
            Ok(reading) if to_be_removed(exchange, &reading).is_some_and(|key| looked.insert(key)) => {}
            Ok(reading) => problems.extend(reading.differs(&exchange.meant, body_of(exchange, received))),
            Err(what) => problems.push(format!("what the store is asked can't be read: {what}")),
        }
        let signer = reading::signer(received);
        if signer.is_none() || signer == exchange.access_key_id.as_deref() {
            problems.push("the store is not asked with the gateway's own key".to_owned());
        }
    }
    let asked = exchange.received.len() - looked.len();
    if asked > 1 {
        problems.push(format!("the store is asked {asked} times"));
    }
    problems
}

/// Returns the key of an object that the tenant deletes, if the request is a HEAD of it.
fn to_be_removed<'a>(exchange: &'a Exchange, reading: &Reading) -> Option<&'a String> {
    let Act::Remove(keys) = &exchange.meant.act else { return None };
    keys.iter().find(|key| reading.is_head_of(&exchange.meant.bucket, key))
}

/// Returns the body that a store accepted as the tenant's. A body that doesn't match the announced
/// hash is refused by the store itself.
fn body_of<'a>(exchange: &Exchange, received: &'a Received) -> Option<&'a Bytes> {
    let is_told = received.headers.iter().any(|(name, value)| {
        name == "x-amz-content-sha256" && *value == hex::encode(Sha256::digest(&exchange.meant.body))
    });
    received.body.as_ref().filter(|_| exchange.right != Right::OtherBody || !is_told)
}

/// Describes a difference between the changes at the stores and the signed request or the answer.
fn stored_otherwise(exchange: &Exchange, told: Told, is_wrong: bool) -> Option<(Promise, String)> {
    let Exchange { meant, before, after, .. } = exchange;
    let wanted = if is_wrong { None } else { changed(meant, before, exchange, told) };
    let is_unchanged = before == after;
    let is_done = wanted.as_ref().is_some_and(|wanted| wanted == after);
    match (told, wanted) {
        _ if is_unchanged && told != Told::Done => None,
        (Told::Done, Some(_)) if !is_done => {
            Some((Promise::G1, "it is told to be stored, and the store has something else".to_owned()))
        }
        (Told::Refused, _) if !is_unchanged => {
            Some((Promise::G1, "it is refused, and the store has changed".to_owned()))
        }
        _ if is_unchanged || is_done => None,
        _ => Some((Promise::G2, format!("the store has what nobody signed: {}", difference(before, after)))),
    }
}

/// Returns the objects as they are after the request; `None` for a request without visible changes.
fn changed(meant: &Meant, before: &Contents, exchange: &Exchange, told: Told) -> Option<Contents> {
    let host = exchange.received.first().map(|received| received.host.clone())?;
    let mut wanted = before.clone();
    let bucket = wanted.get_mut(&(host.clone(), meant.bucket.clone()))?;
    let object: Bytes = match &meant.act {
        Act::Look | Act::Read(_) | Act::Part => return None,
        Act::Write => meant.body.clone(),
        Act::Copy => {
            let (from, key) = meant.source.as_ref()?;
            before.get(&(host, from.clone()))?.get(key)?.clone()
        }
        Act::Join(parts) => parts.concat().into(),
        Act::Remove(keys) => {
            // If the answer contains errors, some objects may be left.
            let place = (host, meant.bucket.clone());
            let is_there = |key: &String| exchange.after.get(&place).is_some_and(|all| all.contains_key(key));
            let stayed = |key: &String| told != Told::Done && is_there(key);
            bucket.retain(|key, _| !keys.contains(key) || stayed(key));
            return Some(wanted);
        }
    };
    bucket.insert(meant.key.clone(), object);
    Some(wanted)
}

fn difference(before: &Contents, after: &Contents) -> String {
    let of = |contents: &Contents, bucket: &(String, String), key: &str| contents.get(bucket)?.get(key).map(Bytes::len);
    let mut places: Vec<_> =
        after.iter().chain(before).flat_map(|(bucket, all)| all.keys().map(move |key| (bucket, key))).collect();
    places.sort();
    places.dedup();
    let differs = places.into_iter().filter(|(bucket, key)| {
        after.get(*bucket).and_then(|all| all.get(*key)) != before.get(*bucket).and_then(|all| all.get(*key))
    });
    let told = differs.map(|(bucket, key)| {
        format!("{}/{key} of {:?} bytes, before {:?}", bucket.1, of(after, bucket, key), of(before, bucket, key))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// Describes a difference between the data that was read and the data that is stored.
fn read_otherwise(exchange: &Exchange) -> Option<String> {
    let (meant, Ok(body)) = (&exchange.meant, &exchange.answer.body) else { return None };
    let Act::Read(range) = meant.act else { return None };
    let mut stored = exchange.before.iter().filter(|((_, bucket), _)| *bucket == meant.bucket);
    let object = stored.find_map(|(_, objects)| objects.get(&meant.key));
    let wanted = object.map(|object| match range {
        Some((first, last)) => object.slice(first.min(object.len())..(last + 1).min(object.len())),
        None => object.clone(),
    });
    match wanted {
        Some(wanted) if wanted == *body => None,
        Some(wanted) => Some(format!("{} bytes are told to be all, and there are {}", body.len(), wanted.len())),
        None => Some("an object is told that there is not".to_owned()),
    }
}

/// Returns hidden data that an answer shows, of the installation or of another tenant.
fn shows(state: &State<'_>, exchange: &Exchange) -> Option<String> {
    let body = match &exchange.answer.body {
        Ok(body) | Err(body) => String::from_utf8_lossy(body),
    };
    let headers: String = exchange.answer.headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    let shows = |word: &str| !word.is_empty() && (body.contains(word) || headers.contains(word));
    let hidden = state.setting.hidden.iter().find(|word| shows(word));
    if let Some(word) = hidden {
        return Some(format!("{word:?}, which is the installation's own"));
    }
    state.secrets.values().find_map(|held| match &held.secret {
        Secret::Key(key) if shows(key.secret) => Some(format!("the secret of key {}", key.id)),
        Secret::Key(key) if shows(&key.id) && exchange.access_key_id.as_deref() != Some(&key.id) => {
            Some(format!("the key id {} of somebody else", key.id))
        }
        // A request may name the bucket that it addresses.
        Secret::Record(record) if shows(&record.bucket) && !names(&exchange.meant, &record.bucket) => {
            Some(format!("the bucket {} of somebody else", record.bucket))
        }
        _ => None,
    })
}

fn names(meant: &Meant, bucket: &str) -> bool {
    meant.bucket == bucket
        || meant.key.contains(bucket)
        || meant.source.as_ref().is_some_and(|(from, _)| from == bucket)
        || bucket.starts_with(&meant.bucket)
        || meant.bucket.starts_with(bucket)
}
