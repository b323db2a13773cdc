//! The consumer Secret: the connection for a tenant.

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

/// Options for consumer Secrets, set by the administrator who runs the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Publishing {
    /// Prefixes allowed for labels and annotations in templates. If empty, none are allowed.
    pub metadata_prefixes: Vec<String>,
    /// True if the data keys of Service Binding are written too.
    pub service_binding: bool,
}

/// Template and operator options that shape a consumer Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shaped<'a> {
    /// Options set by the administrator.
    pub publishing: &'a Publishing,
    /// Template set by the owner of the claim or access.
    pub shape: &'a SecretShape,
}

impl Shaped<'_> {
    /// Neither template nor options.
    pub const PLAIN: Shaped<'static> = Shaped {
        publishing: &Publishing { metadata_prefixes: Vec::new(), service_binding: false },
        shape: &SecretShape::EMPTY,
    };

    /// Returns the data keys to remove if they are not part of the desired content.
    #[must_use]
    pub fn removable(&self) -> &'static [&'static str] {
        if self.shape.omits_defaults { &ConsumerContent::KEYS } else { &ConsumerContent::OPTIONAL_KEYS }
    }

    /// Returns the desired content besides the default keys.
    ///
    /// # Errors
    /// Returns an error if the content is too large.
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

/// Returns the well-known entries of Service Binding.
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

/// Content of a claim's consumer Secret (spec §2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerContent<'a> {
    /// Derived facts about the credential.
    pub facts: &'a CredentialFacts,
    /// The credential itself.
    pub credential: &'a Credential,
    /// Gateway at which the credential is valid.
    pub gateway: &'a Gateway,
    /// Name of the Secret.
    pub name: &'a str,
    /// Template and operator options that shape the Secret.
    pub shaped: Shaped<'a>,
}

impl ConsumerContent<'_> {
    /// Every data key, including optional ones.
    pub const KEYS: [&'static str; 11] = CONNECTION_KEYS;

    /// Maximum length of the gateway's URL, in bytes.
    pub const LONGEST_ENDPOINT: usize = 1024;

    /// Maximum length of a list of bucket names, in bytes: 64 names.
    pub const LONGEST_NAMES: usize = 64 * 64;

    /// Data keys that an earlier spec may have left behind, which are removed by name.
    pub const OPTIONAL_KEYS: [&'static str; 4] =
        ["BUCKET_NAME", "BUCKET_NAMES", "QUOTA_SOFT_BYTES", "QUOTA_HARD_BYTES"];

    /// Returns the desired content of the Secret.
    ///
    /// # Errors
    /// Returns an error if the content rendered from the template is too large.
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

/// Returns the controller owner reference by which a consumer Secret belongs to this claim.
fn controller_reference(claim: &ClaimRef, uid: &ClaimUid) -> OwnerReference {
    controller((GROUP, VERSION, "BucketClaim"), &claim.name, uid.as_str())
}

/// Returns a controller owner reference to the object with this kind, name and UID.
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
