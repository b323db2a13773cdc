//! A bucket is only taken over if the backend's adoption policy and the bucket's tags permit it,
//! according to the last read of the bucket (I4, spec §3.2).

use std::collections::{BTreeMap, BTreeSet};

use kube_sim::Stored;
use serde_json::Value;
use stowage_operator::api::wire::{self, TAG_CLAIM, TAG_CLAIM_UID, TAG_INSTALLATION};
use stowage_world::effects::{Call, Fault, Line, S3Fault};

use super::Promise;
use super::buckets::Buckets;
use super::case::Case;
use super::findings::Findings;
use super::ground::is_list;
use super::holders::Holders;
use super::rest::reads_the_past;
use super::state::{Hand, HistoryStep, Seen, State};
use super::views::{Record, Secret};

/// The oracle's memory of backends and of the cluster.
#[derive(Debug)]
pub(super) struct Adoption<'a> {
    /// All policies that each backend ever had, by name: a cache may be behind.
    policies: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// UIDs of the namespace kube-system, the latest last. They distinguish this installation's
    /// buckets from another's.
    installations: Vec<&'a str>,
}

/// The result of reading a bucket.
struct Shown {
    /// The tags of the bucket; empty if the store was not asked for them.
    tags: BTreeMap<String, String>,
    /// True if the store answered from the past.
    past: bool,
}

impl<'a> Adoption<'a> {
    /// Creates a memory with the installation at the start of the history.
    pub(super) fn new(case: &Case<'a>) -> Self {
        let mut changes = case.history.changes("namespaces");
        let first = changes.find(|(_, change)| change.name == "kube-system");
        let at_first = match first {
            Some((_, change)) => change.old.as_deref(),
            None => Some(case.end.object("namespaces", "", "kube-system")),
        };
        let installations = at_first.and_then(uid_of).into_iter().collect();
        Self { policies: BTreeMap::new(), installations }
    }

    /// Judges a step.
    pub(super) fn see(
        &mut self,
        state: &State<'a>,
        step: &HistoryStep<'a>,
        buckets: &Buckets,
        holders: &Holders,
        found: &mut Findings,
    ) {
        match &step.seen {
            Seen::Object(stored) => self.remember(stored),
            Seen::Secret(place, Some(Secret::Record(new))) if step.by_operator() && new.adopted => {
                let was_ours = matches!(state.secrets.get(place).map(|held| &held.secret),
                    Some(Secret::Record(old)) if old.uid == new.uid && !old.adopted);
                // A record also becomes adopted when the claim moves away from its bucket or
                // returns to it; and a record that is created again after a manual deletion is
                // adopted to be safe.
                if was_ours && !holders.ever_opened(&new.uid, &new.bucket) {
                    self.judge(state, step, new, buckets, found);
                }
            }
            _ => {}
        }
    }

    fn remember(&mut self, stored: &'a Stored) {
        let Some(new) = stored.new.as_deref() else { return };
        match (stored.plural.as_str(), stored.name.as_str()) {
            ("s3backends", name) => {
                let policy = new["spec"]["adoptionPolicy"].as_str().unwrap_or("Owned");
                self.policies.entry(name).or_default().insert(policy);
            }
            ("namespaces", "kube-system") => {
                let uid = uid_of(new).filter(|uid| self.installations.last() != Some(uid));
                self.installations.extend(uid);
            }
            _ => {}
        }
    }

    fn judge(
        &self,
        state: &State<'a>,
        step: &HistoryStep<'a>,
        record: &Record,
        buckets: &Buckets,
        found: &mut Findings,
    ) {
        let (Some(life), Some(policies)) =
            (state.lives.get(record.uid.as_str()), self.policies.get(record.backend.as_str()))
        else {
            return;
        };
        let claim = life.claim.full_name();
        let what = format!("bucket {} is taken over for claim {claim}", record.bucket);
        let Some(shown) = shown(state, step, record, buckets) else {
            return found.broken(Promise::I4, step, format!("{what}, and was not looked at"));
        };
        if policies.iter().any(|policy| self.is_allowed(state, policy, record, &claim, &shown.tags)) {
            return;
        }
        let message = format!("{what}: policy {policies:?}, and its tags are {:?}", shown.tags);
        if shown.past {
            found.limit(Promise::I4, step, format!("{message}; the store showed its past"));
        } else {
            found.broken(Promise::I4, step, message);
        }
    }

    /// Returns true if a claim that finds a bucket with these tags may take it over.
    fn is_allowed(
        &self,
        state: &State<'a>,
        policy: &str,
        record: &Record,
        claim: &str,
        tags: &BTreeMap<String, String>,
    ) -> bool {
        let (uid, name) = (tags.get(TAG_CLAIM_UID), tags.get(TAG_CLAIM));
        let installation = tags.get(TAG_INSTALLATION);
        let here = installation.is_some_and(|tag| self.is_this_installation(state, tag));
        let this_claim = here && name.is_some_and(|tag| *tag == wire::tag_value(claim));
        let nobodys = uid.is_none() && name.is_none() && installation.is_none();
        match policy {
            _ if uid.is_some_and(|uid| *uid == record.uid) => true,
            "Never" => false,
            "Any" => this_claim || nobodys,
            _ => this_claim,
        }
    }

    /// Returns true if the tag is that of this installation. After stale reads, any earlier UID
    /// counts: the operator may have seen the cluster as it was.
    fn is_this_installation(&self, state: &State<'a>, tag: &str) -> bool {
        let known = if reads_the_past(state) { 0 } else { self.installations.len().saturating_sub(1) };
        let named = |uid: &&str| wire::tag_value(uid) == tag;
        self.installations.get(known..).unwrap_or_default().iter().any(named)
    }
}

fn uid_of(object: &Value) -> Option<&str> {
    object["metadata"]["uid"].as_str()
}

/// Returns the result of the last read of a record's bucket by the operator whose step it is.
///
/// After a stale read of a bucket that no longer exists, no tags are known.
fn shown(state: &State<'_>, step: &HistoryStep<'_>, record: &Record, buckets: &Buckets) -> Option<Shown> {
    let Hand::Operator(number) = step.hand else { return None };
    let is_past = |line: &Line| line.fault == Some(Fault::S3(S3Fault::StaleRead));
    let last = |listed: bool| {
        state.before(number).find_map(|line| match &line.call {
            Call::S3(call) if call.bucket.as_deref() == Some(record.bucket.as_str()) => {
                let seen = buckets.look(line.number).filter(|_| is_list(call.operation) == listed);
                (seen.is_some() || (is_past(line) && !listed)).then_some((line, seen))
            }
            _ => None,
        })
    };
    // A list shows that a bucket exists if HeadBucket was refused.
    let (line, seen) = last(false).or_else(|| last(true))?;
    let asked_for_tags = matches!(&line.call, Call::S3(call) if call.operation.name() == "GetBucketTagging");
    let tags = seen.and_then(|seen| seen.tags.clone()).filter(|_| asked_for_tags).unwrap_or_default();
    Some(Shown { tags, past: is_past(line) })
}
