//! The evidence for a destroying call: the read of the bucket, and the read of the claim, in the
//! same pass.
//!
//! The knowledge of a pass is reconstructed from its calls: from a destroying call back over the
//! calls of the same life to the read of the bucket. A pass over a deleted claim begins with a read
//! of the claim, and reads it once more before it destroys anything (spec §3.4). So two reads
//! without anything destroyed between them mark the start of another pass. For each late answer a
//! pass reads the claim twice more.

use std::collections::BTreeMap;

use stowage_world::effects::{Call, CallFault, Fault, Line, ProcessFault, S3Operation};
use stowage_world::history::Called;

use super::state::{Edit, State, is_read_of};
use super::views::Claim;

/// The read of the bucket that a call is based on, and the read of the claim that it was planned
/// with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ground {
    pub(super) look: Option<u64>,
    /// True if another pass began after the read of the bucket.
    pub(super) stale: bool,
    /// The last read of the claim before the call.
    pub(super) read: Option<u64>,
    /// True if the claim was read again after the read of the bucket, or after the previous
    /// destroying calls.
    pub(super) confirmed: bool,
}

impl Ground {
    /// Walks back from a call that destroys something in a claim's bucket. `emptied_by` has the
    /// number of objects that each call removed.
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
                        // This is the second half of a read: the store was asked for the tags
                        // before.
                        before.next().into_iter().for_each(|asked| reads.pass_by(asked));
                    }
                    reads.end_at_slice();
                    ground.stale |= reads.are_of_two_passes();
                    ground.look = Some(earlier.number);
                    return ground;
                }
                Call::S3(call) if call.bucket == called.bucket && destroys(call.operation) => {
                    // Emptying calls belong to one slice; deleting the bucket is a step of its own.
                    emptied += emptied_by.get(&earlier.number).copied().unwrap_or_default();
                    let is_full = emptied >= state.setting.purge_slice;
                    same_slice &= empties(called.operation) && reads.since_slice == 0 && !is_full;
                    reads.pass_by(earlier);
                    reads.end_at_slice();
                }
                // A slice that finds nothing to delete counts as well.
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

/// Reads of a claim between two slices of emptying, counted back from the later slice.
#[derive(Debug, Default)]
struct Reads {
    /// Number of reads since the later slice.
    since_slice: usize,
    /// Number of all reads, once the earlier slice is reached.
    closed: usize,
    /// Number of late answers between them, including the earlier slice's: after each the claim is
    /// read twice more.
    late: usize,
}

impl Reads {
    /// Counts a read of the claim.
    fn count(&mut self, line: &Line) {
        if std::mem::take(&mut self.closed) > 0 {
            self.late = 0;
        }
        self.since_slice += 1;
        self.pass_by(line);
    }

    /// Counts any other call.
    fn pass_by(&mut self, line: &Line) {
        self.late += usize::from(is_late(line));
    }

    /// Ends the count at the earlier slice.
    fn end_at_slice(&mut self) {
        self.closed = self.closed.max(std::mem::take(&mut self.since_slice));
    }

    /// Returns true if another pass began between the slices, which is known once the start of the
    /// earlier slice is reached.
    fn are_of_two_passes(&self) -> bool {
        self.closed > 1 + 2 * self.late
    }
}

/// Returns true if the answer to a call came so late that the pass repeated its reads.
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

/// Returns true if a call shows the existence of a bucket where HeadBucket denied it.
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

/// Formats a call for a message: `DeleteBucket photos`.
pub(super) fn described(called: &Called) -> String {
    format!("{} {}", called.operation, called.bucket.as_deref().unwrap_or_default())
}
