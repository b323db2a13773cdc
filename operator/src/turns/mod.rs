//! A fair queue for limited concurrency. The operator's slots and the calls to each store use the
//! same type, so that both have the same order.

mod line;
#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use line::Line;
pub(crate) use line::Rank;

/// The purpose of a turn. Both kinds share the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    /// A single operation, for which a user may wait.
    Single,
    /// One of thousands of operations that are not urgent: the emptying of a bucket.
    Bulk,
}

/// A limited number of concurrent turns with a queue.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<State<oneshot::Sender<u64>>>);

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    share: Share,
    number: u64,
}

/// A waiter. When dropped it leaves the queue, or gives back the turn if it just got one.
struct Waiting<'a> {
    turns: &'a Turns,
    share: Share,
    rank: Rank,
    ticket: u64,
    told: oneshot::Receiver<u64>,
    is_over: bool,
}

impl Turns {
    /// Creates a queue with `room` concurrent turns, of which at most `bulk` are for
    /// [`Share::Bulk`].
    pub(crate) fn new(room: usize, bulk: usize) -> Self {
        Self(Mutex::new(State::new(room, bulk)))
    }

    /// Waits for a turn.
    pub(crate) async fn take(&self, share: Share, rank: Rank) -> Turn<'_> {
        let mut waiting = self.enter(share, rank);
        let number = (&mut waiting.told).await.expect("who is in line is told, or leaves it");
        waiting.is_over = true;
        Turn { turns: self, share, number }
    }

    fn enter(&self, share: Share, rank: Rank) -> Waiting<'_> {
        let (tell, told) = oneshot::channel();
        let mut state = self.0.lock();
        let ticket = state.enter(share, &rank, tell);
        state.tell_next();
        drop(state);
        Waiting { turns: self, share, rank, ticket, told, is_over: false }
    }
}

impl Turn<'_> {
    /// Returns the number of this turn, counted from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.0.lock();
        state.end(self.share);
        state.tell_next();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let mut state = self.turns.0.lock();
            if state.leave(self.share, &self.rank, self.ticket).is_none() {
                state.end(self.share);
            }
            state.tell_next();
        }
    }
}

/// The running turns and the waiters, without the channels that notify them.
#[derive(Debug)]
struct State<T> {
    room: usize,
    most_bulk: usize,
    single: usize,
    bulk: usize,
    /// The share of the last turn.
    last: Share,
    singles: Line<T>,
    bulks: Line<T>,
    tickets: u64,
    turns: u64,
}

impl<T> State<T> {
    fn new(room: usize, most_bulk: usize) -> Self {
        let (singles, bulks) = (Line::default(), Line::default());
        Self { room, most_bulk, single: 0, bulk: 0, last: Share::Single, singles, bulks, tickets: 0, turns: 0 }
    }

    /// Adds a waiter and returns its ticket.
    fn enter(&mut self, share: Share, rank: &Rank, who: T) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        self.line(share).push(rank, ticket, who);
        ticket
    }

    /// Removes a waiter; `None` if it has had its turn.
    fn leave(&mut self, share: Share, rank: &Rank, ticket: u64) -> Option<T> {
        self.line(share).remove(rank, ticket)
    }

    /// Returns the next waiter and the number of its turn, if there is room.
    fn next(&mut self) -> Option<(T, u64)> {
        let share = self.next_share()?;
        let who = self.line(share).pop()?;
        *self.under_way(share) += 1;
        self.last = share;
        self.turns += 1;
        Some((who, self.turns))
    }

    /// Ends a turn.
    fn end(&mut self, share: Share) {
        *self.under_way(share) -= 1;
    }

    /// Returns the share that goes next.
    ///
    /// Singles go first. So that bulk is not starved, one bulk turn is allowed while none is
    /// running and the last turn was a single. With room for one, the two alternate.
    fn next_share(&self) -> Option<Share> {
        let single = !self.singles.is_empty();
        let bulk = !self.bulks.is_empty() && self.bulk < self.most_bulk;
        let is_bulk_due = self.bulk == 0 && self.last == Share::Single;
        match (single, bulk) {
            _ if self.single + self.bulk >= self.room => None,
            (true, true) if is_bulk_due => Some(Share::Bulk),
            (true, _) => Some(Share::Single),
            (false, true) => Some(Share::Bulk),
            (false, false) => None,
        }
    }

    fn line(&mut self, share: Share) -> &mut Line<T> {
        match share {
            Share::Single => &mut self.singles,
            Share::Bulk => &mut self.bulks,
        }
    }

    fn under_way(&mut self, share: Share) -> &mut usize {
        match share {
            Share::Single => &mut self.single,
            Share::Bulk => &mut self.bulk,
        }
    }
}

impl State<oneshot::Sender<u64>> {
    /// Notifies every waiter for which there is room. A send can't fail, because a waiter leaves
    /// the queue before it drops its receiver.
    fn tell_next(&mut self) {
        while let Some((who, number)) = self.next() {
            let told = who.send(number);
            debug_assert!(told.is_ok(), "who is in line listens");
        }
    }
}
