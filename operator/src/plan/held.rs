//! The [`Held`] type.

use k8s_openapi::jiff::Timestamp;

use crate::api::Measured;

/// Amount of data in a bucket, as measured by a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes of all objects, their versions and the parts of unfinished uploads.
    pub bytes: u64,
    /// Objects, their versions included.
    pub objects: u64,
    /// Start of the measurement by the clock of that gateway, in whole seconds, which is the
    /// precision of a status field.
    pub at: Timestamp,
}

impl Held {
    /// Creates the amount from the result of a scan.
    pub fn of(measured: &Measured) -> Self {
        let at = Timestamp::from_second(measured.began.as_second()).unwrap_or(measured.began);
        Self { bytes: measured.bytes, objects: measured.objects, at }
    }
}
