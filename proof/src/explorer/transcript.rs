//! The transcript of a run: everything that its schedule decides, line by line, in a form that is
//! equal for two equal runs.
//!
//! It has the calls of the trace and, between them, the complete events of the history; then the
//! final state and the violations. Names and dates of Events are left out, because kube's recorder
//! takes them from the machine's own clock. No line is a derived `Debug`, so renaming a type or a
//! field of this project changes no transcript.

use std::borrow::Cow;
use std::fmt;

use s3_sim::BucketSnapshot;
use serde_json::Value;
use sha2::{Digest, Sha256};
use stowage_world::history::{Asked, Called, Contents, Event, Exchange, Stored, Tried, Used, What};

use super::outcome::Outcome;
use crate::oracles::Violation;

/// Resource name of Events.
const EVENTS: &str = "events";
/// JSON pointers to the fields of Events that depend on the machine's clock.
const OF_REAL_CLOCK: [&str; 3] = ["/metadata/name", "/eventTime", "/series/lastObservedTime"];
/// Replacement of the values of these fields.
const MASK: &str = "*";

/// Keys of texts for people in an object: the message of a condition or of an Event, the note of an
/// Event.
const TEXTS: [&str; 2] = ["message", "note"];
/// Key next to such a text, in conditions and in Events of both versions.
const REASON: &str = "reason";

/// The part of a run that its hash covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    All,
    /// Everything except texts for people: two versions of the operator that phrase a message
    /// differently have the same hash.
    Behaviour,
}

/// The transcript of an outcome; its [`Display`](fmt::Display) form is the lines.
#[derive(Clone, Copy, Debug)]
pub struct Transcript<'a> {
    outcome: &'a Outcome,
    detail: Detail,
}

impl Outcome {
    /// Returns everything that the schedule decides, line by line.
    pub fn transcript(&self, detail: Detail) -> Transcript<'_> {
        Transcript { outcome: self, detail }
    }

    /// Returns the SHA-256 of the transcript in hex, which is always the same for the same
    /// schedule.
    ///
    /// It is computed only on request, because it adds a seventh to the time of an average
    /// schedule.
    pub fn hash(&self, detail: Detail) -> String {
        hex::encode(Sha256::digest(self.transcript(detail).to_string()))
    }
}

impl fmt::Display for Transcript<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { history, end, gateway, violations, limits, .. } = self.outcome;
        let mut calls = history.trace.lines().iter().peekable();
        for event in &history.events {
            while let Some(line) = calls.next_if(|line| event.effect.is_some_and(|effect| line.number <= effect)) {
                writeln!(f, "{line}")?;
            }
            self.event(f, event)?;
        }
        calls.try_for_each(|line| writeln!(f, "{line}"))?;
        gateway.trace.lines().iter().try_for_each(|line| writeln!(f, "of a gateway: {line}"))?;
        writeln!(f, "{} is the end", end.at)?;
        for ((plural, namespace, name), object) in end.objects.iter() {
            writeln!(f, "{plural} {namespace}/{} {}", name_of(plural, name), self.masked(plural, object))?;
        }
        for ((host, name), bucket) in &end.buckets {
            writeln!(f, "bucket {name} at {host} {}", Snapshot(Some(bucket)))?;
        }
        violations.iter().try_for_each(|violation| self.violation(f, "broken", violation))?;
        limits.iter().try_for_each(|limit| self.violation(f, "limit", limit))
    }
}

impl Transcript<'_> {
    /// Writes an event in one line.
    fn event(&self, f: &mut fmt::Formatter<'_>, event: &Event) -> fmt::Result {
        let Event { at, effect, what } = event;
        write!(f, "{at} ")?;
        if let Some(effect) = effect {
            write!(f, "#{effect} ")?;
        }
        match what {
            What::Asked(asked) => self.asked(f, asked)?,
            What::Stored(stored) => self.stored(f, stored)?,
            What::Called(called) => write_called(f, called)?,
            What::Used(used) => write_used(f, "used", used)?,
            What::UsedAt { gateway, used } => write_used(f, &format!("used at {gateway}"), used)?,
            What::AccessUsed(used) => write_used(f, "access used", used)?,
            What::Exchanged(exchange) => write_exchange(f, exchange)?,
            What::Tried(Tried { access_key_id, operation, bucket, allowed }) => {
                write!(f, "tried {access_key_id} {operation} {bucket} {allowed}")?;
            }
            What::Acted(text) => write!(f, "acted {}", self.text(text))?,
            What::ClockOff { actor, ahead } => write!(f, "clock of {} ahead {ahead}", actor.word())?,
            What::Began { instance } => write!(f, "began {instance}")?,
            What::Ended { instance } => write!(f, "ended {instance}")?,
            What::Quiet => f.write_str("quiet")?,
            What::AtRest => f.write_str("at rest")?,
        }
        writeln!(f)
    }

    fn asked(&self, f: &mut fmt::Formatter<'_>, asked: &Asked) -> fmt::Result {
        let Asked { method, plural, subresource, namespace, name, content_type, body } = asked;
        let part = subresource.as_deref().unwrap_or_default();
        write!(f, "{method} {plural}/{part} {namespace}/{} {content_type}", name_of(plural, name))?;
        match serde_json::from_slice(body) {
            Ok(body) => write!(f, " {}", self.masked(plural, &body)),
            Err(_) => write!(f, " {body:?}"),
        }
    }

    fn stored(&self, f: &mut fmt::Formatter<'_>, stored: &Stored) -> fmt::Result {
        let Stored { plural, namespace, name, old, new } = stored;
        write!(f, "{plural} {namespace}/{}", name_of(plural, name))?;
        for (word, object) in [("was", old), ("is", new)] {
            match object {
                Some(object) => write!(f, " {word} {}", self.masked(plural, object))?,
                None => write!(f, " {word} none")?,
            }
        }
        Ok(())
    }

    fn violation(&self, f: &mut fmt::Formatter<'_>, word: &str, violation: &Violation) -> fmt::Result {
        let Violation { promise, message, event } = violation;
        let event = event.map_or_else(|| "the end".to_owned(), |index| index.to_string());
        writeln!(f, "{word}: {} at {event} {}", promise.name(), self.text(message))
    }

    fn text<'a>(&self, text: &'a str) -> &'a str {
        match self.detail {
            Detail::All => text,
            Detail::Behaviour => MASK,
        }
    }

    fn masked<'a>(&self, plural: &str, object: &'a Value) -> Cow<'a, Value> {
        if plural != EVENTS && self.detail == Detail::All {
            return Cow::Borrowed(object);
        }
        let mut object = object.clone();
        if plural == EVENTS {
            for pointer in OF_REAL_CLOCK {
                if let Some(value) = object.pointer_mut(pointer) {
                    *value = MASK.into();
                }
            }
        }
        if self.detail == Detail::Behaviour {
            mask_texts(&mut object);
        }
        Cow::Owned(object)
    }
}

/// Masks texts for people in an object or in the body of a patch, at any depth.
fn mask_texts(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key(REASON) {
                for key in TEXTS {
                    if let Some(text) = fields.get_mut(key) {
                        *text = MASK.into();
                    }
                }
            }
            fields.values_mut().for_each(mask_texts);
        }
        Value::Array(items) => items.iter_mut().for_each(mask_texts),
        _ => {}
    }
}

fn write_called(f: &mut fmt::Formatter<'_>, called: &Called) -> fmt::Result {
    let Called { host, operation, bucket, key_id, before, after, status } = called;
    let named = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
    write!(f, "called {operation} {host}/{} by {} {status}", named(bucket), named(key_id))?;
    write!(f, " was {} is {}", Snapshot(before.as_ref()), Snapshot(after.as_ref()))
}

fn write_used(f: &mut fmt::Formatter<'_>, word: &str, used: &Used) -> fmt::Result {
    let Used { namespace, secret, access_key_id, bucket, read_at, allowed } = used;
    write!(f, "{word} {namespace}/{secret} {access_key_id} {bucket} read {read_at} {allowed}")
}

fn write_exchange(f: &mut fmt::Formatter<'_>, exchange: &Exchange) -> fmt::Result {
    let Exchange { gateway, tenant, access_key_id, meant, right: _, answer, received, before, after } = exchange;
    let key_id = access_key_id.as_deref().unwrap_or("nobody");
    write!(f, "exchanged {gateway} {tenant} {key_id} {} {}/{}", meant.method, meant.bucket, meant.key)?;
    write!(f, " {:?} {:?} {:?} {:?}", meant.query, meant.headers, meant.source, meant.body)?;
    write!(f, " answer {} {:?} {:?}", answer.status, answer.headers, answer.body)?;
    for it in received {
        write!(f, " received {} {} {} {:?} {:?}", it.method, it.host, it.target, it.headers, it.body)?;
    }
    write_contents(f, "was", before)?;
    write_contents(f, "is", after)
}

fn write_contents(f: &mut fmt::Formatter<'_>, word: &str, contents: &Contents) -> fmt::Result {
    for ((host, bucket), objects) in contents {
        write!(f, " {word} {host}/{bucket} {objects:?}")?;
    }
    Ok(())
}

/// All fields of a bucket's snapshot, or `none`.
struct Snapshot<'a>(Option<&'a BucketSnapshot>);

impl fmt::Display for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(bucket) = self.0 else { return f.write_str("none") };
        let BucketSnapshot { owner, region, created, tags, versioning, objects, versions, delete_markers, uploads } =
            bucket;
        write!(f, "{owner} {region} {created} {tags:?} {versioning:?}")?;
        write!(f, " {objects} {versions} {delete_markers} {uploads}")
    }
}

fn name_of<'a>(plural: &str, name: &'a str) -> &'a str {
    if plural == EVENTS && !name.is_empty() { MASK } else { name }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::play::play_apart;
    use super::super::schedule::Schedule;
    use super::*;

    fn outcome() -> Outcome {
        let schedule: Schedule = "create 1".parse().expect("a schedule");
        play_apart(&schedule)
    }

    /// Changes a field of the first stored object of a resource that has this field.
    fn alter(outcome: &mut Outcome, resource: &str, pointer: &str) {
        let stored = outcome.history.events.iter_mut().find_map(|event| match &mut event.what {
            What::Stored(stored) if stored.plural == resource => {
                stored.new.as_mut().filter(|object| object.pointer(pointer).is_some())
            }
            _ => None,
        });
        let object = Arc::make_mut(stored.expect("one was stored"));
        *object.pointer_mut(pointer).expect("it has that") = "other".into();
    }

    #[test]
    fn two_runs_that_differ_in_one_stored_object_are_told_apart() {
        let (one, mut other) = (outcome(), outcome());
        assert_eq!(one.hash(Detail::All), other.hash(Detail::All));
        alter(&mut other, "secrets", "/metadata/creationTimestamp");
        for detail in [Detail::All, Detail::Behaviour] {
            assert_ne!(one.hash(detail), other.hash(detail));
        }
        let (one, other) = (one.transcript(Detail::All).to_string(), other.transcript(Detail::All).to_string());
        let different: Vec<&str> = one.lines().zip(other.lines()).filter(|(a, b)| a != b).map(|(_, b)| b).collect();
        assert!(
            matches!(different[..], [line] if line.contains(" secrets ") && line.contains("other")),
            "{different:?}"
        );
    }

    #[test]
    fn how_it_ended_and_what_was_asked_count_too() {
        let one = outcome();
        let mut other = one.clone();
        for bucket in other.end.buckets.values_mut() {
            bucket.objects += 1;
        }
        assert_ne!(one.hash(Detail::All), other.hash(Detail::All), "a bucket in the end");
        let mut other = one.clone();
        Arc::make_mut(&mut other.end.objects).pop_last();
        assert_ne!(one.hash(Detail::All), other.hash(Detail::All), "an object in the end");
        let mut other = one.clone();
        for event in &mut other.history.events {
            if let What::Asked(asked) = &mut event.what {
                asked.body = "{}".into();
            }
        }
        assert_ne!(one.hash(Detail::All), other.hash(Detail::All), "what was asked");
    }

    /// The machine's clock determines names and dates of Events; their texts count.
    #[test]
    fn names_and_dates_of_events_are_left_out() {
        let one = outcome();
        let altered = |pointer| {
            let mut other = one.clone();
            alter(&mut other, EVENTS, pointer);
            other.hash(Detail::All)
        };
        assert_eq!([altered("/metadata/name"), altered("/eventTime")], [one.hash(Detail::All), one.hash(Detail::All)]);
        assert_ne!(altered("/note"), one.hash(Detail::All));
    }

    #[test]
    fn texts_for_people_count_for_the_whole_alone() {
        let one = outcome();
        for (resource, text, rest) in [
            ("bucketclaims", "/status/conditions/0/message", "/status/conditions/0/reason"),
            (EVENTS, "/note", "/reason"),
        ] {
            let differs = |pointer, detail| {
                let mut other = one.clone();
                alter(&mut other, resource, pointer);
                other.hash(detail) != one.hash(detail)
            };
            assert!(differs(text, Detail::All), "{text}");
            assert!(!differs(text, Detail::Behaviour), "{text}");
            assert!(differs(rest, Detail::Behaviour), "{rest}");
        }
    }
}
