//! Outages: faults of a host instead of a single call, which last until they are ended.

use super::call::{Call, S3Operation};
use super::fault::Fault;
use super::row::{Nobody, Vocabulary};

/// A fault of every S3 call to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage<V = Nobody> {
    /// Host and port as in the URL.
    pub host: String,
    /// The operation that is affected; `None` for all.
    pub operation: Option<S3Operation>,
    /// The fault that the calls meet.
    pub fault: Fault<V>,
}

impl<V: Vocabulary> Outage<V> {
    /// Returns true if a call to `host` meets it and the fault can apply to the call.
    pub(super) fn meets(&self, host: &str, call: &Call) -> bool {
        let Call::S3(s3) = call else { return false };
        host == self.host
            && self.operation.is_none_or(|operation| operation == s3.operation)
            && self.fault.check(call.kind()).is_ok()
    }
}
