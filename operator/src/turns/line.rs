//! The order of a queue: waiters that have begun go first, the others go round-robin by namespace.
//!
//! Work that has begun finishes soon this way, instead of all work late. A namespace with thousands
//! of waiters delays a single waiter of another by one turn. All operations are O(log n).

use std::collections::BTreeMap;

/// The rank of a waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// The waiter has had a turn before; the number is its place in the order of first turns.
    Begun(u64),
    /// The waiter has had no turn yet, and waits for its namespace's turn. Within a namespace,
    /// lower places go first.
    New { namespace: String, place: u64 },
}

/// A place, and a ticket that orders equal places by arrival.
type Position = (u64, u64);

/// The waiters.
#[derive(Debug)]
pub(super) struct Line<T> {
    begun: BTreeMap<Position, T>,
    /// Waiters that have not begun. Each namespace in the map has at least one.
    namespaces: BTreeMap<String, Namespace<T>>,
    /// The namespaces by their next turn.
    turns: BTreeMap<u64, String>,
    next_turn: u64,
}

#[derive(Debug)]
struct Namespace<T> {
    turn: u64,
    waiting: BTreeMap<Position, T>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { begun: BTreeMap::new(), namespaces: BTreeMap::new(), turns: BTreeMap::new(), next_turn: 0 }
    }
}

impl<T> Line<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.namespaces.is_empty()
    }

    /// Adds a waiter. Its ticket is unique.
    pub(super) fn push(&mut self, rank: &Rank, ticket: u64, who: T) {
        match rank {
            Rank::Begun(place) => {
                self.begun.insert((*place, ticket), who);
            }
            Rank::New { namespace, place } => {
                if let Some(of_namespace) = self.namespaces.get_mut(namespace) {
                    of_namespace.waiting.insert((*place, ticket), who);
                    return;
                }
                let waiting = BTreeMap::from([((*place, ticket), who)]);
                self.namespaces.insert(namespace.clone(), Namespace { turn: self.next_turn, waiting });
                self.give_turn(namespace.clone());
            }
        }
    }

    /// Removes a waiter; `None` if it is not in the queue.
    pub(super) fn remove(&mut self, rank: &Rank, ticket: u64) -> Option<T> {
        let (namespace, place) = match rank {
            Rank::Begun(place) => return self.begun.remove(&(*place, ticket)),
            Rank::New { namespace, place } => (namespace, place),
        };
        let of_namespace = self.namespaces.get_mut(namespace)?;
        let who = of_namespace.waiting.remove(&(*place, ticket));
        if of_namespace.waiting.is_empty() {
            self.turns.remove(&of_namespace.turn);
            self.namespaces.remove(namespace);
        }
        who
    }

    /// Removes and returns the next waiter. Its namespace goes to the end of the round.
    pub(super) fn pop(&mut self) -> Option<T> {
        if let Some((_, who)) = self.begun.pop_first() {
            return Some(who);
        }
        let (_, namespace) = self.turns.pop_first()?;
        let of_namespace = self.namespaces.get_mut(&namespace)?;
        let (_, who) = of_namespace.waiting.pop_first()?;
        if of_namespace.waiting.is_empty() {
            self.namespaces.remove(&namespace);
        } else {
            of_namespace.turn = self.next_turn;
            self.give_turn(namespace);
        }
        Some(who)
    }

    /// Records a namespace's next turn, which the caller has already set in its entry.
    fn give_turn(&mut self, namespace: String) {
        self.turns.insert(self.next_turn, namespace);
        self.next_turn += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(namespace: &str) -> Rank {
        Rank::New { namespace: namespace.to_owned(), place: 0 }
    }

    /// Returns a queue of these waiters, whose tickets are their positions in the list.
    fn line(ranks: &[Rank]) -> Line<usize> {
        let mut line = Line::default();
        ranks.iter().enumerate().for_each(|(ticket, rank)| line.push(rank, ticket as u64, ticket));
        line
    }

    fn order(mut line: Line<usize>) -> Vec<usize> {
        std::iter::from_fn(|| line.pop()).collect()
    }

    #[test]
    fn who_has_begun_goes_first_in_the_order_of_beginning() {
        let ranks = [new("a"), Rank::Begun(7), Rank::Begun(3), new("a"), Rank::Begun(7)];
        assert_eq!(order(line(&ranks)), [2, 1, 4, 0, 3]);
    }

    #[test]
    fn the_others_go_namespace_by_namespace() {
        let ranks = [new("a"), new("a"), new("a"), new("b"), new("c"), new("b")];
        assert_eq!(order(line(&ranks)), [0, 3, 4, 1, 5, 2]);
        let place = |place| Rank::New { namespace: "a".to_owned(), place };
        assert_eq!(order(line(&[place(5), place(2), place(2)])), [1, 2, 0]);
    }

    #[test]
    fn a_namespace_that_comes_back_has_no_turn_before_the_others() {
        let mut line = line(&[new("a"), new("b"), new("b")]);
        assert_eq!(line.pop(), Some(0));
        line.push(&new("a"), 3, 3);
        assert_eq!(order(line), [1, 3, 2]);
    }

    #[test]
    fn who_leaves_is_forgotten_and_its_namespace_with_the_last() {
        let ranks = [new("a"), new("b"), new("b"), Rank::Begun(1)];
        let mut line = line(&ranks);
        assert_eq!((line.remove(&ranks[0], 0), line.remove(&ranks[0], 0)), (Some(0), None));
        assert_eq!((line.remove(&ranks[1], 1), line.remove(&ranks[3], 3)), (Some(1), Some(3)));
        assert_eq!(line.turns.len(), 1);
        assert_eq!(line.pop(), Some(2));
        assert!(line.is_empty() && line.turns.is_empty() && line.namespaces.is_empty());
    }
}
