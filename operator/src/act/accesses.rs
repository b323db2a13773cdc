//! Carries out the effects of a pass over an access.

use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::api::{ACCESS_FINALIZER, Access, AccessRef, BucketAccess, ObjectId, kept};
use crate::kubernetes::{self, json_patch, patch_params};
use crate::plan::access::{AccessAct, AccessAnswer, AccessStep};
use crate::plan::{Failure, preconditions};

use super::{Actor, finalizer_operations, new_secret_key, note};

impl Actor {
    /// Carries out one effect of a pass over an access.
    pub(crate) async fn perform_access(&self, access: &Access, act: &AccessAct) -> AccessAnswer {
        // Boxed, because the future is as large as its largest arm.
        let answer = Box::pin(self.try_perform_access(access, act)).await;
        answer.unwrap_or_else(|failure| AccessAnswer::Failed(AccessStep::Act(act.clone()), failure))
    }

    async fn try_perform_access(&self, access: &Access, act: &AccessAct) -> Result<AccessAnswer, Failure> {
        let namespace = &self.observer.setting.operator_namespace;
        Ok(match act {
            AccessAct::AddFinalizer(id) => {
                AccessAnswer::FinalizerAdded(self.patch_access_finalizers(access, id, true).await?)
            }
            AccessAct::RemoveFinalizer(id) => {
                self.patch_access_finalizers(access, id, false).await?;
                AccessAnswer::FinalizerRemoved
            }
            AccessAct::CreateRecord(record) => {
                AccessAnswer::RecordPosted(record.clone(), self.create(&record.content(namespace)).await?)
            }
            AccessAct::Mint(facts) => {
                let content = facts.content(namespace, Some(&new_secret_key()?));
                AccessAnswer::CredentialPosted(facts.clone(), self.create(&content).await?)
            }
            AccessAct::CreateConsumer(content) => {
                AccessAnswer::ConsumerPosted(content.name.clone(), self.create(content).await?)
            }
            AccessAct::Patch(patch) => AccessAnswer::Patched(patch.change, self.patch(patch).await?),
            AccessAct::Delete(secret) => AccessAnswer::Deleted(secret.clone(), self.delete(secret).await?),
            AccessAct::WriteStatus(id, status) => {
                let status = serde_json::to_value(status).map_err(|error| Failure::Refused(error.to_string()))?;
                AccessAnswer::StatusWritten(self.patch_access_status(&access.at, id, status).await?)
            }
        })
    }

    async fn patch_access_finalizers(
        &self,
        access: &Access,
        id: &ObjectId,
        present: bool,
    ) -> Result<Box<Access>, Failure> {
        let api: Api<BucketAccess> = Api::namespaced(self.client.clone(), &access.at.namespace);
        let live = if present || kept::are_all_finalizers(&access.finalizers) {
            None
        } else {
            // The position of our finalizer is unknown in a truncated list.
            Some(api.get(&access.at.name).await.map_err(|error| kubernetes::failure(&error))?)
        };
        if live.as_ref().is_some_and(|live| ObjectId::of(live) != *id) {
            return Err(Failure::Conflict);
        }
        let all = live.as_ref().map_or(access.finalizers.as_slice(), |live| live.finalizers());
        let mut patch = preconditions(id);
        patch.extend(finalizer_operations(all, ACCESS_FINALIZER, present));
        if present {
            patch.push(note(access.annotated, &self.observer.setting.operator()));
        }
        let patch = json_patch(patch).map_err(Failure::Refused)?;
        self.access_written(api.patch(&access.at.name, &patch_params(), &patch).await)
    }

    async fn patch_access_status(&self, at: &AccessRef, id: &ObjectId, status: Value) -> Result<Box<Access>, Failure> {
        let mut patch = preconditions(id);
        patch.push(json!({ "op": "add", "path": "/status", "value": status }));
        let api: Api<BucketAccess> = Api::namespaced(self.client.clone(), &at.namespace);
        let patch = json_patch(patch).map_err(Failure::Refused)?;
        self.access_written(api.patch_status(&at.name, &patch_params(), &patch).await)
    }

    fn access_written(&self, answer: kube::Result<BucketAccess>) -> Result<Box<Access>, Failure> {
        let raw = answer.map_err(|error| kubernetes::failure(&error))?;
        let access = Access::parse(&kept::access_for_pass(&raw));
        if !access.deleting || !access.finalizers.is_empty() {
            self.written_accesses.wrote(kept::access(&raw));
        }
        Ok(Box::new(access))
    }
}
