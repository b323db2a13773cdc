//! How a view takes in the answers to its pass's steps.

use std::collections::BTreeMap;

use crate::api::wire::Role;
use crate::api::{AccessKeyId, AnonymousBinding, BucketRecord, Claim};

use super::answer::{
    Answer, BucketSeen, Checked, CreateAnswer, Failure, Holder, PurgeEnd, Purged, Stored, VersioningSeen,
};
use super::bind::target;
use super::records::leads_to;
use super::removal;
use super::repair::Change;
use super::step::{Act, Look, SecretRef, Step, Target};
use super::view::{LetGo, View};

impl View {
    /// Takes in what a step found out or did.
    pub fn learn(&mut self, step: &Step, answer: Answer) {
        self.confirmed = *step == Step::Look(Look::Claim);
        match (step, answer) {
            (_, Answer::Failed(failure)) => self.fail(step, failure),
            (Step::Look(look), answer) => self.found(look, answer),
            (Step::Act(act), answer) => self.did(act, answer),
            (Step::Rest(_), _) => {}
        }
    }

    /// Takes in what a step found out or did that took long: by now everything may be otherwise than it was read or written,
    /// and the claim be gone. The answer itself counts as any other, but not as one of now.
    pub fn learn_late(&mut self, step: &Step, answer: Answer) {
        if self.ends_with(step, &answer) {
            // Nothing is decided any more, but what is told.
            return self.learn(step, answer);
        }
        if !self.claim.deleting && self.bucket == Some(BucketSeen::Absent) && !self.has_asked_about_its_own() {
            // Whoever else works on the claim may have made it.
            self.bucket = None;
        }
        self.own_lists = 0;
        self.rivals = None;
        self.live.clear();
        self.absent.clear();
        self.met.clear();
        self.learn(step, answer);
        (self.fresh, self.confirmed, self.newborn, self.late) = (false, false, false, true);
        self.own_target = None;
    }

    /// Takes in what came slowly: another operator may have made, published and replaced a key meanwhile, so this pass lists what
    /// there is before it makes or publishes one.
    pub fn learn_slow(&mut self, step: &Step, answer: Answer) {
        if !self.claim.deleting {
            (self.late, self.own_lists) = (true, 0);
        }
        self.learn(step, answer);
    }

    /// Whether the pass is over but for its status, whatever comes of this step.
    fn ends_with(&self, step: &Step, answer: &Answer) -> bool {
        let failed = matches!(answer, Answer::Failed(_) | Answer::Purged(Purged { end: PurgeEnd::Failed(_), .. }));
        let released = matches!(step, Step::Act(Act::RemoveFinalizer(_)));
        self.failure.is_some() || released || (self.claim.deleting && failed)
    }

    /// Whether what is known of a bucket is about the one that the claim is bound to.
    fn has_asked_about_its_own(&self) -> bool {
        self.bucket_at.as_ref().is_some_and(|at| self.is_kept_by(at))
    }

    fn fail(&mut self, step: &Step, failure: Failure) {
        // What this pass tells is told without it.
        self.doubted.retain(|doubted| Step::Look(doubted.clone()) != *step);
        match (step, failure) {
            // A store without tagging can't be told whose the bucket is; one without versioning has none to set.
            (Step::Act(Act::TagBucket(..)), Failure::Unsupported) => self.tagged = true,
            // A drift check that fails says nothing about the bucket; that the backend ails is for its probe to say.
            (
                Step::Look(Look::Bucket(at)),
                Failure::Upstream(_) | Failure::UpstreamDenied(_) | Failure::NoUpstream(_) | Failure::Unsupported,
            ) if !self.claim.deleting && self.is_kept_by(at) => {
                self.look_due = false;
                self.checked = Checked::Failed;
            }
            (step, failure) => self.failure = Some((step.clone(), failure)),
        }
    }

    fn found(&mut self, look: &Look, answer: Answer) {
        self.doubted.retain(|doubted| doubted != look);
        match (look, answer) {
            (Look::Backend(name), Answer::Backend(seen)) => {
                self.backends.insert(name.clone(), seen);
            }
            (Look::Holder(target), Answer::Holder(holder)) => self.holder = Some((target.record(), holder)),
            (Look::Claim, Answer::Claim(claim)) => self.found_claim(claim),
            (Look::Own, Answer::Secrets(secrets)) => {
                secrets.iter().for_each(|secret| self.doubt_absence_before(secret));
                self.own = secrets.into_iter().filter(|secret| !self.is_anothers(secret)).collect();
                self.live = self.own.keys().cloned().collect();
                self.own_lists += 1;
                self.own_current = true;
                // A list from before what was missed would have been no answer.
                self.doubted.retain(|look| !matches!(look, Look::Internal(_)));
                if self.claim.deleting && self.records().next().is_none() {
                    self.doubt_early_reads();
                }
            }
            (Look::Internal(name), Answer::Secret(secret)) => self.found_internal(name, secret),
            (Look::Consumer(name), Answer::Secret(secret)) => {
                self.consumers.insert(name.clone(), secret);
                self.taken.remove(name);
                self.met.insert(name.clone());
            }
            (Look::CredentialsFor(at), Answer::Secrets(secrets)) => {
                let others = |secret: &Stored| secret.text("claim_uid") != Some(self.claim.uid.as_str());
                self.rivals = Some((at.clone(), secrets.into_iter().filter(others).collect()));
            }
            (Look::Bucket(at), Answer::Bucket(seen)) => {
                self.turn_to(at);
                self.bucket = Some(seen);
                if self.is_bound_to(at) {
                    self.look_due = false;
                    self.checked = Checked::Seen;
                }
            }
            (Look::Contents(at), Answer::Empty(empty)) => {
                self.turn_to(at);
                self.bucket_empty = Some(empty);
            }
            (Look::Versioning(at), Answer::Versioning(seen)) => {
                self.turn_to(at);
                self.versioning = Some(seen);
            }
            _ => self.outdated = true,
        }
    }

    fn found_claim(&mut self, claim: Option<Box<Claim>>) {
        match claim {
            // A server may answer from its past, and what is known already is known.
            Some(live) if live.id.is_older_than(&self.claim.id) => self.outdated = true,
            Some(live) if live.uid == self.claim.uid && live.deleting == self.claim.deleting => {
                // Deletion goes by the very version that it read first (spec §3.4).
                self.outdated |= live.deleting && live.id != self.claim.id;
                self.claim = *live;
                self.fresh = true;
            }
            _ => self.outdated = true,
        }
    }

    /// An internal Secret read by name: ours by UID, or a record that somebody else holds.
    fn found_internal(&mut self, name: &str, secret: Option<Stored>) {
        self.taken.remove(name);
        let Some(secret) = secret else {
            // Where a cache has it, either that is old or this answer: the next pass looks again, without it.
            self.outdated |= self.own.contains_key(name) && !self.claim.deleting;
            self.live.remove(name);
            self.own.remove(name);
            self.absent.insert(name.to_owned());
            self.advance();
            return;
        };
        match BucketRecord::read(&secret.0) {
            Ok(record) if record.uid != self.claim.uid => {
                // Of two names that the pass asks about, both may be another's, and `holder` is about one.
                self.absent.insert(name.to_owned());
                self.holder = Some((record.name(), Holder::Other(record.claim)));
            }
            Err(damage) if Role::of_internal(name) == Some(Role::BucketRecord) => {
                if let Some((_, holder)) = self.holder.as_mut().filter(|(held, _)| held.as_str() == name) {
                    *holder = Holder::Damaged(damage.to_string());
                } else if secret.text("claim_uid") == Some(self.claim.uid.as_str()) {
                    self.live.insert(name.to_owned());
                    self.own.insert(name.to_owned(), secret);
                } else {
                    // Nothing that is known to be this claim's.
                    self.absent.insert(name.to_owned());
                }
            }
            _ => {
                self.doubt_absence_before(&secret);
                self.live.insert(name.to_owned());
                self.own.insert(name.to_owned(), secret);
            }
        }
    }

    /// Counts the generations whose names a deletion need not look at again: there can be very many.
    fn advance(&mut self) {
        let is_absent = |generation| self.absent.contains(&AccessKeyId::of(&self.claim.uid, generation).secret_name());
        if self.claim.deleting {
            let absent = (self.revoked_through + 1..).take_while(|generation| is_absent(*generation));
            self.revoked_through = absent.last().unwrap_or(self.revoked_through);
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table: one arm for each effect and its answer")]
    fn did(&mut self, act: &Act, answer: Answer) {
        match (act, answer) {
            (Act::AddFinalizer(_), Answer::Claim(Some(claim))) => {
                self.claim = *claim;
                self.fresh = true;
                self.newborn = true;
            }
            (Act::RemoveFinalizer(_), _) => self.released = true,
            (Act::WriteStatus(..), Answer::Claim(Some(claim))) => self.claim = *claim,
            (Act::CreateRecord(record), Answer::Secret(Some(secret))) => {
                self.remade |= record.generation > 1 && self.record().is_none();
                // A record that follows its bucket to another endpoint aims at a generation that is there.
                if self.records().all(|(other, _)| other.generation < record.generation) {
                    self.own_target = Some(record.generation);
                }
                self.doubt_absence_before(&secret);
                self.wrote(secret);
            }
            (Act::CreateBucket(_), Answer::Created(answer)) => {
                self.created = Some(answer);
                // The look before is out of date; unless the bucket is new, another one decides.
                match answer {
                    CreateAnswer::Created => self.bucket = Some(BucketSeen::Present(Some(BTreeMap::new()))),
                    CreateAnswer::AlreadyOwned => self.bucket = None,
                    CreateAnswer::AlreadyExists => {}
                }
            }
            (Act::Purge(..), Answer::Purged(purged)) => {
                self.purged += purged.deleted;
                if let PurgeEnd::Failed(failure) = &purged.end {
                    self.failure = Some((Step::Act(act.clone()), failure.clone()));
                }
                self.purge = Some(purged.end);
            }
            (Act::DeleteBucket(_), Answer::Deleted(answer)) => {
                self.removed = Some(answer);
                // The record may have been let go of before, under another policy, and be kept since.
                for let_go in std::mem::take(&mut self.let_go) {
                    self.let_go.push(LetGo { gone: let_go.gone || removal::is_gone(self, &let_go.record), ..let_go });
                }
            }
            (Act::TagBucket(_, tags), _) => {
                self.bucket = Some(BucketSeen::Present(Some(tags.clone())));
                self.tagged = true;
            }
            (Act::SetVersioning(_, versioning), _) => self.versioning = Some(VersioningSeen::Set(*versioning)),
            (Act::Patch(patch), Answer::Secret(Some(secret))) => {
                if let Change::RaiseGeneration(_) = patch.change {
                    self.own_target = BucketRecord::read(&secret.0).ok().map(|record| record.generation);
                }
                self.wrote(secret);
            }
            (Act::Mint(_), Answer::Secret(Some(secret))) => {
                // Should it be gone before the pass is over, its id is not given to another.
                self.own_target = None;
                self.wrote(secret);
            }
            (Act::CreateConsumer(_) | Act::CreateBinding(_), Answer::Secret(Some(secret))) => self.wrote(secret),
            (Act::CreateRecord(record), Answer::Exists) => self.met_at(record.name().to_string()),
            (Act::Mint(facts), Answer::Exists) => {
                // Somebody minted it: if it is gone again by the time of the look, it is not minted a second time.
                self.own_target = None;
                // If that look shows none, it may be of the past, and so is every list from before this answer.
                self.own_lists = 0;
                self.met_at(facts.access_key_id().secret_name());
            }
            (Act::CreateConsumer(content), Answer::Exists) => self.met_at(content.name.clone()),
            (Act::CreateBinding(binding), Answer::Exists) => self.met_at(AnonymousBinding::name(&binding.uid)),
            (Act::Delete(_), Answer::Secret(Some(kept))) => {
                // A record goes as soon as its finalizers do; what became of its bucket is known now.
                if let Ok(record) = BucketRecord::read(&kept.0) {
                    self.lets_go(record);
                }
                self.revoked += u32::from(is_credential(kept.name()));
                self.live.insert(kept.name().to_owned());
                self.own.insert(kept.name().to_owned(), kept);
            }
            (Act::Delete(secret), _) => self.deleted(secret),
            _ => self.outdated = true,
        }
    }

    /// Whether this is the bucket that the claim is bound to, at whatever endpoint its backend has now.
    fn is_bound_to(&self, at: &Target) -> bool {
        self.record().is_none_or(|(record, _)| leads_to(at, &record))
    }

    /// Whoever held the bucket before this record was made may have made the bucket since the look, which then counts for nothing:
    /// a bucket that was the claim's is looked at again.
    fn doubt_absence_before(&mut self, secret: &Stored) {
        let known = || self.own.get(secret.name()).is_some_and(|known| known.0.metadata.uid == secret.0.metadata.uid);
        if self.bucket != Some(BucketSeen::Absent) || known() {
            return;
        }
        if BucketRecord::read(&secret.0).is_ok_and(|record| self.asked_about(&target(&record))) {
            self.bucket = None;
            if self.checked == Checked::Seen {
                (self.look_due, self.checked) = (true, Checked::No);
            }
        }
    }

    /// What one read only did not show is asked once more: a credential, the binding of a claim that asks for one, and the
    /// record.
    fn doubt_early_reads(&mut self) {
        let public = self.claim.desired.as_ref().map_or(true, |desired| desired.anonymous.is_some());
        let binding = AnonymousBinding::name(&self.claim.uid);
        let is_record = |name: &str| Role::of_internal(name) == Some(Role::BucketRecord);
        let matters = |name: &str| is_credential(name) || is_record(name) || (public && name == binding);
        self.absent.retain(|name| !matters(name) || self.deleted.contains(name));
    }

    /// Whether the claim was bound, and to this bucket.
    fn is_kept_by(&self, at: &Target) -> bool {
        self.record().is_some_and(|(record, _)| self.is_bound_by(&record) && leads_to(at, &record))
    }

    /// A POST found this name taken. Where a read of this pass did not find it, one of the two is of the past: to ask on would
    /// be to ask in circles.
    fn met_at(&mut self, name: String) {
        self.outdated |= self.absent.contains(&name) || matches!(self.consumers.get(&name), Some(None));
        self.taken.insert(name);
    }

    /// What was written or deleted is known.
    fn doubts_no_more(&mut self, name: &str) {
        let is_this =
            |look: &Look| matches!(look, Look::Internal(doubted) | Look::Consumer(doubted) if doubted == name);
        self.doubted.retain(|look| !is_this(look));
    }

    fn wrote(&mut self, secret: Stored) {
        let name = secret.name().to_owned();
        self.doubts_no_more(&name);
        if secret.reference().namespace == self.setting.operator_namespace {
            self.absent.remove(&name);
            self.live.insert(name.clone());
            self.own.insert(name, secret);
        } else {
            self.consumers.insert(name, Some(secret));
            self.consumer_written = true;
        }
    }

    fn deleted(&mut self, secret: &SecretRef) {
        self.doubts_no_more(&secret.name);
        if secret.namespace == self.setting.operator_namespace {
            self.revoked += u32::from(is_credential(&secret.name));
            let removed = self.own.remove(&secret.name);
            if let Some(record) = removed.and_then(|removed| BucketRecord::read(&removed.0).ok()) {
                self.lets_go(record);
            }
            self.live.remove(&secret.name);
            self.absent.insert(secret.name.clone());
            self.deleted.insert(secret.name.clone());
            self.own_current = false;
        } else {
            self.consumers.insert(secret.name.clone(), None);
        }
    }

    /// Of a record that somebody made again after it was removed, the bucket may be gone since.
    fn lets_go(&mut self, record: BucketRecord) {
        let mut gone = removal::is_gone(self, &record);
        self.let_go.retain(|before| {
            let same = before.record.name() == record.name();
            gone |= same && before.gone;
            !same
        });
        self.let_go.push(LetGo { record, gone });
    }
}

fn is_credential(name: &str) -> bool {
    Role::of_internal(name) == Some(Role::VirtualCredential)
}
