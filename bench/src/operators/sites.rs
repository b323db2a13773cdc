//! Websites: their creation, and their expected state.

use anyhow::{Result, bail};
use k8s_openapi::ByteString;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::cluster::{Cluster, Kind, Place, until};
use super::environment::Environment;

/// Keeps a website until its line is removed from the registry.
const FINALIZER: &str = "example.org/registered";
/// The Secret with the motto on every page.
const MOTTO: &str = "motto";
/// The ConfigMap with a line for each website.
pub(super) const REGISTRY: &str = "websites";
/// The harness' counter in that ConfigMap.
const COUNT: &str = "harness";

/// The websites of an operator.
pub(super) struct Sites {
    pub(super) cluster: Cluster,
    /// Namespace of the websites.
    pub(super) namespace: String,
    /// Namespace of registry and Lease.
    pub(super) system: String,
}

impl Sites {
    pub(super) fn new(cluster: Cluster, operator: &str) -> Self {
        Self { cluster, namespace: format!("{operator}-sites"), system: format!("{operator}-system") }
    }

    pub(super) fn website<'a>(&'a self, name: &'a str) -> Place<'a> {
        Place(Kind::Website, &self.namespace, name)
    }

    pub(super) fn claim<'a>(&'a self, name: &'a str) -> Place<'a> {
        Place(Kind::BucketClaim, &self.namespace, name)
    }

    fn registry(&self) -> Place<'_> {
        Place(Kind::ConfigMap, &self.system, REGISTRY)
    }

    /// Creates the namespaces, and the Secret with this motto.
    pub(super) async fn furnish(&self, motto: &str) -> Result<()> {
        for name in [&self.system, &self.namespace] {
            let place = Place(Kind::Namespace, "", name);
            until("the namespace is made", async || self.cluster.apply(place, json!({})).await.map(Some)).await?;
        }
        self.motto(motto).await
    }

    pub(super) async fn motto(&self, motto: &str) -> Result<()> {
        let secret = Place(Kind::Secret, &self.namespace, MOTTO);
        let content = json!({"data": {"motto": ByteString(motto.into())}});
        until("the Secret is written", async || self.cluster.apply(secret, content.clone()).await.map(Some)).await
    }

    /// Creates a website, makes its BucketClaim ready, and waits until it is reconciled.
    pub(super) async fn make(&self, environment: &Environment, name: &str, motto: &str) -> Result<()> {
        let spec = json!({"spec": {"title": format!("About {name}"), "secretName": MOTTO}});
        self.cluster.apply(self.website(name), spec).await?;
        environment.bind(self.claim(name)).await?;
        self.stands(name, motto).await
    }

    /// Waits until a website is reconciled with this motto.
    pub(super) async fn stands(&self, name: &str, motto: &str) -> Result<()> {
        let page = format!("About {name}: {motto}");
        until(&format!("website {name} shows {page:?}"), async || self.unlike(name, &page).await).await
    }

    /// Returns `Some` if a website is in its expected state.
    ///
    /// # Errors
    /// Names what is missing.
    async fn unlike(&self, name: &str, page: &str) -> Result<Option<()>> {
        let Some(website) = self.cluster.get(self.website(name)).await? else { bail!("it is not there") };
        let config = self.cluster.get(Place(Kind::ConfigMap, &self.namespace, &format!("{name}-page"))).await?;
        let (metadata, status) = (&website["metadata"], &website["status"]);
        let owner = json!([{
            "apiVersion": "example.org/v1", "kind": "Website", "name": name, "uid": metadata["uid"],
            "controller": true,
        }]);
        let ready = status["conditions"].as_array().into_iter().flatten().find(|it| it["type"] == "Ready");
        let claim = self.cluster.get(self.claim(name)).await?;
        let owners = |it: &Option<Value>| {
            let mut owners = it.as_ref()?["metadata"]["ownerReferences"].clone();
            // Libraries differ in this field.
            for owner in owners.as_array_mut()?.iter_mut().filter_map(Value::as_object_mut) {
                owner.remove("blockOwnerDeletion");
            }
            Some(owners)
        };
        let lacks = [
            ("no finalizer", metadata["finalizers"] == json!([FINALIZER])),
            ("no page", config.as_ref().is_some_and(|it| it["data"]["page"] == page)),
            ("a page that it doesn't own", owners(&config).as_ref() == Some(&owner)),
            ("a BucketClaim that it doesn't own", owners(&claim).as_ref() == Some(&owner)),
            ("a status of another page", status["page"] == page),
            ("a status of another generation", status["observedGeneration"] == metadata["generation"]),
            ("no Ready", ready.is_some_and(|it| it["status"] == "True" && it["reason"] == "Published")),
        ];
        match lacks.iter().find(|(_, is_right)| !is_right) {
            Some((lack, _)) => bail!("it has {lack}"),
            None => Ok(Some(())),
        }
    }

    /// Increments the harness' counter in the registry `times` times, concurrently with the
    /// operator. Returns the number of conflicts.
    pub(super) async fn count(&self, times: usize) -> Result<usize> {
        let mut conflicts = 0;
        for _ in 0..times {
            conflicts += self.cluster.count(&self.system, REGISTRY, COUNT).await?;
        }
        Ok(conflicts)
    }

    /// Returns the content of the registry: a line for each website, and the counter.
    pub(super) async fn registered(&self) -> Result<Value> {
        Ok(self.cluster.get(self.registry()).await?.map(|it| it["data"].clone()).unwrap_or_default())
    }

    /// Returns the expected content for these websites and this counter.
    pub(super) fn expected(&self, names: &[String], times: usize) -> Value {
        let mut lines = json!({COUNT: times.to_string()});
        for name in names {
            lines[format!("{}.{name}", self.namespace)] = format!("About {name}").into();
        }
        lines
    }

    /// Deletes a website, and waits until its objects and its line in the registry are gone.
    pub(super) async fn remove(&self, name: &str, params: DeleteParams) -> Result<()> {
        self.cluster.delete(self.website(name), params).await?;
        let page = format!("{name}-page");
        for place in [self.website(name), Place(Kind::ConfigMap, &self.namespace, &page), self.claim(name)] {
            let gone = async || Ok(self.cluster.get(place).await?.is_none().then_some(()));
            until(&format!("{place:?} is gone"), gone).await?;
        }
        let line = format!("{}.{name}", self.namespace);
        match self.registered().await?[&line] {
            Value::Null => Ok(()),
            _ => bail!("{name} is gone and was not taken off the registry"),
        }
    }

    /// Deletes the namespace of websites, and waits until it is gone.
    pub(super) async fn clear(&self) -> Result<()> {
        let place = Place(Kind::Namespace, "", &self.namespace);
        self.cluster.delete(place, DeleteParams::background()).await?;
        let gone = async || Ok(self.cluster.get(place).await?.is_none().then_some(()));
        until("the namespace is gone", gone).await
    }
}
