//! Rules for the access at rest: its status is true (A5), consent has taken effect (L1), and
//! nothing is left of an access that is gone (A3).

use stowage_operator::api::{AccessMode, BucketAccessStatus, ServedRecord};

use super::access::{NAMED, WANTED, access_consumer, access_ref, asker};
use super::access_oracle::is_same_key;
use super::access_sweep::is_of_access;
use super::facts::Uid;
use super::objects::{Kind, SecretFacts};
use super::promise::Promise;
use super::rest::Trouble;
use super::state::State;
use super::world::ModelWorld;

impl ModelWorld {
    /// Returns the first rule about the access that is broken at rest.
    pub(super) fn trouble_of_access(&self, state: &State) -> Trouble {
        if !self.recipe.access {
            return None;
        }
        let left = || self.secrets(state).find(|secret| is_of_access(secret));
        let of_access = match state.access {
            Some(number) => self.untold(state, number),
            None => {
                left().map(|secret| (Promise::A3, format!("Secret {} is left of the access", secret.stored.name())))
            }
        };
        of_access.or_else(|| self.maps(state))
    }

    /// Returns a statement in the access's status that is not true.
    fn untold(&self, state: &State, number: u32) -> Trouble {
        let (facts, status) =
            (self.talks.access.accesses.facts(number), &self.talks.access.accesses.shown(number).status);
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        let told = ready.map_or("", |condition| condition.reason.as_str());
        let says = format!("access {} says {told:?}", access_ref());
        if facts.deleting {
            return Some((Promise::L2, says));
        }
        if status.observed_generation != Some(1) {
            return Some((Promise::I16, format!("the status of access {} is of an earlier spec", access_ref())));
        }
        let opens = self.opens(state);
        if let Some(why) = untrue(status, opens) {
            return Some((Promise::A5, format!("{says}, but {why}")));
        }
        if ready.is_some_and(|condition| (condition.status == "True") != opens.is_some()) {
            return Some((Promise::A5, format!("{says}, and its key opens {opens:?}")));
        }
        let asked = (facts.rotate > 0).then(|| facts.rotate.to_string());
        let mut records = self.secrets(state).filter_map(|secret| secret.access.as_ref()?.record.as_ref());
        let handled = records.next().is_none_or(|record| record.handled_rotate_request == asked);
        let keys = self.secrets(state).filter(|secret| secret.kind == Kind::AccessKey).count();
        match opens {
            _ if !handled => Some((Promise::L1, format!("{says}, but a rotation is not handled"))),
            Some(_) if keys > 1 => Some((Promise::L1, format!("{says}, but {keys} keys are there"))),
            Some(_) => None,
            None => (!self.is_why_closed(state, told)).then_some((Promise::L1, says)),
        }
    }

    /// Returns the mode in which the key in the consumer Secret opens the claim's bucket, by the
    /// gateway's rule: the key exists and has not expired, the access's record exists, and the
    /// bucket record names the claim and lets the namespace in. The weaker of both modes counts.
    fn opens(&self, state: &State) -> Option<AccessMode> {
        let name = self.talks.objects.name(&access_ref().namespace, &access_consumer());
        let published = self.talks.objects.secret_of(state.secrets.live(name)?);
        let mut keys = self.secrets(state).filter(|secret| secret.kind == Kind::AccessKey);
        let key = keys.find(|key| is_same_key(key, published) && key.expires.is_none_or(|at| state.now < at))?;
        let key = key.access.as_ref()?.key.as_ref()?;
        let access = self.secrets(state).find_map(|secret| secret.access.as_ref()?.served.as_ref());
        let access = access.filter(|access| access.uid == key.uid)?;
        key.scopes.iter().find_map(|scope| {
            let records = self.secrets(state).filter(|secret| secret.kind == Kind::Record);
            let mut records = records.filter_map(|secret| ServedRecord::read(&secret.stored.0).ok());
            let record = records.find(|record| record.bucket == scope.bucket && record.endpoint == scope.endpoint)?;
            let consent =
                record.consent(&access.namespace_uid).filter(|_| scope.claim.as_ref() == Some(&record.uid))?;
            scope.mode.and(consent.max_mode)
        })
    }

    /// Returns true if the reason in the status really keeps the access closed.
    fn is_why_closed(&self, state: &State, reason: &str) -> bool {
        let claim = state.claims[NAMED].map(|claim| self.talks.objects.claim_facts(claim));
        let Some(claim) = claim.filter(|claim| !claim.deleting) else { return reason == "NotShared" };
        let is_bound = self.newest_key(state, claim.uid).is_some();
        match reason {
            "NotShared" => claim.spec.shares.is_none(),
            "BeyondConsent" => claim.spec.shares.is_some_and(|mode| mode.and(WANTED).is_none()),
            "ClaimNotBound" => claim.spec.shares.is_some() && !is_bound,
            "ConsentPending" => claim.spec.shares.is_some() && claim.paused,
            "BackendNotReady" => state.backends.iter().any(Option::is_none),
            _ => false,
        }
    }

    /// Returns the newest key of a claim that has no expiry.
    fn newest_key<'a>(&'a self, state: &'a State, uid: Uid) -> Option<&'a SecretFacts> {
        let keys = self.secrets(state).filter(|secret| secret.kind == Kind::Credential && secret.claim == Some(uid));
        keys.filter(|key| key.expires.is_none()).max_by_key(|key| key.generation)
    }

    /// Checks the namespaces that the bucket records let in, and the claim's status about them.
    fn maps(&self, state: &State) -> Trouble {
        for secret in self.secrets(state).filter(|secret| secret.kind == Kind::Record) {
            let (Some(record), Some(uid)) = (&secret.record, secret.claim) else { continue };
            let now = record.accesses.get(&asker().uid).map(|consent| consent.max_mode);
            let wanted = self.consented(state, uid);
            let key = self.newest_key(state, uid);
            let is_open = key.is_some_and(|key| {
                key.bucket.as_ref() == Some(&record.bucket) && key.stored.endpoint().as_ref() == Some(&record.endpoint)
            });
            let name = secret.stored.name();
            if now.is_some() && now != wanted {
                return Some((Promise::A1, format!("record {name} lets in for {now:?}, and consent is to {wanted:?}")));
            }
            let number = state.claims[uid.slot()].filter(|claim| self.talks.objects.claim_facts(*claim).uid == uid);
            let Some(number) = number.filter(|_| is_open) else { continue };
            if now != wanted && !self.talks.objects.claim_facts(number).paused {
                return Some((Promise::L1, format!("record {name} lets in for {now:?}, and consent is to {wanted:?}")));
            }
            let told = self.talks.objects.claim_of(number).status.accesses.as_ref().map_or(0, |told| told.count);
            if told != i64::from(now.is_some()) {
                return Some((Promise::I16, format!("the claim tells of {told} accesses, and lets in for {now:?}")));
            }
        }
        None
    }
}

/// Returns a statement in the access's entry that is not true.
fn untrue(status: &BucketAccessStatus, opens: Option<AccessMode>) -> Option<String> {
    let entry = status.buckets.get()?.into_iter().next()?;
    let told = (entry.state == "Open").then(|| entry.mode.unwrap_or_default());
    let is = opens.map(|mode| mode.as_str().to_owned());
    (told != is).then(|| format!("its entry tells of {told:?}, and its key opens {is:?}"))
}
