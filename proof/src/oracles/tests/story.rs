//! Handwritten histories: one claim, `team-a/photos`, and everything that belongs to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::{SignedDuration, Timestamp};
use kube_sim::{Asked, Stored};
use s3_sim::{BucketSnapshot, Versioning};
use serde_json::{Value, json};
use stowage_world::OPERATOR_NAMESPACE;
use stowage_world::effects::{Call, CallOutcome, KubeCall, KubeVerb, Line, S3Call, S3Operation};
use stowage_world::history::{Called, Event, Facts, History, Used, What};

use super::super::{Case, Judgement, Promise, Setting, Shown, judge};

pub(super) const UID: &str = "0a1b";
pub(super) const HOST: &str = "s3.example:9000";
pub(super) const BUCKET: &str = "team-a-photos";
pub(super) const ADMIN_ID: &str = "ADMIN";
pub(super) const ADMIN: &str = "an-admin-secret-that-is-long-enough";

/// The actor of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Operator,
    Other,
}

/// A history under construction.
#[derive(Clone)]
pub(super) struct Story {
    pub(super) now: Timestamp,
    pub(super) setting: Setting,
    pub(super) shown: Vec<Shown>,
    /// The only bucket.
    pub(super) bucket: Option<BucketSnapshot>,
    events: Vec<Event>,
    lines: Vec<Line>,
    objects: BTreeMap<(String, String, String), Arc<Value>>,
}

impl Story {
    /// Creates a history with the admin's Secret only.
    pub(super) fn new() -> Self {
        let mut story = Self {
            now: Timestamp::from_second(1_893_456_000).unwrap(),
            setting: Setting {
                operators: 1,
                gateway_lag: Duration::from_secs(2),
                purge_slice: 10,
                ..Setting::default()
            },
            shown: Vec::new(),
            bucket: None,
            events: Vec::new(),
            lines: Vec::new(),
            objects: BTreeMap::new(),
        };
        let data = json!({"AWS_ACCESS_KEY_ID": encode(ADMIN_ID), "AWS_SECRET_ACCESS_KEY": encode(ADMIN)});
        let metadata = json!({
            "labels": {"broker.stowage.io/backend-credentials": "true"},
            "annotations": {"broker.stowage.io/endpoints": format!("http://elsewhere.example,http://{HOST}")},
        });
        story.put(By::Other, "secrets", OPERATOR_NAMESPACE, "s3-admin", json!({"metadata": metadata, "data": data}));
        story
    }

    /// Creates a history in which the operator binds a claim with this policy, step by step.
    pub(super) fn bound(policy: &str) -> Self {
        let mut story = Self::new();
        story.make_claim(policy);
        story.change_claim(By::Operator, |claim| {
            claim["metadata"]["finalizers"] = json!(["broker.stowage.io/bucketclaim-protection"]);
        });
        story.put(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", record(UID));
        story.s3("GetBucketTagging", |_| {});
        story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
            record["data"]["absence"] = encode("true").into();
        });
        let now = story.now;
        story.s3("CreateBucket", |bucket| *bucket = Some(empty_bucket(now)));
        story.s3("PutBucketTagging", |bucket| tag(bucket, UID));
        story.mint(1);
        story.publish(1);
        story.set_status(1);
        story
    }

    /// Creates a history in which the claim is deleted and read, its record settled, its keys
    /// deleted, and its bucket read.
    pub(super) fn about_to_destroy(policy: &str) -> Self {
        let mut story = Self::bound(policy);
        story.wait(60);
        story.begin_deletion();
        story.get_claim();
        story.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
            record["data"]["settled"] = encode("true").into();
            record["data"]["ending"] = encode("true").into();
        });
        story.remove(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(1));
        story.s3("GetBucketTagging", |_| {});
        story.get_claim();
        story
    }

    pub(super) fn make_claim(&mut self, policy: &str) {
        let (delete, force) = (policy != "Retain", policy == "Force");
        let claim = json!({
            "metadata": {"uid": UID, "namespace": "team-a", "name": "photos", "generation": 1},
            "spec": {
                "backendRef": {"name": "main"},
                "deletionPolicy": if delete { "Delete" } else { "Retain" },
                "forceDelete": force,
                "rotationPolicy": {"overlapSeconds": 60},
            },
        });
        self.put(By::Other, "bucketclaims", "team-a", "photos", claim);
    }

    pub(super) fn begin_deletion(&mut self) {
        let at = self.now.to_string();
        self.change_claim(By::Other, |claim| claim["metadata"]["deletionTimestamp"] = at.into());
    }

    /// The record notes that no access opens the bucket any more.
    pub(super) fn end_accesses(&mut self) {
        self.change(By::Operator, "secrets", OPERATOR_NAMESPACE, "br-1", |record| {
            record["data"]["ending"] = encode("true").into();
        });
    }

    pub(super) fn ask_for_rotation(&mut self) {
        self.change_claim(By::Other, |claim| {
            claim["metadata"]["annotations"]["broker.stowage.io/rotate"] = "now".into();
        });
    }

    pub(super) fn mint(&mut self, number: u32) {
        self.put(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(number), key(number));
    }

    /// The consumer Secret gets this key.
    pub(super) fn publish(&mut self, number: u32) {
        self.put(By::Operator, "secrets", "team-a", "photos-s3", consumer(number));
    }

    pub(super) fn stamp(&mut self, number: u32, seconds: i64) {
        let end = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap().to_string();
        self.change(By::Operator, "secrets", OPERATOR_NAMESPACE, &key_name(number), |key| {
            key["metadata"]["annotations"]["broker.stowage.io/expires-at"] = end.into();
        });
    }

    pub(super) fn set_status(&mut self, number: u32) {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "observedGeneration": 1});
        let status = json!({
            "phase": "Bound", "bucketName": BUCKET, "accessKeyId": key_id(number), "boundSecretName": "photos-s3",
            "observedGeneration": 1,
            "conditions": [
                condition("Ready", "Bound"),
                condition("BucketCreated", "CreatedOnBackend"),
                condition("CredentialsProvisioned", "SecretWritten"),
            ],
        });
        self.change_claim(By::Operator, |claim| claim["status"] = status);
    }

    pub(super) fn change_claim(&mut self, by: By, change: impl FnOnce(&mut Value)) {
        self.change(by, "bucketclaims", "team-a", "photos", change);
    }

    pub(super) fn change(
        &mut self,
        by: By,
        plural: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let mut object = (**self.objects.get(&key).expect("the object is there")).clone();
        change(&mut object);
        self.put(by, plural, namespace, name, object);
    }

    pub(super) fn put(&mut self, by: By, plural: &str, namespace: &str, name: &str, object: Value) {
        self.store(by, plural, namespace, name, Some(object));
    }

    pub(super) fn remove(&mut self, by: By, plural: &str, namespace: &str, name: &str) {
        self.store(by, plural, namespace, name, None);
    }

    fn store(&mut self, by: By, plural: &str, namespace: &str, name: &str, object: Option<Value>) {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let new = object.map(Arc::new);
        let old = match &new {
            Some(new) => self.objects.insert(key, new.clone()),
            None => self.objects.remove(&key),
        };
        let effect = (by == By::Operator).then(|| self.kube_line(KubeVerb::Patch, plural, namespace, name, 200));
        let stored =
            Stored { plural: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned(), old, new };
        self.events.push(Event { at: self.now, effect, what: What::Stored(stored) });
    }

    /// The operator sends a write request; its effects are added separately.
    pub(super) fn ask(&mut self, method: http::Method, plural: &str, name: &str, content_type: &str, body: &Value) {
        let effect = Some(self.kube_line(KubeVerb::Patch, plural, "team-a", name, 200));
        let asked = Asked {
            method,
            plural: plural.to_owned(),
            subresource: None,
            namespace: "team-a".to_owned(),
            name: name.to_owned(),
            content_type: content_type.to_owned(),
            body: body.to_string().into_bytes().into(),
        };
        self.events.push(Event { at: self.now, effect, what: What::Asked(asked) });
    }

    /// The operator sends an Event.
    pub(super) fn tell_event(&mut self) {
        self.kube_line(KubeVerb::Create, "events", "team-a", "", 201);
    }

    /// The operator sends an Event this many milliseconds into the run, and the API server fails.
    pub(super) fn lose_event(&mut self, began_ms: u64) {
        self.kube_line(KubeVerb::Create, "events", "team-a", "", 500);
        self.amend_last(|line| line.began_ms = began_ms);
    }

    /// The operator reads the admin's Secret this many milliseconds into the run.
    pub(super) fn read(&mut self, verb: KubeVerb, began_ms: u64) {
        self.kube_line(verb, "secrets", OPERATOR_NAMESPACE, "s3-admin", 200);
        self.amend_last(|line| line.began_ms = began_ms);
    }

    /// The operator reads the claim.
    pub(super) fn get_claim(&mut self) {
        self.kube_line(KubeVerb::Get, "bucketclaims", "team-a", "photos", 200);
    }

    /// The operator reads a key.
    pub(super) fn get_key(&mut self, number: u32) {
        self.kube_line(KubeVerb::Get, "secrets", OPERATOR_NAMESPACE, &key_name(number), 200);
    }

    fn kube_line(&mut self, verb: KubeVerb, plural: &str, namespace: &str, name: &str, status: u16) -> u64 {
        let call = KubeCall {
            verb,
            group: String::new(),
            resource: plural.to_owned(),
            subresource: None,
            namespace: Some(namespace.to_owned()),
            name: Some(name.to_owned()),
        };
        self.line(Call::Kube(call), status)
    }

    fn line(&mut self, call: Call, status: u16) -> u64 {
        let number = self.lines.len() as u64 + 1;
        let (answer, world) = (CallOutcome::Status(status), Some(status));
        self.lines.push(Line { number, instance: 1, call, fault: None, world, answer, began_ms: 0 });
        number
    }

    /// Returns the number of calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Attributes the last event to an earlier call, which was in flight until now.
    pub(super) fn came_of(&mut self, number: u64) {
        self.events.last_mut().expect("something happened").effect = Some(number);
    }

    /// Attributes the last call of the trace to another operator.
    pub(super) fn by_another(&mut self) {
        self.amend_last(|line| line.instance = 2);
    }

    /// Changes the last call of the trace.
    pub(super) fn amend_last(&mut self, change: impl FnOnce(&mut Line)) {
        change(self.lines.last_mut().expect("there was a call"));
    }

    /// The operator calls the store, which changes the bucket this way.
    pub(super) fn s3(&mut self, operation: &str, change: impl FnOnce(&mut Option<BucketSnapshot>)) {
        let operation = S3Operation::named(operation).expect("there is such an operation");
        let before = self.bucket.clone();
        change(&mut self.bucket);
        let call = S3Call { operation, bucket: Some(BUCKET.to_owned()), key: None };
        let number = self.line(Call::S3(call), 200);
        let bucket = Some(BUCKET.to_owned());
        let (host, key_id, after) = (HOST.to_owned(), Some(ADMIN_ID.to_owned()), self.bucket.clone());
        let called = Called { host, operation, bucket, key_id, before, after, status: 200 };
        self.events.push(Event { at: self.now, effect: Some(number), what: What::Called(called) });
    }

    /// Sets the key and the host of the last call.
    pub(super) fn amend_signer(&mut self, id: &str, at: &str) {
        let Some(What::Called(called)) = self.events.last_mut().map(|event| &mut event.what) else {
            panic!("the last event is no call");
        };
        (called.key_id, called.host) = (Some(id.to_owned()), at.to_owned());
    }

    /// A tenant uses a key.
    pub(super) fn used(&mut self, number: u32, allowed: bool) {
        let used = self.use_of(number, allowed);
        self.note(What::Used(used));
    }

    /// A tenant uses a key at the gateway of this index.
    pub(super) fn used_at(&mut self, gateway: usize, number: u32, allowed: bool) {
        let used = self.use_of(number, allowed);
        self.note(What::UsedAt { gateway, used });
    }

    fn use_of(&self, number: u32, allowed: bool) -> Used {
        Used {
            namespace: "team-a".to_owned(),
            secret: "photos-s3".to_owned(),
            access_key_id: key_id(number),
            bucket: BUCKET.to_owned(),
            read_at: self.now,
            allowed,
        }
    }

    pub(super) fn note(&mut self, what: What) {
        self.events.push(Event { at: self.now, effect: None, what });
    }

    pub(super) fn wait(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub(super) fn facts(&self) -> Facts {
        let buckets = self.bucket.iter().map(|bucket| ((HOST.to_owned(), BUCKET.to_owned()), bucket.clone()));
        Facts { at: self.now, objects: Arc::new(self.objects.clone()), buckets: buckets.collect() }
    }

    pub(super) fn judge(&self) -> Judgement {
        let history = History { events: self.events.clone(), trace: self.lines.iter().cloned().collect() };
        let end = self.facts();
        judge(&Case { history: &history, end: &end, setting: &self.setting, shown: &self.shown })
    }

    /// Asserts that no promise is broken and no limit was met.
    #[track_caller]
    pub(super) fn assert_kept(&self) {
        assert_eq!(self.judge(), Judgement::default());
    }

    /// Asserts that this promise is broken at the last event, with these words in the message.
    #[track_caller]
    pub(super) fn assert_broken(&self, promise: Promise, words: &str) {
        self.assert_found(promise, words, Some(self.events.len() - 1));
    }

    /// Asserts that this promise is broken in the end, with these words in the message.
    #[track_caller]
    pub(super) fn assert_broken_in_the_end(&self, promise: Promise, words: &str) {
        self.assert_found(promise, words, None);
    }

    #[track_caller]
    fn assert_found(&self, promise: Promise, words: &str, event: Option<usize>) {
        let judgement = self.judge();
        let fits = |found: &&super::super::Violation| {
            found.promise == promise && found.event == event && found.message.contains(words)
        };
        assert!(judgement.violations.iter().any(|found| fits(&found)), "{promise} {words:?} {event:?}: {judgement:#?}");
        assert!(!format!("{judgement:?}").contains("secret-of-key"), "a secret key is told");
    }

    /// Asserts that no promise is broken, and that this limit was met.
    #[track_caller]
    pub(super) fn assert_limit(&self, promise: Promise) {
        self.assert_limits(&[promise]);
    }

    /// Asserts that no promise is broken, and that these limits were met, in this order.
    #[track_caller]
    pub(super) fn assert_limits(&self, promises: &[Promise]) {
        let judgement = self.judge();
        assert_eq!(judgement.violations, []);
        assert_eq!(judgement.limits.iter().map(|limit| limit.promise).collect::<Vec<_>>(), promises);
    }
}

pub(super) fn encode(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

pub(super) fn key_id(number: u32) -> String {
    format!("AKIA{number}")
}

pub(super) fn key_name(number: u32) -> String {
    format!("vc-akia{number}")
}

pub(super) fn key_secret(number: u32) -> String {
    format!("secret-of-key-{number}-in-full")
}

pub(super) fn record(uid: &str) -> Value {
    let data = json!({
        "claim_uid": encode(uid), "endpoint": encode(&format!("http://{HOST}")), "bucket_name": encode(BUCKET),
        "backend": encode("main"), "generation": encode("1"),
    });
    let labels = json!({"broker.stowage.io/role": "bucket-record", "broker.stowage.io/claim-uid": uid});
    json!({"metadata": {"labels": labels}, "data": data})
}

pub(super) fn key(number: u32) -> Value {
    let scopes = json!([{"bucket": BUCKET, "backend": "main"}]).to_string();
    let labels = json!({
        "broker.stowage.io/role": "virtual-credential", "broker.stowage.io/claim-uid": UID,
        "broker.stowage.io/claim-namespace": "team-a", "broker.stowage.io/claim-name": "photos",
        "broker.stowage.io/rotation-generation": number.to_string(),
    });
    let data = json!({
        "claim_uid": encode(UID), "access_key_id": encode(&key_id(number)),
        "secret_access_key": encode(&key_secret(number)), "bucket_name": encode(BUCKET), "backend": encode("main"),
        "endpoint": encode(&format!("http://{HOST}")), "bucket_scopes": encode(&scopes),
    });
    json!({"metadata": {"labels": labels}, "data": data})
}

pub(super) fn consumer(number: u32) -> Value {
    let owners = json!([{"kind": "BucketClaim", "controller": true, "uid": UID, "name": "photos"}]);
    let data = json!({
        "AWS_ACCESS_KEY_ID": encode(&key_id(number)), "AWS_SECRET_ACCESS_KEY": encode(&key_secret(number)),
        "BUCKET_NAME": encode(BUCKET),
    });
    let labels = json!({"broker.stowage.io/role": "consumer-secret"});
    json!({"metadata": {"ownerReferences": owners, "labels": labels}, "data": data})
}

pub(super) fn empty_bucket(created: Timestamp) -> BucketSnapshot {
    BucketSnapshot {
        owner: "stowage-admin".to_owned(),
        region: "us-east-1".to_owned(),
        created,
        tags: None,
        versioning: Versioning::Unversioned,
        objects: 0,
        versions: 0,
        delete_markers: 0,
        uploads: 0,
    }
}

pub(super) fn tag(bucket: &mut Option<BucketSnapshot>, uid: &str) {
    if let Some(bucket) = bucket {
        bucket.tags = Some(BTreeMap::from([("broker.stowage.io/claim-uid".to_owned(), uid.to_owned())]));
    }
}

/// Returns the bucket as replaced by a stranger: with another owner's tags, and not empty.
pub(super) fn usurped(created: Timestamp) -> BucketSnapshot {
    let mut bucket = Some(empty_bucket(created));
    tag(&mut bucket, "another");
    BucketSnapshot { objects: 1, versions: 1, ..bucket.unwrap() }
}
