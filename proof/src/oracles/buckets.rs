//! No data is destroyed that isn't ours (I1): calls on buckets, judged by the records and by the
//! creator of each bucket.

use std::collections::BTreeMap;

use jiff::Timestamp;
use s3_sim::BucketSnapshot;
use stowage_operator::api::wire::TAG_CLAIM_UID;
use stowage_world::effects::{Call, CallOutcome, Fault, Line, S3Fault};
use stowage_world::history::Called;

use super::Promise;
use super::findings::Findings;
use super::ground::{Ground, described, destroys, empties, is_list, is_look};
use super::order::record_of;
use super::policy;
use super::state::{Hand, HistoryStep, Life, Seen, State};
use super::views::{Claim, Record, Secret};

/// The oracle's memory of buckets.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    /// The state of the bucket at each read, by the number of the call.
    looks: BTreeMap<u64, Option<BucketSnapshot>>,
    /// Number of versions, delete markers and uploads that each call removed from a bucket.
    emptied: BTreeMap<u64, usize>,
    /// Deleted records, by bucket, and the actor that deleted each.
    past: BTreeMap<String, Vec<(Record, Hand)>>,
    /// Buckets created by the operator's own calls, by host and name.
    made: BTreeMap<(String, String), Made>,
}

/// A bucket created by the operator's own call.
#[derive(Debug)]
struct Made {
    /// Creation time, which distinguishes successive buckets of one name.
    created: Timestamp,
    /// UID of the claim that held the bucket then.
    uid: String,
}

impl Buckets {
    /// Judges a step.
    pub(super) fn see(&mut self, state: &State<'_>, step: &HistoryStep<'_>, found: &mut Findings) {
        match &step.seen {
            Seen::Called(called) => {
                if let Hand::Operator(number) = step.hand {
                    self.judge_call(state, step, number, called, found);
                    self.remember_call(state, number, called);
                }
            }
            Seen::Secret(place, None) => {
                if let Some(Secret::Record(record)) = state.secrets.get(place).map(|held| &held.secret) {
                    self.past.entry(record.bucket.clone()).or_default().push((record.clone(), step.hand));
                }
            }
            _ => {}
        }
    }

    fn remember_call(&mut self, state: &State<'_>, number: u64, called: &Called) {
        if is_look(called.operation) || is_list(called.operation) {
            self.looks.insert(number, called.before.clone());
        }
        if let (true, Some(before), Some(after)) = (empties(called.operation), &called.before, &called.after) {
            self.emptied.insert(number, content(before).saturating_sub(content(after)));
        }
        let made = called.operation.name() == "CreateBucket" && called.status < 300 && called.before.is_none();
        if let (true, Some(bucket), Some(after)) = (made, &called.bucket, &called.after) {
            let uid = record_of(state, called).map(|record| record.uid.clone()).unwrap_or_default();
            self.made.insert((called.host.clone(), bucket.clone()), Made { created: after.created, uid });
        }
    }

    fn is_made_by_us(&self, called: &Called, snapshot: &BucketSnapshot) -> bool {
        called.bucket.as_ref().is_some_and(|bucket| self.maker(&called.host, bucket, snapshot).is_some())
    }

    /// Returns the UID of the claim that a bucket was created for, if the operator created it.
    pub(super) fn maker(&self, host: &str, bucket: &str, snapshot: &BucketSnapshot) -> Option<&str> {
        let made = self.made.get(&(host.to_owned(), bucket.to_owned()))?;
        (made.created == snapshot.created).then_some(made.uid.as_str())
    }

    /// Returns the UID of the claim that the last bucket of a name was created for, empty if no
    /// claim held it. `None` if the operator never created one.
    pub(super) fn last_made_for(&self, host: &str, bucket: &str) -> Option<&str> {
        self.made.get(&(host.to_owned(), bucket.to_owned())).map(|made| made.uid.as_str())
    }

    /// Returns the state of a bucket when this call read it.
    pub(super) fn look(&self, number: u64) -> Option<&BucketSnapshot> {
        self.looks.get(&number).and_then(Option::as_ref)
    }

    fn judge_call(
        &self,
        state: &State<'_>,
        step: &HistoryStep<'_>,
        number: u64,
        called: &Called,
        found: &mut Findings,
    ) {
        let (Some(bucket), Some(before)) = (called.bucket.as_deref(), &called.before) else { return };
        if destroys(called.operation) {
            let what = format!("{} {bucket}", called.operation);
            let (held, lost) = (record_of(state, called), self.lost_record(state, bucket));
            // If a record was lost, the present holder of the name need not be the owner of the
            // bucket.
            let tagged = |record: &&Record| names(before, &record.uid);
            let late = || self.let_go_meanwhile(state, step, number, called);
            let Some(record) = held.filter(tagged).or(lost.filter(tagged)).or(held).or(lost) else {
                let message = format!("{what} is called, and no claim ever held that bucket");
                let ours = |record: &Record| tagged(&record) || is_untagged(before);
                return match late().filter(|(record, ..)| ours(record)) {
                    Some((_, life, ground)) => {
                        found.limit(Promise::I1, step, message);
                        policy::judge(state, step, called, life, ground, found);
                    }
                    None => found.broken(Promise::I1, step, message),
                };
            };
            let Some(life) = state.lives.get(record.uid.as_str()) else { return };
            if is_kept(life)
                && let Some((_, before, ground)) = late()
            {
                // A call that lands late can hit the name's next holder (spec §3.2).
                let message =
                    format!("{what} lands late, and claim {}, which nobody deletes, holds it", life.claim.full_name());
                found.limit(Promise::I1, step, message);
                return policy::judge(state, step, called, before, ground, found);
            }
            let ground = self.ground(state, number, called, &life.claim);
            self.judge_destruction(state, step, (called, before), (record, life), ground, found);
            policy::judge(state, step, called, life, ground, found);
        } else if matches!(called.operation.name(), "PutBucketTagging" | "PutBucketVersioning") {
            self.judge_claiming(state, step, number, (called, before), found);
        }
    }

    /// Returns a bucket's record that was deleted by hand, if its claim is being deleted or gone.
    /// The pass over that claim may still know the record.
    fn lost_record(&self, state: &State<'_>, bucket: &str) -> Option<&Record> {
        let (record, _) = self.past.get(bucket)?.last().filter(|(_, hand)| *hand == Hand::Other)?;
        let life = state.lives.get(record.uid.as_str())?;
        (life.claim.is_deleting() || life.gone.is_some()).then_some(record)
    }

    /// Returns the claim for which a destroying call was decided, if another operator has released
    /// it since; and the evidence of that call.
    ///
    /// The other operator can do so while this one is paused, before the call or within a slice of
    /// emptying.
    fn let_go_meanwhile<'s, 'a>(
        &'s self,
        state: &'s State<'a>,
        step: &HistoryStep<'_>,
        number: u64,
        called: &Called,
    ) -> Option<(&'s Record, &'s Life<'a>, Ground)> {
        let meanwhile = |(record, hand): &'s (Record, Hand)| {
            let life = state.lives.get(record.uid.as_str())?;
            let ground = self.ground(state, number, called, &life.claim);
            let in_slice = empties(called.operation) && ground.confirmed;
            let stood_still = state.stood_still(step.hand)
                || (in_slice && state.stood_still_since(step.hand, |line| Some(line.number) == ground.read));
            let late = stood_still && !state.alone && !record.adopted && state.are_apart(step.hand, *hand);
            late.then_some((record, life, ground))
        };
        self.past.get(called.bucket.as_deref()?)?.iter().rev().find_map(meanwhile)
    }

    fn ground(&self, state: &State<'_>, number: u64, called: &Called, claim: &Claim<'_>) -> Ground {
        Ground::of(state, number, called, claim, &self.emptied)
    }

    fn judge_destruction(
        &self,
        state: &State<'_>,
        step: &HistoryStep<'_>,
        (called, before): (&Called, &BucketSnapshot),
        (record, life): (&Record, &Life<'_>),
        ground: Ground,
        found: &mut Findings,
    ) {
        let (what, claim) = (described(called), life.claim.full_name());
        if is_kept(life) {
            found.broken(
                Promise::I1,
                step,
                format!("{what} is called, and nobody deletes claim {claim}, which holds it"),
            );
            return;
        }
        if record.adopted {
            found.broken(Promise::I1, step, format!("{what} is called for claim {claim}, which took that bucket over"));
            return;
        }
        let ours_now = names(before, &record.uid);
        let Some(look) = ground.look.filter(|_| !ground.stale || ours_now) else {
            let message = format!("{what} is called for claim {claim} without a look at the bucket in the same pass");
            if state.alone && !state.setting.others_read {
                found.broken(Promise::I1, step, message);
            } else {
                // With two operators the order of calls and the start of a deletion is not always
                // known, and with several readers of claims the start of a pass isn't.
                found.limit(Promise::I1, step, message);
            }
            return;
        };
        // A read that no store has seen was refused, or is not in the history: its result is
        // unknown.
        let seen = self.looks.get(&look).and_then(Option::as_ref);
        let without_tags = state.line(look).is_some_and(|line| {
            line.answer == CallOutcome::Status(501) || matches!(&line.call, Call::S3(call) if call.operation.is_head())
        });
        let was_ours = seen.is_some_and(|seen| names(seen, &record.uid));
        let from_the_past = state.line(look).is_some_and(|line| line.fault == Some(Fault::S3(S3Fault::StaleRead)));
        let unfinished = called.operation.name() == "DeleteBucket" && record.absence && !record.settled;
        let untagged = seen.is_some_and(is_untagged) && is_untagged(before);
        let whose = || format!("{what} is called for claim {claim}, and the bucket {}", described_owner(before));
        match () {
            () if was_ours && ours_now => {}
            () if was_ours => {
                found.limit(Promise::I1, step, format!("{}, which it was not when looked at", whose()));
            }
            () if from_the_past => found.limit(Promise::I1, step, format!("{}: the store showed its past", whose())),
            () if (untagged && unfinished) || (without_tags && (record.settled || unfinished)) => {
                if !self.is_made_by_us(called, before) && !ours_now {
                    found.limit(Promise::I1, step, format!("{}, which can't be told from its own", whose()));
                }
            }
            () => found.broken(Promise::I1, step, whose()),
        }
    }

    /// Judges calls that write tags and settings: they may only be made on buckets that we created.
    ///
    /// A stranger's bucket in the place of ours can't be recognized if the store has just confirmed
    /// the creation, or if it is empty and untagged and the record notes that the bucket was
    /// absent.
    fn judge_claiming(
        &self,
        state: &State<'_>,
        step: &HistoryStep<'_>,
        number: u64,
        (called, before): (&Called, &BucketSnapshot),
        found: &mut Findings,
    ) {
        let Some(record) = record_of(state, called) else { return };
        if (names(before, &record.uid) && !record.adopted) || self.is_made_by_us(called, before) {
            return;
        }
        let message = format!("{} is called on a bucket that {}", described(called), described_owner(before));
        let (look, created) = self.last_look(state, number, called);
        let unfinished = record.absence && is_untagged(before) && is_empty(before);
        let excused = match look {
            None => created,
            // Only a read of the tags shows the owner; a read of the bucket comes after it, and may
            // already see another bucket.
            Some(seen) => created || unfinished || seen != before || self.changed_hands(state, number, called, before),
        };
        if excused && !record.adopted {
            found.limit(Promise::I1, step, message);
        } else {
            found.broken(Promise::I1, step, message);
        }
    }

    /// Returns true if the tags of a bucket were different at their last read, or the bucket did
    /// not exist then.
    fn changed_hands(&self, state: &State<'_>, number: u64, called: &Called, before: &BucketSnapshot) -> bool {
        let is_look_at_tags = |line: &&Line| match &line.call {
            Call::S3(call) => call.bucket == called.bucket && call.operation.name() == "GetBucketTagging",
            Call::Kube(_) => false,
        };
        let look = state.before(number).find(is_look_at_tags).and_then(|line| self.looks.get(&line.number));
        look.is_some_and(|seen| seen.as_ref().and_then(|seen| seen.tags.as_ref()) != before.tags.as_ref())
    }

    /// Returns the result of the last read of a call's bucket; and true if a store has confirmed
    /// the creation of the bucket since.
    fn last_look(&self, state: &State<'_>, number: u64, called: &Called) -> (Option<&BucketSnapshot>, bool) {
        let mut created = false;
        for line in state.before(number) {
            let Call::S3(call) = &line.call else { continue };
            if call.bucket != called.bucket {
                continue;
            }
            created |= call.operation.name() == "CreateBucket" && line.answer == CallOutcome::Status(200);
            if is_look(call.operation) {
                return (self.looks.get(&line.number).and_then(Option::as_ref), created);
            }
        }
        (None, created)
    }
}

/// Returns true if a claim is neither being deleted nor gone, and no other actor has changed
/// anything of it.
fn is_kept(life: &Life<'_>) -> bool {
    !life.claim.is_deleting() && life.gone.is_none() && !life.meddling.any()
}

fn names(bucket: &BucketSnapshot, uid: &str) -> bool {
    bucket.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID)).is_some_and(|tag| tag == uid)
}

pub(super) fn is_empty(bucket: &BucketSnapshot) -> bool {
    content(bucket) == 0
}

fn content(bucket: &BucketSnapshot) -> usize {
    bucket.versions + bucket.delete_markers + bucket.uploads
}

fn is_untagged(bucket: &BucketSnapshot) -> bool {
    bucket.tags.as_ref().is_none_or(BTreeMap::is_empty)
}

fn described_owner(bucket: &BucketSnapshot) -> String {
    match bucket.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID)) {
        Some(uid) => format!("is tagged for claim UID {uid}"),
        None => format!("carries no claim's tags and holds {} objects", bucket.objects),
    }
}
