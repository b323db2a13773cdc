//! The consumer Secret: the connection, as the tenant reads it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::connection::{CA_KEY, CONNECTION_KEYS, Connection, Gateway};
use super::content::SecretContent;
use super::credential::{Credential, CredentialFacts};
use super::labels::labels;
use super::shape::{Extra, SecretShape, SecretValues, TooLarge};
use crate::identity::{ClaimRef, ClaimUid};
use crate::wire::{self, Role};
use crate::{GROUP, VERSION};

/// What whoever runs the operator says of consumer Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// What labels and annotations of templates may begin with; nothing allows none.
    pub metadata_prefixes: Vec<String>,
    /// Whether the keys of Service Binding stand there as well.
    pub service_binding: bool,
}

/// How a consumer Secret is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaped<'a> {
    /// What whoever runs the operator says.
    pub publishing: &'a Publishing,
    /// What the claim's or access's owner says.
    pub shape: &'a SecretShape,
}

impl Shaped<'_> {
    /// As it is where nobody says anything.
    pub const PLAIN: Shaped<'static> = Shaped {
        publishing: &Publishing { metadata_prefixes: Vec::new(), service_binding: false },
        shape: &SecretShape::EMPTY,
    };

    /// The keys of data that go where they aren't wanted.
    #[must_use]
    pub fn removable(&self) -> &'static [&'static str] {
        if self.shape.omits_defaults { &ConsumerContent::KEYS } else { &ConsumerContent::OPTIONAL_KEYS }
    }

    /// What is wanted beside the keys that every such Secret has.
    ///
    /// # Errors
    /// When it would be too large.
    pub fn extra(&self, values: SecretValues<'_>) -> Result<Extra, TooLarge> {
        let mut extra = self.shape.render(values)?;
        let gateway = values.gateway;
        if let Some(ca) = &gateway.ca {
            extra.data.insert(CA_KEY.to_owned(), ca.as_bytes().to_vec());
        }
        if self.publishing.service_binding {
            extra.data.extend(binding(values).map(|(key, value)| (key.to_owned(), value.into_bytes())));
        }
        Ok(extra)
    }
}

/// The well-known entries of Service Binding.
fn binding(values: SecretValues<'_>) -> impl Iterator<Item = (&'static str, String)> {
    let Gateway { endpoint, ca, .. } = values.gateway;
    let (host, port) = endpoint.host_and_port();
    let uri = match values.buckets {
        [only] => format!("{endpoint}/{only}"),
        _ => endpoint.to_string(),
    };
    let own = [("type", "s3".to_owned()), ("provider", "stowage".to_owned()), ("host", host)];
    let rest = [("port", port.to_string()), ("uri", uri)];
    let certificates = ca.as_ref().map(|ca| ("certificates", ca.to_string()));
    own.into_iter().chain(rest).chain(certificates)
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
    /// How it is to be.
    pub shaped: Shaped<'a>,
}

impl ConsumerContent<'_> {
    /// All keys of its data, those that may be absent included.
    pub const KEYS: [&'static str; 11] = CONNECTION_KEYS;

    /// Longest URL of a gateway, in bytes.
    pub const LONGEST_ENDPOINT: usize = 1024;

    /// Longest list of the names of buckets, in bytes: 64 of them.
    pub const LONGEST_NAMES: usize = 64 * 64;

    /// Keys that may be left over from an earlier spec and are then removed by name.
    pub const OPTIONAL_KEYS: [&'static str; 4] =
        ["BUCKET_NAME", "BUCKET_NAMES", "QUOTA_SOFT_BYTES", "QUOTA_HARD_BYTES"];

    /// The Secret to write.
    ///
    /// # Errors
    /// When what its template asks for is too large.
    pub fn content(&self) -> Result<SecretContent, TooLarge> {
        let Self { facts, credential, gateway, name, shaped } = self;
        let (id, secret, buckets) = (&credential.id, &credential.secret, std::slice::from_ref(&facts.bucket));
        let extra = shaped.extra(SecretValues { id, secret, buckets, gateway })?;
        let mut data = Connection { id, secret, gateway }.data();
        data.text("BUCKET_NAME", facts.bucket.as_str());
        data.flag("QUOTA_SOFT_BYTES", facts.quota_soft.map(|b| b.to_string()).as_deref());
        data.flag("QUOTA_HARD_BYTES", facts.quota_hard.map(|b| b.to_string()).as_deref());
        let generation = facts.generation.to_string();
        let own = [(wire::ACCESS_KEY_ID, credential.id.as_str()), (wire::ROTATION_GENERATION, generation.as_str())];
        let (labels, annotations) =
            labels(Role::ConsumerSecret, &facts.claim, &facts.uid, &facts.backend, &facts.bucket, &own);
        Ok(SecretContent {
            namespace: facts.claim.namespace.clone(),
            name: (*name).to_owned(),
            labels,
            annotations,
            data: if shaped.shape.omits_defaults { BTreeMap::new() } else { data.0 },
            owner: Some(controller_reference(&facts.claim, &facts.uid)),
            extra,
        })
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
