//! Changes that the tour makes to the cluster, as users make them with kubectl. Each command is
//! shown before it runs.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, ClaimRef};
use stowage_world::{Document, World, apply};
use terminal::{Span, Tone};

use super::step::Page;

/// Applies documents one after the other, as `kubectl apply` does, and awaits `applied` after each.
///
/// # Errors
/// Returns the server's message with the position of the document that it refused.
pub(super) async fn apply_all<'a>(
    world: &World,
    page: &mut Page,
    documents: impl Iterator<Item = &'a Document>,
    applied: impl AsyncFn(),
) -> Result<usize, String> {
    let documents: Vec<&Document> = documents.collect();
    let mut files: Vec<&str> = documents.iter().map(|document| document.file.as_str()).collect();
    files.dedup();
    page.command(format!("kubectl apply --server-side -f {}", files.join(" -f ")));
    let client = world.kube();
    for document in &documents {
        apply(&client, document).await.map_err(|refusal| refusal.to_string())?;
        applied().await;
    }
    Ok(documents.len())
}

/// Deletes a claim, as `kubectl delete` does, without waiting for its finalizer.
///
/// # Errors
/// Returns an error message if the API server refuses the deletion.
pub(super) async fn delete(world: &World, page: &mut Page, claim: &ClaimRef) -> Result<(), String> {
    let ClaimRef { namespace, name } = claim;
    page.command(format!("kubectl delete bucketclaim {name} -n {namespace} --wait=false"));
    let deleted = claims_in(world, namespace).delete(name, &DeleteParams::default()).await;
    deleted.map(drop).map_err(|error| format!("{claim} can't be deleted: {error}"))
}

/// Patches a claim's spec, as `kubectl patch` does.
///
/// # Errors
/// Returns an error message if the API server refuses the patch.
pub(super) async fn patch_spec(world: &World, page: &mut Page, claim: &ClaimRef, spec: &Value) -> Result<(), String> {
    let ClaimRef { namespace, name } = claim;
    let patch = json!({ "spec": spec });
    page.command(format!("kubectl patch bucketclaim {name} -n {namespace} --type merge \\"));
    page.line(Span::new(Tone::Strong, format!("    -p '{patch}'")));
    merge(world, claim, &patch).await
}

/// Annotates a claim, as `kubectl annotate` does.
///
/// # Errors
/// Returns an error message if the API server refuses the patch.
pub(super) async fn annotate(
    world: &World,
    page: &mut Page,
    claim: &ClaimRef,
    key: &str,
    value: &str,
) -> Result<(), String> {
    let ClaimRef { namespace, name } = claim;
    page.command(format!("kubectl annotate bucketclaim {name} -n {namespace} {key}={value}"));
    merge(world, claim, &json!({"metadata": {"annotations": {key: value}}})).await
}

async fn merge(world: &World, claim: &ClaimRef, patch: &Value) -> Result<(), String> {
    let api = claims_in(world, &claim.namespace);
    let patched = api.patch(&claim.name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.map(drop).map_err(|error| format!("{claim} can't be changed: {error}"))
}

fn claims_in(world: &World, namespace: &str) -> Api<BucketClaim> {
    Api::namespaced(world.kube(), namespace)
}

/// Returns true if a document is a claim.
pub(super) fn is_claim(document: &Document) -> bool {
    document.object.types.as_ref().is_some_and(|types| types.kind == "BucketClaim")
}

/// Returns true if a document is this claim.
pub(super) fn is_this_claim(document: &Document, claim: &ClaimRef) -> bool {
    let namespace = document.object.namespace();
    is_claim(document)
        && document.object.name_any() == claim.name
        && namespace.as_deref().unwrap_or("default") == claim.namespace
}
