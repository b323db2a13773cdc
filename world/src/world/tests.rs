//! Tests of each fault that the world performs, with clients of the simulated cluster and store
//! behind the fault layer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, ResourceExt};
use rstest::rstest;
use s3_sim::InProcess;
use serde_json::{Value, json};
use stowage_operator::api::wire;
use tower::{Layer, ServiceExt};

use super::*;
use crate::effects::{Gate, Instance};
use crate::installation::{ADMIN_ACCESS_KEY, ADMIN_ACCOUNT, ADMIN_SECRET_KEY, STORE_ENDPOINT};
use explore::ApiBody;

const CLAIM: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
---
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: photos, namespace: team-a, finalizers: [broker.stowage.io/bucketclaim-protection]}
spec: {backendRef: {name: main}}
";

/// A world with one claim, and the operator instance that its clients belong to.
pub(super) struct Bench {
    pub(super) world: World,
    instance: Instance,
}

impl Bench {
    pub(super) async fn new(plan: &str) -> Self {
        let plan = plan.parse().unwrap_or_else(|error| panic!("{error}"));
        let world = World::new(Options { plan, ..Options::default() });
        world.apply(&world.kube(), CLAIM).await;
        let instance = world.effects.instance();
        Self { world, instance }
    }

    pub(super) fn secrets(&self) -> Api<Secret> {
        let gate = Gate::before(&self.instance);
        let own = move |body| ApiBody::counted(body, Arc::default(), gate.clone());
        let api = self.world.cluster.service().map_response(move |response| response.map(own));
        let client = kube::Client::new(self.world.effects.kube_layer(&self.instance).layer(api), "team-a");
        Api::namespaced(client, "team-a")
    }

    fn s3(&self) -> aws_sdk_s3::Client {
        let service = self.world.effects.s3_layer(&self.instance).layer(self.world.stores.clone());
        let config =
            InProcess::new(service).client(ADMIN_ACCESS_KEY, ADMIN_SECRET_KEY, "us-east-1").config().to_builder();
        aws_sdk_s3::Client::from_conf(config.endpoint_url(STORE_ENDPOINT).build())
    }

    fn claim(&self) -> Value {
        self.world.cluster.object("bucketclaims", "team-a", "photos").map_or(Value::Null, |claim| (*claim).clone())
    }

    fn secret(&self, namespace: &str, name: &str) -> Value {
        self.world.cluster.object("secrets", namespace, name).map_or(Value::Null, |secret| (*secret).clone())
    }

    /// Creates the claim's three Secrets like the operator does.
    fn make_secrets(&self) {
        for (namespace, name, role) in [
            ("team-a", "photos-s3", "consumer-secret"),
            (OPERATOR_NAMESPACE, "vc-1", "virtual-credential"),
            (OPERATOR_NAMESPACE, "br-1", "bucket-record"),
        ] {
            let labels = json!({
                wire::ROLE: role, wire::CLAIM_NAMESPACE: "team-a", wire::CLAIM_NAME: "photos", wire::BUCKET: "photos",
            });
            let owner = json!([{"apiVersion": "v1", "kind": "Secret", "name": "x", "uid": "x"}]);
            let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "ownerReferences": owner});
            let data = json!({"AWS_SECRET_ACCESS_KEY": "c2VjcmV0"});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data});
            assert!(self.world.cluster.create(secret));
        }
    }

    /// Sets this label value in a Secret, and creates the Secret if needed, without faults.
    fn write(&self, name: &str, value: &str) {
        let cluster = &self.world.cluster;
        let metadata = json!({"name": name, "namespace": "team-a", "labels": {"value": value}});
        if !cluster.create(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})) {
            assert!(cluster.change("secrets", "team-a", name, |s| s["metadata"]["labels"]["value"] = json!(value)));
        }
    }

    /// Returns the events within this time of a watch on all Secrets that starts now, such as
    /// `ADDED a=1`. The flag is true if the watch ended.
    async fn watched(&self, within: Duration, during: impl Future<Output = ()>) -> (Vec<String>, bool) {
        let version = self.world.cluster.resource_version().to_string();
        let stream = self.secrets().watch(&WatchParams::default(), &version).await.expect("the watch opens");
        let mut stream = stream.boxed();
        let mut seen = Vec::new();
        let told = async {
            while let Some(event) = stream.next().await {
                seen.push(match event.expect("an event") {
                    WatchEvent::Added(secret) => format!("ADDED {}", state(&secret)),
                    WatchEvent::Modified(secret) => format!("MODIFIED {}", state(&secret)),
                    WatchEvent::Deleted(secret) => format!("DELETED {}", state(&secret)),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(status) => format!("ERROR {}", status.code),
                });
            }
        };
        let ((), told) = tokio::join!(during, tokio::time::timeout(within, told));
        (seen, told.is_ok())
    }
}

fn state(secret: &Secret) -> String {
    format!("{}={}", secret.name_any(), secret.labels().get("value").map_or("", String::as_str))
}

fn code<T>(answer: Result<T, kube::Error>) -> (u16, String) {
    match answer {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        _ => (200, String::new()),
    }
}

fn s3_code<T, E>(answer: &Result<T, aws_sdk_s3::error::SdkError<E>>) -> String
where
    E: aws_sdk_s3::error::ProvideErrorMetadata,
{
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.as_service_error().and_then(|e| e.code()).unwrap_or("unreadable").to_owned(),
    }
}

#[rstest]
#[case("foreign", Some("eA=="))]
#[case("own", Some("b3Vycw=="))]
#[tokio::test(start_paused = true)]
async fn a_name_is_taken_by_a_stranger_or_by_an_earlier_attempt(#[case] rival: &str, #[case] data: Option<&str>) {
    let bench = Bench::new(&format!("kube:create secrets already-exists({rival})")).await;
    let wanted = json!({"metadata": {"name": "s", "labels": {"a": "b"}}, "data": {"ours": "b3Vycw=="}});
    let wanted: Secret = serde_json::from_value(wanted).expect("a Secret");
    let answer = bench.secrets().create(&PostParams::default(), &wanted).await;
    assert_eq!(code(answer), (409, "AlreadyExists".to_owned()));
    let stored = bench.secret("team-a", "s");
    let field = if rival == "own" { "ours" } else { "stranger" };
    assert_eq!(stored["data"][field].as_str(), data);
    assert_eq!(stored["metadata"]["labels"]["a"] == "b", rival == "own");
}

#[tokio::test(start_paused = true)]
async fn stale_reads_show_the_kind_as_it_was() {
    let bench =
        Bench::new("kube:get secrets@1 stale(2); kube:get secrets@2 stale(3); kube:list secrets@1 stale(1)").await;
    bench.write("s", "1");
    bench.write("s", "2");
    bench.write("s", "3");
    assert_eq!(state(&bench.secrets().get("s").await.unwrap()), "s=1");
    assert_eq!(code(bench.secrets().get("s").await).0, 404, "before it was made");
    let old = bench.secrets().list(&ListParams::default()).await.unwrap();
    assert_eq!(old.items.iter().map(state).collect::<Vec<_>>(), ["s=2"]);
    let new = bench.secrets().list(&ListParams::default()).await.unwrap();
    assert_eq!(new.items.iter().map(state).collect::<Vec<_>>(), ["s=3"]);
    let version = |list: &kube::core::ObjectList<Secret>| list.metadata.resource_version.clone().unwrap();
    assert!(version(&old).parse::<u64>().unwrap() < version(&new).parse().unwrap(), "a watch goes on from there");
}

#[tokio::test(start_paused = true)]
async fn a_rewound_list_is_from_half_of_the_history_ago() {
    let bench = Bench::new("kube:list secrets@1 rewind").await;
    for value in ["1", "2", "3", "4"] {
        bench.write("s", value);
    }
    let list = bench.secrets().list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.iter().map(state).collect::<Vec<_>>(), ["s=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_shuffled_list_has_all_in_another_order_and_an_expired_one_is_410() {
    let bench = Bench::new("kube:list secrets@1 shuffle; kube:list secrets@2 expired-continue").await;
    bench.write("a", "1");
    bench.write("b", "1");
    let list = bench.secrets().list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.iter().map(state).collect::<Vec<_>>(), ["b=1", "a=1"]);
    assert_eq!(code(bench.secrets().list(&ListParams::default()).await), (410, "Expired".to_owned()));
}

#[rstest]
#[case("", &["ADDED s=1", "MODIFIED s=2", "ADDED t=1", "DELETED t=1", "DELETED s=2", "ADDED s=3"], false)]
#[case("watch-cut", &[], true)]
#[case("watch-gone", &["ERROR 410"], true)]
#[case("watch-silent", &[], false)]
#[case("collapse", &["ADDED s=3"], false)]
#[tokio::test(start_paused = true)]
async fn a_watch_goes_wrong(#[case] fault: &str, #[case] told: &[&str], #[case] ended: bool) {
    let plan = if fault.is_empty() { String::new() } else { format!("kube:watch secrets {fault}") };
    let bench = Bench::new(&plan).await;
    let changes = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.write("s", "1");
        bench.write("s", "2");
        bench.write("t", "1");
        bench.world.cluster.remove("secrets", "team-a", "t");
        bench.world.cluster.remove("secrets", "team-a", "s");
        bench.write("s", "3");
    };
    let (seen, over) = bench.watched(Duration::from_secs(60), changes).await;
    assert_eq!((seen, over), (told.iter().map(ToString::to_string).collect(), ended));
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_outlasts_the_time_that_was_asked_for() {
    let bench = Bench::new("kube:watch secrets watch-silent").await;
    let (seen, over) = bench.watched(Duration::from_secs(86_400), async { bench.write("s", "1") }).await;
    assert_eq!((seen.len(), over), (0, false));
}

#[tokio::test(start_paused = true)]
async fn a_duplicating_watch_tells_all_twice() {
    let bench = Bench::new("kube:watch secrets watch-duplicate").await;
    let (seen, _) = bench.watched(Duration::from_secs(10), async { bench.write("s", "1") }).await;
    assert_eq!(seen, ["ADDED s=1", "ADDED s=1"]);
}

#[rstest]
#[case(3, &[])]
#[case(4, &["ADDED s=1"])]
#[case(6, &["ADDED s=1", "MODIFIED s=2", "MODIFIED s=3"])]
#[tokio::test(start_paused = true)]
async fn a_stale_watch_tells_late(#[case] seconds: u64, #[case] told: &[&str]) {
    let bench = Bench::new("kube:watch secrets stale(2)").await;
    let changes = async {
        bench.write("s", "1");
        bench.write("s", "2");
        tokio::time::sleep(Duration::from_millis(3500)).await;
        bench.write("s", "3");
    };
    let (seen, _) = bench.watched(Duration::from_secs(seconds), changes).await;
    assert_eq!(seen, told);
}

#[tokio::test(start_paused = true)]
async fn the_collector_comes_late() {
    let bench = Bench::new("kube:delete secrets gc-late").await;
    bench.write("s", "1");
    let owned = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owned", "namespace": "team-a",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "gone", "uid": "gone"}]}});
    bench.secrets().delete("s", &DeleteParams::default()).await.unwrap();
    assert!(bench.world.cluster.create(owned));
    bench.world.run_cluster_controllers();
    assert!(!bench.secret("team-a", "owned").is_null());
    bench.world.pass(Duration::from_secs(61)).await;
    bench.world.run_cluster_controllers();
    assert!(bench.secret("team-a", "owned").is_null());
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_made_again_under_the_operators_hands() {
    let bench = Bench::new("kube:get secrets recreate").await;
    let before = bench.claim();
    let _ = bench.secrets().get("any").await;
    let after = bench.claim();
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(before["spec"], after["spec"]);
    assert!(after["metadata"]["finalizers"].is_null(), "{after:#}");
}

#[rstest]
#[case("edit-consumer", "team-a", "photos-s3", "/data/AWS_SECRET_ACCESS_KEY", json!("dGFtcGVyZWQ="))]
#[case("forge-consumer", "team-a", "photos-s3", "/metadata/labels/broker.stowage.io~1rotation-generation", json!(u64::MAX.to_string()))]
#[case("empty-consumer", "team-a", "photos-s3", "/data", Value::Null)]
#[case("delete-consumer", "team-a", "photos-s3", "", Value::Null)]
#[case("relabel-consumer", "team-a", "photos-s3", "/metadata/labels", Value::Null)]
#[case("disown-consumer", "team-a", "photos-s3", "/metadata/ownerReferences", Value::Null)]
#[case("relabel-internal", OPERATOR_NAMESPACE, "br-1", "/metadata/labels", Value::Null)]
#[case("delete-credential", OPERATOR_NAMESPACE, "vc-1", "", Value::Null)]
#[case("delete-record", OPERATOR_NAMESPACE, "br-1", "", Value::Null)]
#[tokio::test(start_paused = true)]
async fn a_third_party_tampers_with_what_is_named_and_with_nothing_else(
    #[case] what: &str,
    #[case] namespace: &str,
    #[case] name: &str,
    #[case] pointer: &str,
    #[case] left: Value,
) {
    let bench = Bench::new(&format!("s3:ListBuckets tamper({what})")).await;
    bench.make_secrets();
    let all = [("team-a", "photos-s3"), (OPERATOR_NAMESPACE, "vc-1"), (OPERATOR_NAMESPACE, "br-1")];
    let before: BTreeMap<_, _> = all.map(|(namespace, name)| (name, bench.secret(namespace, name))).into();
    bench.s3().list_buckets().send().await.unwrap();
    assert_eq!(*bench.secret(namespace, name).pointer(pointer).unwrap_or(&Value::Null), left);
    let untouched = |(_, other): &&(&str, &str)| *other != name && !(what == "relabel-internal" && *other == "vc-1");
    for (namespace, other) in all.iter().filter(untouched) {
        assert_eq!(bench.secret(namespace, other), before[other], "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_third_party_forges_the_secret_of_a_claim_that_has_none() {
    let bench = Bench::new("s3:ListBuckets tamper(forge-consumer)").await;
    bench.s3().list_buckets().send().await.unwrap();
    let (claim, forged) = (bench.claim(), bench.secret("team-a", "photos-s3"));
    assert_eq!(forged["metadata"]["ownerReferences"][0]["uid"], claim["metadata"]["uid"]);
    assert_eq!(forged["metadata"]["labels"][wire::BACKEND], claim["spec"]["backendRef"]["name"]);
    assert_eq!(forged["data"]["BUCKET_NAME"], json!(BASE64_STANDARD.encode("team-a-photos")));
    assert!(forged["data"]["AWS_ACCESS_KEY_ID"].is_string());
}

/// A Secret that was deleted in the meantime disappears then.
#[tokio::test(start_paused = true)]
async fn a_third_party_keeps_internal_secrets_for_five_minutes() {
    let bench = Bench::new("s3:ListBuckets tamper(keep-internal)").await;
    bench.make_secrets();
    bench.s3().list_buckets().send().await.unwrap();
    let internal: Api<Secret> = Api::namespaced(bench.world.kube(), OPERATOR_NAMESPACE);
    internal.delete("vc-1", &DeleteParams::default()).await.unwrap();
    for (seconds, there, kept) in [(299, true, json!(["example.com/backup"])), (2, false, Value::Null)] {
        bench.world.pass(Duration::from_secs(seconds)).await;
        assert_eq!(bench.secret(OPERATOR_NAMESPACE, "br-1")["metadata"]["finalizers"], kept);
        assert_eq!(!bench.secret(OPERATOR_NAMESPACE, "vc-1").is_null(), there);
        assert!(bench.secret("team-a", "photos-s3")["metadata"]["finalizers"].is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_third_party_strips_finalizers() {
    let bench = Bench::new("s3:ListBuckets tamper(strip-finalizers)").await;
    bench.s3().list_buckets().send().await.unwrap();
    let claim = bench.claim();
    assert!(claim["metadata"]["finalizers"].is_null() && !claim["metadata"]["uid"].is_null());
}

#[rstest]
#[case("retain", "/spec/deletionPolicy", json!("Retain"))]
#[case("delete", "/spec/deletionPolicy", json!("Delete"))]
#[case("force", "/spec/forceDelete", json!(true))]
#[case("no-force", "/spec/forceDelete", json!(false))]
#[case("rotate", "/metadata/annotations/broker.stowage.io~1rotate", json!("by-edit"))]
#[case("revoke", "/metadata/annotations/broker.stowage.io~1revoke", json!("by-edit"))]
#[case("quota", "/spec/quota/hard", json!("2Gi"))]
#[case("rename", "/spec/writeConnectionSecretToRef/name", json!("renamed-by-edit"))]
#[case("pause", "/metadata/annotations/broker.stowage.io~1paused", json!("true"))]
#[case("resume", "/metadata/annotations/broker.stowage.io~1paused", Value::Null)]
#[tokio::test(start_paused = true)]
async fn a_user_edits_the_claim(#[case] what: &str, #[case] pointer: &str, #[case] value: Value) {
    let bench = Bench::new(&format!("s3:ListBuckets edit({what})")).await;
    let kind = GroupVersionKind::gvk("broker.stowage.io", "v1alpha1", "BucketClaim");
    let api: Api<DynamicObject> = Api::namespaced_with(bench.world.kube(), "team-a", &ApiResource::from_gvk(&kind));
    // A spec and annotation that each edit changes.
    let start = json!({
        "metadata": {"annotations": {wire::PAUSED: if what == "pause" { Value::Null } else { json!("true") }}},
        "spec": {
            "deletionPolicy": if what == "delete" || what == "force" { "Retain" } else { "Delete" },
            "forceDelete": what == "no-force",
        },
    });
    api.patch("photos", &PatchParams::default(), &Patch::Merge(&start)).await.expect("the patch is good");
    let generation = bench.claim()["metadata"]["generation"].as_i64();
    bench.s3().list_buckets().send().await.unwrap();
    let claim = bench.claim();
    assert_eq!(*claim.pointer(pointer).unwrap_or(&Value::Null), value, "{claim:#}");
    let counted = claim["metadata"]["generation"].as_i64() > generation;
    assert_eq!(counted, pointer.starts_with("/spec"), "an edit of the spec counts");
}

#[rstest]
#[case("already-owned", "BucketAlreadyOwnedByYou", ADMIN_ACCOUNT)]
#[case("already-exists", "BucketAlreadyExists", "stranger")]
#[case("ok-on-existing", "ok", ADMIN_ACCOUNT)]
#[tokio::test(start_paused = true)]
async fn a_create_finds_a_bucket(#[case] fault: &str, #[case] answer: &str, #[case] owner: &str) {
    let bench = Bench::new(&format!("s3:CreateBucket {fault}")).await;
    assert_eq!(s3_code(&bench.s3().create_bucket().bucket("photos").send().await), answer);
    let bucket = bench.world.store.bucket("photos").unwrap();
    assert_eq!((bucket.owner.as_str(), bucket.tags), (owner, None));
}

/// Returns a store with two objects in the bucket `photos`.
async fn with_objects(plan: &str) -> Bench {
    let bench = Bench::new(plan).await;
    bench.world.store.put_bucket(ADMIN_ACCOUNT, "photos");
    bench.world.store.put_object("photos", "a", "a");
    bench.world.store.put_object("photos", "b", "b");
    bench
}

/// Deletes both objects. Returns the keys with their own error and its code.
async fn delete_both(bench: &Bench) -> Vec<String> {
    let key = |key: &str| aws_sdk_s3::types::ObjectIdentifier::builder().key(key).build().unwrap();
    let delete = aws_sdk_s3::types::Delete::builder().objects(key("a")).objects(key("b")).build().unwrap();
    let answer = bench.s3().delete_objects().bucket("photos").delete(delete).send().await.unwrap();
    let error = |error: &aws_sdk_s3::types::Error| format!("{} {}", error.key().unwrap(), error.code().unwrap());
    answer.errors().iter().map(error).collect()
}

#[tokio::test(start_paused = true)]
async fn a_partial_delete_leaves_one_key_and_says_so_in_an_answer_of_200() {
    let bench = with_objects("s3:DeleteObjects@1 partial-delete").await;
    assert_eq!(delete_both(&bench).await, ["a InternalError"]);
    assert_eq!(bench.world.store.objects("photos").into_keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(delete_both(&bench).await, [""; 0]);
    assert!(bench.world.store.objects("photos").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_locked_object_stays() {
    let bench = with_objects("s3:DeleteObject@1 locked").await;
    let version = bench.world.store.versions("photos")["a"][0].id.clone();
    let one = bench.s3().delete_object().bucket("photos").key("a").version_id(version).send().await;
    assert_eq!(s3_code(&one), "AccessDenied");
    assert_eq!(bench.world.store.versions("photos").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn objects_arrive_late() {
    let bench = with_objects("s3:DeleteBucket late-write").await;
    assert_eq!(delete_both(&bench).await, [""; 0]);
    assert_eq!(s3_code(&bench.s3().delete_bucket().bucket("photos").send().await), "BucketNotEmpty");
    let bucket = bench.world.store.bucket("photos").unwrap();
    assert_eq!((bucket.objects, bucket.uploads), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_vanishes() {
    let bench = with_objects("s3:GetBucketTagging vanish").await;
    assert_eq!(s3_code(&bench.s3().get_bucket_tagging().bucket("photos").send().await), "NoSuchBucket");
    assert!(bench.world.store.buckets().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_bucket_is_anothers_now() {
    let bench = with_objects("s3:GetBucketTagging usurp").await;
    let answer = bench.s3().get_bucket_tagging().bucket("photos").send().await.unwrap();
    let claim = answer.tag_set().iter().find(|tag| tag.key() == wire::TAG_CLAIM).map(|tag| tag.value().to_owned());
    assert_eq!(claim.as_deref(), Some("another/claim"));
    assert_eq!(bench.world.store.objects("photos").into_keys().collect::<Vec<_>>(), ["theirs"]);
    let bench = with_objects("s3:GetBucketTagging usurp(empty)").await;
    bench.s3().get_bucket_tagging().bucket("photos").send().await.unwrap();
    assert_eq!(bench.world.store.objects("photos").len(), 0);
    assert!(bench.world.store.bucket("photos").is_some_and(|bucket| bucket.tags.is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_is_from_before_the_last_write() {
    let bench = Bench::new("s3:GetBucketTagging@1 stale-read").await;
    let s3 = bench.s3();
    s3.create_bucket().bucket("photos").send().await.unwrap();
    assert_eq!(s3_code(&s3.create_bucket().bucket("photos").send().await), "BucketAlreadyOwnedByYou");
    assert_eq!(s3_code(&s3.get_bucket_tagging().bucket("photos").send().await), "NoSuchBucket");
    assert_eq!(s3_code(&s3.get_bucket_tagging().bucket("photos").send().await), "NoSuchTagSet");
}

#[tokio::test(start_paused = true)]
async fn an_error_under_200_is_no_answer() {
    let bench = with_objects("s3:ListObjectVersions@1 error-in-200").await;
    assert_ne!(s3_code(&bench.s3().list_object_versions().bucket("photos").send().await), "ok");
    assert_eq!(bench.s3().list_object_versions().bucket("photos").send().await.unwrap().versions().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_truncated_answer_is_one_of_which_the_end_is_missing() {
    let bench = with_objects("s3:ListObjectVersions@1 truncated").await;
    let cut = bench.s3().list_object_versions().bucket("photos").send().await;
    assert!(cut.map_or(0, |answer| answer.versions().len()) < 2);
    assert_eq!(bench.s3().list_object_versions().bucket("photos").send().await.unwrap().versions().len(), 2);
}

/// A query of an unchanged world shares the objects of the previous one.
#[tokio::test(start_paused = true)]
async fn each_look_shows_what_there_is_by_then() {
    let bench = Bench::new("").await;
    let [before, again] = [(); 2].map(|()| bench.world.facts());
    assert!(Arc::ptr_eq(&before.objects, &again.objects) && !before.claim("team-a", "photos").is_null());
    assert!(bench.world.cluster.change("bucketclaims", "team-a", "photos", |claim| {
        claim["metadata"]["labels"]["looked"] = "at".into();
    }));
    assert_eq!(bench.world.facts().claim("team-a", "photos")["metadata"]["labels"]["looked"], "at");
    bench.world.cluster.remove("bucketclaims", "team-a", "photos");
    assert!(bench.world.facts().claim("team-a", "photos").is_null());
    assert!(before.claim("team-a", "photos")["metadata"]["labels"]["looked"].is_null(), "what was seen stays so");
}
