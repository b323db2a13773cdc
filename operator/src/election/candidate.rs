//! The state machine of a candidate: its next move, from the versions of the Lease that it has seen
//! and their times. Pure.
//!
//! Times of other machines are never compared with the local clock. A Lease counts as expired once
//! it was *seen* unchanged for the duration that its holder wrote into it. After an hour's
//! suspension a candidate may have seen nothing for an hour. All it does then is to write with the
//! version it saw, which fails if the Lease has changed.
//!
//! # Why two leaders never change a store at once
//!
//! A leader is confirmed by a successful write of the Lease. It begins no change later than
//! [`Terms::confirmed`] after that write *began*, and a change ends within [`Terms::call`] of its
//! beginning. Another candidate sees the Lease after it was written, and waits for
//! [`Terms::duration`], which is their sum, from then on. So the last change of the one ends before
//! the first of the other begins. This assumes that the clocks of two machines run at the same
//! speed, and that a call is sent when it was permitted; a process that is stopped in between sends
//! it when it wakes up.

use std::time::Duration;

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Time after which a leader is no longer confirmed by its last successful write of the Lease.
    pub confirmed: Duration,
    /// Maximum duration of a call to the API server or to a store.
    pub call: Duration,
    /// Interval at which a leader renews the Lease.
    pub renewal: Duration,
    /// Delay after a leader's failed try. A candidate that doesn't lead waits for `renewal`.
    pub retry: Duration,
}

impl Terms {
    /// Returns the time without a change after which any candidate may take the Lease.
    pub fn duration(&self) -> Duration {
        self.confirmed + self.call
    }
}

/// The parts of a Lease that an election uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// UID and version of the Lease.
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// The holder; `None` if the Lease was released.
    pub(super) holder: Option<String>,
    /// The lease duration that the holder has written.
    pub(super) duration: Duration,
    /// Number of changes of the holder.
    pub(super) transitions: i32,
}

/// An event of the watch of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The Lease, in this version.
    There(Record),
    /// A list without the Lease. Versions after the last one seen may have been missed.
    Absent,
    /// The deletion of the last version seen.
    Deleted,
}

/// A term of one holder. It ends when the Lease changes its holder or is deleted.
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

/// The next move of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Read the Lease.
    Look,
    /// Create the Lease, as there is none.
    Create,
    /// Write this candidate's name into this version of the Lease.
    Take(Record),
    /// Wait until this moment, or for an event if there is none.
    Wait(Option<Duration>),
}

/// The reason why a process no longer leads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Loss {
    #[error("the Lease could not be renewed for {} s", .0.as_secs())]
    Unconfirmed(Duration),
    #[error("the Lease names {}", .0.as_deref().unwrap_or("nobody"))]
    Another(Option<String>),
}

/// A candidate for leadership. All moments are of one clock that also counts while the machine is
/// suspended.
#[derive(Debug)]
pub(super) struct Candidate {
    id: String,
    terms: Terms,
    seen: Seen,
    role: Role,
    /// Set if the last seen version may be outdated.
    doubtful: bool,
    /// Moment before which nothing is tried.
    not_before: Duration,
}

#[derive(Debug)]
enum Seen {
    Nothing,
    /// There is no Lease, and it may be created from this moment on.
    Absent {
        free: Duration,
    },
    Lease {
        record: Record,
        /// Moment since which this version has been seen.
        since: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    StandBy,
    Lead {
        /// Moment at which the last successful write began.
        confirmed: Duration,
    },
}

impl Candidate {
    /// Creates a candidate that has seen nothing. Its id is unique, also across restarts of the
    /// process.
    pub(super) fn new(id: String, terms: Terms) -> Self {
        Self { id, terms, seen: Seen::Nothing, role: Role::StandBy, doubtful: false, not_before: Duration::ZERO }
    }

    /// Steps down if the Lease is lost at this moment, and returns the reason.
    ///
    /// Must be called in every iteration, because a leader that waits for an answer may lose the
    /// Lease meanwhile.
    pub(super) fn steps_down(&mut self, now: Duration) -> Option<Loss> {
        let loss = self.loss(now)?;
        self.role = Role::StandBy;
        // A write may be in progress.
        self.doubtful = true;
        Some(loss)
    }

    /// Returns the next move at this moment, if no request is in progress.
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

    /// Returns the moment from which any candidate may take a Lease that was seen in this version
    /// since `since`.
    ///
    /// If it has this candidate's name, this candidate wrote it, in a try whose answer was lost.
    fn free(&self, record: &Record, since: Duration) -> Duration {
        match &record.holder {
            None => since,
            Some(holder) if *holder == self.id => since,
            Some(_) => since + record.duration,
        }
    }

    /// Returns the moment until which this candidate leads without another write.
    pub(super) fn ends(&self) -> Option<Duration> {
        match self.role {
            Role::StandBy => None,
            Role::Lead { confirmed } => Some(confirmed + self.terms.confirmed),
        }
    }

    /// Returns the term in which this candidate leads; `None` if it stands by, or is about to
    /// create the Lease again.
    pub(super) fn term(&self) -> Option<Term> {
        self.ends().and(self.lease()).map(Term::of)
    }

    /// Returns true if another candidate may have led since this term, as far as the Lease was
    /// seen.
    ///
    /// While this candidate leads, no other has: it creates a deleted Lease again. A candidate that
    /// stands by because it couldn't write resumes its term if the Lease still has its name.
    pub(super) fn is_over(&self, term: &Term) -> bool {
        match (self.role, &self.seen) {
            (Role::Lead { .. }, _) | (Role::StandBy, Seen::Nothing) => false,
            (Role::StandBy, Seen::Absent { .. }) => true,
            (Role::StandBy, Seen::Lease { record, .. }) => {
                record.holder.as_ref() != Some(&self.id) || Term::of(record) != *term
            }
        }
    }

    /// Returns the Lease as it was last seen.
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

    /// Applies a watch event, which may be outdated. A leader verifies an unwelcome one by a read.
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

    /// Returns the moment from which a Lease that was deleted in the last seen version may be
    /// created again.
    ///
    /// An operator with these terms has ended if it did not renew its Lease for their duration. So
    /// a deletion by hand takes effect at once, regardless of the duration in that Lease.
    fn free_once_deleted(&self, now: Duration) -> Duration {
        match &self.seen {
            Seen::Nothing => now,
            Seen::Absent { free } => *free,
            Seen::Lease { since, .. } if now.saturating_sub(*since) >= self.terms.duration() => now,
            Seen::Lease { record, since } => self.free(record, *since).max(now),
        }
    }

    /// Applies the result of a read, which is current.
    pub(super) fn looks(&mut self, record: Option<Record>, now: Duration) {
        self.doubtful = false;
        self.see(record, now);
    }

    /// Applies a successful write that began at `began`.
    pub(super) fn wrote(&mut self, record: Record, began: Duration, now: Duration) {
        self.doubtful = false;
        self.see(Some(record), now);
        self.role = Role::Lead { confirmed: began };
    }

    /// Applies a failed try: it may have taken effect all the same, or was based on an outdated
    /// version.
    ///
    /// If answers are lost for long, each try changes the Lease. A candidate that doesn't lead has
    /// nothing to lose, so it tries no more often than a leader renews.
    pub(super) fn failed(&mut self, now: Duration) {
        let delay = match self.role {
            Role::Lead { .. } => self.terms.retry,
            Role::StandBy => self.terms.renewal,
        };
        self.doubtful = true;
        self.not_before = now + delay;
    }

    fn see(&mut self, record: Option<Record>, now: Duration) {
        let before = std::mem::replace(&mut self.seen, Seen::Nothing);
        self.seen = match (record, before) {
            (None, Seen::Absent { free }) => Seen::Absent { free },
            (None, Seen::Nothing) => Seen::Absent { free: now },
            // The Lease was deleted, and its holder relies on it for a while.
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
