//! The contract of Stowage as types: its kinds, their conditions, the wire format of the Secrets,
//! and the names that can't be wrong. No I/O.
//!
//! Raw objects ([`BucketClaim`], [`S3Backend`], [`BucketAccess`]) are what the API server stores.
//! They are parsed once, by [`Claim::parse`], [`Backend::parse`] and [`Access::parse`]; nothing
//! downstream reads the raw ones.
//!
//! # Guarantees
//!
//! - A name, an endpoint or a quantity that is there keeps the rules of the contract
//!   (`docs/spec.md`, cited as "spec" and a section): its `parse` is the only way to one, and says
//!   what is wrong.
//! - What is written into a Secret is read back as it was; a Secret that says something else is
//!   damaged, never half read.
//! - No type that holds a secret key prints it.
//! - [`crds`] are the definitions that are installed.
//!
//! # Determinism
//!
//! Nothing here reads a clock, draws a number or depends on the order of a hash map: the same
//! object gives the same names, the same Secrets and the same text, in every process.
//!
//! # Limits
//!
//! - `parse` knows its one object. What depends on others (is a name taken, is a namespace
//!   admitted) is for who can see them.
//! - One version of the API, `v1alpha1`: there is no conversion.

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

/// The finalizer that keeps an access until its keys are gone (spec §8).
pub const ACCESS_FINALIZER: &str = "broker.stowage.io/bucketaccess-protection";

/// API group of ObjectBucketClaims and ObjectBuckets, which are others' (spec §9).
pub const OBC_GROUP: &str = "objectbucket.io";
/// The finalizer on both, the same for every provisioner (spec §9).
pub const OBC_FINALIZER: &str = "objectbucket.io/finalizer";

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// API group of all kinds (spec §1).
pub const GROUP: &str = "broker.stowage.io";
/// API version of all kinds (spec §1).
pub const VERSION: &str = "v1alpha1";
/// The finalizer that keeps a claim until its bucket and credentials are dealt with (spec §1).
pub const FINALIZER: &str = "broker.stowage.io/bucketclaim-protection";
