//! Stowage's contract as types: kinds, conditions, the format of the Secrets, and validated names.
//! No I/O.
//!
//! Raw objects ([`BucketClaim`], [`S3Backend`], [`BucketAccess`]) are what the API server stores.
//! [`Claim::parse`], [`Backend::parse`] and [`Access::parse`] parse them once. Downstream code
//! reads only the parsed forms.
//!
//! # Guarantees
//!
//! - Every name, endpoint and quantity obeys the rules of the contract (`docs/spec.md`, cited as
//!   "spec" and a section). Each can only be created by its `parse` function, which reports the
//!   rule that is violated.
//! - The content written into a Secret is the content read back. A Secret with invalid content is
//!   reported as damaged and never read in part.
//! - Types that contain a secret key do not print it.
//! - [`crds`] returns the definitions that are installed.
//!
//! # Determinism
//!
//! Nothing here reads a clock, uses randomness or depends on the order of a hash map. The same
//! object produces the same names, Secrets and text in every process.
//!
//! # Limits
//!
//! - `parse` sees a single object. Checks that depend on other objects, such as whether a name is
//!   taken or a namespace is admitted, are the caller's.
//! - There is one version of the API, `v1alpha1`, and no conversion.

#![warn(clippy::too_many_lines)]

#[expect(clippy::duplicated_attributes, reason = "every printer column is a printcolumn(..)")]
mod access;
#[expect(clippy::duplicated_attributes, reason = "every printer column is a printcolumn(..)")]
mod backend;
mod claim;
mod condition;
mod consent;
mod crd;
#[cfg(any(test, feature = "fixtures"))]
mod fixtures;
mod grant;
mod identity;
mod invalid;
pub mod kept;
mod names;
mod obc;
mod packed;
mod parsed;
mod quantity;
mod rotation;
mod schema;
mod secret_template;
mod secrets;
mod sharing;
mod template;
mod usage;
pub mod wire;
mod word;

pub use access::{
    AccessBucketRef, AccessClaimRef, AccessEntry, AccessEntryStatus, AccessSecretRef, BucketAccess, BucketAccessSpec,
    BucketAccessStatus,
};
pub use backend::{
    AddressingStyle, AdminCredentialsSecretRef, AdoptionPolicy, AdoptionProof, AllowedNamespaces, BackendTls,
    CaBundleSecretRef, CorsMethod, CorsRule, LabelRequirement, LabelSelector, S3Backend, S3BackendSpec,
    S3BackendStatus,
};
pub use claim::{
    AnonymousAccess, AnonymousMode, BackendRef, BucketClaim, BucketClaimSpec, BucketClaimStatus, BucketOrigin,
    BucketUsage, ClaimAccesses, ConnectionSecretRef, DeletionPolicy, Phase, PinnedBackend, PurgeProgress, Quota,
    Versioning,
};
pub use condition::{AccessReason, BackendReason, ConditionType, LONGEST_MESSAGE, Reason, merge_conditions, shortened};
pub use consent::{Consent, Prefix, Sharing};
pub use crd::{bucket_access_crd, bucket_claim_crd, crds, s3_backend_crd};
pub use grant::{Access, Entry, EntryOf};
pub use identity::{AccessRef, AccessUid, ClaimRef, ClaimUid, NamespaceUid, ObjectId, ServedBy};
pub use invalid::InvalidSpec;
pub use names::{AccessKeyId, BucketName, Endpoint, InvalidName, RecordName, is_object_name};
pub use obc::{
    BucketClass, OBC_PROVISIONER, OBC_VERSION, Obc, ObjectBucket, ObjectBucketClaim, ObjectBucketClaimRef,
    ObjectBucketClaimSpec, ObjectBucketEndpoint, ObjectBucketSpec, ObjectBucketStatus, controlling_obc, kept_class,
    kept_obc, kept_object_bucket,
};
pub use packed::Packed;
pub use parsed::{Backend, BackendAccess, Claim, Deletion, Desired, former_endpoints, shared_buckets};
pub use quantity::{Bytes, InvalidQuantity, Quantity};
pub use rotation::{Rotation, RotationMode, RotationPolicy};
pub use secret_template::{Binding, SecretTemplate};
pub use secrets::{
    AccessConsumer, AccessCredential, AccessCredentialFacts, AccessRecord, AccessScope, AdminKey, AdminSecretError,
    AnonymousBinding, BucketRecord, ConsumerContent, Credential, CredentialFacts, DamagedSecret, Extra, Gateway, Lack,
    Limits, NotServed, Publishing, Scope, SecretContent, SecretKey, SecretShape, SecretValues, ServedAccess,
    ServedAccessRecord, ServedBinding, ServedCredential, ServedRecord, Shaped, TooLarge, Unlabelled, Written, digest,
};
pub use sharing::{AccessMode, SharedBucket, SharedRequirement, SharedSelector, SharedWith, SharingRule};
pub use template::{InvalidTemplate, NameTemplate};
pub use usage::{Counters, Figures, Measured, NoUsage, Scanning, Snapshot, used};
pub use word::Word;

/// Finalizer that keeps an access until its keys are deleted (spec §8).
pub const ACCESS_FINALIZER: &str = "broker.stowage.io/bucketaccess-protection";

/// API group of ObjectBucketClaims and ObjectBuckets, which other projects define (spec §9).
pub const OBC_GROUP: &str = "objectbucket.io";
/// Finalizer on ObjectBucketClaims and ObjectBuckets, used by every provisioner (spec §9).
pub const OBC_FINALIZER: &str = "objectbucket.io/finalizer";

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// API group of all kinds (spec §1).
pub const GROUP: &str = "broker.stowage.io";
/// API version of all kinds (spec §1).
pub const VERSION: &str = "v1alpha1";
/// Finalizer that keeps a claim until its bucket and credentials are cleaned up (spec §1).
pub const FINALIZER: &str = "broker.stowage.io/bucketclaim-protection";
