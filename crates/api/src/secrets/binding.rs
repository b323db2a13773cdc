//! Anonymous bindings: Secrets by which the operator grants public access to a bucket.

use k8s_openapi::api::core::v1::Secret;

use super::content::SecretContent;
use super::fields::{DamagedSecret, Data, Fields};
use super::labels::labels;
use super::shape::Extra;
use crate::identity::{ClaimRef, ClaimUid};
use crate::names::{BucketName, Endpoint};
use crate::wire::{self, Role};

/// Public access to a bucket, as the gateway reads it from a Secret (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousBinding {
    /// Namespace and name of the claim.
    pub claim: ClaimRef,
    /// UID of the claim.
    pub uid: ClaimUid,
    /// Name of the S3Backend.
    pub backend: String,
    /// Endpoint of the bucket, from its record. The S3Backend may have moved to another one since.
    pub endpoint: Endpoint,
    /// Name of the bucket.
    pub bucket: BucketName,
    /// Requests per second allowed to one source address; 0 means the gateway's default.
    pub per_source_ip_rps: u32,
}

impl AnonymousBinding {
    /// Returns the name of a claim's binding.
    pub fn name(uid: &ClaimUid) -> String {
        format!("{}{uid}", wire::BINDING_PREFIX)
    }

    /// Checks that a Secret is the binding of this claim. Anybody could have created its name (spec
    /// §2).
    ///
    /// # Errors
    /// Returns an error if the Secret does not contain the claim's UID.
    pub fn check(secret: &Secret, uid: &ClaimUid) -> Result<(), DamagedSecret> {
        Fields(secret).parse("claim_uid", |text| (text == uid.as_str()).then_some(()))
    }

    /// Returns the desired content of the Secret.
    pub fn content(&self, operator_namespace: &str) -> SecretContent {
        let mut data = Data::default();
        data.text("bucket_name", self.bucket.as_str());
        data.text("backend", &self.backend);
        data.text(wire::ENDPOINT, self.endpoint.as_str());
        data.text("claim_uid", self.uid.as_str());
        data.text("anonymous_mode", "ReadOnly");
        data.text("anonymous_per_source_ip_rps", &self.per_source_ip_rps.to_string());
        let (labels, annotations) =
            labels(Role::AnonymousBinding, &self.claim, &self.uid, &self.backend, &self.bucket, &[]);
        SecretContent {
            namespace: operator_namespace.to_owned(),
            name: Self::name(&self.uid),
            labels,
            annotations,
            data: data.0,
            owner: None,
            extra: Extra::default(),
        }
    }
}
