//! One bucket, one claim (I4): records, and keys of the claims that hold them.

use std::collections::BTreeSet;

use stowage_operator::api::wire::TAG_CLAIM_UID;
use stowage_world::history::Called;

use super::Promise;
use super::buckets::Buckets;
use super::findings::Findings;
use super::state::{HistoryStep, Seen, State};
use super::views::{Key, Record, Secret};

/// The oracle's memory of claims and of the buckets that they may have keys to.
#[derive(Debug, Default)]
pub(super) struct Holders {
    /// UIDs of claims, with the buckets that were seen with their tags.
    tagged: BTreeSet<(String, String)>,
    /// UIDs of claims, with the buckets that they ever had a key to.
    opened: BTreeSet<(String, String)>,
}

impl Holders {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'_>, step: &HistoryStep<'_>, buckets: &Buckets, found: &mut Findings) {
        match &step.seen {
            Seen::Called(called) if step.by_operator() => self.remember_tags(called),
            Seen::Secret(place, Some(Secret::Record(record))) => one_holder(state, step, place.1, record, found),
            Seen::Secret(place, Some(Secret::Key(key))) => {
                if step.by_operator() {
                    self.first_key(state, step, key, buckets, found);
                    if !state.secrets.contains_key(place) {
                        key_of_holder(state, step, key, found);
                    }
                }
                self.opened.insert((key.uid.clone(), key.bucket.clone()));
            }
            _ => {}
        }
    }

    /// Returns true if a claim ever had a key to this bucket.
    pub(super) fn ever_opened(&self, uid: &str, bucket: &str) -> bool {
        self.opened.contains(&(uid.to_owned(), bucket.to_owned()))
    }

    fn remember_tags(&mut self, called: &Called) {
        for snapshot in [&called.before, &called.after].into_iter().flatten() {
            let uid = snapshot.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID));
            if let (Some(uid), Some(bucket)) = (uid, &called.bucket) {
                self.tagged.insert((uid.clone(), bucket.clone()));
            }
        }
    }

    /// Judges the first key of a claim to an existing bucket: the claim must have taken the bucket
    /// over, or the bucket must carry its tags. Objects that tenants can write prove nothing (spec
    /// §2).
    fn first_key(
        &self,
        state: &State<'_>,
        step: &HistoryStep<'_>,
        key: &Key<'_>,
        buckets: &Buckets,
        found: &mut Findings,
    ) {
        let this = (key.uid.clone(), key.bucket.clone());
        let meddled =
            state.lives.get(key.uid.as_str()).is_none_or(|life| life.meddling.record || life.meddling.finalizer);
        if meddled || self.opened.contains(&this) || self.tagged.contains(&this) {
            return;
        }
        let record = state.secrets.values().find_map(|held| match &held.secret {
            Secret::Record(record) if record.uid == key.uid && record.bucket == key.bucket => Some(record),
            _ => None,
        });
        let Some(record) = record.filter(|record| !record.adopted) else { return };
        if buckets.last_made_for(&record.host, &record.bucket).is_some_and(|uid| uid.is_empty() || uid == key.uid) {
            return;
        }
        let message = format!(
            "key {} is made for bucket {}, which was not made for its claim, nor taken over, and does not carry its tags",
            key.id, key.bucket
        );
        if record.absence {
            // A store without tagging may have confirmed that it created the bucket.
            found.limit(Promise::I4, step, message);
        } else {
            found.broken(Promise::I4, step, message);
        }
    }
}

/// Judges that a key is created only for the claim that holds the bucket, and while no other claim
/// has a key to it.
fn key_of_holder(state: &State<'_>, step: &HistoryStep<'_>, key: &Key<'_>, found: &mut Findings) {
    let meddled = |uid: &str| state.lives.get(uid).is_none_or(|life| life.meddling.any());
    let holders = || {
        state.secrets.values().filter_map(|held| match &held.secret {
            Secret::Record(record) if record.bucket == key.bucket => Some(record),
            _ => None,
        })
    };
    if !holders().any(|record| record.uid == key.uid) && !meddled(&key.uid) {
        let message = format!("key {} is made for bucket {}, which its claim does not hold", key.id, key.bucket);
        if state.stood_still(step.hand) && !state.alone {
            // A POST carries no precondition on other objects: another operator may have released
            // the claim meanwhile.
            found.limit(Promise::I4, step, message);
        } else {
            found.broken(Promise::I4, step, message);
        }
    }
    let rival = state.secrets.values().find_map(|held| match &held.secret {
        Secret::Key(other) if is_rival(key, other) && !other.is_over(step.at) => Some(other),
        _ => None,
    });
    if let Some(rival) = rival.filter(|rival| !meddled(&rival.uid) && !meddled(&key.uid)) {
        let message =
            format!("key {} is made for bucket {}, and key {} of another claim opens it", key.id, key.bucket, rival.id);
        found.broken(Promise::I4, step, message);
    }
}

fn is_rival(key: &Key<'_>, other: &Key<'_>) -> bool {
    other.counts && other.uid != key.uid && other.bucket == key.bucket && other.backend == key.backend
}

/// Judges that two records of one bucket belong to one claim.
fn one_holder(state: &State<'_>, step: &HistoryStep<'_>, name: &str, record: &Record, found: &mut Findings) {
    let same = |other: &Record| other.host == record.host && other.bucket == record.bucket && other.uid != record.uid;
    let other = state.secrets.iter().find_map(|((_, other), held)| match &held.secret {
        Secret::Record(held) if same(held) => Some(*other),
        _ => None,
    });
    if let Some(other) = other.filter(|_| step.by_operator()) {
        let message = if other == name {
            format!("record {name} of bucket {} is given to another claim", record.bucket)
        } else {
            format!("bucket {} is held by two claims, in records {other} and {name}", record.bucket)
        };
        found.broken(Promise::I4, step, message);
    }
}
