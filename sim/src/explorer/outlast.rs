//! Faults that last: meanwhile the operator does little in vain (E2). That all comes right when they are over is for the
//! end of the run to show (L6).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::effects::{Call, Plan};
use crate::history::{Event, History, What};
use crate::oracles::{Promise, Violation};

use super::stage::Stage;

/// How long a fault that lasts goes on after the user's acts. What is done in the second half counts.
const LASTING: Duration = Duration::from_secs(3600);
/// Most calls, but for lists and watches: a pass each five minutes over each of some claims, and the probes of a backend.
const MOST_CALLS: u64 = 120;
/// Most calls at a store which are the same: a claim's backoff goes up to five minutes.
const MOST_ALIKE: usize = 20;
/// Most changes of statuses: everything has been told by then.
const MOST_CHANGES: usize = 5;

/// Where in a history something began.
#[derive(Clone, Copy, Debug)]
struct Since {
    /// Calls before.
    calls: u64,
    /// Events before.
    events: usize,
}

/// Lets what lasts of the plan go on for an hour, and ends it.
pub(super) async fn outlast(stage: &Stage) -> Result<(), Violation> {
    stage.pass(LASTING / 2).await;
    let since = Since { calls: stage.world.effects.count(), events: stage.world.history().events.len() };
    stage.pass(LASTING / 2).await;
    let history = stage.world.history();
    stage.world.note(What::Acted("what lasted of the plan is over".to_owned()));
    stage.world.effects.set_plan(Plan::default());
    let broken = |what| Violation {
        promise: Promise::E2,
        message: format!("in half an hour of a lasting fault the operator {what}"),
        event: None,
    };
    too_much(&history, since).map_or(Ok(()), |what| Err(broken(what)))
}

/// What the operator has done too often, in words.
fn too_much(history: &History, since: Since) -> Option<String> {
    let counters = history.trace.counters_after(since.calls);
    let calls = counters.kubernetes_requests + counters.s3_calls;
    if calls > MOST_CALLS {
        return Some(format!("made {calls} calls, more than {MOST_CALLS}"));
    }
    let mut alike: BTreeMap<String, usize> = BTreeMap::new();
    for line in history.trace.lines().iter().filter(|line| line.number > since.calls) {
        if let Call::S3(call) = &line.call {
            *alike.entry(call.to_string()).or_default() += 1;
        }
    }
    if let Some((call, times)) = alike.iter().find(|(_, times)| **times > MOST_ALIKE) {
        return Some(format!("called {call} {times} times"));
    }
    let changes = history.events.iter().skip(since.events).filter(|event| is_told(event)).count();
    (changes > MOST_CHANGES).then(|| format!("changed statuses {changes} times"))
}

/// Whether it is a status that the operator wrote.
fn is_told(event: &Event) -> bool {
    let kinds = ["bucketclaims", "s3backends"];
    event.effect.is_some() && matches!(&event.what, What::Stored(stored) if kinds.contains(&stored.plural.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Stored;

    #[test]
    fn statuses_that_change_again_and_again_are_too_much() {
        let event = |effect| Event {
            at: jiff::Timestamp::UNIX_EPOCH,
            effect,
            what: What::Stored(Stored {
                plural: "bucketclaims".to_owned(),
                namespace: "team-a".to_owned(),
                name: "photos".to_owned(),
                old: None,
                new: None,
            }),
        };
        let of_operator = |times| History { events: vec![event(Some(1)); times], ..History::default() };
        let all = Since { calls: 0, events: 0 };
        assert_eq!(too_much(&of_operator(MOST_CHANGES), all), None);
        assert_eq!(too_much(&of_operator(MOST_CHANGES + 1), all).as_deref(), Some("changed statuses 6 times"));
        assert_eq!(too_much(&of_operator(MOST_CHANGES + 1), Since { calls: 0, events: 1 }), None);
        let of_others = History { events: vec![event(None); 50], ..History::default() };
        assert_eq!(too_much(&of_others, all), None);
    }
}
