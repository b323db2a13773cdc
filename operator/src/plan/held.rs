//! What a bucket holds, as a gateway found it.

use k8s_openapi::jiff::Timestamp;

use crate::api::Measured;

/// What a gateway found in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Bytes of all objects, their versions and the parts of unfinished uploads.
    pub bytes: u64,
    /// Objects, their versions included.
    pub objects: u64,
    /// When the measuring began, by the clock of that gateway, in whole seconds: as a status can
    /// tell.
    pub at: Timestamp,
}

impl Held {
    /// What a scan found.
    pub fn of(measured: &Measured) -> Self {
        let at = Timestamp::from_second(measured.began.as_second()).unwrap_or(measured.began);
        Self { bytes: measured.bytes, objects: measured.objects, at }
    }
}
