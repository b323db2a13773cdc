//! Outages: faults that befall a host rather than a call, and stand until they are over.

use super::call::{Call, S3Operation};
use super::fault::Fault;
use super::row::{Nobody, Vocabulary};

/// A fault of every S3 call to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage<V = Nobody> {
    /// Host and port, as they stand in the URL.
    pub host: String,
    /// The operation that is out; all of them if absent.
    pub operation: Option<S3Operation>,
    /// What happens to the calls.
    pub fault: Fault<V>,
}

impl<V: Vocabulary> Outage<V> {
    /// Whether a call to `host` meets it, and the fault can happen to it.
    pub(super) fn meets(&self, host: &str, call: &Call) -> bool {
        let Call::S3(s3) = call else { return false };
        host == self.host
            && self.operation.is_none_or(|operation| operation == s3.operation)
            && self.fault.check(call.kind()).is_ok()
    }
}
