//! Tests of the production gateway and a store as separate servers, like the pods of an e2e
//! environment.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_gateway::front::{Config, Gateway, Gears};
use stowage_gateway::metrics::Metrics;
use stowage_gateway::registry::{Live, Registry, Setting, Source};
use stowage_gateway::server::{self, Gauges};
use stowage_gateway::upstream::RustlsConnect;
use stowage_operator::api::{self, S3Backend, Unlabelled};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::parts::{ACCESS_KEY, ANYWHERE, Parts, SECRET_KEY, client_with, soon};

const NAMESPACE: &str = "default";
const TENANT: &str = "AKIATENANT";
const TENANT_SECRET: &str = "tenant-secret-of-a-test-0123456789-abcde";
/// Interval between checks of a condition.
const LOOK: Duration = Duration::from_millis(5);

/// A gateway that serves until it is dropped.
struct Served {
    url: String,
    _work: JoinSet<()>,
}

/// Creates the gateway's objects in the cluster: a backend with its opted-in Secret, and a tenant's
/// key.
async fn populate(parts: &Parts) {
    for definition in api::crds() {
        parts.cluster.install_crd(&definition).expect("the project's definitions are valid");
    }
    let endpoint = parts.stored.url();
    let admin = json!({
        "metadata": {
            "name": "main-admin",
            "labels": {"broker.stowage.io/backend-credentials": "true"},
            "annotations": {"broker.stowage.io/endpoints": endpoint},
        },
        "stringData": {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY},
    });
    let backend = json!({
        "apiVersion": "broker.stowage.io/v1alpha1", "kind": "S3Backend", "metadata": {"name": "main"},
        "spec": {"endpoint": endpoint, "adminCredentialsSecretRef": {"name": "main-admin", "namespace": NAMESPACE}},
    });
    let tenants = json!({
        "metadata": {"name": "vc-akiatenant", "labels": {"broker.stowage.io/role": "virtual-credential"}},
        "stringData": {
            "access_key_id": TENANT, "secret_access_key": TENANT_SECRET, "claim_uid": "uid-of-the-claim",
            "bucket_scopes": r#"[{"bucket":"photos","backend":"main"}]"#,
        },
    });
    let secrets: Api<Secret> = Api::namespaced(parts.kube(), NAMESPACE);
    create(&secrets, admin).await;
    create(&Api::<S3Backend>::all(parts.kube()), backend).await;
    create(&secrets, tenants).await;
}

async fn create<K: Clone + Debug + DeserializeOwned + Serialize>(api: &Api<K>, object: Value) {
    let object = serde_json::from_value(object).expect("it is of that kind");
    soon(api.create(&PostParams::default(), &object)).await.unwrap();
}

/// Starts a gateway that watches the cluster and passes requests on to the store.
async fn gateway(parts: &Parts) -> Served {
    populate(parts).await;
    let registry =
        Registry::new(Setting { namespaces: [NAMESPACE.to_owned()].into(), unlabelled: Unlabelled::Refused });
    let gears = Gears {
        registry: registry.clone(),
        live: Live::new(parts.kube(), NAMESPACE),
        connect: Box::new(RustlsConnect),
        clock: Arc::new(jiff::Timestamp::now),
        clock_of_clients: Arc::new(jiff::Timestamp::now),
        first_id: 0,
        log: None,
        metrics: Metrics::new(),
    };
    let config = Config { max_staleness: Duration::MAX, ..Config::default() };
    let listener = TcpListener::bind(ANYWHERE).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let config_of_server = server::Config { drain: Duration::ZERO, grace: Duration::ZERO, ..server::Config::default() };
    let gateway = Gateway::new(gears, config);
    let source = Source {
        client: parts.kube(),
        namespace: NAMESPACE.to_owned(),
        watch: watcher::Config::default().disable_bookmarks(),
    };
    let (follows, ready) = (registry.follow(source), registry);
    let serves = server::serve(listener, gateway, None, config_of_server, Gauges::default(), std::future::pending());
    let mut work = JoinSet::new();
    work.spawn(async move { match follows.await {} });
    work.spawn(async move { serves.await.expect("the listener is there") });
    soon(async {
        while !ready.is_ready() {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    Served { url, _work: work }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_does_arrives_at_the_store() {
    let parts = Parts::new("").await;
    parts.store.put_bucket(crate::parts::ACCOUNT, "photos");
    let served = gateway(&parts).await;
    let tenant = client_with(&served.url, TENANT, TENANT_SECRET);
    let bucket = "photos";

    let body = ByteStream::from(vec![1; 200_000]);
    soon(tenant.put_object().bucket(bucket).key("a b").metadata("who", "me").body(body).send()).await.unwrap();
    let got = soon(tenant.get_object().bucket(bucket).key("a b").range("bytes=0-9").send()).await.unwrap();
    assert_eq!(got.metadata().and_then(|metadata| metadata.get("who")).map(String::as_str), Some("me"));
    assert_eq!(got.body.collect().await.unwrap().into_bytes(), vec![1; 10]);

    let upload = soon(tenant.create_multipart_upload().bucket(bucket).key("big").send()).await.unwrap();
    let id = upload.upload_id().expect("it has an id").to_owned();
    let part = tenant.upload_part().bucket(bucket).key("big").upload_id(&id).part_number(1);
    let part = soon(part.body(ByteStream::from(vec![2; 100_000])).send()).await.unwrap();
    let part = CompletedPart::builder().part_number(1).set_e_tag(part.e_tag).build();
    let whole = CompletedMultipartUpload::builder().parts(part).build();
    let complete = tenant.complete_multipart_upload().bucket(bucket).key("big").upload_id(&id).multipart_upload(whole);
    soon(complete.send()).await.unwrap();
    assert_eq!(parts.store.objects(bucket)["big"].len(), 100_000);

    let ids = ["a b", "big"].map(|key| ObjectIdentifier::builder().key(key).build().unwrap());
    let delete = Delete::builder().set_objects(Some(ids.to_vec())).build().unwrap();
    soon(tenant.delete_objects().bucket(bucket).delete(delete).send()).await.unwrap();
    assert!(parts.store.objects(bucket).is_empty());

    let denied = soon(tenant.delete_bucket().bucket(bucket).send()).await.expect_err("it is not the tenant's");
    assert_eq!(denied.code(), Some("AccessDenied"));
    assert!(
        parts
            .log
            .requests()
            .iter()
            .all(|it| it.who.as_deref() == Some(ACCESS_KEY) && it.operation.name() != "DeleteBucket")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_with_its_secret() {
    let parts = Parts::new("").await;
    parts.store.put_bucket(crate::parts::ACCOUNT, "photos");
    let served = gateway(&parts).await;
    let tenant = client_with(&served.url, TENANT, TENANT_SECRET);
    soon(tenant.head_bucket().bucket("photos").send()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(parts.kube(), NAMESPACE);
    soon(secrets.delete("vc-akiatenant", &DeleteParams::default())).await.unwrap();
    soon(async {
        while tenant.list_buckets().send().await.is_ok() {
            tokio::time::sleep(LOOK).await;
        }
    })
    .await;
    let refused = soon(tenant.list_buckets().send()).await.expect_err("nobody knows the key");
    assert_eq!(refused.code(), Some("InvalidAccessKeyId"));
}
