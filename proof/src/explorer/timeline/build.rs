//! Builds rows from a history: calls with their effects, and actions of others, in chronological
//! order.

use std::collections::BTreeMap;

use stowage_world::effects::{Call, CallOutcome, KubeVerb, Line};
use stowage_world::history::{Event, History, Meant, What};

use super::moments::since_start;
use super::row::{Row, Weight};
use super::words::Words;

/// Virtual milliseconds after which the effect of an action gets its own row.
const SOON: i64 = 1000;

/// Returns the rows of a history; and for each of its events, the index of its row.
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
    /// Number of calls that have a row.
    calls: usize,
    /// The last life of the operator that made a call.
    life: u32,
    /// True if the history has the starts of lives.
    lives_are_told: bool,
}

impl Builder<'_> {
    /// Adds an event; returns the index of its row.
    fn take(&mut self, event: &Event) -> usize {
        let at_ms = since_start(event.at);
        match event.effect {
            Some(effect) => self.calls_before(|line| line.number <= effect),
            None => self.calls_before(|line| millis(line) < at_ms),
        }
        match &event.what {
            What::Acted(text) => self.push(Row { at_ms, user: text.clone(), ..Row::default() }),
            What::Used(used) | What::UsedAt { used, .. } | What::AccessUsed(used) => {
                let tenant = format!("{} uses {}", used.namespace, self.words.key(&used.access_key_id));
                self.push(Row { at_ms, weight: Weight::Use, tenant, gateway: verdict(used.allowed), ..Row::default() })
            }
            What::Exchanged(exchange) => {
                let Meant { method, bucket, key, .. } = &exchange.meant;
                let tenant = format!("{} asks {method} {bucket}/{key}", exchange.tenant);
                let asked = exchange.received.iter().map(|it| format!(", the store {} {}", it.method, it.target));
                let gateway = format!("{}{}", exchange.answer.status, asked.collect::<String>());
                self.push(Row { at_ms, tenant, gateway, ..Row::default() })
            }
            What::Tried(tried) => {
                let (key, operation) = (self.words.key(&tried.access_key_id), &tried.operation);
                let tenant = format!("{operation} {} is tried with {key}", tried.bucket);
                self.push(Row { at_ms, weight: Weight::Use, tenant, gateway: verdict(tried.allowed), ..Row::default() })
            }
            What::ClockOff { actor, ahead } => {
                let told = format!("the clock of the {} is {ahead:+} s off", actor.word());
                self.part(at_ms, None, told)
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

    /// Returns the row of the call that caused the event, or the last row.
    fn latest(&self, event: &Event) -> usize {
        let of_effect = event.effect.and_then(|effect| self.of_effects.get(&effect).copied());
        of_effect.unwrap_or_else(|| self.rows.len().saturating_sub(1))
    }

    /// Returns the row of the cause of an event: of its call, of the action right before, or a new
    /// row.
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

    /// Adds rows for the next calls of the trace, as long as the condition is met.
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
            CallOutcome::Status(status) if line.world == Some(status) => asked,
            CallOutcome::Status(status) => format!("{asked}; hears {status}"),
            CallOutcome::Pending => format!("{asked}; waits still"),
            CallOutcome::Broken => format!("{asked}; the connection breaks"),
            CallOutcome::Dropped => format!("{asked}; gives up"),
            CallOutcome::Died => format!("{asked}; dies"),
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

/// Formats the gateway's decision.
fn verdict(allowed: bool) -> String {
    if allowed { "allowed" } else { "refused" }.to_owned()
}

fn millis(line: &Line) -> i64 {
    i64::try_from(line.began_ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use stowage_world::ADMIN_SECRET_KEY;
    use stowage_world::history::facts::field;

    use super::*;
    use crate::explorer::outcome::Outcome;
    use crate::explorer::run::run;
    use crate::explorer::timeline::Timeline;
    use crate::explorer::timeline::text::{Layout, write};
    use crate::oracles::{Promise, Violation};

    fn played(line: &str) -> (Outcome, Timeline) {
        let schedule = line.parse().expect("it is a schedule");
        let outcome = run(&schedule);
        let timeline = Timeline::of(&schedule, &outcome);
        (outcome, timeline)
    }

    fn printed(timeline: &Timeline) -> String {
        let mut out = Vec::new();
        write(&mut out, timeline, Layout { width: 200, all: true }).expect("a vector takes everything");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_call_stands_with_its_fault_and_with_what_came_of_it() {
        let (_, timeline) = played("create 1 s3:CreateBucket@1 lost-answer");
        let row = timeline.events.iter().find(|row| row.operator.starts_with("CreateBucket")).expect("it was called");
        assert_eq!(row.fault.as_deref(), Some("lost-answer"));
        assert!(row.operator.ends_with("the connection breaks"), "{row:?}");
        assert_eq!(row.store, "200; bucket made");
        assert_eq!((row.life, row.kubernetes.as_str()), (Some(1), ""));
        let told = |text: &str| timeline.events.iter().any(|row| row.kubernetes.contains(text));
        assert!(told("record of bucket team-a-photos made") && told("key #1 made (AKIA"), "{}", printed(&timeline));
        assert!(told("consumer Secret team-a/photos-s3 made with key #1") && told("Ready=True Bound"));
    }

    #[test]
    fn a_crash_ends_a_life_and_another_begins() {
        let (_, timeline) = played("create 1 s3:CreateBucket@1 crash(after-effect)");
        let row = timeline.events.iter().find(|row| row.operator.starts_with("CreateBucket")).expect("it was called");
        assert!(row.operator.ends_with("dies"), "{row:?}");
        let lives = timeline.events.iter().filter(|row| row.weight == Weight::Part && row.operator.contains("begins"));
        assert_eq!(lives.count(), 2);
    }

    #[test]
    fn each_event_has_a_row_and_calls_keep_their_order() {
        let (outcome, timeline) = played("rotate 1");
        let (rows, places) = rows(&outcome.history);
        assert_eq!(places.len(), outcome.history.events.len());
        assert!(places.iter().all(|place| *place < rows.len()));
        let calls: Vec<u64> = outcome.history.trace.lines().iter().map(|line| line.number).collect();
        let mut shown: Vec<u64> = timeline.events.iter().filter_map(|row| row.effect).collect();
        shown.dedup();
        shown.retain(|number| calls.contains(number));
        let mut whole = shown.clone();
        whole.sort_unstable();
        whole.dedup();
        assert_eq!(whole, calls, "no call is left out");
        assert!(timeline.events.iter().any(|row| row.tenant == "team-a uses key #2" && row.gateway == "allowed"));
    }

    #[test]
    fn no_secret_is_told() {
        for line in ["create 1", "rotate 1 kube:patch secrets@2 lost-answer"] {
            let (outcome, timeline) = played(line);
            let told = printed(&timeline) + &serde_json::to_string(&timeline).expect("it can be written");
            let stored = outcome.history.changes("secrets").filter_map(|(_, stored)| stored.new.as_deref());
            let fields = ["secret_access_key", "AWS_SECRET_ACCESS_KEY"];
            let mut secrets: Vec<String> = stored.flat_map(|it| fields.map(|name| field(it, name))).flatten().collect();
            assert!(secrets.len() > 2, "there are secrets");
            secrets.push(ADMIN_SECRET_KEY.to_owned());
            assert!(secrets.iter().all(|secret| !told.contains(secret)), "{line}");
        }
    }

    #[test]
    fn a_broken_promise_stands_where_it_shows_and_at_the_end() {
        let schedule = "create 1".parse().expect("it is a schedule");
        let mut outcome = run(&schedule);
        let event = outcome.history.calls().map(|(event, _)| event.effect).next().flatten().expect("a store is called");
        let index = outcome.history.events.iter().position(|it| it.effect == Some(event)).expect("it is there");
        outcome.violations.push(Violation { promise: Promise::I1, message: "seen".to_owned(), event: Some(index) });
        let text = printed(&Timeline::of(&schedule, &outcome));
        let lines: Vec<&str> = text.lines().collect();
        let places: Vec<usize> = (0..lines.len()).filter(|place| lines[*place].contains("I1 is broken")).collect();
        assert_eq!(places.len(), 2, "{text}");
        assert!(lines[places[0] - 1].contains(&format!("#{event} ")), "{text}");
        assert!(lines.last().is_some_and(|line| line.contains("I1 is broken")), "{text}");
    }
}
