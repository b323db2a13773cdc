//! The history of each key, and tenants' uses of it: when the gateway must accept, may, and must deny (I6, I7, I9).
//!
//! The gateway follows the Secrets, and may be behind them by its lag. So what it does at a moment follows from one of
//! the versions that a Secret had since that long ago. Where all of them say the same, it must do that; where they
//! differ, it may do either.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::history::Used;

use super::Promise;
use super::findings::Findings;
use super::state::{Seen, State, Step};
use super::views::{End, Key, Secret};

/// The versions of each key, by id.
#[derive(Debug, Default)]
pub(super) struct Uses {
    versions: BTreeMap<String, Vec<Version>>,
}

/// A key from a moment on, until the next version.
#[derive(Clone, Copy, Debug)]
struct Version {
    from: Timestamp,
    /// Until when the gateway accepts it; `None` where it does not.
    until: Option<Timestamp>,
}

/// What the gateway has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    MustAccept,
    May,
    MustDeny,
}

impl Uses {
    /// Looks at a step.
    pub(super) fn see(&mut self, state: &State<'_>, step: &Step<'_>, found: &mut Findings) {
        match &step.seen {
            Seen::Secret(place, new) => {
                let old = state.secrets.get(place).map(|held| &held.secret);
                if let Some(Secret::Key(old)) = old {
                    self.note(old, step.at, None);
                }
                if let Some(Secret::Key(new)) = new {
                    self.note(new, step.at, until(new));
                }
            }
            Seen::Used(used) => self.judge(state, step, used, found),
            _ => {}
        }
    }

    fn note(&mut self, key: &Key<'_>, from: Timestamp, until: Option<Timestamp>) {
        let versions = self.versions.entry(key.id.clone()).or_default();
        // Old and new version of one change come at one moment: only the later counts.
        match versions.last_mut().filter(|last| last.from == from && last.until.is_none()) {
            Some(last) => last.until = until,
            None => versions.push(Version { from, until }),
        }
    }

    fn judge(&self, state: &State<'_>, step: &Step<'_>, used: &Used, found: &mut Findings) {
        let lag = SignedDuration::try_from(state.setting.gateway_lag).unwrap_or(SignedDuration::MAX);
        let (id, bucket) = (&used.access_key_id, &used.bucket);
        let tenant = format!("a tenant of {}", used.namespace);
        match self.answer(id, step.at, lag) {
            Answer::MustAccept if !used.allowed => {
                let message = format!("{tenant} is refused with key {id}, read at {}, which is good", used.read_at);
                found.broken(Promise::I6, step, message);
            }
            Answer::MustDeny if used.allowed => {
                found.broken(Promise::I7, step, format!("{tenant} opens bucket {bucket} with key {id}, which is over"));
            }
            _ => {}
        }
    }

    fn answer(&self, id: &str, now: Timestamp, lag: SignedDuration) -> Answer {
        let since = now.checked_sub(lag).unwrap_or(Timestamp::MIN);
        let versions = self.versions.get(id).map(Vec::as_slice).unwrap_or_default();
        // Before its first version there was none.
        let (mut accepts, mut denies) = (false, versions.first().is_none_or(|first| first.from >= since));
        for (index, version) in versions.iter().enumerate() {
            let replaced = versions.get(index + 1).is_some_and(|next| next.from < since);
            if !replaced {
                let good = version.until.is_some_and(|until| now < until);
                accepts |= good;
                denies |= !good;
            }
        }
        match (accepts, denies) {
            (true, false) => Answer::MustAccept,
            (false, _) => Answer::MustDeny,
            (true, true) => Answer::May,
        }
    }
}

fn until(key: &Key<'_>) -> Option<Timestamp> {
    match key.end {
        _ if !key.counts => None,
        End::Open => Some(Timestamp::MAX),
        End::At(end) => Some(end),
        End::Damaged => None,
    }
}
