//! The store that a key's Secret names (I15): it is one at which the claim has a bucket, and it
//! changes only if the operator has seen the claim's own tags there.

use std::collections::BTreeMap;

use stowage_operator::api::wire;
use stowage_world::history::Called;

use super::Promise;
use super::findings::Findings;
use super::state::{HistoryStep, State};
use super::views::{Key, Secret};

/// The oracle's memory of stores.
#[derive(Debug, Default)]
pub(super) struct Stores {
    /// UID in the tags of each bucket at the last call, by host and bucket.
    tags: BTreeMap<(String, String), Option<String>>,
    /// Host that keys are for, by UID, backend and bucket.
    hosts: BTreeMap<[String; 3], String>,
}

impl Stores {
    /// Records a call to a store.
    pub(super) fn called(&mut self, called: &Called) {
        if let Some(bucket) = &called.bucket {
            let tags = called.after.as_ref().and_then(|bucket| bucket.tags.as_ref());
            let uid = tags.and_then(|tags| tags.get(wire::TAG_CLAIM_UID)).cloned();
            self.tags.insert((called.host.clone(), bucket.clone()), uid);
        }
    }

    /// Judges a write of a key's Secret.
    pub(super) fn noted(
        &mut self,
        state: &State<'_>,
        step: &HistoryStep<'_>,
        (old, new): (Option<&Secret<'_>>, &Key<'_>),
        found: &mut Findings,
    ) {
        let id = &new.id;
        let is_judged = step.by_operator() && state.alone;
        let Some(host) = &new.host else {
            if is_judged && !matches!(old, Some(Secret::Key(_))) {
                found.broken(Promise::I15, step, format!("key {id} is made, and notes no store"));
            }
            return;
        };
        let is_kept = matches!(old, Some(Secret::Key(old)) if old.host.as_ref() == Some(host));
        let place = [new.uid.clone(), new.backend.clone(), new.bucket.clone()];
        let before = self.hosts.insert(place, host.clone());
        if is_kept || !is_judged {
            return;
        }
        let life = state.lives.get(new.uid.as_str()).filter(|life| life.gone.is_none());
        let holds =
            |secret: &Secret<'_>| matches!(secret, Secret::Record(it) if it.host == *host && it.bucket == new.bucket);
        // A record may have been deleted by hand since the pass read it.
        let is_lost = life.is_none_or(|life| life.meddling.record);
        if !is_lost && !state.of(&new.uid).any(|(_, held)| holds(&held.secret)) {
            let message = format!("key {id} is for the store {host}, where its claim holds no bucket {}", new.bucket);
            found.broken(Promise::I15, step, message);
        }
        let met = self.tags.get(&(host.clone(), new.bucket.clone())).and_then(Option::as_ref);
        if before.is_some_and(|before| before != *host) && met != Some(&new.uid) {
            let message = format!("key {id} is for another store than the key before, where no tags name its claim");
            found.broken(Promise::I15, step, message);
        }
    }
}
