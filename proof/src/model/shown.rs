//! Real objects that the planner is called with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stowage_operator::api::Endpoint;
use stowage_operator::api::{
    AccessMode, AddressingStyle, AdminCredentialsSecretRef, AdoptionPolicy, AdoptionProof, Backend, BackendAccess,
    BackendTls, BucketClaimStatus, Claim, Deletion, Desired, FINALIZER, Gateway, NameTemplate, ObjectId, Publishing,
    Rotation, SecretShape, ServedBy, SharedWith, Sharing, SharingRule,
};
use stowage_operator::plan::{BackendSeen, Reach, Setting};

use super::access::access_ref;
use super::facts::{Adoption, BackendFacts, ClaimFacts, OPERATOR_NAMESPACE, Policy};
use super::names::{backend_name, claim_ref, consumer_name, endpoint, parsed, resource_version};

const INSTALLATION: &str = "cluster";

/// Returns the operator's settings.
pub(super) fn setting(purge_slice: u32) -> Setting {
    Setting {
        operator_namespace: OPERATOR_NAMESPACE.to_owned(),
        reach: Reach::Cluster,
        trusted_namespaces: BTreeSet::new(),
        gateway: Gateway {
            endpoint: parsed(Endpoint::parse("http://gateway.example")),
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: Publishing::default(),
        installation: INSTALLATION.to_owned(),
        purge_slice,
    }
}

/// Returns a claim.
pub(super) fn claim(facts: &ClaimFacts, number: u32, status: &BucketClaimStatus) -> Claim {
    let slot = facts.uid.slot();
    Claim {
        id: ObjectId { uid: facts.uid.text(), resource_version: resource_version(facts.version, number) },
        at: claim_ref(slot),
        uid: facts.uid.claim_uid(),
        generation: i64::from(facts.generation),
        deleting: facts.deleting,
        served_by: None,
        annotated: true,
        finalizers: if facts.finalizer { vec![FINALIZER.to_owned()] } else { Vec::new() },
        paused: facts.paused,
        rotate_request: (facts.rotate > 0).then(|| facts.rotate.to_string()),
        revoke_request: (facts.revoke > 0).then(|| facts.revoke.to_string()),
        deletion: match facts.spec.deletion {
            Policy::Retain => Deletion::Retain,
            Policy::Delete => Deletion::Delete,
            Policy::Force => Deletion::Force,
        },
        consumer_secret: consumer_name(slot, facts.spec.renamed),
        sharing: sharing(facts.spec.shares),
        desired: Ok(Desired {
            backend: backend_name(facts.spec.backend).to_owned(),
            shape: Some(SecretShape::default()),
            bucket: None,
            rotation: Rotation { interval_days: facts.spec.interval, overlap_seconds: facts.spec.overlap },
            anonymous: facts.spec.public.then_some(0),
            quota_soft: None,
            quota_hard: None,
            versioning: None,
        }),
        status: status.clone(),
    }
}

/// Returns `spec.sharing` for accesses of the other namespace.
fn sharing(mode: Option<AccessMode>) -> Sharing {
    let rule = |mode: AccessMode| SharingRule {
        namespaces: SharedWith { names: Some(vec![access_ref().namespace]), selector: None },
        max_mode: mode.into(),
        prefixes: None,
    };
    Sharing::parse(mode.map(|mode| vec![rule(mode)]).as_ref())
}

/// Returns a backend.
pub(super) fn backend(facts: BackendFacts, number: u32) -> BackendSeen {
    let name = backend_name(facts.number).to_owned();
    let template = ["{{ .Namespace }}-{{ .Name }}", "x-{{ .Namespace }}-{{ .Name }}"][facts.template as usize];
    let backend = Backend {
        id: ObjectId { uid: format!("b-{name}"), resource_version: number.to_string() },
        name,
        generation: 1,
        endpoint: endpoint(facts.store),
        former_endpoints: Vec::new(),
        template: parsed(NameTemplate::parse(template)),
        access: BackendAccess::All,
        adoption: match facts.adoption {
            Adoption::Owned => AdoptionPolicy::Owned,
            Adoption::Any => AdoptionPolicy::Any,
        },
        proof: AdoptionProof::Owner,
        served_by: Some(ServedBy::operator(OPERATOR_NAMESPACE, INSTALLATION)),
        region: "us-east-1".to_owned(),
        addressing_style: AddressingStyle::Path,
        credentials: AdminCredentialsSecretRef {
            name: "admin".to_owned(),
            namespace: OPERATOR_NAMESPACE.to_owned(),
            access_key_field: "AWS_ACCESS_KEY_ID".to_owned(),
            secret_key_field: "AWS_SECRET_ACCESS_KEY".to_owned(),
        },
        gateway_credentials: None,
        tls: BackendTls::default(),
        shared_buckets: BTreeMap::new(),
        ready: facts.ready,
        was_ready: facts.ready,
    };
    let shared = backend.shared_buckets.keys().cloned().collect();
    BackendSeen::Present { backend: Arc::new(backend), allowed: true, spellings: Vec::new(), shared }
}
