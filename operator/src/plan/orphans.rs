//! Internal Secrets whose claim is no more: finalizer stripped by hand, a late second operator, a
//! restored backup (spec §3.4).
//!
//! A sweep is a conversation about one claim UID, as a pass is about a claim. A UID that is gone
//! never comes back, so what was proved once stays true. Buckets are not spoken of: they are
//! retained.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;

use k8s_openapi::jiff::Timestamp;

use crate::api::wire::{self, Role};
use crate::api::{AccessKeyId, AnonymousBinding, BucketRecord, ClaimRef, ClaimUid, Limits};

use super::cause::SecretCause;
use super::conversation::{Arrival, Bound, Conversation};
use super::patch::{Change, SecretPatch};
use super::secret::{SecretRef, Stored};

/// How far below a record's generation credentials are searched by name: more live at once only if
/// somebody made them.
const SEARCHED: u64 = 1000;

/// No sweep takes more steps, nor reads more Secrets by name.
const MOST_STEPS: usize = 10_000;

/// A step of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepStep {
    /// GET the claim of this name: which UID does it have?
    Claim(ClaimRef),
    /// LIST the claims of all namespaces: is the UID among them?
    Claims,
    /// LIST the internal Secrets that carry the UID.
    Own,
    /// GET an internal Secret by name.
    Internal(String),
    /// PATCH a record: every access to its bucket ends.
    End(SecretPatch),
    /// DELETE a Secret. One that somebody's finalizer keeps is the answer.
    Delete(SecretRef),
}

/// The end of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepEnd {
    /// Nothing of the UID is left.
    Done,
    /// The claim lives.
    Alive,
    /// Nothing but the record is left, and it has to stay while a call at its bucket may still
    /// land.
    Held,
    /// Something failed that may succeed when tried again. Says what.
    Retry(String),
}

/// What a step found out or did, together with what was asked or done.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepAnswer {
    /// The UID of the claim of this name; `None` = there is none.
    Claim(ClaimRef, Option<ClaimUid>),
    /// Whether any claim has the UID.
    Claims(bool),
    /// The internal Secrets that carry the UID.
    Own(Vec<Stored>),
    /// The internal Secret of this name as it is now; `None` = there is none.
    Internal(String, Option<Stored>),
    /// A record is patched, and is this by now.
    Ended(Stored),
    /// A Secret is deleted, or was gone; `Some` = somebody's finalizer keeps it, as it is by now.
    Deleted(SecretRef, Option<Stored>),
    /// An error, which is never absence. Says what.
    Failed(SweepStep, String),
}

/// What a sweep knows so far.
#[derive(Clone, Debug)]
pub struct Sweep {
    uid: ClaimUid,
    /// A call at the bucket, to make or to empty it, may still land.
    call_pending: bool,
    /// The claims that Secrets of this UID name, and how often each was asked for.
    claims: BTreeMap<ClaimRef, u8>,
    /// A record says which claim it is. Labels alone don't prove it.
    recorded: bool,
    /// How often all claims were listed.
    claims_listed: u8,
    alive: bool,
    /// Names that follow from the UID: whatever bears them is its.
    derived: BTreeSet<String>,
    /// Names to be read, unless a list shows them.
    unread: BTreeSet<String>,
    own: BTreeMap<String, Stored>,
    listed: bool,
    /// No Secret was deleted since the list.
    current: bool,
    failure: Option<String>,
}

impl Sweep {
    /// Begins a sweep. `seen` are Secrets of the UID from the cache, `names` those of others that
    /// may be its.
    pub fn new(uid: ClaimUid, seen: &[Stored], names: BTreeSet<String>, call_pending: bool) -> Self {
        let mut sweep = Self {
            call_pending,
            claims: BTreeMap::new(),
            recorded: false,
            claims_listed: 0,
            alive: false,
            derived: BTreeSet::new(),
            unread: names,
            own: BTreeMap::new(),
            listed: false,
            current: false,
            failure: None,
            uid,
        };
        sweep.derive(AnonymousBinding::name(&sweep.uid));
        for secret in seen {
            sweep.unread.insert(secret.name().to_owned());
            sweep.take_hints(secret);
        }
        sweep
    }

    /// The claim in question.
    pub fn uid(&self) -> &ClaimUid {
        &self.uid
    }

    /// The claim is asked for, then its Secrets are read, then the claim is asked for once more,
    /// then public access goes, then credentials, then the record.
    fn step(&self) -> ControlFlow<SweepEnd, SweepStep> {
        if let Some(why) = &self.failure {
            return ControlFlow::Break(SweepEnd::Retry(why.clone()));
        }
        if self.alive {
            return ControlFlow::Break(SweepEnd::Alive);
        }
        if let Some(step) = self.ask(1) {
            return ControlFlow::Continue(step);
        }
        if !self.listed {
            return ControlFlow::Continue(SweepStep::Own);
        }
        if let Some(name) = self.unread.first() {
            return ControlFlow::Continue(SweepStep::Internal(name.clone()));
        }
        if self.own.is_empty() {
            return ControlFlow::Break(SweepEnd::Done);
        }
        // The first answer may be of the server's past, from before the claim was made. The Secrets
        // were made after it.
        self.ask(2).map_or_else(|| self.remove(), ControlFlow::Continue)
    }

    /// What is to be asked so that the claim was asked for so many times.
    fn ask(&self, times: u8) -> Option<SweepStep> {
        let unasked = self.claims.iter().find(|(_, asked)| **asked < times);
        let claim = unasked.map(|(claim, _)| SweepStep::Claim(claim.clone()));
        claim.or_else(|| (!self.recorded && self.claims_listed < times).then_some(SweepStep::Claims))
    }

    fn remove(&self) -> ControlFlow<SweepEnd, SweepStep> {
        let of = |role| self.own.values().filter(move |secret| Role::of_internal(secret.name()) == Some(role));
        if let Some(patch) = of(Role::BucketRecord).find_map(end) {
            return ControlFlow::Continue(SweepStep::End(patch));
        }
        let mut open = of(Role::AnonymousBinding).chain(of(Role::VirtualCredential));
        if let Some(secret) = open.find(|secret| secret.kept_by().is_none()) {
            return ControlFlow::Continue(SweepStep::Delete(secret.reference()));
        }
        if let Some((secret, finalizers)) = self.own.values().find_map(|secret| Some((secret, secret.kept_by()?))) {
            let cause = SecretCause::Kept { secret: secret.name().to_owned(), finalizers };
            return ControlFlow::Break(SweepEnd::Retry(cause.to_string()));
        }
        let Some(record) = of(Role::BucketRecord).next() else { return ControlFlow::Break(SweepEnd::Done) };
        if !self.current {
            // Right before the record goes: a pass that was under way may have minted meanwhile.
            return ControlFlow::Continue(SweepStep::Own);
        }
        // One that was taken over is neither made nor emptied.
        let may_land = BucketRecord::read(&record.0).map_or(true, |record| !record.adopted);
        if may_land && self.call_pending {
            return ControlFlow::Break(SweepEnd::Held);
        }
        ControlFlow::Continue(SweepStep::Delete(record.reference()))
    }

    fn take(&mut self, answer: SweepAnswer) {
        match answer {
            SweepAnswer::Claim(claim, uid) => {
                self.alive |= uid.as_ref() == Some(&self.uid);
                *self.claims.entry(claim).or_default() += 1;
            }
            SweepAnswer::Claims(alive) => {
                self.alive |= alive;
                self.claims_listed += 1;
            }
            SweepAnswer::Own(secrets) => {
                secrets.into_iter().for_each(|secret| self.found(secret));
                self.listed = true;
                self.current = true;
            }
            SweepAnswer::Internal(name, secret) => {
                self.unread.remove(&name);
                secret.into_iter().for_each(|secret| self.found(secret));
            }
            SweepAnswer::Ended(record) => {
                self.own.insert(record.name().to_owned(), record);
            }
            SweepAnswer::Deleted(secret, Some(kept)) => {
                self.own.insert(secret.name, kept);
            }
            SweepAnswer::Deleted(secret, None) => {
                self.own.remove(&secret.name);
                self.current = false;
            }
            SweepAnswer::Failed(step, why) => self.failure = Some(format!("can't {step}: {why}")),
        }
    }

    /// A Secret read live: this UID's, or none of our business.
    fn found(&mut self, secret: Stored) {
        if self.derived.contains(secret.name()) || owner(&secret).as_ref() == Some(&self.uid) {
            self.take_hints(&secret);
            self.unread.remove(secret.name());
            self.own.insert(secret.name().to_owned(), secret);
        }
    }

    /// What a Secret of this UID says of its claim and of other Secrets.
    fn take_hints(&mut self, secret: &Stored) {
        let record = BucketRecord::read(&secret.0).ok().filter(|record| record.uid == self.uid);
        if let Some(claim) = record.as_ref().map(|record| record.claim.clone()).filter(can_be_asked_for) {
            self.claims.entry(claim).or_default();
            self.recorded = true;
        }
        if let Some(claim) = secret.claim().filter(can_be_asked_for) {
            self.claims.entry(claim).or_default();
        }
        let (lowest, highest) = record.map_or((1, 0), |record| (record.lowest_generation(), record.generation));
        for generation in highest.saturating_sub(SEARCHED - 1).max(lowest)..=highest {
            self.derive(AccessKeyId::of(&self.uid, generation).secret_name());
        }
    }

    fn derive(&mut self, name: String) {
        if self.derived.insert(name.clone()) && !self.own.contains_key(&name) {
            self.unread.insert(name);
        }
    }
}

/// Whose an internal Secret is: the UID that its data carry, where its name is one that we give.
/// Where the data are damaged, a name that follows from the UID in the label. Labels alone prove
/// nothing (spec §2).
pub fn owner(secret: &Stored) -> Option<ClaimUid> {
    let uid = |text: Option<&str>| text.filter(|text| is_uid(text)).map(ClaimUid::new);
    let name = secret.name();
    let follows = |uid: &ClaimUid| {
        let generation = secret.label(wire::ROTATION_GENERATION).and_then(|text| text.parse().ok());
        let credential = generation.map(|generation| AccessKeyId::of(uid, generation).secret_name());
        name == AnonymousBinding::name(uid) || credential.is_some_and(|credential| name == credential)
    };
    let ours = |uid: &ClaimUid| match Role::of_internal(name) {
        Some(Role::AnonymousBinding) => name == AnonymousBinding::name(uid),
        Some(Role::VirtualCredential) => is_credential(name),
        Some(Role::BucketRecord) => is_record(name),
        // Those of accesses are for others to sweep.
        Some(Role::ConsumerSecret | Role::AccessRecord | Role::AccessCredential) | None => false,
    };
    uid(secret.text("claim_uid")).filter(ours).or_else(|| uid(secret.label(wire::CLAIM_UID)).filter(follows))
}

/// The patch by which a record ends every access to its bucket, unless it says so already.
fn end(secret: &Stored) -> Option<SecretPatch> {
    let record = BucketRecord::read(&secret.0).ok().filter(|record| !record.ending || !record.accesses.is_empty())?;
    let (accesses, limits) = (BTreeMap::new(), Limits::default());
    let ending = BucketRecord { ending: true, accesses, limits, ..record };
    let content = ending.content(&secret.reference().namespace);
    SecretPatch::between(&secret.0, &content, &BucketRecord::REMOVABLE, Change::End)
}

fn is_credential(name: &str) -> bool {
    let base32 = |id: &str| id.len() == 16 && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
    name.strip_prefix(wire::CREDENTIAL_PREFIX).and_then(|id| id.strip_prefix("akia")).is_some_and(base32)
}

fn is_record(name: &str) -> bool {
    let hash = |hash: &str| hash.len() == 40 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    name.strip_prefix(wire::RECORD_PREFIX).is_some_and(hash)
}

/// As the API server makes them; whatever else stands there becomes part of no request.
fn is_uid(text: &str) -> bool {
    (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn can_be_asked_for(claim: &ClaimRef) -> bool {
    let name = |text: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
        (1..=253).contains(&text.len()) && text.bytes().all(inner) && !text.starts_with('.')
    };
    name(&claim.namespace) && name(&claim.name)
}

impl Conversation for Sweep {
    type Step = SweepStep;
    type Answer = SweepAnswer;
    type End = SweepEnd;

    fn most(_: Bound) -> usize {
        MOST_STEPS
    }

    fn bound(step: &SweepStep) -> Bound {
        if let SweepStep::Internal(_) = step { Bound::ReadsByName } else { Bound::Steps }
    }

    fn next(&self, _: Timestamp) -> ControlFlow<SweepEnd, SweepStep> {
        self.step()
    }

    /// What was proved stays true, however long that is ago.
    fn learn(&mut self, answer: SweepAnswer, _: Arrival) {
        self.take(answer);
    }

    fn cut_short(&self, _: Bound) -> SweepEnd {
        SweepEnd::Retry("the sweep does not come to an end".to_owned())
    }
}

impl fmt::Display for SweepStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(claim) => write!(f, "read claim {claim}"),
            Self::Claims => write!(f, "list all claims"),
            Self::Own => write!(f, "list the claim's internal Secrets"),
            Self::Internal(name) => write!(f, "read internal Secret {name}"),
            Self::End(patch) => write!(f, "end every access by record {}", patch.target.name),
            Self::Delete(secret) => write!(f, "delete Secret {}", secret.name),
        }
    }
}

#[cfg(test)]
#[path = "orphans_tests.rs"]
mod tests;
