//! What a candidate does next, from what it has seen of the Lease, and when. Pure.
//!
//! Times of other machines are never compared with one's own: a Lease counts as given up once it
//! was *seen* not to change for as long as its holder asked for. After an hour's suspension a
//! candidate may have seen nothing for an hour; all that it does then is to write by the version it
//! saw, which fails where the Lease has changed.
//!
//! # Why two never change a store at once
//!
//! A leader is confirmed by a write of the Lease that succeeded. It changes nothing later than
//! [`Terms::confirmed`] after that write *began*, and a change is over within [`Terms::call`] of
//! its beginning. Another candidate sees the Lease after it was written, and waits for
//! [`Terms::duration`], their sum, from there. So the last change of the one is over before the
//! first of the other begins. This takes for granted that clocks of two machines run alike, and
//! that a call is sent when it was allowed; a process that is stopped in between sends it when it
//! wakes up.

use std::time::Duration;

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// For how long a leader goes by a write of the Lease that succeeded.
    pub confirmed: Duration,
    /// Longest that a call takes, to the API server or to a store.
    pub call: Duration,
    /// How often a leader writes the Lease.
    pub renewal: Duration,
    /// The pause after a try that failed.
    pub retry: Duration,
}

impl Terms {
    /// After how long without a change a Lease is anybody's.
    pub fn duration(&self) -> Duration {
        self.confirmed + self.call
    }
}

/// A Lease, as far as an election reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Which Lease, and which version of it.
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// Who has it; `None` where somebody has let it go.
    pub(super) holder: Option<String>,
    /// For how long its holder asks to be waited for.
    pub(super) duration: Duration,
    /// How often it has changed hands.
    pub(super) transitions: i32,
}

/// An event of the watch of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The Lease, in this version.
    There(Record),
    /// A list without the Lease: versions between it and the one seen last may have been missed.
    Absent,
    /// The deletion of the version seen last.
    Deleted,
}

/// A term of a Lease: it ends when the Lease changes hands, or is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    uid: String,
    transitions: i32,
}

impl Term {
    fn of(record: &Record) -> Self {
        Self { uid: record.uid.clone(), transitions: record.transitions }
    }
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Read the Lease.
    Look,
    /// There is none: make it.
    Create,
    /// Write oneself into this version of it.
    Take(Record),
    /// Wait until this moment, or for news if there is none.
    Wait(Option<Duration>),
}

/// Why somebody leads no longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Loss {
    #[error("the Lease could not be renewed for {} s", .0.as_secs())]
    Unconfirmed(Duration),
    #[error("the Lease names {}", .0.as_deref().unwrap_or("nobody"))]
    Another(Option<String>),
}

/// Somebody who would lead. Moments are those of one clock that goes on while the machine is
/// suspended.
#[derive(Debug)]
pub(super) struct Candidate {
    id: String,
    terms: Terms,
    seen: Seen,
    role: Role,
    /// What is seen may be old.
    doubtful: bool,
    /// Nothing is tried before.
    not_before: Duration,
}

#[derive(Debug)]
enum Seen {
    Nothing,
    /// There is none, and it is anybody's from this moment on.
    Absent {
        free: Duration,
    },
    Lease {
        record: Record,
        /// Since when it is seen to be so.
        since: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    StandBy,
    Lead {
        /// When the last write began that succeeded.
        confirmed: Duration,
    },
}

impl Candidate {
    /// One that has seen nothing. No other ever has this id, no earlier life of it either.
    pub(super) fn new(id: String, terms: Terms) -> Self {
        Self { id, terms, seen: Seen::Nothing, role: Role::StandBy, doubtful: false, not_before: Duration::ZERO }
    }

    /// Leads no longer, where it has lost the Lease by this moment. To be asked at every turn: a
    /// leader that waits for an answer may lose it meanwhile.
    pub(super) fn steps_down(&mut self, now: Duration) -> Option<Loss> {
        let loss = self.loss(now)?;
        self.role = Role::StandBy;
        // A write may be under way.
        self.doubtful = true;
        Some(loss)
    }

    /// What to do at this moment, unless something is under way.
    pub(super) fn next(&self, now: Duration) -> Move {
        let (due, wanted) = match (&self.seen, self.role) {
            _ if self.doubtful => (now, Move::Look),
            (Seen::Nothing, _) => return Move::Wait(self.ends()),
            (Seen::Absent { .. }, Role::Lead { .. }) => (now, Move::Create),
            (Seen::Absent { free }, Role::StandBy) => (*free, Move::Create),
            (Seen::Lease { record, .. }, Role::Lead { confirmed }) => {
                (confirmed + self.terms.renewal, Move::Take(record.clone()))
            }
            (Seen::Lease { record, since }, Role::StandBy) => (self.free(record, *since), Move::Take(record.clone())),
        };
        let due = due.max(self.not_before);
        if due <= now { wanted } else { Move::Wait(Some(self.ends().map_or(due, |end| end.min(due)))) }
    }

    /// From when on a Lease is anybody's that is seen to be so since then. One that has this
    /// candidate's name was written by it, in a try whose answer was lost.
    fn free(&self, record: &Record, since: Duration) -> Duration {
        match &record.holder {
            None => since,
            Some(holder) if *holder == self.id => since,
            Some(_) => since + record.duration,
        }
    }

    /// Until when it leads without another write.
    pub(super) fn ends(&self) -> Option<Duration> {
        match self.role {
            Role::StandBy => None,
            Role::Lead { confirmed } => Some(confirmed + self.terms.confirmed),
        }
    }

    /// The term in which it leads; `None` where it stands by, or is about to make the Lease anew.
    pub(super) fn term(&self) -> Option<Term> {
        self.ends().and(self.lease()).map(Term::of)
    }

    /// True if another may have led since this term, as far as the Lease was seen. While it leads
    /// none has: a Lease that was deleted it makes anew. One that stands by because it couldn't
    /// write goes on where the Lease is still its own.
    pub(super) fn is_over(&self, term: &Term) -> bool {
        match (self.role, &self.seen) {
            (Role::Lead { .. }, _) | (Role::StandBy, Seen::Nothing) => false,
            (Role::StandBy, Seen::Absent { .. }) => true,
            (Role::StandBy, Seen::Lease { record, .. }) => {
                record.holder.as_ref() != Some(&self.id) || Term::of(record) != *term
            }
        }
    }

    /// The Lease, as it was last seen.
    pub(super) fn lease(&self) -> Option<&Record> {
        match &self.seen {
            Seen::Lease { record, .. } => Some(record),
            Seen::Nothing | Seen::Absent { .. } => None,
        }
    }

    fn loss(&self, now: Duration) -> Option<Loss> {
        let end = self.ends()?;
        match &self.seen {
            _ if now >= end => Some(Loss::Unconfirmed(self.terms.confirmed)),
            Seen::Lease { record, .. } if !self.doubtful && record.holder.as_ref() != Some(&self.id) => {
                Some(Loss::Another(record.holder.clone()))
            }
            _ => None,
        }
    }

    /// Takes in what a watch has told, which may be of before: a leader makes sure of what it
    /// doesn't like.
    pub(super) fn hears(&mut self, news: News, now: Duration) {
        if let Role::Lead { .. } = self.role {
            let is_mine = matches!(&news, News::There(record) if record.holder.as_ref() == Some(&self.id));
            self.doubtful |= !is_mine;
            return;
        }
        match news {
            News::There(record) => self.see(Some(record), now),
            News::Absent => self.see(None, now),
            News::Deleted => self.seen = Seen::Absent { free: self.free_once_deleted(now) },
        }
    }

    /// The moment from which a Lease may be made anew that was deleted in the version seen last.
    ///
    /// An operator with these terms that did not renew its Lease for their duration has ended, so
    /// a deletion by hand counts at once, whatever duration stood in that Lease.
    fn free_once_deleted(&self, now: Duration) -> Duration {
        match &self.seen {
            Seen::Nothing => now,
            Seen::Absent { free } => *free,
            Seen::Lease { since, .. } if now.saturating_sub(*since) >= self.terms.duration() => now,
            Seen::Lease { record, since } => self.free(record, *since).max(now),
        }
    }

    /// Takes in what a read has shown, which is what is so.
    pub(super) fn looks(&mut self, record: Option<Record>, now: Duration) {
        self.doubtful = false;
        self.see(record, now);
    }

    /// Takes in that a write succeeded that began then.
    pub(super) fn wrote(&mut self, record: Record, began: Duration, now: Duration) {
        self.doubtful = false;
        self.see(Some(record), now);
        self.role = Role::Lead { confirmed: began };
    }

    /// Takes in that a try failed: it may have happened all the same, or what it went by is old.
    pub(super) fn failed(&mut self, now: Duration) {
        self.doubtful = true;
        self.not_before = now + self.terms.retry;
    }

    fn see(&mut self, record: Option<Record>, now: Duration) {
        let before = std::mem::replace(&mut self.seen, Seen::Nothing);
        self.seen = match (record, before) {
            (None, Seen::Absent { free }) => Seen::Absent { free },
            (None, Seen::Nothing) => Seen::Absent { free: now },
            // Somebody has deleted it, and whoever had it goes by it for a while.
            (None, Seen::Lease { record, since }) => Seen::Absent { free: self.free(&record, since.max(now)) },
            (Some(record), Seen::Lease { record: before, since }) if is_same(&record, &before) => {
                Seen::Lease { record, since }
            }
            (Some(record), _) => Seen::Lease { record, since: now },
        };
    }
}

fn is_same(one: &Record, other: &Record) -> bool {
    one.uid == other.uid && one.resource_version == other.resource_version
}

#[cfg(test)]
#[path = "candidate_tests.rs"]
mod tests;
