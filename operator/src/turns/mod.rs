//! Turns: who goes next where more want to go than there is room for. One type for the operator's
//! slots and for the calls to each store, so that who is ahead at the one is ahead at the other.

mod line;
#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use line::Line;
pub(crate) use line::Rank;

/// What somebody goes for. Room is shared between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    /// One thing, for which a user may wait.
    Single,
    /// One of thousands, for which nobody is in a hurry: the emptying of a bucket.
    Bulk,
}

/// So many at once, the others in line.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<State<oneshot::Sender<u64>>>);

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    share: Share,
    number: u64,
}

/// Somebody in line. One that is dropped gives its place back, and its turn, if it just had it.
struct Waiting<'a> {
    turns: &'a Turns,
    share: Share,
    rank: Rank,
    ticket: u64,
    told: oneshot::Receiver<u64>,
    is_over: bool,
}

impl Turns {
    /// Room for so many, of whom at most `bulk` go for [`Share::Bulk`].
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
    /// How many turns were had before this one.
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

/// Who is under way and who waits, apart from how those are told.
#[derive(Debug)]
struct State<T> {
    room: usize,
    most_bulk: usize,
    single: usize,
    bulk: usize,
    /// What the last one went for.
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

    /// Puts somebody into line, under the ticket that it gets.
    fn enter(&mut self, share: Share, rank: &Rank, who: T) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        self.line(share).push(rank, ticket, who);
        ticket
    }

    /// Takes somebody out of line; `None` if it had its turn.
    fn leave(&mut self, share: Share, rank: &Rank, ticket: u64) -> Option<T> {
        self.line(share).remove(rank, ticket)
    }

    /// Whose turn it is now, if there is room, and the number of the turn.
    fn next(&mut self) -> Option<(T, u64)> {
        let share = self.next_share()?;
        let who = self.line(share).pop()?;
        *self.under_way(share) += 1;
        self.last = share;
        self.turns += 1;
        Some((who, self.turns))
    }

    /// A turn is over.
    fn end(&mut self, share: Share) {
        *self.under_way(share) -= 1;
    }

    /// Singles go first. But where there are always some, bulk would never go: one of it is let
    /// through where none is under way, and with room for one alone they take turns.
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
    /// Tells everybody for whom there is room. Who is in line listens: it leaves the line before it
    /// stops to.
    fn tell_next(&mut self) {
        while let Some((who, number)) = self.next() {
            let told = who.send(number);
            debug_assert!(told.is_ok(), "who is in line listens");
        }
    }
}
