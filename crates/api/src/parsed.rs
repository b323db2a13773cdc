//! Parsed forms of raw objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as KubeSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::backend::{
    AddressingStyle, AdminCredentialsSecretRef, AdoptionPolicy, AdoptionProof, AllowedNamespaces, BackendTls,
    LabelSelector, S3Backend, S3BackendSpec,
};
use super::claim::{AnonymousMode, BucketClaim, BucketClaimStatus, DeletionPolicy, Versioning};
use super::condition::ConditionType;
use super::consent::{Consent, Sharing, consent};
use super::identity::{ClaimRef, ClaimUid, ObjectId, ServedBy};
use super::invalid::{InvalidSpec, word};
use super::names::{BucketName, Endpoint};
use super::packed::Packed;
use super::quantity::{Bytes, Quantity};
use super::rotation::Rotation;
use super::secrets::SecretShape;
use super::template::NameTemplate;
use super::{FINALIZER, kept, wire};

/// A parsed `BucketClaim`.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Namespace and name.
    pub at: ClaimRef,
    /// UID.
    pub uid: ClaimUid,
    /// Generation of the spec.
    pub generation: i64,
    /// True if the object has a deletion timestamp.
    pub deleting: bool,
    /// Finalizers in order, as far as they are kept ([`kept::are_all_finalizers`]).
    pub finalizers: Vec<String>,
    /// Operator noted as serving the claim, if any.
    pub served_by: Option<ServedBy>,
    /// True if `metadata.annotations` exists; otherwise a JSON patch has to create the map.
    pub annotated: bool,
    /// True if the annotation `broker.stowage.io/paused` is `"true"`.
    pub paused: bool,
    /// Receipt ([`wire::receipt`]) of the value of the annotation `broker.stowage.io/rotate`.
    pub rotate_request: Option<String>,
    /// Receipt of the value of the annotation `broker.stowage.io/revoke`.
    pub revoke_request: Option<String>,
    /// Deletion policy, which deletion needs even if the rest of the spec is invalid.
    pub deletion: Deletion,
    /// Name of the consumer Secret.
    pub consumer_secret: String,
    /// Consent to accesses from other namespaces. A withdrawal takes effect even if the rest of the
    /// spec is invalid.
    pub sharing: Sharing,
    /// The rest of the spec.
    pub desired: Result<Desired, InvalidSpec>,
    /// Current status, compared with the desired one. `ARCHITECTURE.md` lists the other uses of it,
    /// for the case that Secrets are lost (spec §3.2).
    pub status: BucketClaimStatus,
}

/// Policy for the bucket when the claim is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Keep the bucket.
    Retain,
    /// Delete the bucket if it is empty.
    Delete,
    /// Empty and delete the bucket.
    Force,
}

/// Desired state of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Name of the S3Backend.
    pub backend: String,
    /// Name of the bucket, if the claim specifies one.
    pub bucket: Option<BucketName>,
    /// Parsed `spec.secretTemplate`. `None` if a cache kept only its digest; a live read has all of
    /// it.
    pub shape: Option<SecretShape>,
    /// Schedule on which credentials are replaced.
    pub rotation: Rotation,
    /// Requests per second allowed to one source address, if the bucket can be read without
    /// credentials.
    pub anonymous: Option<u32>,
    /// Soft limit on the number of bytes stored.
    pub quota_soft: Option<Bytes>,
    /// Hard limit on the number of bytes stored.
    pub quota_hard: Option<Bytes>,
    /// Versioning; `None` if it must not be changed.
    pub versioning: Option<Versioning>,
}

impl Claim {
    /// Parses a claim. Parsing never fails as a whole: errors in the spec are part of the result,
    /// so that deletion does not depend on a valid spec.
    pub fn parse(raw: &BucketClaim) -> Self {
        let annotation = |key: &str| raw.annotations().get(key).cloned();
        let name = raw.name_any();
        let secret = raw.spec.write_connection_secret_to_ref.as_ref().and_then(|secret| secret.name.clone());
        Self {
            id: ObjectId::of(raw),
            uid: ClaimUid::new(raw.uid().unwrap_or_default()),
            generation: raw.metadata.generation.unwrap_or_default(),
            deleting: raw.metadata.deletion_timestamp.is_some(),
            finalizers: raw.finalizers().to_vec(),
            served_by: ServedBy::noted(raw.annotations()),
            annotated: raw.metadata.annotations.is_some(),
            paused: annotation(wire::PAUSED).as_deref() == Some("true"),
            rotate_request: kept::receipt(raw.annotations(), wire::ROTATE),
            revoke_request: kept::receipt(raw.annotations(), wire::REVOKE),
            deletion: match (raw.spec.deletion_policy.known(), raw.spec.force_delete) {
                // An unknown policy must not destroy anything.
                (Some(DeletionPolicy::Retain) | None, _) => Deletion::Retain,
                (Some(DeletionPolicy::Delete), false) => Deletion::Delete,
                (Some(DeletionPolicy::Delete), true) => Deletion::Force,
            },
            consumer_secret: secret.unwrap_or_else(|| format!("{name}-s3")),
            sharing: Sharing::parse(raw.spec.sharing.as_ref().and_then(Packed::get).as_ref()),
            desired: Desired::parse(raw),
            status: raw.status.clone().unwrap_or_default(),
            at: ClaimRef { namespace: raw.namespace().unwrap_or_default(), name },
        }
    }

    /// Returns true if the object has the operator's finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
    }
}

impl Desired {
    fn parse(raw: &BucketClaim) -> Result<Self, InvalidSpec> {
        let spec = &raw.spec;
        let bucket = spec.bucket_name.as_deref().map(BucketName::parse).transpose();
        let quota = spec.quota.clone().unwrap_or_default();
        let bytes = |field, quantity: Option<Quantity>| {
            quantity.map(|q| q.bytes()).transpose().map_err(|error| InvalidSpec::of(field, &error))
        };
        word("spec.deletionPolicy", spec.deletion_policy)?;
        let rotation = Rotation::parse(&spec.rotation_policy)?;
        let access = word("spec.anonymousAccess.mode", spec.anonymous_access.mode)?;
        // The schema has no maximum for this field. A rate above `u32::MAX` cannot be reached.
        let rps = u32::try_from(spec.anonymous_access.per_source_ip_rps.max(0)).unwrap_or(u32::MAX);
        Ok(Self {
            backend: spec.backend_ref.name.clone(),
            bucket: bucket.map_err(|error| InvalidSpec::of("spec.bucketName", &error))?,
            shape: SecretShape::of(spec.secret_template.as_ref())?,
            rotation,
            anonymous: (access == AnonymousMode::ReadOnly).then_some(rps),
            quota_soft: bytes("spec.quota.soft", quota.soft)?,
            quota_hard: bytes("spec.quota.hard", quota.hard)?,
            versioning: spec.versioning.map(|versioning| word("spec.versioning", versioning)).transpose()?,
        })
    }
}

/// A parsed `S3Backend`.
#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    /// UID and resourceVersion.
    pub id: ObjectId,
    /// Name of the S3Backend.
    pub name: String,
    /// Generation of the spec.
    pub generation: i64,
    /// URL of the store.
    pub endpoint: Endpoint,
    /// Earlier URLs of the same store.
    pub former_endpoints: Vec<Endpoint>,
    /// Operator noted as serving the backend, if any.
    pub served_by: Option<ServedBy>,
    /// Template for bucket names.
    pub template: NameTemplate,
    /// Namespaces whose claims may use the backend.
    pub access: BackendAccess,
    /// Policy for buckets that already exist.
    pub adoption: AdoptionPolicy,
    /// Proof required that a bucket belongs to the operator's account.
    pub proof: AdoptionProof,
    /// Region for which requests are signed.
    pub region: String,
    /// Position of the bucket name in request URLs.
    pub addressing_style: AddressingStyle,
    /// Secret that contains the admin credentials.
    pub credentials: AdminCredentialsSecretRef,
    /// Secret that contains the gateway's credentials, if they differ from the admin credentials.
    pub gateway_credentials: Option<AdminCredentialsSecretRef>,
    /// Verification of certificates.
    pub tls: BackendTls,
    /// Shared buckets that belong to no claim: for each, the namespaces whose accesses may open it,
    /// and the consent.
    pub shared_buckets: BTreeMap<BucketName, (Vec<String>, Consent)>,
    /// True if `Ready` is True for the current generation.
    pub ready: bool,
    /// True if `Ready` is True for any generation. A later edit may not have been observed yet.
    pub was_ready: bool,
}

/// Namespaces whose claims may use a backend.
#[derive(Clone, Debug, PartialEq)]
pub enum BackendAccess {
    /// All namespaces.
    All,
    /// Namespaces selected by name or by label.
    Some {
        /// Names of namespaces.
        names: Vec<String>,
        /// Selector over the labels of namespaces; `None` matches nothing.
        selector: Option<Selector>,
    },
}

impl Backend {
    /// Parses a backend.
    ///
    /// # Errors
    /// Returns an error if endpoint or template is invalid.
    pub fn parse(raw: &S3Backend) -> Result<Self, InvalidSpec> {
        let spec = &raw.spec;
        let generation = raw.metadata.generation.unwrap_or_default();
        let conditions = raw.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        let ready = conditions.iter().find(|condition| condition.type_ == ConditionType::Ready.as_str());
        Ok(Self {
            id: ObjectId::of(raw),
            name: raw.name_any(),
            generation,
            endpoint: Endpoint::parse(&spec.endpoint).map_err(|error| InvalidSpec::of("spec.endpoint", &error))?,
            former_endpoints: former_endpoints(spec),
            served_by: ServedBy::noted(raw.annotations()),
            template: NameTemplate::parse(&spec.bucket_name_template)
                .map_err(|error| InvalidSpec::of("spec.bucketNameTemplate", &error))?,
            access: spec.allowed_namespaces.as_ref().map_or(BackendAccess::All, BackendAccess::parse),
            adoption: spec.adoption_policy,
            proof: spec.adoption_proof,
            region: spec.region.clone(),
            addressing_style: spec.addressing_style,
            credentials: spec.admin_credentials_secret_ref.clone(),
            gateway_credentials: spec.gateway_credentials_secret_ref.clone(),
            tls: spec.tls.clone(),
            shared_buckets: shared_buckets(spec),
            ready: ready.is_some_and(|c| c.status == "True" && c.observed_generation == Some(generation)),
            was_ready: ready.is_some_and(|c| c.status == "True"),
        })
    }
}

/// Returns the former endpoints of a store.
///
/// Ignores invalid entries and entries past the limit; the CRD schema rejects both. A key created
/// for an ignored endpoint is refused for a while, which is better than opening a bucket of another
/// store.
pub fn former_endpoints(spec: &S3BackendSpec) -> Vec<Endpoint> {
    let named = spec.former_endpoints.iter().flatten().take(S3BackendSpec::MOST_FORMER_ENDPOINTS);
    named.filter_map(|url| Endpoint::parse(url).ok()).collect()
}

/// Returns the buckets that an administrator shares.
///
/// Ignores invalid entries, and all entries whose name occurs more than once, which the schema
/// rejects.
pub fn shared_buckets(spec: &S3BackendSpec) -> BTreeMap<BucketName, (Vec<String>, Consent)> {
    let mut all = BTreeMap::new();
    let mut seen = BTreeMap::new();
    for bucket in spec.shared_buckets.iter().flatten() {
        let Ok(name) = BucketName::parse(&bucket.name) else { continue };
        let consent = consent(bucket.max_mode.known(), bucket.prefixes.as_ref());
        if let Some(consent) = consent.filter(|_| seen.insert(name.clone(), ()).is_none()) {
            all.insert(name, (bucket.namespaces.clone(), consent));
        } else {
            all.remove(&name);
        }
    }
    all
}

impl BackendAccess {
    fn parse(allowed: &AllowedNamespaces) -> Self {
        Self::Some {
            names: allowed.names.clone().unwrap_or_default(),
            selector: allowed.selector.as_ref().and_then(parse_selector),
        }
    }

    /// Returns true if claims of the namespace `name` with `labels` may use the backend.
    ///
    /// If the labels are unknown, a selector does not match, even one that requires a label to be
    /// absent.
    pub fn allows(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> bool {
        match self {
            Self::All => true,
            Self::Some { names, selector } => {
                names.iter().any(|allowed| allowed == name)
                    || selector.as_ref().zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
            }
        }
    }

    /// Returns true if the backend may allow a namespace whose labels, and possibly name, are
    /// unknown.
    pub fn may_allow(&self, name: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Some { names, selector } => {
                let is_named = |name: &str| names.iter().any(|allowed| allowed == name);
                selector.is_some() || name.map_or(!names.is_empty(), is_named)
            }
        }
    }
}

/// Parses a selector; `None` if it is invalid, so that it matches nothing instead of everything.
fn parse_selector(selector: &LabelSelector) -> Option<Selector> {
    let expressions = selector.match_expressions.as_ref().map(|requirements| {
        let requirement = requirements.iter().map(|r| LabelSelectorRequirement {
            key: r.key.clone(),
            operator: r.operator.clone(),
            values: r.values.clone(),
        });
        requirement.collect()
    });
    KubeSelector { match_labels: selector.match_labels.clone(), match_expressions: expressions }.try_into().ok()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn backend(allowed: &serde_json::Value) -> Backend {
        let mut raw = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main"},
            "spec": {"endpoint": "http://s3.example",
                     "adminCredentialsSecretRef": {"name": "admin", "namespace": "stowage-system"}},
        });
        if !allowed.is_null() {
            raw["spec"]["allowedNamespaces"] = allowed.clone();
        }
        Backend::parse(&serde_json::from_value(raw).unwrap()).unwrap()
    }

    /// Lists with invalid entries can come from an older server, or from one without the validation
    /// rule.
    #[test]
    fn what_is_no_endpoint_was_none_before() {
        let named = ["http://S3.example:80/", "s3.example", "https://u:p@s3.example", "http://old.example"];
        let mut spec = json!({"endpoint": "http://s3.example",
                              "adminCredentialsSecretRef": {"name": "admin", "namespace": "stowage-system"}});
        let parsed = |spec: &serde_json::Value| former_endpoints(&serde_json::from_value(spec.clone()).unwrap());
        assert!(parsed(&spec).is_empty());
        spec["formerEndpoints"] = json!(named);
        let texts = |of: &[Endpoint]| of.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(texts(&parsed(&spec)), ["http://s3.example", "http://old.example"]);
        spec["formerEndpoints"] = (0..20).map(|number| format!("http://s{number}.example")).collect();
        assert_eq!(parsed(&spec).len(), 16);
    }

    // covers: 3.4.unknownWord
    #[rstest]
    #[case(json!({"deletionPolicy": "Archive"}), "spec.deletionPolicy", Deletion::Retain)]
    #[case(json!({"deletionPolicy": "Archive", "forceDelete": true}), "spec.deletionPolicy", Deletion::Retain)]
    #[case(json!({"deletionPolicy": "Delete", "versioning": "Forever"}), "spec.versioning", Deletion::Delete)]
    #[case(json!({"rotationPolicy": {"mode": "Hourly"}}), "spec.rotationPolicy.mode", Deletion::Retain)]
    #[case(json!({"anonymousAccess": {"mode": "WriteOnly"}}), "spec.anonymousAccess.mode", Deletion::Retain)]
    fn a_claim_with_a_word_of_a_newer_version_can_be_deleted(
        #[case] mut spec: serde_json::Value,
        #[case] field: &str,
        #[case] deletion: Deletion,
    ) {
        spec["backendRef"] = json!({"name": "main"});
        let raw = json!({"metadata": {"name": "photos", "namespace": "team-a"}, "spec": spec});
        let claim = Claim::parse(&serde_json::from_value(raw).expect("it is decoded all the same"));
        assert_eq!(claim.desired.expect_err("it is not known").field, field);
        assert_eq!(claim.deletion, deletion);
    }

    // covers: 3.1.generation
    #[rstest]
    #[case("True", 2, true)]
    #[case("True", 1, false)]
    #[case("False", 2, false)]
    fn a_backend_is_ready_for_its_current_generation_only(
        #[case] status: &str,
        #[case] observed: i64,
        #[case] ready: bool,
    ) {
        let raw = json!({
            "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main", "generation": 2},
            "spec": {"endpoint": "http://s3.example",
                     "adminCredentialsSecretRef": {"name": "admin", "namespace": "stowage-system"}},
            "status": {"conditions": [{"type": "Ready", "status": status, "reason": "R", "message": "",
                       "observedGeneration": observed, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
        });
        assert_eq!(Backend::parse(&serde_json::from_value(raw).unwrap()).unwrap().ready, ready);
    }

    // covers: 1.backend.allowed.absent, 1.backend.allowed.or, 1.backend.allowed.empty
    #[rstest]
    #[case(json!(null), true)]
    #[case(json!({}), false)]
    #[case(json!({"names": ["team-a"]}), true)]
    #[case(json!({"names": ["team-b"]}), false)]
    #[case(json!({"selector": {}}), true)]
    #[case(json!({"selector": {"matchLabels": {"tier": "gold"}}}), true)]
    #[case(json!({"selector": {"matchLabels": {"tier": "silver"}}}), false)]
    #[case(json!({"names": ["team-b"], "selector": {"matchLabels": {"tier": "gold"}}}), true)]
    #[case(json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}), true)]
    #[case(json!({"selector": {"matchExpressions": [{"key": "tier", "operator": "Likes", "values": ["x"]}]}}), false)]
    fn namespaces_are_allowed_by_name_or_label(#[case] allowed: serde_json::Value, #[case] expected: bool) {
        let labels = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        assert_eq!(backend(&allowed).access.allows("team-a", Some(&labels)), expected);
    }

    // covers: 1.backend.allowed.or
    #[test]
    fn a_namespace_whose_labels_are_not_known_is_let_in_by_name_alone() {
        let absent = json!({"selector": {"matchExpressions": [{"key": "restricted", "operator": "DoesNotExist"}]}});
        assert!(backend(&absent).access.allows("team-a", Some(&BTreeMap::new())));
        assert!(!backend(&absent).access.allows("team-a", None));
        assert!(backend(&json!({"names": ["team-a"]})).access.allows("team-a", None));
    }
}
