//! From a history to rows: calls with what came of them, and what others did, in the order in which it happened.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::determinism::VirtualClock;
use crate::effects::{Answer, Call, KubeVerb, Line};
use crate::history::{Event, History, What};

use super::words::Words;
use super::{Row, Weight};

/// What comes of an act this much later, in virtual milliseconds, has a row of its own.
const SOON: i64 = 1000;

/// The rows of a history; for each of its events, the row that it stands in.
pub(super) fn rows(history: &History) -> (Vec<Row>, Vec<usize>) {
    let mut builder = Builder {
        history,
        words: Words::of(history),
        rows: Vec::new(),
        of_effects: BTreeMap::new(),
        calls: 0,
        life: 0,
        lives_are_told: history.events.iter().any(|event| matches!(event.what, What::Began { .. })),
    };
    let places = history.events.iter().map(|event| builder.take(event)).collect();
    builder.calls_before(|_| true);
    (builder.rows, places)
}

struct Builder<'a> {
    history: &'a History,
    words: Words,
    rows: Vec<Row>,
    /// Rows of calls by their numbers.
    of_effects: BTreeMap<u64, usize>,
    /// Calls that have a row.
    calls: usize,
    /// The last life of the operator that made a call.
    life: u32,
    /// Whether the history says when lives begin.
    lives_are_told: bool,
}

impl Builder<'_> {
    /// Takes an event in; says which row it stands in.
    fn take(&mut self, event: &Event) -> usize {
        let at_ms = since_start(event.at);
        match event.effect {
            Some(effect) => self.calls_before(|line| line.number <= effect),
            None => self.calls_before(|line| millis(line) < at_ms),
        }
        match &event.what {
            What::Acted(text) => self.push(Row { at_ms, user: text.clone(), ..Row::default() }),
            What::Used(used) => {
                let tenant = format!("{} uses {}", used.namespace, self.words.key(&used.access_key_id));
                let gateway = if used.allowed { "allowed" } else { "refused" }.to_owned();
                self.push(Row { at_ms, weight: Weight::Use, tenant, gateway, ..Row::default() })
            }
            What::Began { instance } => self.part(at_ms, Some(*instance), format!("life {instance} begins")),
            What::Ended { instance } => self.part(at_ms, Some(*instance), format!("life {instance} ends")),
            What::Quiet => self.part(at_ms, None, "faults have stopped, people rest".to_owned()),
            What::AtRest => self.part(at_ms, None, "all is at rest".to_owned()),
            What::Asked(_) => self.latest(event),
            What::Stored(stored) => {
                let Some(told) = self.words.change(stored) else { return self.latest(event) };
                let place = self.place_of(event, at_ms);
                append(&mut self.rows[place].kubernetes, &told);
                place
            }
            What::Called(called) => {
                let told = self.words.call(called);
                let place = self.place_of(event, at_ms);
                append(&mut self.rows[place].store, &told);
                place
            }
        }
    }

    /// The row of the call that did this, or the last one there is.
    fn latest(&self, event: &Event) -> usize {
        let of_effect = event.effect.and_then(|effect| self.of_effects.get(&effect).copied());
        of_effect.unwrap_or_else(|| self.rows.len().saturating_sub(1))
    }

    /// The row of whoever did this: of the call, of the act right before, or a new one.
    fn place_of(&mut self, event: &Event, at_ms: i64) -> usize {
        let place = event.effect.map_or_else(|| self.rows.len().checked_sub(1), |it| self.of_effects.get(&it).copied());
        let joins = |row: &Row| match event.effect {
            Some(_) => at_ms - row.at_ms < SOON,
            None => row.effect.is_none() && row.weight == Weight::Told && at_ms - row.at_ms < SOON,
        };
        match place {
            Some(place) if joins(&self.rows[place]) => place,
            _ => {
                let life = event.effect.map(|effect| self.history.instance_of(effect));
                self.push(Row { at_ms, effect: event.effect, life, ..Row::default() })
            }
        }
    }

    /// Gives the calls of the trace a row that are next and of which this holds.
    fn calls_before(&mut self, holds: impl Fn(&Line) -> bool) {
        let history = self.history;
        while let Some(line) = history.trace.lines().get(self.calls).filter(|line| holds(line)) {
            self.calls += 1;
            if line.instance > self.life && !self.lives_are_told {
                self.part(millis(line), Some(line.instance), format!("life {} of the operator begins", line.instance));
            }
            self.life = self.life.max(line.instance);
            let row = self.call(line);
            let place = self.push(row);
            self.of_effects.insert(line.number, place);
        }
    }

    fn call(&self, line: &Line) -> Row {
        let (world, asked) = (self.words.status(line), self.words.asked(&line.call));
        let operator = match line.answer {
            Answer::Status(status) if line.world == Some(status) => asked,
            Answer::Status(status) => format!("{asked}; hears {status}"),
            Answer::Pending => format!("{asked}; waits still"),
            Answer::Broken => format!("{asked}; the connection breaks"),
            Answer::Dropped => format!("{asked}; gives up"),
            Answer::Died => format!("{asked}; dies"),
        };
        let (kubernetes, store) = match line.call {
            Call::Kube(_) => (world, String::new()),
            Call::S3(_) => (String::new(), world),
        };
        Row {
            at_ms: millis(line),
            weight: weight(&line.call),
            effect: Some(line.number),
            life: Some(line.instance),
            fault: line.fault.map(|fault| fault.to_string()),
            operator,
            kubernetes,
            store,
            ..Row::default()
        }
    }

    fn part(&mut self, at_ms: i64, life: Option<u32>, text: String) -> usize {
        self.push(Row { at_ms, life, weight: Weight::Part, operator: text, ..Row::default() })
    }

    fn push(&mut self, row: Row) -> usize {
        self.rows.push(row);
        self.rows.len() - 1
    }
}

fn weight(call: &Call) -> Weight {
    match call {
        Call::Kube(call) if call.is_event() || matches!(call.verb, KubeVerb::List | KubeVerb::Watch) => Weight::Routine,
        _ => Weight::Told,
    }
}

fn append(cell: &mut String, text: &str) {
    if !cell.is_empty() && !text.is_empty() {
        cell.push_str("; ");
    }
    cell.push_str(text);
}

fn millis(line: &Line) -> i64 {
    i64::try_from(line.began_ms).unwrap_or(i64::MAX)
}

/// Milliseconds from the start of the world's clock.
pub(in super::super) fn since_start(at: Timestamp) -> i64 {
    at.as_millisecond() - VirtualClock::epoch().as_millisecond()
}
