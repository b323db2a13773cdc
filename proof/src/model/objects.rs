//! Numbered objects of the abstract world that have occurred so far, each with its content and with
//! the real object that the planner is shown.
//!
//! The resourceVersion contains the number of the object, so it identifies the content. The planner
//! uses a resourceVersion only to see if an object is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use stowage_operator::api::wire::{self, Role};
use stowage_operator::api::{AccessKeyId, BucketClaimStatus, BucketName, BucketRecord, Claim};
use stowage_operator::plan::orphans::{Kind as _, OfClaim};
use stowage_operator::plan::{BackendSeen, SecretPatch, Setting, Stored};

use super::access::OfAccess;
use super::facts::{BackendFacts, ClaimFacts, GENERATIONS, Uid};
use super::shelf::Known;
use super::shown;

/// Kind of a Secret, derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Record of a bucket's holder.
    Record,
    /// Key of a claim.
    Credential,
    /// Anonymous binding for public access.
    Binding,
    /// Record of the access.
    AccessRecord,
    /// Key of the access.
    AccessKey,
    /// Consumer Secret in the namespace of the claim or of the access.
    Consumer,
}

/// Content of a Secret, as far as the world and the oracles need it.
#[derive(Clone, Debug)]
pub(super) struct SecretFacts {
    pub(super) stored: Stored,
    /// Number of this Secret version.
    pub(super) number: u32,
    /// Number of the Secret's name.
    pub(super) name: u32,
    pub(super) kind: Kind,
    /// Claim that the data name, or the controller if they name none. Caches index by it.
    pub(super) claim: Option<Uid>,
    /// Claim that the label names. Lists select by it.
    pub(super) labelled: Option<Uid>,
    /// Claim that the controller reference names.
    pub(super) controller: Option<Uid>,
    /// Claim to which a sweep attributes the Secret.
    pub(super) swept: Option<Uid>,
    /// Content as a Secret of the access, if it is one.
    pub(super) access: Option<OfAccess>,
    /// Bucket record in the Secret, if it can be parsed.
    pub(super) record: Option<BucketRecord>,
    /// Generation of the key that it contains or publishes.
    pub(super) generation: u64,
    /// Name of its bucket.
    pub(super) bucket: Option<BucketName>,
    /// Name of its backend.
    pub(super) backend: Option<String>,
    /// The secret key in it.
    pub(super) key: Option<String>,
    /// Expiry of the key.
    pub(super) expires: Option<u32>,
    /// Time of creation.
    pub(super) made: u32,
    /// Number of writes so far.
    pub(super) version: u16,
}

struct ClaimEntry {
    facts: ClaimFacts,
    claim: Claim,
    /// Names of the Secrets to which the claim publishes, or published.
    publishes_to: [Option<u32>; 2],
}

/// Every object that has occurred so far.
pub(super) struct Objects {
    pub(super) setting: Arc<Setting>,
    names: Known<String, (String, String)>,
    statuses: Known<String, BucketClaimStatus>,
    claims: Known<ClaimFacts, ClaimEntry>,
    secrets: Known<(String, u16), SecretFacts>,
    tags: Known<BTreeMap<String, String>, TagFacts>,
    backends: Known<BackendFacts, BackendSeen>,
}

/// Content of a bucket's tags.
pub(super) struct TagFacts {
    pub(super) tags: BTreeMap<String, String>,
    /// Claim UID in the tags.
    pub(super) uid: Option<Uid>,
}

/// Number of the empty set of tags.
pub(super) const UNTAGGED: u32 = 0;
/// Number of the tags that a stranger writes.
pub(super) const STRANGERS: u32 = 1;

impl Objects {
    pub(super) fn new(purge_slice: u32) -> Self {
        let objects = Self {
            setting: Arc::new(shown::setting(purge_slice)),
            names: Known::new(),
            statuses: Known::new(),
            claims: Known::new(),
            secrets: Known::new(),
            tags: Known::new(),
            backends: Known::new(),
        };
        objects.tags(&BTreeMap::new());
        objects.tags(&BTreeMap::from([("owner".to_owned(), "finance".to_owned())]));
        objects
    }

    /// Returns the number of a Secret's name.
    pub(super) fn name(&self, namespace: &str, name: &str) -> u32 {
        self.names.number(format!("{namespace}/{name}"), |_| (namespace.to_owned(), name.to_owned()))
    }

    /// Returns the namespace and name with this number.
    pub(super) fn named(&self, number: u32) -> (&str, &str) {
        let (namespace, name) = self.names.get(number);
        (namespace, name)
    }

    /// Returns the number of a status.
    pub(super) fn status(&self, status: &BucketClaimStatus) -> u32 {
        let key = serde_json::to_string(status).unwrap_or_else(|_| unreachable!("a status is plain data"));
        self.statuses.number(key, |_| status.clone())
    }

    /// Returns the status with this number.
    pub(super) fn status_of(&self, number: u32) -> &BucketClaimStatus {
        self.statuses.get(number)
    }

    /// Returns the number of a claim version.
    pub(super) fn claim(&self, facts: &ClaimFacts) -> u32 {
        self.claims.number(facts.clone(), |number| {
            let claim = shown::claim(facts, number, self.status_of(facts.status));
            let name = |name: &String| self.name(&claim.at.namespace, name);
            let publishes_to = [Some(name(&claim.consumer_secret)), claim.status.bound_secret_name.as_ref().map(name)];
            ClaimEntry { facts: facts.clone(), claim, publishes_to }
        })
    }

    /// Returns the names of the Secrets to which a claim publishes, or published.
    pub(super) fn publishes_to(&self, number: u32) -> &[Option<u32>] {
        &self.claims.get(number).publishes_to
    }

    /// Returns the fields of a claim.
    pub(super) fn claim_facts(&self, number: u32) -> &ClaimFacts {
        &self.claims.get(number).facts
    }

    /// Returns a claim as the planner sees it.
    pub(super) fn claim_of(&self, number: u32) -> &Claim {
        &self.claims.get(number).claim
    }

    /// Returns the number of a Secret in a version. `secret` includes its UID.
    pub(super) fn secret(&self, secret: &Secret, version: u16) -> u32 {
        let key = serde_json::to_string(secret).unwrap_or_else(|_| unreachable!("a Secret is plain data"));
        self.secrets.number((key, version), |number| self.secret_facts(secret, version, number))
    }

    /// Returns the content of a Secret.
    pub(super) fn secret_of(&self, number: u32) -> &SecretFacts {
        self.secrets.get(number)
    }

    /// Returns the Secret after a patch; `None` if the patch cannot be applied.
    pub(super) fn patched(&self, secret: u32, patch: &SecretPatch) -> Option<u32> {
        let facts = self.secret_of(secret);
        let after = patched(&facts.stored.0, &patch.json())?;
        Some(self.secret(&after, facts.version + 1))
    }

    /// Returns a Secret as the planner sees it.
    pub(super) fn stored(&self, number: u32) -> Stored {
        self.secret_of(number).stored.clone()
    }

    /// Returns the number of a set of tags.
    pub(super) fn tags(&self, tags: &BTreeMap<String, String>) -> u32 {
        let uid = tags.get(wire::TAG_CLAIM_UID).and_then(|text| Uid::parse(text));
        self.tags.number(tags.clone(), |_| TagFacts { tags: tags.clone(), uid })
    }

    /// Returns the tags with this number.
    pub(super) fn tags_of(&self, number: u32) -> &TagFacts {
        self.tags.get(number)
    }

    /// Returns a backend as the planner sees it.
    pub(super) fn backend(&self, facts: BackendFacts) -> &BackendSeen {
        self.backends.get(self.backends.number(facts, |number| shown::backend(facts, number)))
    }

    fn secret_facts(&self, secret: &Secret, version: u16, number: u32) -> SecretFacts {
        let mut secret = secret.clone();
        secret.metadata.resource_version = Some(number.to_string());
        let stored = Stored(Arc::new(secret));
        let metadata = &stored.0.metadata;
        let text = |key: &str| stored.text(key).map(str::to_owned);
        let controller = Uid::all().find(|uid| stored.is_controlled_by(&uid.claim_uid()));
        let says = stored.text("claim_uid").and_then(Uid::parse);
        let kind = match Role::of_internal(stored.name()) {
            Some(Role::BucketRecord) => Kind::Record,
            Some(Role::VirtualCredential) => Kind::Credential,
            Some(Role::AnonymousBinding) => Kind::Binding,
            Some(Role::AccessRecord) => Kind::AccessRecord,
            Some(Role::AccessCredential) => Kind::AccessKey,
            Some(Role::ConsumerSecret) | None => Kind::Consumer,
        };
        let whose = says.or(controller);
        let id = text("access_key_id").or_else(|| text("AWS_ACCESS_KEY_ID"));
        let generation = |uid: Uid| {
            let is = |generation: &u64| {
                let derived = AccessKeyId::of(&uid.claim_uid(), *generation);
                derived.secret_name() == stored.name() || id.as_deref() == Some(derived.as_str())
            };
            (1..=GENERATIONS).find(is)
        };
        let expires = metadata.annotations.as_ref().and_then(|all| all.get(wire::EXPIRES_AT));
        SecretFacts {
            number,
            name: self.name(metadata.namespace.as_deref().unwrap_or_default(), stored.name()),
            kind,
            claim: whose,
            labelled: stored.label(wire::CLAIM_UID).and_then(Uid::parse),
            controller,
            swept: OfClaim::owner(&stored).and_then(|uid| Uid::parse(uid.as_str())),
            access: OfAccess::read(&stored),
            record: BucketRecord::read(&stored.0).ok(),
            generation: Uid::all().find_map(generation).unwrap_or(0),
            bucket: text("bucket_name").or_else(|| text("BUCKET_NAME")).and_then(|name| BucketName::parse(&name).ok()),
            backend: text("backend").or_else(|| stored.label(wire::BACKEND).map(str::to_owned)),
            key: text("secret_access_key").or_else(|| text("AWS_SECRET_ACCESS_KEY")),
            expires: expires.and_then(|text| text.parse().ok()).map(seconds),
            made: metadata.creation_timestamp.as_ref().map_or(0, |time| seconds(time.0)),
            version,
            stored,
        }
    }
}

/// Applies a JSON patch to a Secret like the API server does.
fn patched(secret: &Secret, patch: &Value) -> Option<Secret> {
    let mut raw = serde_json::to_value(secret).ok()?;
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).ok()?;
    json_patch::patch(&mut raw, &patch).ok()?;
    let mut secret: Secret = serde_json::from_value(raw).ok()?;
    secret.metadata.resource_version = None;
    Some(secret)
}

/// Sets UID and creation time of a Secret that is created as this version of its name.
pub(super) fn stored_first(mut secret: Secret, version: u16, now: u32) -> Secret {
    secret.metadata.uid = Some(format!("s-{version}"));
    secret.metadata.creation_timestamp = Some(Time(timestamp(now)));
    secret
}

/// Converts a time of the model.
pub(super) fn timestamp(seconds: u32) -> Timestamp {
    Timestamp::from_second(i64::from(seconds)).unwrap_or(Timestamp::MAX)
}

fn seconds(time: Timestamp) -> u32 {
    u32::try_from(time.as_second()).unwrap_or(u32::MAX)
}
