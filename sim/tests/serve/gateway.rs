//! Gateway and store as servers of their own, as the pods of a stage are.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart, Delete, ObjectIdentifier};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stowage_sim::gateway::{Gateway, Remote};
use stowage_sim::serve::{self, RequestLog, Server};

use crate::parts::{ACCESS_KEY, ANYWHERE, Parts, SECRET_KEY, client_with, soon};

const TENANT: &str = "AKIATENANT";
const TENANT_SECRET: &str = "tenant-secret";

/// A gateway that follows the cluster and passes requests on to the store; with the tenant's Secret
/// in place.
async fn gateway(parts: &Parts, log: &RequestLog) -> Server {
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "vc-akiatenant", "labels": {"broker.stowage.io/role": "virtual-credential"}},
        "stringData": {
            "access_key_id": TENANT, "secret_access_key": TENANT_SECRET,
            "bucket_scopes": r#"[{"bucket":"photos","backend":"main"}]"#,
        },
    }))
    .expect("it is a Secret");
    let secrets: Api<Secret> = Api::namespaced(parts.kube(), "default");
    soon(secrets.create(&PostParams::default(), &secret)).await.unwrap();
    let store = Remote::new(&parts.stored.url().parse().unwrap(), "us-east-1", ACCESS_KEY, SECRET_KEY).unwrap();
    let stores = BTreeMap::from([("main".to_owned(), store)]);
    let gateway = Gateway::before_stores(parts.kube(), "default", Arc::new(jiff::Timestamp::now), stores);
    let server = serve::gateway(ANYWHERE, &gateway, log).await.unwrap();
    soon(async {
        while !gateway.is_ready() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tenant_does_arrives_at_the_store() {
    let parts = Parts::new("").await;
    parts.store.put_bucket(crate::parts::ACCOUNT, "photos");
    let log = RequestLog::default();
    let server = gateway(&parts, &log).await;
    let tenant = client_with(&server.url(), TENANT, TENANT_SECRET);
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
    let at_gateway: Vec<_> = log.requests().into_iter().map(|it| (it.operation.name(), it.who, it.status)).collect();
    assert_eq!(at_gateway.last(), Some(&("DeleteBucket", Some(TENANT.to_owned()), Some(403))));
    assert!(at_gateway.iter().all(|(_, who, _)| who.as_deref() == Some(TENANT)), "{at_gateway:?}");
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
    let server = gateway(&parts, &RequestLog::default()).await;
    let tenant = client_with(&server.url(), TENANT, TENANT_SECRET);
    soon(tenant.head_bucket().bucket("photos").send()).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(parts.kube(), "default");
    soon(secrets.delete("vc-akiatenant", &DeleteParams::default())).await.unwrap();
    soon(async {
        while tenant.list_buckets().send().await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    let refused = soon(tenant.list_buckets().send()).await.expect_err("nobody knows the key");
    assert_eq!(refused.code(), Some("InvalidAccessKeyId"));
}
