//! Reconciliation of a website.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::time::sleep;

use crate::website::Website;

/// Name of the field manager and the event reporter.
pub const OWNER: &str = "example.org/websites";
const FINALIZER: &str = "example.org/registered";
/// The ConfigMap with a line for each website.
const REGISTRY: &str = "websites";

#[derive(Debug, Error)]
pub enum Failed {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<kube::runtime::finalizer::Error<Failed>>),
    #[error("{0} is missing")]
    Missing(&'static str),
}

/// Context of a reconciliation.
pub struct Websites {
    pub client: Client,
    pub recorder: Recorder,
    pub namespace: String,
}

/// Stowage's BucketClaims, as a dynamic kind without a Rust type.
pub fn bucket_claims() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("broker.stowage.io", "v1alpha1", "BucketClaim"))
}

pub async fn reconcile(website: Arc<Website>, websites: Arc<Websites>) -> Result<Action, Failed> {
    let namespace = website.namespace().ok_or(Failed::Missing("a namespace"))?;
    let api: Api<Website> = Api::namespaced(websites.client.clone(), &namespace);
    let done = finalizer(&api, FINALIZER, website, |event| async {
        match event {
            Finalizer::Apply(website) => websites.keep(&api, &website, &namespace).await,
            Finalizer::Cleanup(website) => websites.register(&website, &namespace, None).await,
        }?;
        Ok(Action::await_change())
    });
    Ok(done.await.map_err(Box::new)?)
}

impl Websites {
    async fn keep(&self, api: &Api<Website>, website: &Website, namespace: &str) -> Result<(), Failed> {
        self.register(website, namespace, Some(&website.spec.title)).await?;
        let page = self.page(website, namespace).await?;
        let bucket = self.apply(website, namespace, &page).await?;
        self.tell(api, website, page, is_ready(&bucket)).await
    }

    /// Writes a website's title to the registry, or removes it. The registry has other writers, so
    /// conflicts are retried.
    async fn register(&self, website: &Website, namespace: &str, title: Option<&String>) -> Result<(), Failed> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let line = format!("{namespace}.{}", website.name_any());
        loop {
            let found = api.get_opt(REGISTRY).await?;
            let is_there = found.is_some();
            let mut lines = found.unwrap_or_default();
            let data = lines.data.get_or_insert_default();
            if data.get(&line) == title {
                return Ok(());
            }
            match title {
                Some(title) => data.insert(line.clone(), title.clone()),
                None => data.remove(&line),
            };
            let written = if is_there {
                api.replace(REGISTRY, &PostParams::default(), &lines).await
            } else {
                lines.metadata.name = Some(REGISTRY.to_owned());
                api.create(&PostParams::default(), &lines).await
            };
            match written {
                Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => {
                    sleep(Duration::from_millis(5)).await;
                }
                other => return Ok(other.map(drop)?),
            }
        }
    }

    /// Returns the content of the page. If the Secret is missing, its watch will trigger the
    /// website's reconciliation once it exists.
    async fn page(&self, website: &Website, namespace: &str) -> Result<String, Failed> {
        let title = &website.spec.title;
        let Some(name) = &website.spec.secret_name else { return Ok(title.clone()) };
        let secret = Api::<Secret>::namespaced(self.client.clone(), namespace).get_opt(name).await?;
        let data = secret.and_then(|secret| secret.data?.remove("motto"));
        Ok(data.map_or_else(|| title.clone(), |motto| format!("{title}: {}", String::from_utf8_lossy(&motto.0))))
    }

    /// Applies the objects that a website owns, and returns its BucketClaim.
    async fn apply(&self, website: &Website, namespace: &str, page: &str) -> Result<DynamicObject, Failed> {
        let force = PatchParams::apply(OWNER).force();
        let owner = website.controller_owner_ref(&()).ok_or(Failed::Missing("a UID"))?;
        let name = format!("{}-page", website.name_any());
        let config = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [owner]}, "data": {"page": page},
        });
        let configs = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        configs.patch(&name, &force, &Patch::Apply(config)).await?;
        let claims = bucket_claims();
        let name = website.name_any();
        let claim = json!({
            "apiVersion": claims.api_version, "kind": claims.kind,
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"backendRef": {"name": website.spec.backend}},
        });
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &claims);
        Ok(api.patch(&name, &force, &Patch::Apply(claim)).await?)
    }

    /// Updates the status, and publishes an event if it changed.
    async fn tell(&self, api: &Api<Website>, website: &Website, page: String, ready: bool) -> Result<(), Failed> {
        let before = website.status.clone().unwrap_or_default();
        let known = before.conditions.iter().find(|it| it.type_ == "Ready");
        let status = if ready { "True" } else { "False" };
        let since = known.filter(|it| it.status == status).map(|it| it.last_transition_time.clone());
        let (reason, message) = match ready {
            true => ("Published", "page and bucket are there"),
            false => ("BucketPending", "its bucket is not there yet"),
        };
        let condition = Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: website.metadata.generation,
            last_transition_time: since.unwrap_or_else(|| Time(Timestamp::now())),
        };
        let is_news = before.page.as_deref() != Some(page.as_str());
        if known == Some(&condition) && !is_news && before.observed_generation == website.metadata.generation {
            return Ok(());
        }
        let told = json!({
            "apiVersion": "example.org/v1", "kind": "Website",
            "status": {"observedGeneration": website.metadata.generation, "page": page, "conditions": [condition]},
        });
        api.patch_status(&website.name_any(), &PatchParams::apply(OWNER).force(), &Patch::Apply(told)).await?;
        if is_news {
            let event = Event {
                type_: EventType::Normal,
                reason: "Published".to_owned(),
                action: "Publish".to_owned(),
                note: Some("the page is published".to_owned()),
                secondary: None,
            };
            // Without the version, so that a repeated event is counted as the same one.
            let website = ObjectReference { resource_version: None, ..website.object_ref(&()) };
            self.recorder.publish(&event, &website).await?;
        }
        Ok(())
    }
}

fn is_ready(claim: &DynamicObject) -> bool {
    let conditions = claim.data.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|it| it["type"] == "Ready");
    ready.is_some_and(|it| it["status"] == "True")
}
