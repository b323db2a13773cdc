//! Buckets: nothing is destroyed that isn't ours (I1), nor what is to be kept (I2, I3); one bucket, one claim (I4).
//!
//! What a pass knew is told from the calls before: walking back from a call that destroys, over the calls of the same
//! life, to the look at the bucket that it goes by. A pass over a claim that is deleted begins with a read of the claim
//! and reads it once more before it destroys anything (spec §3.4); so two reads with nothing destroyed between them are
//! where another pass began. For each late answer a pass reads it twice more.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use stowage_operator::api::wire::TAG_CLAIM_UID;

use crate::effects::{Answer, Call, Fault, KubeVerb, Line, S3Operation};
use crate::history::Called;
use crate::store::BucketSnapshot;

use super::Promise;
use super::findings::Findings;
use super::order::record_of;
use super::state::{Edit, Hand, Life, Seen, State, Step};
use super::views::{Claim, Key, Policy, Record, Secret};

/// What is remembered of buckets.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    /// As each was last looked at, by the number of the call.
    looks: BTreeMap<u64, Option<BucketSnapshot>>,
    /// How much each call took out of a bucket: versions, delete markers and uploads.
    emptied: BTreeMap<u64, usize>,
    /// Records that are gone, by bucket, and who deleted each.
    past: BTreeMap<String, Vec<(Record, Hand)>>,
    /// Buckets that the operator's own call made, by host and name.
    made: BTreeMap<(String, String), Made>,
    /// Claims by UID, and the buckets that were seen to carry their tags.
    tagged: BTreeSet<(String, String)>,
    /// Claims by UID, and the buckets that they ever had a key to.
    opened: BTreeSet<(String, String)>,
}

/// A bucket that the operator's own call made.
#[derive(Debug)]
struct Made {
    /// When: that tells one bucket of a name from the next.
    created: Timestamp,
    /// UID of the claim that held the bucket then.
    uid: String,
}

/// The look that a call goes by, and the read of the claim that it was planned on.
#[derive(Clone, Copy, Debug, Default)]
struct Ground {
    look: Option<u64>,
    /// Another pass began after the look.
    stale: bool,
    /// The last read of the claim before the call.
    read: Option<u64>,
    /// Whether the claim was read again after the look, or after what was destroyed before.
    confirmed: bool,
}

impl Buckets {
    /// Looks at a step.
    pub(super) fn see(&mut self, state: &State<'_>, step: &Step<'_>, found: &mut Findings) {
        match &step.seen {
            Seen::Called(called) => {
                if let Hand::Operator(number) = step.hand {
                    self.judge_call(state, step, number, called, found);
                    self.remember_call(state, number, called);
                }
            }
            Seen::Secret(place, new) => {
                if let Some(Secret::Key(key)) = new {
                    if step.by_operator() {
                        self.first_key(state, step, key, found);
                    }
                    self.opened.insert((key.uid.clone(), key.bucket.clone()));
                }
                let old = state.secrets.get(place).map(|held| &held.secret);
                match (old, new) {
                    (_, Some(Secret::Record(record))) => one_holder(state, step, place.1, record, found),
                    (Some(Secret::Record(record)), None) => {
                        self.past.entry(record.bucket.clone()).or_default().push((record.clone(), step.hand));
                    }
                    (None, Some(Secret::Key(key))) if step.by_operator() => {
                        self.key_of_holder(state, step, key, found);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn remember_call(&mut self, state: &State<'_>, number: u64, called: &Called) {
        if is_look(called.operation) {
            self.looks.insert(number, called.before.clone());
        }
        if let (true, Some(before), Some(after)) = (empties(called.operation), &called.before, &called.after) {
            self.emptied.insert(number, content(before).saturating_sub(content(after)));
        }
        for snapshot in [&called.before, &called.after].into_iter().flatten() {
            let uid = snapshot.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID));
            if let (Some(uid), Some(bucket)) = (uid, &called.bucket) {
                self.tagged.insert((uid.clone(), bucket.clone()));
            }
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

    /// UID of the claim that a bucket was made for, if the operator made it.
    pub(super) fn maker(&self, host: &str, bucket: &str, snapshot: &BucketSnapshot) -> Option<&str> {
        let made = self.made.get(&(host.to_owned(), bucket.to_owned()))?;
        (made.created == snapshot.created).then_some(made.uid.as_str())
    }

    fn judge_call(&self, state: &State<'_>, step: &Step<'_>, number: u64, called: &Called, found: &mut Findings) {
        let (Some(bucket), Some(before)) = (called.bucket.as_deref(), &called.before) else { return };
        if destroys(called.operation) {
            let what = format!("{} {bucket}", called.operation);
            let (held, lost) = (record_of(state, called), self.lost_record(state, bucket));
            // Where a record was lost, who holds the name since need not be whose the bucket is.
            let tagged = |record: &&Record| names(before, &record.uid);
            let late = || self.let_go_meanwhile(state, step, number, called);
            let Some(record) = held.filter(tagged).or(lost.filter(tagged)).or(held).or(lost) else {
                let message = format!("{what} is called, and no claim ever held that bucket");
                let ours = |record: &Record| tagged(&record) || is_untagged(before);
                return match late().filter(|(record, ..)| ours(record)) {
                    Some((_, life, ground)) => {
                        found.limit(Promise::I1, step, message);
                        judge_policy(state, step, called, life, ground, found);
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
                return judge_policy(state, step, called, before, ground, found);
            }
            let ground = self.ground(state, number, called, &life.claim);
            self.judge_destruction(state, step, (called, before), (record, life), ground, found);
            judge_policy(state, step, called, life, ground, found);
        } else if matches!(called.operation.name(), "PutBucketTagging" | "PutBucketVersioning") {
            self.judge_claiming(state, step, number, (called, before), found);
        }
    }

    /// The record of a bucket that somebody deleted by hand. Its claim's pass may know it all the same.
    fn lost_record(&self, state: &State<'_>, bucket: &str) -> Option<&Record> {
        let (record, _) = self.past.get(bucket)?.last().filter(|(_, hand)| *hand == Hand::Other)?;
        let life = state.lives.get(record.uid.as_str())?;
        (life.claim.is_deleting() || life.gone.is_some()).then_some(record)
    }

    /// The claim that a destroying call was decided for, where another operator let that one go since: this one stood still
    /// with the call, or within the slice that it is of. And what the call goes by.
    fn let_go_meanwhile<'s, 'a>(
        &'s self,
        state: &'s State<'a>,
        step: &Step<'_>,
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

    fn judge_destruction(
        &self,
        state: &State<'_>,
        step: &Step<'_>,
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
            if state.alone {
                found.broken(Promise::I1, step, message);
            } else {
                // Of two operators' calls it isn't always known which came after the deletion began.
                found.limit(Promise::I1, step, message);
            }
            return;
        };
        // A look that no store saw was refused, or is not told of: what the store would have shown is not known.
        let seen = self.looks.get(&look).and_then(Option::as_ref);
        let without_tags = state.line(look).is_some_and(|line| {
            line.answer == Answer::Status(501) || matches!(&line.call, Call::S3(call) if call.operation.is_head())
        });
        let was_ours = seen.is_some_and(|seen| names(seen, &record.uid));
        let from_the_past = state.line(look).is_some_and(|line| line.fault == Some(Fault::StaleRead));
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

    /// Tags and settings are put on buckets of our own making. A stranger's that stands in the place of one can't be told
    /// from it where the store said that it was made just now, or where it is empty and untagged and the record has its
    /// absence.
    fn judge_claiming(
        &self,
        state: &State<'_>,
        step: &Step<'_>,
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
            Some(seen) => created || unfinished || seen != before,
        };
        if excused && !record.adopted {
            found.limit(Promise::I1, step, message);
        } else {
            found.broken(Promise::I1, step, message);
        }
    }

    /// What the last look at the bucket of a call showed, and whether a store said since that it made the bucket.
    fn last_look(&self, state: &State<'_>, number: u64, called: &Called) -> (Option<&BucketSnapshot>, bool) {
        let mut created = false;
        for line in state.before(number) {
            let Call::S3(call) = &line.call else { continue };
            if call.bucket != called.bucket {
                continue;
            }
            created |= call.operation.name() == "CreateBucket" && line.answer == Answer::Status(200);
            if is_look(call.operation) {
                return (self.looks.get(&line.number).and_then(Option::as_ref), created);
            }
        }
        (None, created)
    }

    /// A key is made for a claim that holds its bucket, and while nobody else has a key to it.
    fn key_of_holder(&self, state: &State<'_>, step: &Step<'_>, key: &Key<'_>, found: &mut Findings) {
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
                // A POST says nothing of what it was decided on: another operator may have let the claim go meanwhile.
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
            let message = format!(
                "key {} is made for bucket {}, and key {} of another claim opens it",
                key.id, key.bucket, rival.id
            );
            found.broken(Promise::I4, step, message);
        }
    }

    /// The first key of a claim to a bucket that was there: it took that over, or the bucket carries its tags. What its
    /// tenant can write proves nothing (spec §2).
    fn first_key(&self, state: &State<'_>, step: &Step<'_>, key: &Key<'_>, found: &mut Findings) {
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
        let made = self.made.get(&(record.host.clone(), record.bucket.clone()));
        if made.is_some_and(|made| made.uid.is_empty() || made.uid == key.uid) {
            return;
        }
        let message = format!(
            "key {} is made for bucket {}, which was not made for its claim, nor taken over, and does not carry its tags",
            key.id, key.bucket
        );
        if record.absence {
            // A store without tagging that says that it made the bucket.
            found.limit(Promise::I4, step, message);
        } else {
            found.broken(Promise::I4, step, message);
        }
    }

    /// Walks back from a call that destroys.
    fn ground(&self, state: &State<'_>, number: u64, called: &Called, claim: &Claim<'_>) -> Ground {
        let mut ground = Ground::default();
        let begun = state.lives.get(claim.uid).and_then(|life| life.deleting);
        let (mut reads, mut same_slice, mut emptied) = (Reads::default(), true, 0);
        let mut before = state.before(number);
        while let Some(earlier) = before.next() {
            if begun.is_none_or(|begun: Edit| !begun.precedes(earlier.number)) {
                return ground;
            }
            match &earlier.call {
                Call::Kube(call)
                    if call.verb == KubeVerb::Get
                        && call.resource == "bucketclaims"
                        && call.name.as_deref() == Some(claim.name)
                        && call.namespace.as_deref() == Some(claim.namespace) =>
                {
                    ground.stale |= reads.are_of_two_passes();
                    reads.count(earlier);
                    ground.confirmed |= same_slice;
                    ground.read.get_or_insert(earlier.number);
                }
                Call::S3(call) if call.bucket == called.bucket && is_look(call.operation) => {
                    reads.pass_by(earlier);
                    if call.operation.is_head() {
                        // The second half of a look: the store was asked for tags before.
                        before.next().into_iter().for_each(|asked| reads.pass_by(asked));
                    }
                    reads.end_at_slice();
                    ground.stale |= reads.are_of_two_passes();
                    ground.look = Some(earlier.number);
                    return ground;
                }
                Call::S3(call) if call.bucket == called.bucket && destroys(call.operation) => {
                    // A slice goes on; deleting the bucket is a step of its own.
                    emptied += self.emptied.get(&earlier.number).copied().unwrap_or_default();
                    let is_full = emptied >= state.setting.purge_slice;
                    same_slice &= empties(called.operation) && reads.since_slice == 0 && !is_full;
                    reads.pass_by(earlier);
                    reads.end_at_slice();
                }
                // A slice that finds nothing to delete is one too.
                Call::S3(call) if call.bucket == called.bucket && lists(call.operation) => {
                    reads.pass_by(earlier);
                    reads.end_at_slice();
                }
                _ => reads.pass_by(earlier),
            }
        }
        ground
    }
}

/// Reads of a claim between two slices of emptying, on the way back from the later one.
#[derive(Debug, Default)]
struct Reads {
    /// Since the later slice.
    since_slice: usize,
    /// In all, once the earlier slice is met.
    closed: usize,
    /// Answers that came late among them, the earlier slice's included: each has the claim read twice more.
    late: usize,
}

impl Reads {
    /// A read of the claim.
    fn count(&mut self, line: &Line) {
        if std::mem::take(&mut self.closed) > 0 {
            self.late = 0;
        }
        self.since_slice += 1;
        self.pass_by(line);
    }

    /// Any other call.
    fn pass_by(&mut self, line: &Line) {
        self.late += usize::from(is_late(line));
    }

    /// The earlier slice is met.
    fn end_at_slice(&mut self) {
        self.closed = self.closed.max(std::mem::take(&mut self.since_slice));
    }

    /// Whether another pass began between the slices. Known where the earlier slice began.
    fn are_of_two_passes(&self) -> bool {
        self.closed > 1 + 2 * self.late
    }
}

/// Whether a claim lives, and nobody has asked for anything else.
fn is_kept(life: &Life<'_>) -> bool {
    !life.claim.is_deleting() && life.gone.is_none() && !life.meddling.any()
}

fn is_rival(key: &Key<'_>, other: &Key<'_>) -> bool {
    other.counts && other.uid != key.uid && other.bucket == key.bucket && other.backend == key.backend
}

/// Of two records for one bucket both are of one claim.
fn one_holder(state: &State<'_>, step: &Step<'_>, name: &str, record: &Record, found: &mut Findings) {
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

/// I2 and I3: what is destroyed was to be destroyed in the version of the claim that was read last before the slice.
fn judge_policy(
    state: &State<'_>,
    step: &Step<'_>,
    called: &Called,
    life: &Life<'_>,
    ground: Ground,
    found: &mut Findings,
) {
    let policy = life.claim.policy();
    let (promise, edit) = match policy {
        Policy::Retain => (Promise::I2, life.retained),
        Policy::Delete if empties(called.operation) => (Promise::I3, life.unforced),
        Policy::Delete | Policy::Force => return,
    };
    let Some(edit) = edit else { return };
    let what = described(called);
    let claim = life.claim.full_name();
    let wanted = if promise == Promise::I2 { "whose policy is Retain" } else { "which does not force it" };
    let read = ground.read;
    let read_after = read.is_some_and(|read| edit.precedes(read));
    let read_live = read.and_then(|read| state.line(read)).is_none_or(|line| line.fault.is_none());
    match (read_after, ground.confirmed) {
        (true, _) if read_live => found.broken(promise, step, format!("{what} is called for claim {claim}, {wanted}")),
        (true, _) => {
            found.limit(promise, step, format!("{what} is called for claim {claim}, {wanted}: it was read old"));
        }
        (false, false) => {
            let message = format!("{what} is called for claim {claim}, {wanted}, without reading it again before");
            found.broken(promise, step, message);
        }
        (false, true) => {}
    }
}

/// Whether the answer to a call came so late that the pass asked again for what it knew.
fn is_late(line: &Line) -> bool {
    match line.fault {
        Some(Fault::Pause { seconds }) => seconds >= 10,
        Some(Fault::Slow { millis }) => millis >= 10_000,
        Some(Fault::Twin) => true,
        _ => false,
    }
}

pub(super) fn is_look(operation: S3Operation) -> bool {
    matches!(operation.name(), "GetBucketTagging" | "HeadBucket")
}

fn lists(operation: S3Operation) -> bool {
    matches!(operation.name(), "ListObjectVersions" | "ListObjectsV2" | "ListMultipartUploads")
}

fn empties(operation: S3Operation) -> bool {
    operation.deletes_objects() || operation.name() == "AbortMultipartUpload"
}

pub(super) fn destroys(operation: S3Operation) -> bool {
    empties(operation) || operation.name() == "DeleteBucket"
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

fn described(called: &Called) -> String {
    format!("{} {}", called.operation, called.bucket.as_deref().unwrap_or_default())
}

fn described_owner(bucket: &BucketSnapshot) -> String {
    match bucket.tags.as_ref().and_then(|tags| tags.get(TAG_CLAIM_UID)) {
        Some(uid) => format!("is tagged for claim UID {uid}"),
        None => format!("carries no claim's tags and holds {} objects", bucket.objects),
    }
}
