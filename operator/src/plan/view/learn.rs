//! Recording of answers in a view.

use std::collections::BTreeMap;

use crate::api::{AccessKeyId, AnonymousBinding, BucketRecord, Claim};

use super::super::answer::{
    Answer, BucketSeen, Checked, CreateAnswer, DeleteAnswer, Failure, Holder, Posted, PurgeEnd, Purged, VersioningSeen,
};
use super::super::known::Knowledge;
use super::super::patch::{Change, SecretPatch, Trigger};
use super::super::secret::{SecretRef, Stored, is_credential, is_record};
use super::super::step::{Act, Look, Step};
use super::super::target::Target;
use super::{Freshness, LetGo, Trouble, View, generations};

impl View {
    /// Records the result of a step.
    pub fn learn(&mut self, answer: Answer) {
        self.step += 1;
        if self.claim.freshness == Freshness::JustRead {
            self.claim.freshness = Freshness::Live;
        }
        if let Some(look) = answer.question() {
            // If it failed, the pass reports its status without it.
            self.recheck.retain(|asked| *asked != look);
        }
        self.take(answer);
    }

    /// Ends the pass because its data is outdated, unless a failure is to be reported.
    fn go_stale(&mut self) {
        self.trouble.get_or_insert(Trouble::Stale);
    }

    fn take(&mut self, answer: Answer) {
        match answer {
            Answer::Backend(name, seen) => {
                self.backends.insert(name, seen);
            }
            Answer::Holder(at, holder) => self.holder = Some((at.record(), holder)),
            Answer::PublicRival(at, rival) => self.public_rival = Some((at, rival)),
            Answer::Claim(claim) => self.found_claim(claim),
            Answer::Own(secrets) => self.listed(secrets),
            Answer::Internal(name, secret) => self.found_internal(&name, secret),
            Answer::Consumer(_, Some(secret)) => self.consumers.found(secret, self.step),
            Answer::Consumer(name, None) => self.consumers.missed(&name, self.step),
            Answer::CredentialsFor(at, secrets) => self.credentials_listed(at, secrets),
            Answer::Bucket(at, seen) => self.looked_at(&at, seen),
            Answer::Owner(at, owner) => {
                self.turn_to(&at);
                self.bucket.owner = Some(owner);
            }
            Answer::Contents(at, empty) => {
                self.turn_to(&at);
                self.bucket.empty = Some(empty);
            }
            Answer::Versioning(at, seen) => {
                self.turn_to(&at);
                self.bucket.versioning = Some(seen);
            }
            Answer::Consent(_, seen) => {
                self.deeds.consent_settled = true;
                // Accesses created after the start of this pass are added, so that their consent is
                // not withdrawn again because the caches did not show them.
                if let Some(asking) = &mut self.asking {
                    asking.namespaces.extend(seen.askers.iter().map(|asker| (asker.uid.clone(), asker.clone())));
                }
                self.consent = Some(seen);
            }
            Answer::FinalizerAdded(claim) => self.finalizer_added(*claim),
            Answer::FinalizerRemoved => self.deeds.finalizer_removed = true,
            Answer::StatusWritten(claim) => self.claim.claim = *claim,
            Answer::RecordPosted(record, posted) => self.record_posted(&record, posted),
            Answer::CredentialPosted(facts, posted) => {
                self.credential_posted(facts.access_key_id().secret_name(), posted);
            }
            Answer::ConsumerPosted(name, posted) => self.consumer_posted(&name, posted),
            Answer::BindingPosted(posted) => self.posted(AnonymousBinding::name(&self.claim().uid), posted),
            Answer::Patched(change, secret) => self.patched(change, secret),
            Answer::Deleted(_, Some(kept)) => self.kept(kept),
            Answer::Deleted(secret, None) => self.deleted(&secret),
            Answer::BucketCreated(_, answer) => self.bucket_was_created(answer),
            Answer::BucketTagged(_, tags) => {
                self.bucket.seen = Some(BucketSeen::Present(Some(tags)));
                self.bucket.tagged = true;
            }
            Answer::VersioningSet(_, versioning) => self.bucket.versioning = Some(VersioningSeen::Set(versioning)),
            Answer::BucketPurged(at, most, purged) => self.bucket_was_purged(Act::Purge(at, most), purged),
            Answer::BucketDeleted(_, answer) => self.bucket_was_deleted(answer),
            Answer::Failed(step, failure) => self.failed(step, failure),
        }
    }

    fn failed(&mut self, step: Step, failure: Failure) {
        match (&step, &failure) {
            // A store without tagging can't store the ownership tags, so the bucket counts as
            // tagged.
            (Step::Act(Act::TagBucket(..)), Failure::Unsupported) => self.bucket.tagged = true,
            // A failed drift check says nothing about the bucket. Backend problems are reported by
            // the probe.
            (
                Step::Look(Look::Bucket(at)),
                Failure::Upstream(_)
                | Failure::UpstreamDenied(_)
                | Failure::NoUpstream(_)
                | Failure::Paced(_)
                | Failure::Unsupported,
            ) if !self.claim().deleting && self.is_bound_to(at) => {
                self.drift.due = false;
                self.drift.checked = Checked::Failed;
            }
            (Step::Act(Act::Patch(SecretPatch { target: secret, .. }) | Act::Delete(secret)), _)
                if self.is_cache_refuted(&step, &failure) =>
            {
                self.must_read(secret);
            }
            (Step::Look(_) | Step::Act(_) | Step::Rest(_), _) => {
                self.trouble = Some(Trouble::Failed(Box::new(step), failure));
            }
        }
    }

    /// Marks a Secret as outdated in the cache.
    fn must_read(&mut self, secret: &SecretRef) {
        if secret.namespace == self.setting.operator_namespace {
            self.internal.learn().taken(&secret.name, self.step);
        } else {
            self.consumers.taken(&secret.name, self.step);
        }
    }

    fn credentials_listed(&mut self, at: Target, mut secrets: Vec<Stored>) {
        secrets.retain(|secret| secret.text("claim_uid") != Some(self.claim().uid.as_str()));
        self.others_credentials = Some((at, secrets));
    }

    fn finalizer_added(&mut self, claim: Claim) {
        // A claim whose annotation was restored may have had Secrets before.
        self.claim.newborn = !self.claim().has_finalizer();
        self.claim.claim = claim;
        self.claim.freshness = Freshness::Live;
    }

    fn found_claim(&mut self, claim: Option<Box<Claim>>) {
        let known = self.claim();
        let Some(live) = claim.filter(|live| {
            // A stale read is older than what is known already.
            let is_older = live.id.is_older_than(&known.id);
            // A deletion proceeds on exactly the version that it read first (spec §3.4).
            let is_edited = live.deleting && live.id != known.id;
            !is_older && !is_edited && live.uid == known.uid && live.deleting == known.deleting
        }) else {
            return self.go_stale();
        };
        self.claim.claim = *live;
        self.claim.freshness = Freshness::JustRead;
    }

    fn listed(&mut self, secrets: Vec<Stored>) {
        secrets.iter().for_each(|secret| self.doubt_absence_before(secret));
        let uid = self.claim().uid.clone();
        let own = secrets.into_iter().filter(|secret| !generations::is_anothers(&uid, secret));
        self.internal.listed(own, self.step);
        // The list is not older than what the watch has shown, so it answers all rechecks of
        // internal Secrets.
        self.recheck.retain(|look| !matches!(look, Look::Internal(_)));
        if self.claim().deleting && self.records().next().is_none() {
            self.doubt_early_reads();
        }
    }

    /// Records an internal Secret that was read by name: one with our UID, or a record of another
    /// claim.
    fn found_internal(&mut self, name: &str, secret: Option<Stored>) {
        let Some(secret) = secret else {
            // The cache has it, so either the cache or this answer is outdated. The next pass reads
            // again without this cached Secret.
            if self.own(name).is_some() && !self.claim().deleting {
                self.go_stale();
            }
            self.others.remove(name);
            self.internal.learn().missed(name, self.step);
            return self.advance();
        };
        match BucketRecord::read(&secret.0) {
            Ok(record) if record.uid != self.claim().uid => {
                self.others.insert(name.to_owned(), Holder::Other(record.claim.clone()));
                // Both names that the pass reads may belong to another claim, and `holder` is about
                // only one of them.
                self.internal.learn().missed(name, self.step);
                self.holder = Some((record.name(), Holder::Other(record.claim)));
            }
            Err(damage) if is_record(name) => {
                self.others.insert(name.to_owned(), Holder::Damaged(damage.to_string()));
                if let Some((_, holder)) = self.holder.as_mut().filter(|(held, _)| held.as_str() == name) {
                    *holder = Holder::Damaged(damage.to_string());
                } else if secret.text("claim_uid") == Some(self.claim().uid.as_str()) {
                    self.internal.learn().found(secret, self.step);
                } else {
                    // Not known to be this claim's.
                    self.internal.learn().missed(name, self.step);
                }
            }
            Ok(_) | Err(_) => {
                self.doubt_absence_before(&secret);
                self.internal.learn().found(secret, self.step);
            }
        }
    }

    fn looked_at(&mut self, at: &Target, seen: BucketSeen) {
        self.turn_to(at);
        self.bucket.seen = Some(seen);
        // The claim's own bucket, at any endpoint of its backend.
        if self.record().is_none_or(|(record, _)| at.is_of(record)) {
            self.drift.due = false;
            self.drift.checked = Checked::Seen;
        }
    }

    fn record_posted(&mut self, record: &BucketRecord, posted: Posted) {
        if let Posted::Stored(secret) = &posted {
            self.deeds.record_remade |= record.generation > 1 && self.record().is_none();
            // A record that follows its bucket to another endpoint has a generation that is in use
            // already.
            if self.records().all(|(other, _)| other.generation < record.generation) {
                self.deeds.aimed_by_this_pass = Some(record.generation);
            }
            self.doubt_absence_before(secret);
            self.internal.held(self.step);
        }
        self.posted(record.name().to_string(), posted);
    }

    /// Records the POST of an internal Secret. If the name is taken although a read of this pass
    /// found no Secret, one of the two is outdated, and more queries would only repeat this.
    fn posted(&mut self, name: String, posted: Posted) {
        match posted {
            Posted::Stored(secret) => self.wrote(secret),
            Posted::NameTaken => {
                if self.is_absent(&name) {
                    self.go_stale();
                }
                self.internal.learn().taken(&name, self.step);
            }
        }
    }

    fn credential_posted(&mut self, name: String, posted: Posted) {
        // Whether this pass or another created it: if it is deleted before the pass ends, its id
        // must not be reused.
        self.deeds.aimed_by_this_pass = None;
        if posted == Posted::NameTaken {
            // If the read finds no Secret, it may be stale, and so may every earlier list.
            self.internal.forget_lists();
        }
        self.posted(name, posted);
    }

    fn consumer_posted(&mut self, name: &str, posted: Posted) {
        match posted {
            Posted::Stored(secret) => self.wrote(secret),
            Posted::NameTaken => {
                if self.consumers.get(name) == Knowledge::Absent {
                    self.go_stale();
                }
                self.consumers.taken(name, self.step);
            }
        }
    }

    fn patched(&mut self, change: Change, secret: Stored) {
        if change == Change::Consent {
            self.consent = None;
        }
        if let Change::RaiseGeneration(trigger) = change {
            self.deeds.revocation_started |= trigger == Trigger::Revocation;
            self.deeds.aimed_by_this_pass = BucketRecord::read(&secret.0).ok().map(|record| record.generation);
        }
        self.wrote(secret);
    }

    fn bucket_was_purged(&mut self, purge: Act, purged: Purged) {
        self.deeds.purged += purged.deleted;
        if let PurgeEnd::Failed(failure) = &purged.end {
            self.trouble = Some(Trouble::Failed(Box::new(Step::Act(purge)), failure.clone()));
        }
        self.bucket.purge = Some(purged.end);
    }

    fn bucket_was_created(&mut self, answer: CreateAnswer) {
        self.bucket.created = Some(answer);
        // The earlier look is outdated. Unless the bucket is new, another look decides.
        match answer {
            CreateAnswer::Created => self.bucket.seen = Some(BucketSeen::Present(Some(BTreeMap::new()))),
            CreateAnswer::AlreadyOwned => self.bucket.seen = None,
            CreateAnswer::AlreadyExists => {}
        }
    }

    fn bucket_was_deleted(&mut self, answer: DeleteAnswer) {
        self.bucket.removed = Some(answer);
        // The record may have been released under another policy before, with the bucket kept.
        for let_go in std::mem::take(&mut self.deeds.let_go) {
            let gone = let_go.gone || self.is_gone(&let_go.record);
            self.deeds.let_go.push(LetGo { gone, ..let_go });
        }
    }

    /// Counts the generations whose names need not be read again, because there can be very many.
    fn advance(&mut self) {
        let is_absent = |generation| self.is_absent(&AccessKeyId::of(&self.claim().uid, generation).secret_name());
        let absent = (self.first_unread()..).take_while(|generation| is_absent(*generation));
        self.deeds.absent_through = absent.last().unwrap_or(self.deeds.absent_through);
    }

    /// Drops an earlier look that found the bucket absent: the holder before this record was
    /// created may have created the bucket since. If it was the claim's bucket, it is looked at
    /// again.
    fn doubt_absence_before(&mut self, secret: &Stored) {
        let known = || self.own(secret.name()).is_some_and(|known| known.0.metadata.uid == secret.0.metadata.uid);
        if self.bucket.seen != Some(BucketSeen::Absent) || known() {
            return;
        }
        if BucketRecord::read(&secret.0).is_ok_and(|record| self.asked_about(&Target::of(&record))) {
            self.bucket.seen = None;
            if self.drift.checked == Checked::Seen {
                self.drift.due = true;
                self.drift.checked = Checked::No;
            }
        }
    }

    /// Forgets objects that a single read found absent, so that they are read again: credentials,
    /// records, and the binding of a claim that may have one.
    fn doubt_early_reads(&mut self) {
        let public = self.claim().desired.as_ref().map_or(true, |desired| desired.anonymous.is_some());
        let binding = AnonymousBinding::name(&self.claim().uid);
        let matters = |name: &str| is_credential(name) || is_record(name) || (public && name == binding);
        self.internal.learn().forget_absent(matters);
    }

    /// Drops the rechecks of a Secret that was written or deleted.
    fn drop_recheck(&mut self, name: &str) {
        let is_this = |look: &Look| matches!(look, Look::Internal(asked) | Look::Consumer(asked) if asked == name);
        self.recheck.retain(|look| !is_this(look));
    }

    fn wrote(&mut self, secret: Stored) {
        self.drop_recheck(secret.name());
        if secret.reference().namespace == self.setting.operator_namespace {
            self.internal.learn().found(secret, self.step);
        } else {
            self.consumers.found(secret, self.step);
            self.deeds.consumer_written = true;
        }
    }

    /// Records a deleted Secret that a finalizer of another party keeps.
    fn kept(&mut self, kept: Stored) {
        // A record disappears together with its finalizers, so the outcome for its bucket is noted
        // now.
        if let Ok(record) = BucketRecord::read(&kept.0) {
            self.lets_go(record);
        }
        self.deeds.revoked += u32::from(is_credential(kept.name()));
        self.internal.learn().found(kept, self.step);
    }

    fn deleted(&mut self, secret: &SecretRef) {
        self.drop_recheck(&secret.name);
        if secret.namespace != self.setting.operator_namespace {
            return self.consumers.deleted(&secret.name, self.step);
        }
        self.deeds.revoked += u32::from(is_credential(&secret.name));
        if let Some(record) = self.own(&secret.name).and_then(|removed| BucketRecord::read(&removed.0).ok()) {
            self.lets_go(record);
        }
        self.internal.deleted(&secret.name, self.step);
    }

    /// Remembers a record that the claim released. If somebody recreated the record meanwhile, the
    /// bucket is still remembered as gone.
    fn lets_go(&mut self, record: BucketRecord) {
        let mut gone = self.is_gone(&record);
        self.deeds.let_go.retain(|before| {
            let same = before.record.name() == record.name();
            gone |= same && before.gone;
            !same
        });
        self.deeds.let_go.push(LetGo { record, gone });
    }
}
