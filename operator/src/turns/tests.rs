use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::join_all;
use proptest::prelude::*;

use super::*;

fn new(namespace: &str) -> Rank {
    Rank::New { namespace: namespace.to_owned(), place: 0 }
}

fn now(turns: &Turns, share: Share, rank: Rank) -> Option<Turn<'_>> {
    turns.take(share, rank).now_or_never()
}

#[test]
fn a_turn_that_ends_is_the_next_ones() {
    let turns = Turns::new(1, 0);
    let first = now(&turns, Share::Single, new("a")).expect("there is room");
    let mut second = Box::pin(turns.take(Share::Single, new("a")));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert!(now(&turns, Share::Single, Rank::Begun(0)).is_none(), "it has been given to the second");
    assert_eq!(second.now_or_never().map(|turn| turn.number()), Some(2));
    assert!(now(&turns, Share::Single, new("b")).is_some());
}

#[test]
fn who_leaves_gives_its_place_and_its_turn_back() {
    let turns = Turns::new(1, 0);
    let first = now(&turns, Share::Single, new("a")).expect("there is room");
    let mut waits: Vec<_> = (0..3).map(|_| Box::pin(turns.take(Share::Single, new("a")))).collect();
    assert!(join_all(waits.iter_mut().map(|wait| wait.as_mut())).now_or_never().is_none());
    // One that has not been notified yet, and one that has.
    drop(waits.remove(0));
    drop(first);
    drop(waits.remove(0));
    assert!(waits.remove(0).now_or_never().is_some());
    assert!(turns.0.lock().singles.is_empty());
}

#[test]
fn bulk_has_its_share_and_singles_have_the_rest() {
    let turns = Turns::new(4, 1);
    let bulk = now(&turns, Share::Bulk, new("a")).expect("there is room");
    assert!(now(&turns, Share::Bulk, Rank::Begun(0)).is_none(), "one is its share");
    let singles: Vec<_> = (0..3).map(|_| now(&turns, Share::Single, new("b")).expect("there is room")).collect();
    assert!(now(&turns, Share::Single, new("b")).is_none());
    drop((bulk, singles));
}

/// Returns the order of shares if both always wait, with this room and this bulk limit.
fn goes(room: usize, bulk: usize, times: usize) -> Vec<Share> {
    let mut state = State::new(room, bulk);
    let mut under_way = std::collections::VecDeque::new();
    for _ in 0..times {
        state.enter(Share::Single, &new("a"), Share::Single);
        state.enter(Share::Bulk, &new("a"), Share::Bulk);
    }
    let mut gone = Vec::new();
    while gone.len() < times {
        match state.next() {
            Some((share, _)) => {
                gone.push(share);
                under_way.push_back(share);
            }
            None => state.end(under_way.pop_front().expect("there is room, or somebody is under way")),
        }
    }
    gone
}

#[test]
fn neither_share_keeps_the_other_from_ever_going() {
    use Share::{Bulk, Single};
    assert_eq!(goes(1, 1, 6), [Bulk, Single, Bulk, Single, Bulk, Single]);
    assert_eq!(goes(4, 1, 8), [Bulk, Single, Single, Single, Bulk, Single, Single, Single]);
    assert_eq!(goes(8, 2, 8).iter().filter(|share| **share == Bulk).count(), 1, "singles go first");
}

/// An event of a queue.
#[derive(Clone, Debug)]
enum Event {
    Enter(bool, Option<u64>, u8),
    Leave(usize),
    End(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (any::<bool>(), proptest::option::of(0..4_u64), 0..3_u8)
            .prop_map(|(bulk, begun, namespace)| Event::Enter(bulk, begun, namespace)),
        1 => any::<usize>().prop_map(Event::Leave),
        2 => any::<usize>().prop_map(Event::End),
    ]
}

proptest! {
    /// In any sequence of events, nobody waits while there is room, nobody goes while there is
    /// none, and each waiter gets exactly one turn.
    #[test]
    fn room_is_used_and_never_exceeded(room in 1..6_usize, events in proptest::collection::vec(event(), 0..200)) {
        let most_bulk = (room / 4).max(1);
        let mut state = State::new(room, most_bulk);
        let (mut waiting, mut under_way) = (BTreeMap::new(), BTreeMap::new());
        for event in events {
            match event {
                Event::Enter(bulk, begun, namespace) => {
                    let share = if bulk { Share::Bulk } else { Share::Single };
                    let rank = begun.map_or_else(|| new(&namespace.to_string()), Rank::Begun);
                    let who = state.tickets + 1;
                    prop_assert_eq!(state.enter(share, &rank, who), who);
                    waiting.insert(who, (share, rank));
                }
                Event::Leave(which) if !waiting.is_empty() => {
                    let who = *waiting.keys().nth(which % waiting.len()).expect("it is in range");
                    let (share, rank) = waiting.remove(&who).expect("it waits");
                    prop_assert_eq!(state.leave(share, &rank, who), Some(who));
                }
                Event::End(which) if !under_way.is_empty() => {
                    let who = *under_way.keys().nth(which % under_way.len()).expect("it is in range");
                    state.end(under_way.remove(&who).expect("it is under way"));
                }
                Event::Leave(_) | Event::End(_) => {}
            }
            while let Some((who, _)) = state.next() {
                let (share, _) = waiting.remove(&who).expect("it waited");
                under_way.insert(who, share);
            }
            let bulks = under_way.values().filter(|share| **share == Share::Bulk).count();
            prop_assert!(under_way.len() <= room && bulks <= most_bulk);
            let could_go = |share: Share| share == Share::Single || bulks < most_bulk;
            prop_assert!(under_way.len() == room || !waiting.values().any(|(share, _)| could_go(*share)));
        }
        while let Some((_, share)) = under_way.pop_first() {
            state.end(share);
            while let Some((who, _)) = state.next() {
                under_way.insert(who, waiting.remove(&who).expect("it waited").0);
            }
        }
        prop_assert!(waiting.is_empty() && state.singles.is_empty() && state.bulks.is_empty());
    }
}
