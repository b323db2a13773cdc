//! The transcript of a run: all that its schedule decides, line by line, in a form that two equal
//! runs share.
//!
//! Among the calls of the trace stand the events of the history with all that is in them; then how
//! all stood in the end, and what was broken. Left out is what kube's recorder takes from the
//! machine's own clock: names and dates of Events.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::history::{Asked, Event, Stored, What};

use super::run::Outcome;

/// Resource of Events.
const EVENTS: &str = "events";
/// Where they have something of the machine's clock.
const OF_REAL_CLOCK: [&str; 3] = ["/metadata/name", "/eventTime", "/series/lastObservedTime"];
/// What stands there instead.
const MASK: &str = "*";

/// The transcript of what came of a schedule; its text is the lines.
#[derive(Clone, Copy, Debug)]
pub struct Transcript<'a>(&'a Outcome);

impl Outcome {
    /// All that the schedule decides, line by line.
    pub fn transcript(&self) -> Transcript<'_> {
        Transcript(self)
    }

    /// Hash of the transcript: the same for the same schedule, always. Made only where it is asked
    /// for: it adds a seventh to the time of an average schedule.
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.transcript().to_string()))
    }
}

impl fmt::Display for Transcript<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { history, end, gateway, violations, limits, .. } = self.0;
        let mut calls = history.trace.lines().iter().peekable();
        for event in &history.events {
            while let Some(line) = calls.next_if(|line| event.effect.is_some_and(|effect| line.number <= effect)) {
                writeln!(f, "{line}")?;
            }
            writeln!(f, "{}", Told(event))?;
        }
        calls.try_for_each(|line| writeln!(f, "{line}"))?;
        gateway.trace.lines().iter().try_for_each(|line| writeln!(f, "of a gateway: {line}"))?;
        writeln!(f, "{} is the end", end.at)?;
        for ((plural, namespace, name), object) in end.objects.iter() {
            writeln!(f, "{plural} {namespace}/{} {}", name_of(plural, name), masked(plural, object))?;
        }
        for ((host, name), bucket) in &end.buckets {
            writeln!(f, "bucket {name} at {host} {bucket:?}")?;
        }
        violations.iter().try_for_each(|broken| writeln!(f, "broken: {broken:?}"))?;
        limits.iter().try_for_each(|limit| writeln!(f, "limit: {limit:?}"))
    }
}

/// An event in one line.
struct Told<'a>(&'a Event);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { at, effect, what } = self.0;
        write!(f, "{at} ")?;
        if let Some(effect) = effect {
            write!(f, "#{effect} ")?;
        }
        match what {
            What::Asked(Asked { method, plural, subresource, namespace, name, content_type, body }) => {
                let part = subresource.as_deref().unwrap_or_default();
                write!(f, "{method} {plural}/{part} {namespace}/{} {content_type}", name_of(plural, name))?;
                match serde_json::from_slice(body) {
                    Ok(body) => write!(f, " {}", masked(plural, &body)),
                    Err(_) => write!(f, " {body:?}"),
                }
            }
            What::Stored(Stored { plural, namespace, name, old, new }) => {
                write!(f, "{plural} {namespace}/{}", name_of(plural, name))?;
                for (word, object) in [("was", old), ("is", new)] {
                    match object {
                        Some(object) => write!(f, " {word} {}", masked(plural, object))?,
                        None => write!(f, " {word} none")?,
                    }
                }
                Ok(())
            }
            other => write!(f, "{other:?}"),
        }
    }
}

fn name_of<'a>(plural: &str, name: &'a str) -> &'a str {
    if plural == EVENTS && !name.is_empty() { MASK } else { name }
}

fn masked<'a>(plural: &str, object: &'a Value) -> Cow<'a, Value> {
    if plural != EVENTS {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    for pointer in OF_REAL_CLOCK {
        if let Some(value) = object.pointer_mut(pointer) {
            *value = MASK.into();
        }
    }
    Cow::Owned(object)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::run::play_apart;
    use super::super::schedule::Schedule;
    use super::*;

    fn outcome() -> Outcome {
        let schedule: Schedule = "create 1".parse().expect("a schedule");
        play_apart(&schedule)
    }

    /// Changes the first object of a resource that the history tells of, and says where.
    fn alter(outcome: &mut Outcome, resource: &str, pointer: &str) {
        let stored = outcome.history.events.iter_mut().find_map(|event| match &mut event.what {
            What::Stored(stored) if stored.plural == resource => stored.new.as_mut(),
            _ => None,
        });
        let object = Arc::make_mut(stored.expect("one was stored"));
        *object.pointer_mut(pointer).expect("it has that") = "other".into();
    }

    #[test]
    fn two_runs_that_differ_in_one_stored_object_are_told_apart() {
        let (one, mut other) = (outcome(), outcome());
        assert_eq!(one.hash(), other.hash());
        alter(&mut other, "secrets", "/metadata/creationTimestamp");
        assert_ne!(one.hash(), other.hash());
        let (one, other) = (one.transcript().to_string(), other.transcript().to_string());
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
        assert_ne!(one.hash(), other.hash(), "a bucket in the end");
        let mut other = one.clone();
        Arc::make_mut(&mut other.end.objects).pop_last();
        assert_ne!(one.hash(), other.hash(), "an object in the end");
        let mut other = one.clone();
        for event in &mut other.history.events {
            if let What::Asked(asked) = &mut event.what {
                asked.body = "{}".into();
            }
        }
        assert_ne!(one.hash(), other.hash(), "what was asked");
    }

    /// The machine's clock names Events, and dates them; what they say counts.
    #[test]
    fn names_and_dates_of_events_are_left_out() {
        let one = outcome();
        let altered = |pointer| {
            let mut other = one.clone();
            alter(&mut other, EVENTS, pointer);
            other.hash()
        };
        assert_eq!([altered("/metadata/name"), altered("/eventTime")], [one.hash(), one.hash()]);
        assert_ne!(altered("/note"), one.hash());
    }
}
