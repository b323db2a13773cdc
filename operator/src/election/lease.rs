//! Reads and writes of the Lease in the cluster.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, Patch, PostParams};
use kube::{Api, Error, ResourceExt};
use serde_json::json;

use crate::kubernetes::{self, is_absence_of};

use super::candidate::{Record, Terms};

/// Name of the Lease, in the operator's namespace.
pub(super) const NAME: &str = "stowage-operator";

/// Maximum lease duration that is honored, whatever the Lease says: that of an operator with the
/// longest `--upstream-timeout`.
const LONGEST: Duration = Duration::from_secs(315);

impl Record {
    /// Reads a Lease. If it has no duration, our own is used.
    pub(super) fn read(lease: &Lease, terms: &Terms) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let duration = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            uid: lease.uid().unwrap_or_default(),
            resource_version: lease.resource_version().unwrap_or_default(),
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            duration: duration.map_or(terms.duration(), Duration::from_secs).min(LONGEST),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// The Lease API, on behalf of one candidate.
#[derive(Clone)]
pub(super) struct Leases {
    pub(super) api: Api<Lease>,
    pub(super) id: String,
    pub(super) terms: Terms,
}

impl Leases {
    /// Reads the Lease.
    ///
    /// # Errors
    /// Returns an error if the request fails.
    pub(super) async fn look(&self) -> Result<Option<Record>, Error> {
        match self.api.get(NAME).await {
            Ok(lease) => Ok(Some(Record::read(&lease, &self.terms))),
            Err(error) if is_absence_of(&error, NAME) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates the Lease, at this time of day.
    ///
    /// # Errors
    /// Returns an error if the creation is not confirmed: a Lease may exist already, or the answer
    /// is lost.
    pub(super) async fn create(&self, now: Timestamp) -> Result<Record, Error> {
        let spec = LeaseSpec {
            holder_identity: Some(self.id.clone()),
            lease_duration_seconds: Some(self.seconds()),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        let params = PostParams { field_manager: Some(kubernetes::CONTROLLER.to_owned()), ..PostParams::default() };
        let made = self.api.create(&params, &Lease { metadata, spec: Some(spec) }).await?;
        Ok(Record::read(&made, &self.terms))
    }

    /// Acquires or renews this version of the Lease, at this time of day.
    ///
    /// # Errors
    /// Returns an error if the write is not confirmed: the Lease has changed, or the answer is
    /// lost.
    pub(super) async fn take(&self, record: &Record, now: Timestamp) -> Result<Record, Error> {
        let mut spec = json!({
            "holderIdentity": self.id,
            "leaseDurationSeconds": self.seconds(),
            "renewTime": MicroTime(now),
        });
        if record.holder.as_ref() != Some(&self.id) {
            spec["acquireTime"] = json!(MicroTime(now));
            spec["leaseTransitions"] = json!(record.transitions.saturating_add(1));
        }
        self.write(record, &spec).await
    }

    /// Releases this version of the Lease, so that other candidates need not wait.
    ///
    /// # Errors
    /// Returns an error if the write is not confirmed.
    pub(super) async fn release(&self, record: &Record, now: Timestamp) -> Result<Record, Error> {
        self.write(record, &json!({"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": MicroTime(now)})).await
    }

    async fn write(&self, record: &Record, spec: &serde_json::Value) -> Result<Record, Error> {
        // With uid and resourceVersion a merge patch applies to that version only, or is a
        // conflict.
        let metadata = json!({"uid": record.uid, "resourceVersion": record.resource_version});
        let patch = Patch::Merge(json!({"metadata": metadata, "spec": spec}));
        let written = self.api.patch(NAME, &kubernetes::patch_params(), &patch).await?;
        Ok(Record::read(&written, &self.terms))
    }

    fn seconds(&self) -> i32 {
        i32::try_from(self.terms.duration().as_secs()).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 3.6.elect.longest
    #[test]
    fn a_lease_is_waited_for_no_longer_than_this_program_ever_asks_for() {
        let longest = Terms::for_calls_of(Duration::from_secs(300));
        let read = |seconds: i32| {
            let spec = LeaseSpec { lease_duration_seconds: Some(seconds), ..LeaseSpec::default() };
            Record::read(&Lease { spec: Some(spec), ..Lease::default() }, &Terms::for_calls_of(Duration::ZERO)).duration
        };
        assert_eq!(read(99_999), longest.duration());
        assert_eq!(read(315), longest.duration());
        assert_eq!(read(-1), Duration::from_secs(45));
    }
}
