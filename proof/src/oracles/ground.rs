//! What a call that destroys goes by: the look at the bucket, and the read of the claim, of its own
//! pass.
//!
//! What a pass knew is told from the calls before: walking back from a call that destroys, over the
//! calls of the same life, to the look at the bucket that it goes by. A pass over a claim that is
//! deleted begins with a read of the claim and reads it once more before it destroys anything (spec
//! §3.4); so two reads with nothing destroyed between them are where another pass began. For each
//! late answer a pass reads it twice more.

use std::collections::BTreeMap;

use stowage_world::effects::{Call, CallFault, Fault, Line, ProcessFault, S3Operation};
use stowage_world::history::Called;

use super::state::{Edit, State, is_read_of};
use super::views::Claim;

/// The look that a call goes by, and the read of the claim that it was planned on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ground {
    pub(super) look: Option<u64>,
    /// Another pass began after the look.
    pub(super) stale: bool,
    /// The last read of the claim before the call.
    pub(super) read: Option<u64>,
    /// Whether the claim was read again after the look, or after what was destroyed before.
    pub(super) confirmed: bool,
}

impl Ground {
    /// Walks back from a call that destroys something of a claim's bucket. `emptied_by` tells how
    /// much each call took out.
    pub(super) fn of(
        state: &State<'_>,
        number: u64,
        called: &Called,
        claim: &Claim<'_>,
        emptied_by: &BTreeMap<u64, usize>,
    ) -> Self {
        let mut ground = Self::default();
        let begun = state.lives.get(claim.uid).and_then(|life| life.deleting);
        let (mut reads, mut same_slice, mut emptied) = (Reads::default(), true, 0);
        let mut before = state.before(number);
        while let Some(earlier) = before.next() {
            if begun.is_none_or(|begun: Edit| !begun.precedes(earlier.number)) {
                return ground;
            }
            match &earlier.call {
                Call::Kube(_) if is_read_of(earlier, claim) => {
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
                    emptied += emptied_by.get(&earlier.number).copied().unwrap_or_default();
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
    /// Answers that came late among them, the earlier slice's included: each has the claim read
    /// twice more.
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

/// Whether the answer to a call came so late that the pass asked again for what it knew.
fn is_late(line: &Line) -> bool {
    match line.fault {
        Some(Fault::Process(ProcessFault::Pause { seconds })) => seconds >= 10,
        Some(Fault::Call(CallFault::Slow { millis })) => millis >= 10_000,
        Some(Fault::Process(ProcessFault::Twin)) => true,
        _ => false,
    }
}

pub(super) fn is_look(operation: S3Operation) -> bool {
    matches!(operation.name(), "GetBucketTagging" | "HeadBucket")
}

/// Whether a call tells that there is a bucket, where HeadBucket has said otherwise.
pub(super) fn is_list(operation: S3Operation) -> bool {
    operation.name() == "ListObjectsV2"
}

fn lists(operation: S3Operation) -> bool {
    matches!(operation.name(), "ListObjectVersions" | "ListObjectsV2" | "ListMultipartUploads")
}

pub(super) fn empties(operation: S3Operation) -> bool {
    operation.deletes_objects() || operation.name() == "AbortMultipartUpload"
}

pub(super) fn destroys(operation: S3Operation) -> bool {
    empties(operation) || operation.name() == "DeleteBucket"
}

/// A call in a message: `DeleteBucket photos`.
pub(super) fn described(called: &Called) -> String {
    format!("{} {}", called.operation, called.bucket.as_deref().unwrap_or_default())
}
