//! The chart's admission policies on a real API server: the objects that they refuse, and that they
//! refuse nothing else.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, GROUP};
use tokio::time::sleep;

use super::apply::{PATIENCE, apply, put};
use super::helm::NAMESPACE;

/// Interval between attempts at a refused request: a server takes a moment to load a policy.
const PAUSE: Duration = Duration::from_millis(200);
/// A namespace with the label that a backend requires.
const LABELLED: &str = "team-a";

pub(super) fn backend(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "endpoint": "http://127.0.0.1:9",
        "adminCredentialsSecretRef": {"name": "main-admin", "namespace": NAMESPACE},
    });
    merge(&mut spec, more);
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "S3Backend", "metadata": {"name": name}, "spec": spec})
}

pub(super) fn claim(namespace: &str, name: &str, backend: &str, more: &Value) -> Value {
    let mut spec = json!({"backendRef": {"name": backend}});
    merge(&mut spec, more);
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "BucketClaim",
           "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// Returns an access to these buckets, with further fields of its spec.
pub(super) fn access(namespace: &str, buckets: &Value, more: &Value) -> Value {
    let mut spec = json!({"buckets": buckets, "writeConnectionSecretToRef": {"name": "shared"}});
    merge(&mut spec, more);
    json!({"apiVersion": format!("{GROUP}/v1alpha1"), "kind": "BucketAccess",
           "metadata": {"name": "shared", "namespace": namespace}, "spec": spec})
}

fn of_claim(name: &str) -> Value {
    json!({"claimRef": {"name": name}})
}

fn of_bucket(backend: &str, name: &str) -> Value {
    json!({"bucketRef": {"backend": backend, "name": name}})
}

fn merge(into: &mut Value, more: &Value) {
    for (field, value) in more.as_object().into_iter().flatten() {
        into[field] = value.clone();
    }
}

/// Returns the claims and backends to be refused, with a part of the message.
fn refused() -> Vec<(Value, &'static str)> {
    vec![
        (claim("default", "films", "labelled", &json!({})), "is not for namespace default"),
        (claim("default", "films", "named", &json!({})), "is not for namespace default"),
        (claim("default", "films", "nobodys", &json!({})), "is not for namespace default"),
        (claim("default", "ab", "short", &json!({})), "would call the bucket ab, which is no name of a bucket"),
        (
            backend("stolen", &json!({"adminCredentialsSecretRef": {"name": "admin", "namespace": "kube-system"}})),
            "the operator of stowage-system reads no Secrets in kube-system",
        ),
    ]
}

/// Returns the accesses and Secret templates to be refused, with a part of the message.
fn refused_of_tenants() -> Vec<(Value, &'static str)> {
    let own = json!([{"claimRef": {"name": "photos", "namespace": "default"}}, of_claim("photos")]);
    let none = json!({});
    let template = |template: Value| json!({"secretTemplate": template});
    let with = |it: Value| access("default", &json!([of_claim("photos")]), &template(it));
    vec![
        (access("default", &own, &none), "spec.buckets has claim default/photos more than once"),
        (
            access("default", &json!([of_bucket("named", "films"), of_bucket("short", "films")]), &none),
            "spec.buckets has bucket films more than once",
        ),
        (access("default", &json!([of_bucket("named", "1.2.3.4")]), &none), "1.2.3.4 is no name of a bucket"),
        (
            access(
                "default",
                &json!([{"claimRef": {"name": "photos"}, "prefix": format!("{}/", "é".repeat(256))}]),
                &none,
            ),
            "a prefix in spec.buckets has more than 512 bytes",
        ),
        (access(NAMESPACE, &json!([of_claim("photos")]), &none), "holds Secrets of the operator"),
        (claim(NAMESPACE, "films", "short", &none), "holds Secrets of the operator"),
        (with(json!({"data": {"AWS_REGION": "x"}})), "the operator writes AWS_REGION itself"),
        (with(json!({"data": {"url": "{{{ .Endpoint }}"}})), "what stands between two braces in url"),
        (with(json!({"data": {"a/b": "x"}})), "none of a Secret"),
        (with(json!({"omitDefaults": true})), "with omitDefaults, spec.secretTemplate.data"),
        (with(json!({"labels": {"team": "a"}})), "spec.secretTemplate may not write team"),
        (
            claim("default", "films", "short", &template(json!({"data": {"url": "{{ .Password }}"}}))),
            "what stands between two braces in url",
        ),
    ]
}

/// Returns the objects to be accepted.
fn taken() -> Vec<Value> {
    let template = json!({"data": {"url": "{ {{.Endpoint}}/{{ .Bucket }}\n}}"}, "omitDefaults": true});
    vec![
        // Its claim, or the owner's consent, may be created later.
        access("default", &json!([of_claim("photos"), of_bucket("nobodys", "films")]), &json!({})),
        access("default", &json!([of_claim("photos")]), &json!({"secretTemplate": template})),
        claim(LABELLED, "photos", "labelled", &json!({})),
        claim(LABELLED, "photos", "named", &json!({})),
        claim("default", "abc", "short", &json!({})),
        claim("default", "ab", "short", &json!({"bucketName": "a-good-name"})),
        // Its backend may be created later.
        claim("default", "films", "not-there", &json!({})),
    ]
}

/// Checks the policies of the installed chart, and deletes the objects that it created.
pub(super) async fn play(client: &Client) -> Result<()> {
    let label = json!({"team": "a"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": LABELLED, "labels": label}});
    apply(client, &namespace).await?;
    let expression = json!([{"key": "team", "operator": "In", "values": ["a", "b"]}]);
    let selector = json!({"selector": {"matchLabels": label, "matchExpressions": expression}});
    let backends = [
        backend("labelled", &json!({"allowedNamespaces": selector})),
        backend("named", &json!({"allowedNamespaces": {"names": [LABELLED]}})),
        backend("nobodys", &json!({"allowedNamespaces": {}})),
        backend("short", &json!({"bucketNameTemplate": "{{ .Name }}"})),
    ];
    for backend in &backends {
        apply(client, backend).await?;
    }
    let dry = PatchParams::apply("somebody").dry_run();
    for (object, words) in refused().into_iter().chain(refused_of_tenants()) {
        is_refused(client, &object, &dry, words).await?;
    }
    for object in taken() {
        put(client, &object, &dry).await?;
    }
    edits(client).await?;
    definitions(client).await?;
    for backend in &backends {
        let name = backend["metadata"]["name"].as_str().unwrap_or_default();
        Api::<stowage_operator::api::S3Backend>::all(client.clone()).delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Retries until the object is refused with this message; fails if it is accepted for too long.
pub(super) async fn is_refused(client: &Client, object: &Value, how: &PatchParams, words: &str) -> Result<()> {
    let began = Instant::now();
    loop {
        match put(client, object, how).await {
            Err(why) if format!("{why:#}").contains(words) => return Ok(()),
            Err(why) => bail!("it is refused, but without the words `{words}`: {why:#}"),
            Ok(_) => ensure!(began.elapsed() < PATIENCE, "this is not refused: {object}"),
        }
        sleep(PAUSE).await;
    }
}

/// Checks a claim in a namespace that its backend no longer allows: the owner can still edit and
/// delete it, but can't move it to a backend that doesn't allow the namespace.
async fn edits(client: &Client) -> Result<()> {
    apply(client, &claim(LABELLED, "photos", "named", &json!({}))).await?;
    apply(client, &backend("named", &json!({"allowedNamespaces": {"names": ["another-team"]}}))).await?;
    let claims: Api<BucketClaim> = Api::namespaced(client.clone(), LABELLED);
    let patch = async |patch: Value| claims.patch("photos", &PatchParams::default(), &Patch::Merge(patch)).await;
    let forced = json!({"spec": {"deletionPolicy": "Delete"}, "metadata": {"finalizers": ["example.org/kept"]}});
    patch(forced).await.context("an edit of a claim that is there is refused")?;
    let moved = patch(json!({"spec": {"backendRef": {"name": "nobodys"}}})).await;
    ensure!(moved.is_err(), "a claim moved to a backend that is for nobody");
    claims.delete("photos", &DeleteParams::default()).await.context("a deletion is refused")?;
    patch(json!({"metadata": {"finalizers": null}})).await.context("a finalizer can't be taken off")?;
    ensure!(claims.get_opt("photos").await?.is_none(), "the claim is still there");
    Ok(())
}

/// Checks that a CustomResourceDefinition can't be deleted by accident, but can with the annotation
/// `broker.stowage.io/may-be-deleted`.
async fn definitions(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let name = "bucketclaims.broker.stowage.io";
    let began = Instant::now();
    let refused = loop {
        match definitions.delete(name, &dry).await {
            Err(why) => break why.to_string(),
            Ok(_) if began.elapsed() > PATIENCE => bail!("the deletion of {name} is not refused"),
            Ok(_) => tokio::time::sleep(PAUSE).await,
        }
    };
    ensure!(
        refused.contains("all its objects in the cluster are deleted"),
        "it is refused for another reason: {refused}"
    );
    let all = definitions.delete_collection(&dry, &ListParams::default()).await;
    let refused = all.err().context("the deletion of all definitions in one request is not refused")?.to_string();
    ensure!(
        refused.contains("all its objects in the cluster are deleted"),
        "that is refused for another reason: {refused}"
    );
    let meant =
        |value: Value| Patch::Merge(json!({"metadata": {"annotations": {"broker.stowage.io/may-be-deleted": value}}}));
    definitions.patch(name, &PatchParams::default(), &meant("true".into())).await?;
    definitions.delete(name, &dry).await.context("a deletion that is meant is refused")?;
    definitions.patch(name, &PatchParams::default(), &meant(Value::Null)).await?;
    Ok(())
}
