//! Parsed objects in the contract's terms (spec §1, §2), read from JSON without the operator's own
//! types.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use stowage_operator::api::FINALIZER;
use stowage_operator::api::wire::{self, Role};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::history::facts::label;

/// Default overlap of a rotation in seconds (spec §1).
const DEFAULT_OVERLAP: i64 = 300;

/// A version of a claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) uid: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) object: &'a Value,
}

/// The fate of a deleted claim's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Retain,
    Delete,
    Force,
}

impl<'a> Claim<'a> {
    pub(super) fn read(object: &'a Value) -> Option<Self> {
        let metadata = object.get("metadata")?;
        let text = |field: &str| metadata.get(field)?.as_str();
        Some(Self { uid: text("uid")?, namespace: text("namespace")?, name: text("name")?, object })
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.object["metadata"]["deletionTimestamp"].is_string()
    }

    pub(super) fn has_finalizer(&self) -> bool {
        let finalizers = self.object["metadata"]["finalizers"].as_array();
        finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == FINALIZER))
    }

    pub(super) fn is_paused(&self) -> bool {
        self.object["metadata"]["annotations"][wire::PAUSED] == "true"
    }

    pub(super) fn policy(&self) -> Policy {
        let spec = &self.object["spec"];
        match (spec["deletionPolicy"].as_str(), spec["forceDelete"].as_bool()) {
            (Some("Delete"), Some(true)) => Policy::Force,
            (Some("Delete"), _) => Policy::Delete,
            _ => Policy::Retain,
        }
    }

    /// Returns the hard quota in bytes, if it is written as a plain number.
    pub(super) fn hard_quota(&self) -> Option<u64> {
        let hard = &self.object["spec"]["quota"]["hard"];
        hard.as_u64().or_else(|| hard.as_str()?.parse().ok())
    }

    /// Returns the value of the rotate annotation.
    pub(super) fn rotate_request(&self) -> Option<&'a str> {
        self.object["metadata"]["annotations"][wire::ROTATE].as_str()
    }

    /// Returns the value of the annotation that revokes every key.
    pub(super) fn revoke_request(&self) -> Option<&'a str> {
        self.object["metadata"]["annotations"][wire::REVOKE].as_str()
    }

    /// Returns the bucket that the status names.
    pub(super) fn told_bucket(&self) -> Option<&'a str> {
        self.object["status"]["bucketName"].as_str()
    }

    /// Returns the id of the key that the status names.
    pub(super) fn told_key(&self) -> Option<&'a str> {
        self.object["status"]["accessKeyId"].as_str()
    }

    /// Returns true if the status has a generation, even if that key is gone.
    pub(super) fn tells_generation(&self) -> bool {
        self.object["status"]["rotationGeneration"].is_u64()
    }

    pub(super) fn rotates_by_time(&self) -> bool {
        self.object["spec"]["rotationPolicy"]["mode"] == "TimeBased"
    }

    /// Returns the name of the S3Backend in the spec.
    pub(super) fn backend(&self) -> &'a str {
        self.object["spec"]["backendRef"]["name"].as_str().unwrap_or_default()
    }

    /// Returns the seconds that an old key works on after a rotation.
    pub(super) fn overlap(&self) -> i64 {
        self.object["spec"]["rotationPolicy"]["overlapSeconds"].as_i64().unwrap_or(DEFAULT_OVERLAP)
    }

    /// Returns the name of the consumer Secret that the spec requests.
    pub(super) fn secret_name(&self) -> Cow<'a, str> {
        let named = self.object["spec"]["writeConnectionSecretToRef"]["name"].as_str();
        named.map_or_else(|| Cow::Owned(format!("{}-s3", self.name)), Cow::Borrowed)
    }

    /// Returns true if the spec requests public access.
    pub(super) fn wants_public_access(&self) -> bool {
        self.public_mode().is_some()
    }

    /// Returns the public access that the claim must have once it is Ready: to the bucket that its
    /// status names.
    pub(super) fn public_access(&self) -> Option<Access> {
        let rate = self.object["spec"]["anonymousAccess"]["perSourceIPRPS"].as_u64();
        Some(Access {
            bucket: self.told_bucket().unwrap_or_default().to_owned(),
            backend: self.backend().to_owned(),
            host: self.object["status"]["backend"]["endpoint"].as_str().map(host_of),
            mode: self.public_mode()?.to_owned(),
            rate: rate.unwrap_or_default(),
        })
    }

    fn public_mode(&self) -> Option<&'a str> {
        self.object["spec"]["anonymousAccess"]["mode"].as_str().filter(|mode| *mode != "None")
    }

    /// Returns a condition of the status.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a Value> {
        let conditions = self.object["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == *kind)
    }

    /// Returns true if the status is Ready for the current generation of the spec.
    pub(super) fn is_ready(&self) -> bool {
        let generation = &self.object["metadata"]["generation"];
        let ready = self.condition("Ready");
        ready.is_some_and(|ready| ready["status"] == "True" && ready["observedGeneration"] == *generation)
    }

    /// Returns the reason of `Ready`.
    pub(super) fn reason(&self) -> Option<&'a str> {
        self.condition("Ready")?["reason"].as_str()
    }

    /// Returns `namespace/name`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// A Secret, by its role.
#[derive(Clone, Debug)]
pub(super) enum Secret<'a> {
    Record(Record),
    Key(Key<'a>),
    Binding(Binding),
    Consumer(Consumer<'a>),
    /// Any Secret of an access.
    OfAccess,
    /// A Secret that isn't ours.
    Other,
}

/// A bucket record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) uid: String,
    /// Host and port of the store.
    pub(super) host: String,
    pub(super) bucket: String,
    pub(super) backend: String,
    pub(super) absence: bool,
    pub(super) adopted: bool,
    pub(super) settled: bool,
    /// The receipt of the last revoke request that was handled.
    pub(super) handled_revoke: Option<String>,
    /// Keys up to this generation are revoked.
    pub(super) revoked_through: u64,
    /// True if no list by its labels shows it.
    pub(super) hidden: bool,
}

/// A virtual credential.
#[derive(Clone, Debug)]
pub(super) struct Key<'a> {
    pub(super) uid: String,
    pub(super) id: String,
    /// The generation in its label, if it has one.
    pub(super) generation: Option<u64>,
    /// The secret key as it is stored: compared, never shown.
    pub(super) secret: &'a str,
    pub(super) bucket: String,
    pub(super) backend: String,
    /// Host and port of the store that the key names, if any.
    pub(super) host: Option<String>,
    /// True if the key's scope is its own bucket only.
    pub(super) scoped: bool,
    pub(super) end: End,
    /// Creation time of the key's Secret.
    pub(super) made: Option<Timestamp>,
    /// True if the gateway accepts it, regardless of its expiry.
    pub(super) counts: bool,
    /// True if the key is being deleted, and a finalizer keeps it: the gateway refuses it.
    pub(super) deleted: bool,
    /// True if no list by its labels shows it.
    pub(super) hidden: bool,
}

/// The expiry of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// No expiry.
    Open,
    /// The key is refused from this time on.
    At(Timestamp),
    /// The expiry can't be parsed: the gateway refuses the key.
    Damaged,
}

impl Key<'_> {
    /// Returns true if the gateway accepts the key, once it has seen this version of the Secret.
    pub(super) fn works(&self, now: Timestamp) -> bool {
        self.counts && !self.is_over(now)
    }

    /// Returns true if the key has expired.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        matches!(self.end, End::At(end) if end <= now)
    }
}

/// An anonymous binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) uid: String,
    /// The access that it grants; `None` if a part of that is missing or can't be parsed.
    pub(super) access: Option<Access>,
    /// True if the gateway finds it.
    pub(super) counts: bool,
    /// True if the binding is being deleted, and a finalizer keeps it.
    pub(super) kept: bool,
}

/// Public access to a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) bucket: String,
    pub(super) backend: String,
    /// Host and port of the store that the access names, if any.
    pub(super) host: Option<String>,
    pub(super) mode: String,
    /// Requests per second of one source address.
    pub(super) rate: u64,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, backend, host, mode, rate } = self;
        write!(f, "bucket {bucket} at {backend}")?;
        host.as_ref().map_or(Ok(()), |host| write!(f, " ({host})"))?;
        write!(f, ", {mode}, {rate} a second")
    }
}

/// A consumer Secret, as the tenant reads it.
#[derive(Clone, Debug)]
pub(super) struct Consumer<'a> {
    /// UID of the claim that controls it, if one does.
    pub(super) owner: Option<&'a str>,
    pub(super) id: String,
    /// The secret key as it is stored: compared, never shown.
    pub(super) secret: &'a str,
    pub(super) bucket: String,
}

impl<'a> Secret<'a> {
    pub(super) fn read(namespace: &str, name: &str, secret: &'a Value) -> Self {
        let role = label(secret, wire::ROLE);
        if namespace != OPERATOR_NAMESPACE {
            let owners = secret["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            if owners.into_iter().any(|owner| owner["kind"] == "BucketAccess" && owner["controller"] == true) {
                return Self::OfAccess;
            }
            let owner = controller(secret);
            let ours = owner.is_some() || role == Some(Role::ConsumerSecret.as_str());
            return if ours { Self::Consumer(Consumer::read(secret, owner)) } else { Self::Other };
        }
        // Its labels may have been removed: the name still shows its role.
        match name.get(..3) {
            Some("br-") => Record::read(secret).map_or(Self::Other, Self::Record),
            Some("ar-" | "va-") => Self::OfAccess,
            Some("vc-") => Key::read(name, secret, role).map_or(Self::Other, Self::Key),
            _ if role == Some(Role::AnonymousBinding.as_str()) || name.starts_with("ab-") => {
                Binding::read(name, secret, role).map_or(Self::Other, Self::Binding)
            }
            _ => Self::Other,
        }
    }

    /// Returns the UID of the claim that it belongs to.
    pub(super) fn uid(&self) -> Option<&str> {
        match self {
            Self::Record(record) => Some(&record.uid),
            Self::Key(key) => Some(&key.uid),
            Self::Binding(binding) => Some(&binding.uid),
            Self::Consumer(consumer) => consumer.owner,
            Self::OfAccess | Self::Other => None,
        }
    }

    /// Returns true for a record or a key that no list by its labels shows.
    pub(super) fn is_hidden(&self) -> bool {
        match self {
            Self::Record(record) => record.hidden,
            Self::Key(key) => key.hidden,
            Self::Binding(_) | Self::Consumer(_) | Self::OfAccess | Self::Other => false,
        }
    }
}

impl Record {
    fn read(secret: &Value) -> Option<Self> {
        let is = |field: &str, value: &str| text(secret, field).as_deref() == Some(value);
        Some(Self {
            uid: text(secret, "claim_uid")?,
            host: host(secret)?,
            bucket: text(secret, "bucket_name")?,
            backend: text(secret, "backend").unwrap_or_default(),
            absence: is("absence", "true"),
            adopted: is("origin", "Adopted"),
            settled: is("settled", "true"),
            handled_revoke: text(secret, "handled-revoke-request"),
            revoked_through: text(secret, "revoked-through").and_then(|text| text.parse().ok()).unwrap_or(0),
            hidden: label(secret, wire::CLAIM_UID).is_none(),
        })
    }
}

impl<'a> Key<'a> {
    /// Parses a key; `None` without a claim's UID.
    fn read(name: &str, secret: &'a Value, role: Option<&str>) -> Option<Self> {
        let uid = text(secret, "claim_uid")?;
        let field = |name: &str| text(secret, name).unwrap_or_default();
        let (id, bucket, backend) = (field("access_key_id"), field("bucket_name"), field("backend"));
        let key = secret["data"]["secret_access_key"].as_str().unwrap_or_default();
        let scopes: Option<Value> = serde_json::from_str(&field("bucket_scopes")).ok();
        let scoped = scopes.as_ref().and_then(Value::as_array).is_some_and(
            |all| matches!(all.as_slice(), [only] if only["bucket"] == *bucket && only["backend"] == *backend),
        );
        let end = match secret["metadata"]["annotations"].get(wire::EXPIRES_AT) {
            None => End::Open,
            Some(stamp) => stamp.as_str().and_then(|text| text.parse().ok()).map_or(End::Damaged, End::At),
        };
        let named = name.strip_prefix("vc-").is_some_and(|rest| !id.is_empty() && rest == id.to_lowercase());
        let role_fits = role == Some(Role::VirtualCredential.as_str());
        let counts = named && role_fits && !key.is_empty() && scopes.is_some() && end != End::Damaged;
        let deleted = secret["metadata"]["deletionTimestamp"].is_string();
        let hidden = label(secret, wire::CLAIM_UID).is_none();
        let made = secret["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse().ok());
        let generation = label(secret, wire::ROTATION_GENERATION).and_then(|text| text.parse().ok());
        let host = host(secret);
        Some(Self {
            uid,
            id,
            generation,
            secret: key,
            bucket,
            backend,
            host,
            scoped,
            end,
            made,
            counts,
            deleted,
            hidden,
        })
    }
}

impl Binding {
    /// Parses a binding; `None` without a claim's UID.
    fn read(name: &str, secret: &Value, role: Option<&str>) -> Option<Self> {
        let uid = text(secret, "claim_uid")?;
        let named = name.strip_prefix("ab-") == Some(&*uid);
        let counts = named && role == Some(Role::AnonymousBinding.as_str());
        let kept = !secret["metadata"]["deletionTimestamp"].is_null();
        Some(Self { uid, access: Access::read(secret), counts, kept })
    }
}

impl Access {
    fn read(secret: &Value) -> Option<Self> {
        Some(Self {
            bucket: text(secret, "bucket_name")?,
            backend: text(secret, "backend")?,
            host: host(secret),
            mode: text(secret, "anonymous_mode")?,
            rate: text(secret, "anonymous_per_source_ip_rps")?.parse().ok()?,
        })
    }
}

impl<'a> Consumer<'a> {
    fn read(secret: &'a Value, owner: Option<&'a str>) -> Self {
        Self {
            owner,
            id: text(secret, "AWS_ACCESS_KEY_ID").unwrap_or_default(),
            secret: secret["data"]["AWS_SECRET_ACCESS_KEY"].as_str().unwrap_or_default(),
            bucket: text(secret, "BUCKET_NAME").unwrap_or_default(),
        }
    }
}

/// Returns host and port of the store that a Secret names.
fn host(secret: &Value) -> Option<String> {
    text(secret, wire::ENDPOINT).map(|endpoint| host_of(&endpoint))
}

/// Returns host and port of an endpoint.
pub(super) fn host_of(endpoint: &str) -> String {
    endpoint.split_once("://").map_or(endpoint, |(_, host)| host).to_owned()
}

/// Returns the UID of the claim that controls an object.
pub(super) fn controller(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true && owner["kind"] == "BucketClaim")?;
    owner["uid"].as_str()
}

/// Returns a data field of a Secret, decoded; `None` if it is missing, empty or not UTF-8.
pub(super) fn text(secret: &Value, field: &str) -> Option<String> {
    let encoded = secret["data"].get(field)?.as_str().filter(|encoded| !encoded.is_empty())?;
    String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()
}
