//! The order in which those go who wait: who has begun before who hasn't, the others namespace by
//! namespace.
//!
//! Whoever has begun is done soon that way, instead of everybody late; and a namespace with
//! thousands who wait delays another's one by a turn. All of it is O(log n).

use std::collections::BTreeMap;

/// What decides when somebody goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It has gone before, in this place of all who have.
    Begun(u64),
    /// It hasn't, and waits in its namespace's turn; there the lower place goes first.
    New { namespace: String, place: u64 },
}

/// A place, and a number that tells those of one place apart, in the order of their coming.
type Position = (u64, u64);

/// Those who wait.
#[derive(Debug)]
pub(super) struct Line<T> {
    begun: BTreeMap<Position, T>,
    /// The others. No namespace is here without somebody who waits.
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

    /// Puts somebody into its place. Nobody else has this ticket.
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

    /// Takes out somebody who waits no longer; `None` if it isn't here.
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

    /// Takes out who goes next. Its namespace has its next turn after all others.
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

    /// Gives the next turn to a namespace, which has noted it.
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

    /// A line of these, whose tickets are their places in the list.
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
