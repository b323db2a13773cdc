//! What is granted: modes, prefixes and consent as values that can't be wrong, and an access as
//! downstream code relies on it (spec §8).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};

use super::access::{AccessEntry, AccessMode, BucketAccess, BucketAccessStatus, SharedSelector, SharingRule};
use super::names::{BucketName, ClaimRef, InvalidName, ServedBy, is_object_name};
use super::packed::Packed;
use super::parsed::{InvalidSpec, ObjectId, Rotation};
use super::secrets::SecretShape;
use super::{ACCESS_FINALIZER, kept, wire};

/// What keys of objects begin with: segments that each end with a slash, none of them empty, `.` or
/// `..`; no control characters of ASCII; 512 bytes at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// Longest prefix, in bytes.
    pub const LONGEST: usize = 512;

    /// Checks `text`.
    ///
    /// # Errors
    /// When it breaks one of the rules.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let invalid = |why| Err(InvalidName { what: "prefix", text: text.to_owned(), why });
        let Some(path) = text.strip_suffix('/') else { return invalid("it must end with a slash") };
        if text.len() > Self::LONGEST {
            invalid("it must have 512 bytes at most")
        } else if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            invalid("none of its segments may be empty, . or ..")
        } else if text.bytes().any(|byte| byte.is_ascii_control()) {
            invalid("it must have no control character of ASCII")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether what a request names, decoded, is below it: byte by byte, so that nothing that looks
    /// alike is.
    pub fn covers(&self, key: &[u8]) -> bool {
        key.starts_with(self.0.as_bytes())
    }
}

impl TryFrom<String> for Prefix {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Consent to accesses: the most that they may do, and with which objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consent {
    /// The most that may be done.
    pub max_mode: AccessMode,
    /// What the keys of objects begin with; empty = all objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Prefix>,
}

impl Consent {
    /// Consent to everything, which a claim's own namespace has.
    pub const fn full() -> Self {
        Self { max_mode: AccessMode::ReadWrite, prefixes: Vec::new() }
    }

    /// Whether every object below the prefix is consented to; without one, all objects.
    pub fn admits(&self, prefix: Option<&Prefix>) -> bool {
        self.prefixes.is_empty()
            || prefix.is_some_and(|prefix| self.prefixes.iter().any(|it| it.covers(prefix.as_str().as_bytes())))
    }

    /// Whether nothing that this allows is denied by the other.
    pub fn is_within(&self, other: &Self) -> bool {
        let objects = match self.prefixes.as_slice() {
            [] => other.admits(None),
            prefixes => prefixes.iter().all(|prefix| other.admits(Some(prefix))),
        };
        self.max_mode.and(other.max_mode) == Some(self.max_mode) && objects
    }
}

/// UID of an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessUid(String);

impl AccessUid {
    /// Wraps a UID as the API server gave it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AccessUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// UID of a namespace: what tells it from a later one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamespaceUid(String);

impl NamespaceUid {
    /// Wraps a UID as the API server gave it.
    pub fn new(uid: impl Into<String>) -> Self {
        Self(uid.into())
    }

    /// The UID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Namespace and name of an access.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessRef {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for AccessRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An access.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Which object, in which version.
    pub id: ObjectId,
    /// Namespace and name.
    pub at: AccessRef,
    /// UID.
    pub uid: AccessUid,
    /// Generation of the spec.
    pub generation: i64,
    /// When it was made, by the API server's clock.
    pub created: Option<Timestamp>,
    /// Has a deletion timestamp.
    pub deleting: bool,
    /// Every finalizer, in order, as far as they are kept.
    pub finalizers: Vec<String>,
    /// Which operator serves it, if that is noted.
    pub served_by: Option<ServedBy>,
    /// Has annotations at all: a patch adds to them, or all of them.
    pub annotated: bool,
    /// Carries `broker.stowage.io/paused: "true"`.
    pub paused: bool,
    /// What `broker.stowage.io/rotate` asks for, as it is remembered.
    pub rotate_request: Option<String>,
    /// The same of `broker.stowage.io/revoke`.
    pub revoke_request: Option<String>,
    /// Name of the consumer Secret.
    pub consumer_secret: String,
    /// What that Secret has besides; `None` where a cache has a digest of it, and a live read has
    /// all.
    pub shape: Result<Option<SecretShape>, InvalidSpec>,
    /// When credentials are replaced.
    pub rotation: Result<Rotation, InvalidSpec>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The status as it stands.
    pub status: BucketAccessStatus,
}

/// An entry of an access; `scope` says how far it is to open its bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Whose bucket it is about.
    pub of: Result<EntryOf, InvalidSpec>,
    /// What it asks for: mode and prefix.
    pub wants: Result<(AccessMode, Option<Prefix>), InvalidSpec>,
}

/// What an entry names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOf {
    /// The bucket of a claim.
    Claim(ClaimRef),
    /// A bucket that no claim has: the name of an S3Backend, and its own.
    Bucket(String, BucketName),
}

impl Access {
    /// Parses an access. Never fails as a whole: what can't be read closes its entry.
    pub fn parse(raw: &BucketAccess) -> Self {
        let at = AccessRef { namespace: raw.namespace().unwrap_or_default(), name: raw.name_any() };
        Self {
            id: ObjectId::of(raw),
            uid: AccessUid::new(raw.uid().unwrap_or_default()),
            generation: raw.metadata.generation.unwrap_or_default(),
            created: raw.metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            served_by: ServedBy::noted(raw.annotations()),
            annotated: raw.metadata.annotations.is_some(),
            paused: raw.annotations().get(wire::PAUSED).map(String::as_str) == Some("true"),
            rotate_request: kept::receipt(raw.annotations(), wire::ROTATE),
            revoke_request: kept::receipt(raw.annotations(), wire::REVOKE),
            consumer_secret: raw.spec.write_connection_secret_to_ref.name.clone(),
            shape: SecretShape::of(raw.spec.secret_template.as_ref()),
            rotation: Rotation::parse(&raw.spec.rotation_policy),
            entries: Entry::all(&raw.spec.buckets, &at.namespace),
            status: raw.status.clone().unwrap_or_default(),
            at,
        }
    }

    /// Whether our finalizer is on it.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == ACCESS_FINALIZER)
    }

    /// The claims that its entries name.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimRef> {
        self.entries.iter().filter_map(Entry::claim)
    }
}

impl Entry {
    /// Parses the entries of an access in this namespace.
    pub fn all(raw: &Packed<Vec<AccessEntry>>, namespace: &str) -> Vec<Self> {
        raw.get().into_iter().flatten().map(|entry| Self::parse(&entry, namespace)).collect()
    }

    /// The claim that it names.
    pub fn claim(&self) -> Option<&ClaimRef> {
        match &self.of {
            Ok(EntryOf::Claim(claim)) => Some(claim),
            Ok(EntryOf::Bucket(..)) | Err(_) => None,
        }
    }

    fn parse(raw: &AccessEntry, namespace: &str) -> Self {
        Self { of: Self::of(raw, namespace), wants: Self::wants(raw) }
    }

    fn of(raw: &AccessEntry, namespace: &str) -> Result<EntryOf, InvalidSpec> {
        match (&raw.claim_ref, &raw.bucket_ref) {
            (Some(claim), None) => {
                let namespace = claim.namespace.clone().unwrap_or_else(|| namespace.to_owned());
                if !is_object_name(&namespace) || !is_object_name(&claim.name) {
                    return Err(InvalidSpec::of("spec.buckets[].claimRef", &"no claim is called so"));
                }
                Ok(EntryOf::Claim(ClaimRef { namespace, name: claim.name.clone() }))
            }
            (None, Some(bucket)) => {
                let name = BucketName::parse(&bucket.name);
                let name = name.map_err(|error| InvalidSpec::of("spec.buckets[].bucketRef.name", &error))?;
                Ok(EntryOf::Bucket(bucket.backend.clone(), name))
            }
            (Some(_), Some(_)) | (None, None) => {
                Err(InvalidSpec::of("spec.buckets[]", &"an entry has either claimRef or bucketRef"))
            }
        }
    }

    fn wants(raw: &AccessEntry) -> Result<(AccessMode, Option<Prefix>), InvalidSpec> {
        let why = "this version of the operator does not know what stands there; it is of a newer one";
        let mode = raw.mode.known().ok_or_else(|| InvalidSpec::of("spec.buckets[].mode", &why))?;
        let prefix = raw.prefix.as_deref().map(Prefix::parse).transpose();
        Ok((mode, prefix.map_err(|error| InvalidSpec::of("spec.buckets[].prefix", &error))?))
    }
}

/// A claim owner's word about accesses from other namespaces. What can't be read lets nobody in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing(Vec<Rule>);

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    names: Vec<String>,
    selector: Option<Selector>,
    consent: Consent,
}

impl Sharing {
    /// Parses the rules of a claim.
    pub fn parse(rules: Option<&Vec<SharingRule>>) -> Self {
        Self(rules.into_iter().flatten().filter_map(Rule::parse).collect())
    }

    /// What the namespace `name` with `labels` may do; `None` = nothing. Of several rules that
    /// match, the first counts. Where its labels aren't known, no selector lets it in.
    pub fn consent(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> Option<&Consent> {
        let matches = |rule: &&Rule| {
            rule.names.iter().any(|named| named == name)
                || rule.selector.as_ref().zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
        };
        self.0.iter().find(matches).map(|rule| &rule.consent)
    }

    /// All that a namespace may do of which the labels aren't known: what each rule allows that may
    /// be the first to match. Without a name any may.
    pub fn possible(&self, name: Option<&str>) -> Vec<&Consent> {
        let named = |rule: &Rule| name.is_some_and(|name| rule.names.iter().any(|named| named == name));
        let mut possible = Vec::new();
        for rule in &self.0 {
            let any = name.is_none() && !rule.names.is_empty();
            if any || named(rule) || rule.selector.is_some() {
                possible.push(&rule.consent);
            }
            if named(rule) {
                break;
            }
        }
        possible
    }
}

impl Rule {
    fn parse(raw: &SharingRule) -> Option<Self> {
        Some(Self {
            names: raw.namespaces.names.clone().unwrap_or_default(),
            selector: raw.namespaces.selector.as_ref().and_then(selector),
            consent: consent(raw.max_mode.known(), raw.prefixes.as_ref())?,
        })
    }
}

/// Consent as it is spelled; `None` for what can't be read.
pub fn consent(mode: Option<AccessMode>, prefixes: Option<&Vec<String>>) -> Option<Consent> {
    let parsed = prefixes.map(|all| all.iter().map(|text| Prefix::parse(text)).collect::<Result<Vec<_>, _>>());
    let prefixes = match parsed.transpose().ok()? {
        // A list of none is no consent to all.
        Some(none) if none.is_empty() => return None,
        prefixes => prefixes.unwrap_or_default(),
    };
    Some(Consent { max_mode: mode?, prefixes })
}

/// `None` for a selector that can't be read: it matches nothing rather than everything.
fn selector(raw: &SharedSelector) -> Option<Selector> {
    let requirement = |of: &super::access::SharedRequirement| LabelSelectorRequirement {
        key: of.key.clone(),
        operator: of.operator.clone(),
        values: of.values.clone(),
    };
    let expressions = raw.match_expressions.as_ref().map(|all| all.iter().map(requirement).collect());
    LabelSelector { match_labels: raw.match_labels.clone(), match_expressions: expressions }.try_into().ok()
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
