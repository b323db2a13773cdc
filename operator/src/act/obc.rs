//! Carries out the effects of a pass over an ObjectBucketClaim (spec §9).

use std::fmt::Debug;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::serde::Serialize;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::api::{
    BucketAccess, BucketClaim, OBC_FINALIZER, OBC_PROVISIONER, Obc, ObjectBucket, ObjectBucketClaim, ObjectId, kept,
    kept_obc, kept_object_bucket,
};
use crate::kubernetes::{self, json_patch, patch_params};
use crate::plan::obc::{Bucket, NewShadow, ObcAct, ObcAnswer, ObcStep, Shadow, ShadowKind, ShadowSpec, Told};
use crate::plan::{Failure, preconditions};

use super::{Actor, finalizer_operations, post_params};

impl Actor {
    /// Carries out one effect of a pass over an ObjectBucketClaim. `label` is the label value of
    /// this provisioner.
    pub(crate) async fn perform_obc(&self, obc: &Obc, label: &str, act: &ObcAct) -> ObcAnswer {
        // Boxed, because the future is as large as its largest arm.
        let answer = Box::pin(self.try_perform_obc(obc, label, act)).await;
        answer.unwrap_or_else(|failure| ObcAnswer::Failed(ObcStep::Act(act.clone()), failure))
    }

    async fn try_perform_obc(&self, obc: &Obc, label: &str, act: &ObcAct) -> Result<ObcAnswer, Failure> {
        let (namespace, name) = (&obc.at.namespace, &obc.at.name);
        let obcs: Api<ObjectBucketClaim> = Api::namespaced(self.client.clone(), namespace);
        let buckets: Api<ObjectBucket> = Api::all(self.client.clone());
        let config_maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let written = |raw: ObjectBucketClaim| {
            self.written_obcs.obcs.wrote(kept_obc(&raw));
            ObcAnswer::ObcWritten(Box::new(Obc::parse(&raw)))
        };
        let bucket = |raw: ObjectBucket| {
            self.written_obcs.buckets.wrote(kept_object_bucket(&raw));
            Box::new(Bucket::parse(&raw))
        };
        Ok(match act {
            ObcAct::AddFinalizer(id) => written(self.begin_to_serve(&obcs, obc, id, label).await?),
            ObcAct::RemoveFinalizer(id) => {
                let all = self.finalizers_of(&obcs, obc, id).await?;
                patch(&obcs, name, id, finalizer_operations(&all, OBC_FINALIZER, false)).await?;
                ObcAnswer::FinalizerRemoved
            }
            ObcAct::WriteNames(id, names) => {
                let add = |(field, name): &(&str, String)| add(&format!("/spec/{field}"), name.as_str().into());
                written(patch(&obcs, name, id, names.iter().map(add).collect()).await?)
            }
            ObcAct::WritePhase(id, phase) => {
                written(patch_status(&obcs, name, id, set_phase(obc.has_status, phase)).await?)
            }
            ObcAct::CreateBucket(content) => ObcAnswer::BucketPosted(create(&buckets, content).await?.map(bucket)),
            ObcAct::PatchBucket(name, id, operations, _) => {
                ObcAnswer::BucketWritten(bucket(patch(&buckets, name, id, operations.clone()).await?))
            }
            ObcAct::WriteBucketPhase(name, id, phase) => {
                // No other writer puts more than a phase into this status.
                ObcAnswer::BucketWritten(bucket(patch_status(&buckets, name, id, set_phase(false, phase)).await?))
            }
            ObcAct::DeleteBucket(name, id) => ObcAnswer::BucketDeleted(delete(&buckets, name, id).await?.map(bucket)),
            ObcAct::CreateShadow(new) => {
                ObcAnswer::ShadowPosted(new.spec.kind(), self.create_shadow(namespace, new).await?.map(Box::new))
            }
            ObcAct::PatchShadow(name, id, spec) => {
                ObcAnswer::ShadowWritten(Box::new(self.patch_shadow(namespace, name, id, spec).await?))
            }
            ObcAct::DeleteShadow(kind, name, id) => {
                ObcAnswer::ShadowDeleted(*kind, self.delete_shadow(namespace, *kind, name, id).await?.map(Box::new))
            }
            ObcAct::CreateConfigMap(content) => {
                ObcAnswer::ConfigMapPosted(create(&config_maps, content).await?.map(|raw| Told::parse(&raw)))
            }
            ObcAct::PatchConfigMap(id, operations) => {
                let raw = patch(&config_maps, name, id, operations.clone()).await?;
                ObcAnswer::ConfigMapWritten(Told::parse(&raw))
            }
        })
    }

    /// Returns `None` if the name is taken.
    async fn create_shadow(&self, namespace: &str, new: &NewShadow) -> Result<Option<Shadow>, Failure> {
        let metadata = new.metadata.clone();
        Ok(match new.spec.clone() {
            ShadowSpec::Claim(spec) => {
                let api = Api::namespaced(self.client.clone(), namespace);
                let made = create(&api, &BucketClaim { metadata, spec, status: None }).await?;
                made.as_ref().map(Shadow::of_claim)
            }
            ShadowSpec::Access(spec) => {
                let api = Api::namespaced(self.client.clone(), namespace);
                let made = create(&api, &BucketAccess { metadata, spec, status: None }).await?;
                made.as_ref().map(Shadow::of_access)
            }
        })
    }

    async fn patch_shadow(
        &self,
        namespace: &str,
        name: &str,
        id: &ObjectId,
        spec: &ShadowSpec,
    ) -> Result<Shadow, Failure> {
        let set = |spec: serde_json::Result<Value>| match spec {
            Ok(spec) => Ok(vec![add("/spec", spec)]),
            Err(error) => Err(Failure::Refused(error.to_string())),
        };
        Ok(match spec {
            ShadowSpec::Claim(spec) => {
                let api: Api<BucketClaim> = Api::namespaced(self.client.clone(), namespace);
                Shadow::of_claim(&patch(&api, name, id, set(serde_json::to_value(spec))?).await?)
            }
            ShadowSpec::Access(spec) => {
                let api: Api<BucketAccess> = Api::namespaced(self.client.clone(), namespace);
                Shadow::of_access(&patch(&api, name, id, set(serde_json::to_value(spec))?).await?)
            }
        })
    }

    /// Returns the object if a finalizer keeps it.
    async fn delete_shadow(
        &self,
        namespace: &str,
        kind: ShadowKind,
        name: &str,
        id: &ObjectId,
    ) -> Result<Option<Shadow>, Failure> {
        Ok(match kind {
            ShadowKind::Claim => {
                let api: Api<BucketClaim> = Api::namespaced(self.client.clone(), namespace);
                delete(&api, name, id).await?.as_ref().map(Shadow::of_claim)
            }
            ShadowKind::Access => {
                let api: Api<BucketAccess> = Api::namespaced(self.client.clone(), namespace);
                delete(&api, name, id).await?.as_ref().map(Shadow::of_access)
            }
        })
    }

    /// Adds the finalizer, and the label that identifies the provisioner if the class is deleted.
    async fn begin_to_serve(
        &self,
        api: &Api<ObjectBucketClaim>,
        obc: &Obc,
        id: &ObjectId,
        label: &str,
    ) -> Result<ObjectBucketClaim, Failure> {
        let mut operations = finalizer_operations(&obc.finalizers, OBC_FINALIZER, true);
        operations.push(if obc.labelled {
            add(&format!("/metadata/labels/{OBC_PROVISIONER}"), label.into())
        } else {
            add("/metadata/labels", json!({ (OBC_PROVISIONER): label }))
        });
        patch(api, &obc.at.name, id, operations).await
    }

    /// Returns all finalizers, read live if the stored list is truncated.
    async fn finalizers_of(
        &self,
        api: &Api<ObjectBucketClaim>,
        obc: &Obc,
        id: &ObjectId,
    ) -> Result<Vec<String>, Failure> {
        if kept::are_all_finalizers(&obc.finalizers) {
            return Ok(obc.finalizers.clone());
        }
        let live = api.get(&obc.at.name).await.map_err(|error| kubernetes::failure(&error))?;
        if ObjectId::of(&live) == *id { Ok(live.finalizers().to_vec()) } else { Err(Failure::Conflict) }
    }
}

fn add(path: &str, value: Value) -> Value {
    json!({ "op": "add", "path": path, "value": value })
}

/// Builds the operation that sets the phase. An existing status keeps its other fields.
fn set_phase(has_status: bool, phase: &str) -> Value {
    if has_status { add("/status/phase", phase.into()) } else { add("/status", json!({ "phase": phase })) }
}

/// Creates an object. Returns `None` if the name is taken.
async fn create<K>(api: &Api<K>, content: &K) -> Result<Option<K>, Failure>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    match api.create(&post_params(), content).await {
        Ok(made) => Ok(Some(made)),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(error) => Err(kubernetes::failure(&error)),
    }
}

async fn patch<K>(api: &Api<K>, name: &str, id: &ObjectId, operations: Vec<Value>) -> Result<K, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json_patch(preconditions(id).into_iter().chain(operations).collect()).map_err(Failure::Refused)?;
    api.patch(name, &patch_params(), &patch).await.map_err(|error| kubernetes::failure(&error))
}

async fn patch_status<K>(api: &Api<K>, name: &str, id: &ObjectId, operation: Value) -> Result<K, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json_patch(preconditions(id).into_iter().chain([operation]).collect()).map_err(Failure::Refused)?;
    api.patch_status(name, &patch_params(), &patch).await.map_err(|error| kubernetes::failure(&error))
}

/// Deletes this version of an object. Returns the object if a finalizer keeps it.
async fn delete<K>(api: &Api<K>, name: &str, id: &ObjectId) -> Result<Option<K>, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let pinned = Preconditions { uid: Some(id.uid.clone()), resource_version: Some(id.resource_version.clone()) };
    match api.delete(name, &DeleteParams::default().preconditions(pinned)).await {
        Ok(answer) => {
            Ok(answer.left().filter(|left| left.meta().finalizers.as_ref().is_some_and(|all| !all.is_empty())))
        }
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(kubernetes::failure(&error)),
    }
}
