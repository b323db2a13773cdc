//! The history of each key, and its uses by tenants: the gateway must accept, may accept, or must
//! deny each (I6, I7, I15).
//!
//! The gateway follows the Secrets, and may lag behind them. So its decision may follow from any
//! version that a Secret had within that lag. If all these versions agree, the gateway must decide
//! accordingly; otherwise it may decide either way. Keys expire by the gateway's own clock. A key
//! that ends early or late because that clock is off is a limit, not a violation.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use stowage_world::history::Used;

use super::Promise;
use super::findings::Findings;
use super::state::{HistoryStep, Place, Seen, State};
use super::views::{End, Key, Secret, host_of};

/// The oracle's memory of keys, and of the Secrets that tenants read.
#[derive(Debug, Default)]
pub(super) struct Uses<'a> {
    /// The versions of each key, by id.
    versions: BTreeMap<String, Vec<Version>>,
    /// The stored secret of each key, by id.
    secrets: BTreeMap<String, &'a str>,
    /// Hosts of each backend's store from a moment on, including former ones; `None` if there is no
    /// backend.
    backends: BTreeMap<&'a str, Vec<(Timestamp, Option<Hosts>)>>,
    /// Times at which each consumer Secret received a key; true if it was with that key's own
    /// secret.
    read: BTreeMap<Place<'a>, Vec<(Timestamp, bool)>>,
}

/// Hosts and ports of one store.
type Hosts = Vec<String>;

/// A key from a moment on, until the next version.
#[derive(Clone, Debug)]
struct Version {
    from: Timestamp,
    /// Time until which the gateway accepts it; `None` if it doesn't.
    until: Option<Timestamp>,
    /// The name of its backend.
    backend: String,
    /// Host of the store that it is for; `None` if only the backend's name decides.
    host: Option<String>,
}

/// The gateway's obligation for a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    MustAccept,
    May,
    MustDeny,
}

impl<'a> Uses<'a> {
    /// Judges a step.
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
                let hosts = stored.new.as_deref().map(|backend| {
                    let former = backend["spec"]["formerEndpoints"].as_array().into_iter().flatten();
                    let all = [&backend["spec"]["endpoint"]].into_iter().chain(former);
                    all.filter_map(|endpoint| endpoint.as_str().map(host_of)).collect()
                });
                self.backends.entry(&stored.name).or_default().push((step.at, hosts));
            }
            Seen::Used(gateway, used) => self.judge(state, step, (*gateway, used), found),
            Seen::Tried(tried) if tried.allowed => {
                let (id, operation, bucket) = (&tried.access_key_id, &tried.operation, &tried.bucket);
                found.broken(Promise::I15, step, format!("key {id} is let do {operation} on bucket {bucket}"));
            }
            _ => {}
        }
    }

    fn note(&mut self, key: &Key<'_>, from: Timestamp, until: Option<Timestamp>) {
        // If there are two changes at one moment, the gateway may know only the first one within
        // its lag.
        let (backend, host) = (key.backend.clone(), key.host.clone());
        self.versions.entry(key.id.clone()).or_default().push(Version { from, until, backend, host });
    }

    fn judge(&self, state: &State<'_>, step: &HistoryStep<'_>, (gateway, used): (usize, &Used), found: &mut Findings) {
        let further = state.setting.further_lags.get(gateway).copied().unwrap_or_default();
        let lag = SignedDuration::try_from(state.setting.gateway_lag + further).unwrap_or(SignedDuration::MAX);
        let (id, bucket) = (&used.access_key_id, &used.bucket);
        let tenant = format!("a tenant of {}", used.namespace);
        let good = || format!("{tenant} is refused with key {id}, read at {}, which is good", used.read_at);
        let over = || format!("{tenant} opens bucket {bucket} with key {id}, which is over");
        let since = step.at.checked_sub(lag).unwrap_or(Timestamp::MIN);
        let (by_gateway, by_truth) =
            (self.answer(id, since, state.clocks.of_gateway(step.at)), self.answer(id, since, step.at));
        let (is_there, is_elsewhere) = self.reaches(id, since);
        match (used.allowed, by_gateway, by_truth) {
            // If the store is unknown, or is not the one that the key is for, the gateway sends no
            // request (spec §1, §6).
            (false, _, _) if is_elsewhere => {}
            (true, _, _) if !is_there => {
                let message = format!("{tenant} opens bucket {bucket} with key {id} at a store that it is not for");
                found.broken(Promise::I15, step, message);
            }
            (false, Duty::MustAccept, _) if self.read_whole(used) => found.broken(Promise::I6, step, good()),
            (false, _, Duty::MustAccept) if self.read_whole(used) => found.limit(Promise::I6, step, good()),
            (true, Duty::MustDeny, _) => found.broken(Promise::I7, step, over()),
            (true, _, Duty::MustDeny) => found.limit(Promise::I7, step, over()),
            _ => {}
        }
    }

    /// Returns two values: true if, at some time since then, the backend of a key had the store
    /// that the key is for, under its present address or a former one; and true if, at some time,
    /// it had not.
    fn reaches(&self, id: &str, since: Timestamp) -> (bool, bool) {
        let versions = self.versions.get(id).map(Vec::as_slice).unwrap_or_default();
        let (mut is_there, mut is_elsewhere) = (false, false);
        for version in lately(versions, since, |version| version.from) {
            let backends = self.backends.get(version.backend.as_str()).map(Vec::as_slice).unwrap_or_default();
            // The state of a backend that the history doesn't show is unknown.
            is_there |= backends.is_empty();
            for (_, hosts) in lately(backends, since, |(from, _)| *from) {
                let is_at = |hosts: &Hosts| version.host.as_ref().is_none_or(|host| hosts.contains(host));
                let reached = hosts.as_ref().is_some_and(is_at);
                is_there |= reached;
                is_elsewhere |= !reached;
            }
        }
        (is_there || versions.is_empty(), is_elsewhere)
    }

    /// Returns true if the tenant read the key with its own secret: another actor may have changed
    /// it in the consumer Secret.
    fn read_whole(&self, used: &Used) -> bool {
        let versions = self.read.get(&(used.namespace.as_str(), used.secret.as_str())).map_or(&[][..], Vec::as_slice);
        // The tenant may have read any version written at the moment of the read, or the version
        // before.
        let before = versions.iter().map(|(from, _)| *from).filter(|from| *from < used.read_at).max();
        let mut possible =
            versions.iter().filter(|(from, _)| *from == used.read_at || Some(*from) == before).peekable();
        possible.peek().is_some() && possible.all(|(_, whole)| *whole)
    }

    /// Returns the obligation of a gateway that knows the Secrets as of some time since then, and
    /// whose clock shows `now`.
    fn answer(&self, id: &str, since: Timestamp, now: Timestamp) -> Duty {
        let versions = self.versions.get(id).map(Vec::as_slice).unwrap_or_default();
        // Before the first version there was no key.
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

/// Returns the entries of a history that were current at some time since then.
fn lately<T>(all: &[T], since: Timestamp, from: impl Fn(&T) -> Timestamp) -> impl Iterator<Item = &T> {
    let is_over = move |next: Option<&T>| next.is_some_and(|next| from(next) < since);
    all.iter().enumerate().filter(move |(index, _)| !is_over(all.get(index + 1))).map(|(_, one)| one)
}

fn until(key: &Key<'_>) -> Option<Timestamp> {
    match key.end {
        _ if !key.counts || key.deleted => None,
        End::Open => Some(Timestamp::MAX),
        End::At(end) => Some(end),
        End::Damaged => None,
    }
}
