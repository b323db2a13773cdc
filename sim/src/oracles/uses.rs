//! The history of each key, and tenants' uses of it: when the gateway must accept, may, and must
//! deny (I6, I7, I15).
//!
//! The gateway follows the Secrets, and may be behind them by its lag. So what it does at a moment
//! follows from one of the versions that a Secret had since that long ago. Where all of them say
//! the same, it must do that; where they differ, it may do either. It ends keys by its own clock;
//! where that is off, and so a tenant finds a key over sooner or later than by true time, that is a
//! limit.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::history::Used;

use super::Promise;
use super::findings::Findings;
use super::state::{HistoryStep, Place, Seen, State};
use super::views::{End, Key, Secret};

/// What is remembered of keys, and of the Secrets that tenants read.
#[derive(Debug, Default)]
pub(super) struct Uses<'a> {
    /// The versions of each key, by id.
    versions: BTreeMap<String, Vec<Version>>,
    /// The secret of each key, as it is stored, by id.
    secrets: BTreeMap<String, &'a str>,
    /// Where each backend was, and until when; `None` where it was not there.
    backends: BTreeMap<&'a str, Vec<(Timestamp, Option<&'a str>)>>,
    /// The backend of each key, and where that was when the key was first seen.
    places: BTreeMap<String, (String, Option<&'a str>)>,
    /// From when on each consumer Secret held a key, and whether it held that key's own secret.
    read: BTreeMap<Place<'a>, Vec<(Timestamp, bool)>>,
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
enum Duty {
    MustAccept,
    May,
    MustDeny,
}

impl<'a> Uses<'a> {
    /// Looks at a step.
    pub(super) fn see(&mut self, state: &State<'a>, step: &HistoryStep<'a>, found: &mut Findings) {
        match &step.seen {
            Seen::Secret(place, new) => {
                let old = state.secrets.get(place).map(|held| &held.secret);
                let still = |id: &str| matches!(new, Some(Secret::Key(new)) if new.id == id);
                if let Some(Secret::Key(old)) = old
                    && !still(&old.id)
                {
                    self.note(old, step.at, None);
                }
                match new {
                    Some(Secret::Key(new)) => {
                        self.secrets.entry(new.id.clone()).or_insert(new.secret);
                        let at = self.backends.get(new.backend.as_str()).and_then(|all| all.last()?.1);
                        self.places.entry(new.id.clone()).or_insert_with(|| (new.backend.clone(), at));
                        self.note(new, step.at, until(new));
                    }
                    Some(Secret::Consumer(new)) => {
                        let whole = self.secrets.get(&new.id) == Some(&new.secret);
                        self.read.entry(*place).or_default().push((step.at, whole));
                    }
                    _ => {}
                }
            }
            Seen::Object(stored) if stored.plural == "s3backends" => {
                let at = stored.new.as_deref().and_then(|backend| backend["spec"]["endpoint"].as_str());
                self.backends.entry(&stored.name).or_default().push((step.at, at));
            }
            Seen::Used(used) => self.judge(state, step, used, found),
            Seen::Tried(tried) if tried.allowed => {
                let (id, operation, bucket) = (&tried.access_key_id, &tried.operation, &tried.bucket);
                found.broken(Promise::I15, step, format!("key {id} is let do {operation} on bucket {bucket}"));
            }
            _ => {}
        }
    }

    fn note(&mut self, key: &Key<'_>, from: Timestamp, until: Option<Timestamp>) {
        // Of two changes at one moment the gateway may know the first for as long as it lags.
        self.versions.entry(key.id.clone()).or_default().push(Version { from, until });
    }

    fn judge(&self, state: &State<'_>, step: &HistoryStep<'_>, used: &Used, found: &mut Findings) {
        let lag = SignedDuration::try_from(state.setting.gateway_lag).unwrap_or(SignedDuration::MAX);
        let (id, bucket) = (&used.access_key_id, &used.bucket);
        let tenant = format!("a tenant of {}", used.namespace);
        let good = || format!("{tenant} is refused with key {id}, read at {}, which is good", used.read_at);
        let over = || format!("{tenant} opens bucket {bucket} with key {id}, which is over");
        let since = step.at.checked_sub(lag).unwrap_or(Timestamp::MIN);
        let (by_gateway, by_truth) =
            (self.answer(id, since, state.clocks.of_gateway(step.at)), self.answer(id, since, step.at));
        // A store that can't be told, or is another by now, is asked nothing (spec §6).
        let elsewhere = self.was_elsewhere(id, since);
        match (used.allowed, by_gateway, by_truth) {
            (false, _, _) if elsewhere => {}
            (false, Duty::MustAccept, _) if self.read_whole(used) => found.broken(Promise::I6, step, good()),
            (false, _, Duty::MustAccept) if self.read_whole(used) => found.limit(Promise::I6, step, good()),
            (true, Duty::MustDeny, _) => found.broken(Promise::I7, step, over()),
            (true, _, Duty::MustDeny) => found.limit(Promise::I7, step, over()),
            _ => {}
        }
    }

    /// Whether the backend of a key was, since then, not where it was when the key was made.
    fn was_elsewhere(&self, id: &str, since: Timestamp) -> bool {
        let Some((backend, place)) = self.places.get(id) else { return false };
        let versions = self.backends.get(backend.as_str()).map(Vec::as_slice).unwrap_or_default();
        versions.iter().enumerate().any(|(index, (_, at))| {
            let is_over = versions.get(index + 1).is_some_and(|(next, _)| *next < since);
            !is_over && (at.is_none() || at != place)
        })
    }

    /// Whether the tenant read the key as it is: somebody may have spoilt it in the consumer
    /// Secret.
    fn read_whole(&self, used: &Used) -> bool {
        let versions = self.read.get(&(used.namespace.as_str(), used.secret.as_str())).map_or(&[][..], Vec::as_slice);
        // Of what came at the moment of the read any may have been read, and what was there until
        // then.
        let before = versions.iter().map(|(from, _)| *from).filter(|from| *from < used.read_at).max();
        let mut possible =
            versions.iter().filter(|(from, _)| *from == used.read_at || Some(*from) == before).peekable();
        possible.peek().is_some() && possible.all(|(_, whole)| *whole)
    }

    /// What a gateway has to do that knows how the Secrets stood at some time since then, and takes
    /// it to be `now`.
    fn answer(&self, id: &str, since: Timestamp, now: Timestamp) -> Duty {
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
            (true, false) => Duty::MustAccept,
            (false, _) => Duty::MustDeny,
            (true, true) => Duty::May,
        }
    }
}

fn until(key: &Key<'_>) -> Option<Timestamp> {
    match key.end {
        _ if !key.counts || key.deleted => None,
        End::Open => Some(Timestamp::MAX),
        End::At(end) => Some(end),
        End::Damaged => None,
    }
}
