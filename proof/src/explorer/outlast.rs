//! Lasting faults: while a fault lasts, the operator makes few futile calls (E2). After it, the
//! operator recovers (L6).

use std::collections::BTreeMap;
use std::time::Duration;

use stowage_world::effects::{Call, KubeVerb, Line, Plan};
use stowage_world::history::{Event, History, What};

use super::stage::Stage;
use crate::oracles::{Promise, Violation};

/// Time that a lasting fault goes on after the user's actions. Only its second half is judged.
const LASTING: Duration = Duration::from_secs(3600);
/// Maximum number of calls, except lists, watches and leader election.
///
/// Two claims have passes of seven calls each, four minutes apart on average because the longest
/// backoff of five minutes is jittered; a backend has its probes. That makes 120 calls, and some
/// more if the jitter is short.
const MOST_CALLS: usize = 150;
/// Maximum number of equal calls at a store: a claim's backoff grows up to five minutes.
const MOST_ALIKE: usize = 20;
/// Maximum numbers of equal lists and of equal watches of one life of the operator.
///
/// The wait between two retries grows up to half a minute. Up to three watches look alike: those of
/// Secrets in the operator's namespace.
const MOST_TRIES: usize = 200;
/// Maximum number of calls of one life of the operator about its Lease: it retries once a second at
/// most.
const MOST_RENEWALS: usize = 2000;
/// Maximum number of status changes by one life of the operator: by then every status is up to
/// date. Two operators that see different claims each write their count once more with each probe
/// of a backend.
const MOST_CHANGES: usize = 5;

/// A position in a history.
#[derive(Clone, Copy, Debug)]
struct Since {
    /// Number of calls before this position.
    calls: u64,
    /// Number of events before this position.
    events: usize,
}

/// Lets lasting faults of the plan go on for an hour, then ends them.
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

/// Returns a description of the first bound that the operator exceeded.
fn too_much(history: &History, since: Since) -> Option<String> {
    let lines = || history.trace.lines().iter().filter(|line| line.number > since.calls);
    // Calls that never reached the server count as well.
    let calls = lines().filter(|line| !is_list_or_watch(&line.call) && !is_of_election(&line.call)).count();
    if calls > MOST_CALLS {
        return Some(format!("made {calls} calls, more than {MOST_CALLS}"));
    }
    // A claim that waits for a user is reconciled each time that a list returns it.
    let listed = lines().filter(|line| is_list_of_claims(line)).count();
    let mut alike: BTreeMap<(u32, String), (usize, usize)> = BTreeMap::new();
    for line in lines() {
        let (life, most) = match &line.call {
            // Calls of all lives count together, because it is the store that needs the rest.
            Call::S3(_) => (0, MOST_ALIKE + listed),
            call if is_of_election(call) => (line.instance, MOST_RENEWALS),
            call if is_list_or_watch(call) => (line.instance, MOST_TRIES),
            Call::Kube(_) => continue,
        };
        alike.entry((life, line.call.to_string())).or_insert((0, most)).0 += 1;
    }
    if let Some(((_, call), (times, _))) = alike.iter().find(|(_, (times, most))| times > most) {
        return Some(format!("made the call {call} {times} times"));
    }
    let mut changes: BTreeMap<u32, usize> = BTreeMap::new();
    for event in history.events.iter().skip(since.events).filter(|event| is_told(event)) {
        *changes.entry(life(history, event)).or_default() += 1;
    }
    let most = changes.into_values().max().unwrap_or_default();
    (most > MOST_CHANGES).then(|| format!("changed statuses {most} times"))
}

fn is_list_or_watch(call: &Call) -> bool {
    matches!(call, Call::Kube(call) if matches!(call.verb, KubeVerb::List | KubeVerb::Watch))
}

/// Returns true for calls of leader election, which don't count as work.
fn is_of_election(call: &Call) -> bool {
    matches!(call, Call::Kube(call) if call.resource == "leases")
}

fn is_list_of_claims(line: &Line) -> bool {
    matches!(&line.call, Call::Kube(call) if call.verb == KubeVerb::List && call.resource == "bucketclaims")
}

/// Returns the life of the operator that caused an event; 0 if its call is not known.
fn life(history: &History, event: &Event) -> u32 {
    let lines = history.trace.lines().iter();
    lines.rev().find(|line| Some(line.number) == event.effect).map_or(0, |line| line.instance)
}

/// Returns true if the event is a status write by the operator.
fn is_told(event: &Event) -> bool {
    let kinds = ["bucketclaims", "s3backends"];
    event.effect.is_some() && matches!(&event.what, What::Stored(stored) if kinds.contains(&stored.plural.as_str()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use stowage_world::effects::CallOutcome;
    use stowage_world::history::Stored;

    use super::*;
    use crate::explorer::Schedule;
    use crate::explorer::play::play_apart;

    /// Returns a history in which each of `lives` lives makes a call `times` times.
    fn calls(call: &str, lives: u32, times: usize) -> History {
        let call = Call::told(call).expect("a call");
        let line = |(number, instance)| Line {
            number,
            instance,
            call: call.clone(),
            fault: None,
            world: None,
            answer: CallOutcome::Broken,
            began_ms: 0,
        };
        let lives = (1..=lives).flat_map(|life| std::iter::repeat_n(life, times));
        History { trace: (1..).zip(lives).map(line).collect(), ..History::default() }
    }

    #[rstest]
    #[case("kube:watch secrets stowage-system/", MOST_TRIES)]
    #[case("kube:list bucketclaims", MOST_TRIES)]
    #[case("s3:GetBucketTagging photos", MOST_ALIKE)]
    #[case("kube:patch leases stowage-system/stowage-operator", MOST_RENEWALS)]
    #[case("kube:patch secrets team-a/photos-s3", MOST_CALLS)]
    fn calls_that_are_tried_again_and_again_are_too_much(#[case] call: &str, #[case] most: usize) {
        let all = Since { calls: 0, events: 0 };
        assert_eq!(too_much(&calls(call, 1, most), all), None);
        let words = match most {
            MOST_CALLS => format!("made {} calls, more than {most}", most + 1),
            _ => format!("made the call {call} {} times", most + 1),
        };
        assert_eq!(too_much(&calls(call, 1, most + 1), all), Some(words));
        assert_eq!(too_much(&calls(call, 1, most + 1), Since { calls: 1, events: 0 }), None);
    }

    #[test]
    fn each_of_two_operators_has_watches_of_its_own() {
        assert_eq!(too_much(&calls("kube:watch secrets", 2, MOST_TRIES), Since { calls: 0, events: 0 }), None);
    }

    /// Lists and watches that fail stay far below the bound. Their number is the same in every
    /// scenario.
    #[rstest]
    #[case("create 1 kube:watch secrets lost-request")]
    #[case("create 1 kube:list secrets lost-request; kube:watch secrets watch-gone")]
    #[case("create 1 kube:watch secrets watch-cut")]
    fn lists_and_watches_that_fail_are_tried_ever_more_seldom(#[case] line: &str) {
        let outcome = play_apart(&line.parse::<Schedule>().expect("a schedule"));
        assert_eq!(outcome.violations, []);
    }

    #[test]
    fn who_leads_renews_and_does_nothing_in_vain_by_that() {
        let line = "elected 1 kube:patch s3backends/status server-error(not)";
        let outcome = play_apart(&line.parse::<Schedule>().expect("a schedule"));
        assert_eq!(outcome.violations, []);
    }

    #[test]
    fn statuses_that_change_again_and_again_are_too_much_where_one_operator_writes_them() {
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
        let of_two = |times: usize| {
            let call = "kube:patch s3backends/status main";
            let events = (1..=2).flat_map(|life| vec![event(Some(life)); times]).collect();
            History { events, ..calls(call, 2, 1) }
        };
        assert_eq!(too_much(&of_two(MOST_CHANGES), all), None);
        assert!(too_much(&of_two(MOST_CHANGES + 1), all).is_some());
        let of_others = History { events: vec![event(None); 50], ..History::default() };
        assert_eq!(too_much(&of_others, all), None);
    }
}
