//! Fixtures: the objects at the start of a pass, and views of such a pass. Each view is built as by
//! the controller, from caches and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::api::{
    AccessKeyId, AddressingStyle, AdoptionPolicy, Backend, BucketClaim, BucketName, BucketRecord, Claim, ClaimUid,
    ConsumerContent, Credential, CredentialFacts, Endpoint, Gateway, Publishing, S3Backend, SecretContent, SecretKey,
    Shaped, wire,
};

use super::super::{
    Answer, Asking, BackendSeen, BucketSeen, Cached, Holder, Look, OwnerSeen, Posted, Reach, Remembered, SecretRef,
    Setting, Stored, Target, View,
};

/// Namespace of the operator.
pub(super) const NAMESPACE: &str = "stowage-system";

/// Name of the claim's consumer Secret.
pub(super) const CONSUMER: &str = "photos-s3";

/// A secret key in the operator's format.
const KEY: &str = "s3cr3t-of-a-test-0123456789-abcdefghijkl";

const UID: &str = "u-1";
const ENDPOINT: &str = "http://s3.example";

/// Tags of the claim's bucket.
pub(super) const OURS: &[(&str, &str)] = &[(wire::TAG_CLAIM_UID, UID)];

fn setting() -> Arc<Setting> {
    Arc::new(Setting {
        operator_namespace: NAMESPACE.into(),
        reach: Reach::Cluster,
        trusted_namespaces: BTreeSet::from(["vault".to_owned()]),
        gateway: Gateway {
            endpoint: Endpoint::parse("http://gateway.example").unwrap(),
            region: "us-east-1".into(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: Publishing::default(),
        installation: "cluster-1".into(),
        purge_slice: 10_000,
    })
}

pub(super) fn claim_in(namespace: &str, spec: &Value, finalizer: bool) -> Claim {
    let mut raw = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "BucketClaim",
        "metadata": {"name": "photos", "namespace": namespace, "uid": UID, "resourceVersion": "5", "generation": 1,
                     "finalizers": if finalizer { vec![crate::api::FINALIZER] } else { vec![] }},
        "spec": {"backendRef": {"name": "main"}},
    });
    raw["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    Claim::parse(&serde_json::from_value::<BucketClaim>(raw).unwrap())
}

/// Returns a Ready backend with this policy that admits the claim's namespace.
pub(super) fn backend(adoption: AdoptionPolicy) -> BackendSeen {
    edited_backend(adoption, |_| {})
}

pub(super) fn edited_backend(adoption: AdoptionPolicy, edit: impl FnOnce(&mut Backend)) -> BackendSeen {
    let raw: S3Backend = serde_json::from_value(json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend",
        "metadata": {"name": "main", "uid": "b-1", "generation": 1,
                     "annotations": {wire::SERVED_BY: "stowage-system/cluster-1"}},
        "spec": {"endpoint": ENDPOINT, "adoptionPolicy": adoption,
                 "adminCredentialsSecretRef": {"name": "admin", "namespace": NAMESPACE}},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "EndpointReachable", "message": "",
                                   "observedGeneration": 1, "lastTransitionTime": "2030-01-01T00:00:00Z"}]},
    }))
    .unwrap();
    let mut backend = Backend::parse(&raw).unwrap();
    edit(&mut backend);
    let shared = backend.shared_buckets.keys().cloned().collect();
    BackendSeen::Present { backend: Arc::new(backend), allowed: true, spellings: Vec::new(), shared }
}

/// Returns the record of the claim's bucket as first created.
pub(super) fn record() -> BucketRecord {
    BucketRecord {
        uid: ClaimUid::new(UID),
        endpoint: Endpoint::parse(ENDPOINT).unwrap(),
        bucket: BucketName::parse("team-a-photos").unwrap(),
        settled: false,
        // Set so that tests of deletions need not handle that write. A living claim ignores it.
        ending: true,
        ..BucketRecord::fixture()
    }
}

/// Returns the claim's bucket.
pub(super) fn at() -> Target {
    Target::of(&record())
}

/// Returns a credential for the claim's bucket.
pub(super) fn facts(generation: u64) -> CredentialFacts {
    record().key_fixture(generation)
}

/// Returns the Secret name of a generation.
pub(super) fn key_name(generation: u64) -> String {
    AccessKeyId::of(&ClaimUid::new(UID), generation).secret_name()
}

pub(super) fn stored(content: &SecretContent) -> Stored {
    let mut secret: Secret = content.to_secret();
    secret.metadata.uid = Some(format!("uid-of-{}", content.name));
    secret.metadata.resource_version = Some("9".into());
    Stored(Arc::new(secret))
}

pub(super) fn edited(secret: &Stored, edit: impl FnOnce(&mut Secret)) -> Stored {
    let mut secret = secret.0.as_ref().clone();
    edit(&mut secret);
    Stored(Arc::new(secret))
}

/// Returns the Secret without labels, so that no list shows it.
pub(super) fn unlabelled(secret: &Stored) -> Stored {
    edited(secret, |secret| secret.metadata.labels = None)
}

/// Returns the Secret with an expiry.
pub(super) fn expiring(secret: &Stored, at: &str) -> Stored {
    edited(secret, |secret| {
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(wire::EXPIRES_AT.to_owned(), at.to_owned());
    })
}

pub(super) fn record_secret(record: &BucketRecord) -> Stored {
    stored(&record.content(NAMESPACE))
}

pub(super) fn key_secret(facts: &CredentialFacts) -> Stored {
    stored(&facts.content(NAMESPACE, Some(&SecretKey::new(KEY.into()))))
}

/// Returns the consumer Secret while this credential is current.
pub(super) fn consumer_secret(facts: &CredentialFacts) -> Stored {
    let credential = Credential {
        uid: facts.uid.clone(),
        id: facts.access_key_id(),
        secret: SecretKey::new(KEY.into()),
        generation: facts.generation,
    };
    let gateway = &setting().gateway;
    stored(
        &ConsumerContent { facts, credential: &credential, gateway, name: CONSUMER, shaped: Shaped::PLAIN }
            .content()
            .unwrap(),
    )
}

pub(super) fn tags(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Answers that the claim's bucket exists with these tags.
pub(super) fn tagged(entries: &[(&str, &str)]) -> Answer {
    Answer::Bucket(at(), BucketSeen::Present(Some(tags(entries))))
}

/// Answers that the claim's bucket exists with its tags and belongs to our account.
pub(super) fn find_ours(view: &mut View) {
    view.learn(tagged(OURS));
    view.learn(Answer::Owner(at(), OwnerSeen::Ours));
}

pub(super) fn absent() -> Answer {
    Answer::Bucket(at(), BucketSeen::Absent)
}

/// Answers with the claim, read live.
pub(super) fn live(claim: &Claim) -> Answer {
    Answer::Claim(Some(Box::new(claim.clone())))
}

/// The objects of a claim. Caches show them, and queries are answered from them.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) claim: Claim,
    pub(super) backends: BTreeMap<String, BackendSeen>,
    /// Secrets in the operator's namespace.
    pub(super) internal: BTreeMap<String, Stored>,
    /// Secrets in the claim's namespace.
    pub(super) consumers: BTreeMap<String, Stored>,
}

impl Given {
    /// Creates a claim with its finalizer and a Ready backend.
    pub(super) fn new(claim: Claim) -> Self {
        let backends = BTreeMap::from([("main".to_owned(), backend(AdoptionPolicy::Owned))]);
        Self { claim, backends, internal: BTreeMap::new(), consumers: BTreeMap::new() }
    }

    /// Adds an internal Secret or replaces the one of its name.
    pub(super) fn put(&mut self, secret: Stored) {
        self.internal.insert(secret.name().to_owned(), secret);
    }

    /// Adds a Secret in the claim's namespace or replaces the one of its name.
    pub(super) fn put_consumer(&mut self, secret: Stored) {
        self.consumers.insert(secret.name().to_owned(), secret);
    }

    /// Removes an internal Secret.
    pub(super) fn take(&mut self, name: &str) -> Stored {
        self.internal.remove(name).expect("there is one")
    }

    /// Removes the labels of an internal Secret.
    pub(super) fn hide(&mut self, name: &str) {
        let hidden = unlabelled(&self.internal[name]);
        self.put(hidden);
    }

    /// Carries out a deletion.
    pub(super) fn delete(&mut self, secret: SecretRef) -> Answer {
        let there = if secret.namespace == NAMESPACE { &mut self.internal } else { &mut self.consumers };
        there.remove(&secret.name).expect("there is one");
        Answer::Deleted(secret, None)
    }

    /// Returns the internal Secrets with the claim's UID as label.
    pub(super) fn labelled(&self) -> Vec<Stored> {
        let ours = |secret: &&Stored| secret.label(wire::CLAIM_UID) == Some(self.claim.uid.as_str());
        self.internal.values().filter(ours).cloned().collect()
    }

    /// Starts a pass that has looked up the backends.
    pub(super) fn begin(&self, remembered: Remembered) -> View {
        self.begin_with(remembered, None)
    }

    /// Starts a pass whose caches show these accesses.
    pub(super) fn asked(&self, asking: Asking) -> View {
        self.begin_with(Remembered::default(), Some(asking))
    }

    fn begin_with(&self, remembered: Remembered, asking: Option<Asking>) -> View {
        let consumers = self.consumers.values().cloned().collect();
        let cached = Cached { internal: self.labelled(), consumers, asking, ..Cached::default() };
        let mut view = View::new(setting(), self.claim.clone(), cached).begin(remembered);
        for (name, seen) in &self.backends {
            view.learn(Answer::Backend(name.clone(), seen.clone()));
        }
        view
    }

    /// Starts a pass that knows only the caches.
    pub(super) fn cached(&self) -> View {
        self.begin(Remembered::default())
    }

    /// Starts a pass that has also read the claim live.
    pub(super) fn claim_read(&self) -> View {
        let mut view = self.cached();
        view.learn(live(&self.claim));
        view
    }

    /// Starts a pass that has read the claim live and listed its internal Secrets.
    pub(super) fn read(&self) -> View {
        self.read_after(Remembered::default())
    }

    pub(super) fn read_after(&self, remembered: Remembered) -> View {
        let mut view = self.begin(remembered);
        view.learn(live(&self.claim));
        view.learn(Answer::Own(self.labelled()));
        view
    }

    /// Returns the live answer to a query. No other claim is involved with the bucket. Tests answer
    /// queries to the store themselves.
    pub(super) fn answer(&self, look: Look) -> Answer {
        match look {
            Look::Consent(_) => panic!("nobody asks for an access"),
            Look::Backend(name) => {
                let seen = self.backends.get(&name).cloned().unwrap_or(BackendSeen::Missing);
                Answer::Backend(name, seen)
            }
            Look::Holder(at) => Answer::Holder(at, Holder::Unknown),
            Look::PublicRival(at) => Answer::PublicRival(at, None),
            Look::Claim => live(&self.claim),
            Look::Own => Answer::Own(self.labelled()),
            Look::Internal(name) => {
                let secret = self.internal.get(&name).cloned();
                Answer::Internal(name, secret)
            }
            Look::Consumer(name) => {
                let secret = self.consumers.get(&name).cloned();
                Answer::Consumer(name, secret)
            }
            Look::CredentialsFor(at) => Answer::CredentialsFor(at, Vec::new()),
            Look::Owner(at) => Answer::Owner(at, OwnerSeen::Ours),
            Look::Bucket(_) | Look::Contents(_) | Look::Versioning(_) => panic!("nobody says: {look}"),
        }
    }
}

/// Starts a pass without any cache.
pub(super) fn begun(claim: Claim) -> View {
    View::new(setting(), claim, Cached::default()).begin(Remembered::default())
}

/// Starts a pass with these rechecks and no other cached data.
pub(super) fn rechecking(claim: Claim, recheck: Vec<Look>) -> View {
    View::new(setting(), claim, Cached { recheck, ..Cached::default() }).begin(Remembered::default())
}

/// Returns a claim with its finalizer.
pub(super) fn unbound() -> Given {
    Given::new(claim_in("team-a", &json!({}), true))
}

/// Returns a claim with its finalizer and this record.
pub(super) fn holding(change: impl FnOnce(&mut BucketRecord)) -> Given {
    let mut given = unbound();
    let mut record = record();
    change(&mut record);
    given.put(record_secret(&record));
    given
}

/// Returns a pass that has just created the record of the bucket.
pub(super) fn just_held() -> View {
    let mut view = unbound().read();
    view.learn(Answer::RecordPosted(record(), Posted::Stored(record_secret(&record()))));
    view
}

/// Returns a bound claim.
pub(super) fn bound() -> Given {
    let mut given = holding(|_| {});
    given.put(key_secret(&facts(1)));
    given.put_consumer(consumer_secret(&facts(1)));
    given.claim.status = super::told(&given.read());
    given
}
