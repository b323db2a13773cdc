//! The consumer Secret: the connection, as the tenant reads it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::super::backend::AddressingStyle;
use super::super::names::{AccessKeyId, ClaimRef, ClaimUid, Endpoint};
use super::super::wire::{self, Role};
use super::super::{GROUP, VERSION};
use super::{Credential, CredentialFacts, Data, SecretContent, SecretKey, labels};

/// The gateway, as tenants reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its URL.
    pub endpoint: Endpoint,
    /// The region that requests to it are signed for.
    pub region: String,
    /// How it wants a bucket's name in a request's URL.
    pub addressing_style: AddressingStyle,
}

/// The connection that a claim's consumer Secret carries (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerContent<'a> {
    /// What the credential is for.
    pub facts: &'a CredentialFacts,
    /// The credential itself.
    pub credential: &'a Credential,
    /// Where it works.
    pub gateway: &'a Gateway,
    /// Name of the Secret.
    pub name: &'a str,
}

impl ConsumerContent<'_> {
    /// All keys of its data, those that may be absent included.
    pub const KEYS: [&'static str; 11] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "BUCKET_NAME",
        "BUCKET_NAMES",
        "S3_ADDRESSING_STYLE",
        "QUOTA_SOFT_BYTES",
        "QUOTA_HARD_BYTES",
    ];

    /// Longest URL of a gateway, in bytes.
    pub const LONGEST_ENDPOINT: usize = 1024;

    /// Longest list of the names of buckets, in bytes: 64 of them.
    pub const LONGEST_NAMES: usize = 64 * 64;

    /// Keys that may be left over from an earlier spec and are then removed by name.
    pub const OPTIONAL_KEYS: [&'static str; 2] = ["QUOTA_SOFT_BYTES", "QUOTA_HARD_BYTES"];

    /// The Secret to write.
    pub fn content(&self) -> SecretContent {
        let Self { facts, credential, gateway, name } = self;
        let mut data = Connection { id: &credential.id, secret: &credential.secret, gateway }.data();
        data.text("BUCKET_NAME", facts.bucket.as_str());
        data.flag("QUOTA_SOFT_BYTES", facts.quota_soft.map(|b| b.to_string()).as_deref());
        data.flag("QUOTA_HARD_BYTES", facts.quota_hard.map(|b| b.to_string()).as_deref());
        let generation = facts.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, credential.id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) =
            labels(Role::ConsumerSecret, &facts.claim, &facts.uid, &facts.backend, &facts.bucket, &own);
        SecretContent {
            namespace: facts.claim.namespace.clone(),
            name: (*name).to_owned(),
            labels,
            annotations,
            data: data.0,
            owner: Some(controller_reference(&facts.claim, &facts.uid)),
        }
    }
}

/// What claims' and accesses' consumer Secrets have in common.
pub(super) struct Connection<'a> {
    pub(super) id: &'a AccessKeyId,
    pub(super) secret: &'a SecretKey,
    pub(super) gateway: &'a Gateway,
}

impl Connection<'_> {
    pub(super) fn data(&self) -> Data {
        let Self { id, secret, gateway } = self;
        let mut data = Data::default();
        data.text("AWS_ACCESS_KEY_ID", id.as_str());
        data.text("AWS_SECRET_ACCESS_KEY", secret.expose());
        data.text("AWS_REGION", &gateway.region);
        data.text("AWS_DEFAULT_REGION", &gateway.region);
        data.text("AWS_ENDPOINT_URL", gateway.endpoint.as_str());
        data.text("AWS_ENDPOINT_URL_S3", gateway.endpoint.as_str());
        data.text("S3_ADDRESSING_STYLE", gateway.addressing_style.as_str());
        data
    }
}

/// The controller owner reference that makes a consumer Secret this claim's.
fn controller_reference(claim: &ClaimRef, uid: &ClaimUid) -> OwnerReference {
    controller((GROUP, VERSION, "BucketClaim"), &claim.name, uid.as_str())
}

/// The controller owner reference that makes a consumer Secret the object's of this UID.
pub(super) fn controller((group, version, kind): (&str, &str, &str), name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
