//! Carries out the effects of a plan, and decides nothing.

mod accesses;
mod obc;

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::{
    BucketAccess, BucketClaim, Claim, ClaimRef, FINALIZER, ObjectId, SecretContent, SecretKey, ServedBy, kept, wire,
};
use crate::cache::{ObcsWritten, SecretCache, Written};
use crate::kubernetes::{self, CONTROLLER, json_patch, patch_params};
use crate::observe::{Observer, upstream_failure};
use crate::plan::{
    Act, Answer, Failure, Posted, PurgeEnd, Purged, SecretPatch, SecretRef, Step, Stored, preconditions,
};
use crate::upstream::{Caller, Slice};

/// Carries out effects.
pub(crate) struct Actor {
    pub(crate) client: Client,
    pub(crate) observer: Arc<Observer>,
    pub(crate) written: Arc<Written<BucketClaim>>,
    pub(crate) written_accesses: Arc<Written<BucketAccess>>,
    pub(crate) written_obcs: Arc<ObcsWritten>,
}

impl Actor {
    /// Carries out one effect.
    pub(crate) async fn perform(&self, caller: &Arc<Caller>, claim: &Claim, act: &Act) -> Answer {
        // Boxed, because the future is as large as its largest arm.
        let answer = Box::pin(self.try_perform(caller, claim, act)).await;
        answer.unwrap_or_else(|failure| Answer::Failed(Step::Act(act.clone()), failure))
    }

    async fn try_perform(&self, caller: &Arc<Caller>, claim: &Claim, act: &Act) -> Result<Answer, Failure> {
        let namespace = &self.observer.setting.operator_namespace;
        Ok(match act {
            Act::AddFinalizer(id) => Answer::FinalizerAdded(self.patch_finalizers(claim, id, true).await?),
            Act::RemoveFinalizer(id) => {
                self.patch_finalizers(claim, id, false).await?;
                Answer::FinalizerRemoved
            }
            Act::CreateRecord(record) => {
                Answer::RecordPosted((**record).clone(), self.create(&record.content(namespace)).await?)
            }
            Act::CreateBinding(binding) => Answer::BindingPosted(self.create(&binding.content(namespace)).await?),
            Act::CreateConsumer(content) => Answer::ConsumerPosted(content.name.clone(), self.create(content).await?),
            Act::Mint(facts) => {
                let content = facts.content(namespace, Some(&new_secret_key()?));
                Answer::CredentialPosted(facts.clone(), self.create(&content).await?)
            }
            Act::Patch(patch) => Answer::Patched(patch.change, self.patch(patch).await?),
            Act::Delete(secret) => Answer::Deleted(secret.clone(), self.delete(secret).await?),
            Act::WriteStatus(id, status) => {
                let status = serde_json::to_value(status).map_err(|error| Failure::Refused(error.to_string()))?;
                Answer::StatusWritten(self.patch_status(&claim.at, id, status).await?)
            }
            Act::CreateBucket(at) => {
                let answer = self.observer.upstream(caller, at).await?.create(&at.bucket).await;
                Answer::BucketCreated(at.clone(), answer.map_err(|error| upstream_failure(&error))?)
            }
            Act::Purge(at, most) => {
                let slice = self.observer.upstream(caller, at).await?.purge(&at.bucket, *most).await;
                Answer::BucketPurged(at.clone(), *most, purged(slice))
            }
            Act::DeleteBucket(at) => {
                let answer = self.observer.upstream(caller, at).await?.delete(&at.bucket).await;
                Answer::BucketDeleted(at.clone(), answer.map_err(|error| upstream_failure(&error))?)
            }
            Act::TagBucket(at, tags) => {
                let answer = self.observer.upstream(caller, at).await?.tag(&at.bucket, tags).await;
                answer.map_err(|error| upstream_failure(&error))?;
                Answer::BucketTagged(at.clone(), tags.clone())
            }
            Act::SetVersioning(at, versioning) => {
                let answer = self.observer.upstream(caller, at).await?.set_versioning(&at.bucket, *versioning).await;
                answer.map_err(|error| upstream_failure(&error))?;
                Answer::VersioningSet(at.clone(), *versioning)
            }
        })
    }

    async fn patch_finalizers(&self, claim: &Claim, id: &ObjectId, present: bool) -> Result<Box<Claim>, Failure> {
        let api: Api<BucketClaim> = Api::namespaced(self.client.clone(), &claim.at.namespace);
        let live = if present || kept::are_all_finalizers(&claim.finalizers) {
            None
        } else {
            // The position of our finalizer is unknown in a truncated list.
            Some(api.get(&claim.at.name).await.map_err(|error| kubernetes::failure(&error))?)
        };
        if live.as_ref().is_some_and(|live| ObjectId::of(live) != *id) {
            return Err(Failure::Conflict);
        }
        let all = live.as_ref().map_or(claim.finalizers.as_slice(), |live| live.finalizers());
        let mut patch = preconditions(id);
        patch.extend(finalizer_operations(all, FINALIZER, present));
        if present {
            patch.push(note(claim.annotated, &self.observer.setting.operator()));
        }
        let answer = api.patch(&claim.at.name, &patch_params(), &json_patch(patch).map_err(Failure::Refused)?).await;
        self.claim_written(answer)
    }

    async fn patch_status(&self, at: &ClaimRef, id: &ObjectId, status: Value) -> Result<Box<Claim>, Failure> {
        let mut patch = preconditions(id);
        patch.push(json!({ "op": "add", "path": "/status", "value": status }));
        let api: Api<BucketClaim> = Api::namespaced(self.client.clone(), &at.namespace);
        let answer = api.patch_status(&at.name, &patch_params(), &json_patch(patch).map_err(Failure::Refused)?).await;
        self.claim_written(answer)
    }

    fn claim_written(&self, answer: kube::Result<BucketClaim>) -> Result<Box<Claim>, Failure> {
        let raw = answer.map_err(|error| kubernetes::failure(&error))?;
        let claim = Claim::parse(&kept::claim_for_pass(&raw));
        // Removing the last finalizer deletes the claim, and no watch event would replace what is
        // stored of it.
        if !claim.deleting || !claim.finalizers.is_empty() {
            self.written.wrote(kept::claim(&raw));
        }
        Ok(Box::new(claim))
    }

    async fn create(&self, content: &SecretContent) -> Result<Posted, Failure> {
        match self.secrets(&content.namespace).create(&post_params(), &content.to_secret()).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Posted::NameTaken),
            answer => self.secret_written(answer).map(Posted::Stored),
        }
    }

    pub(crate) async fn patch(&self, patch: &SecretPatch) -> Result<Stored, Failure> {
        let operations = serde_json::from_value(patch.json()).map_err(|error| Failure::Refused(error.to_string()))?;
        let body = Patch::Json::<()>(operations);
        let target = &patch.target;
        self.secret_written(self.secrets(&target.namespace).patch(&target.name, &patch_params(), &body).await)
    }

    fn secret_written(&self, answer: kube::Result<Secret>) -> Result<Stored, Failure> {
        let secret = answer.map_err(|error| kubernetes::failure(&error))?;
        let cache = self.cache(secret.metadata.namespace.as_deref().unwrap_or_default());
        let secret = cache.kept(secret);
        cache.wrote(&secret);
        Ok(Stored(secret))
    }

    /// Deletes a Secret of ours.
    ///
    /// A Secret that is already deleted counts as deleted. So does a consumer Secret that another
    /// finalizer keeps, because nothing has to wait for its removal. An internal Secret that a
    /// finalizer keeps is returned, as it stays in effect.
    pub(crate) async fn delete(&self, secret: &SecretRef) -> Result<Option<Stored>, Failure> {
        let version = secret.id.clone();
        let params = DeleteParams::default()
            .preconditions(Preconditions { uid: Some(version.uid), resource_version: Some(version.resource_version) });
        let left = match self.secrets(&secret.namespace).delete(&secret.name, &params).await {
            Ok(answer) => answer.left(),
            Err(kube::Error::Api(status)) if status.is_not_found() => None,
            Err(error) => return Err(kubernetes::failure(&error)),
        };
        let is_kept = |left: &Secret| self.is_internal(&secret.namespace) && !left.finalizers().is_empty();
        if let Some(kept) = left.filter(is_kept).map(|kept| self.observer.internal.kept(kept)) {
            self.cache(&secret.namespace).wrote(&kept);
            return Ok(Some(Stored(kept)));
        }
        self.cache(&secret.namespace).deleted(secret);
        Ok(None)
    }

    fn cache(&self, namespace: &str) -> &SecretCache {
        if self.is_internal(namespace) { &self.observer.internal } else { &self.observer.consumers }
    }

    fn is_internal(&self, namespace: &str) -> bool {
        namespace == self.observer.setting.operator_namespace
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// Converts the result of a slice. Refused objects end the purge once nothing else is left to
/// delete.
fn purged(slice: Slice) -> Purged {
    let end = match slice {
        Slice { failed: Some(error), .. } => PurgeEnd::Failed(upstream_failure(&error)),
        Slice { refused: Some(code), complete, deleted, .. } if complete || deleted == 0 => PurgeEnd::Refused(code),
        Slice { complete: true, .. } => PurgeEnd::Empty,
        _ => PurgeEnd::More,
    };
    Purged { deleted: slice.deleted, end }
}

/// Builds the JSON patch operation that notes the operator which serves an object. `annotated` is
/// true if the object has annotations.
pub(crate) fn note(annotated: bool, operator: &ServedBy) -> Value {
    let operator = operator.as_str();
    if annotated {
        let path = format!("/metadata/annotations/{}", wire::SERVED_BY.replace('/', "~1"));
        json!({ "op": "add", "path": path, "value": operator })
    } else {
        json!({ "op": "add", "path": "/metadata/annotations", "value": { (wire::SERVED_BY): operator } })
    }
}

/// Builds the operations that add or remove our finalizer without writing others, as the stored
/// list may be truncated.
fn finalizer_operations(all: &[String], ours: &str, present: bool) -> Vec<Value> {
    let place = all.iter().position(|name| name == ours).map(|place| format!("/metadata/finalizers/{place}"));
    match (place, present) {
        (None, true) if all.is_empty() => {
            vec![json!({ "op": "add", "path": "/metadata/finalizers", "value": [ours] })]
        }
        (None, true) => vec![json!({ "op": "add", "path": "/metadata/finalizers/-", "value": ours })],
        (Some(place), false) => {
            vec![json!({ "op": "test", "path": place, "value": ours }), json!({ "op": "remove", "path": place })]
        }
        (Some(_), true) | (None, false) => Vec::new(),
    }
}

fn post_params() -> PostParams {
    PostParams { field_manager: Some(CONTROLLER.to_owned()), ..PostParams::default() }
}

/// Generates a secret key of 40 characters from a cryptographic generator (spec §2). The alphabet
/// is safe in shells and URLs.
fn new_secret_key() -> Result<SecretKey, Failure> {
    let mut bytes = [0; 30];
    getrandom::fill(&mut bytes).map_err(|error| Failure::Kubernetes(format!("no random numbers: {error}")))?;
    Ok(SecretKey::new(BASE64URL_NOPAD.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: 3.5.memory.finalizers
    #[test]
    fn finalizers_of_others_are_never_written() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let added = |all: &[&str]| finalizer_operations(&names(all), FINALIZER, true);
        let removed = |all: &[&str]| finalizer_operations(&names(all), FINALIZER, false);
        assert_eq!(added(&[]), [json!({"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]})]);
        assert_eq!(added(&["a/b"]), [json!({"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER})]);
        assert_eq!(
            removed(&["a/b", FINALIZER, "a/c"]),
            [
                json!({"op": "test", "path": "/metadata/finalizers/1", "value": FINALIZER}),
                json!({"op": "remove", "path": "/metadata/finalizers/1"}),
            ]
        );
        assert!(added(&[FINALIZER]).is_empty() && removed(&["a/b"]).is_empty());
    }

    // covers: 2.credential.secretKey
    #[test]
    fn secret_keys_have_40_characters_and_differ() {
        let (one, other) = (new_secret_key().unwrap(), new_secret_key().unwrap());
        assert_eq!(one.expose().len(), 40);
        assert_ne!(one, other);
    }
}
