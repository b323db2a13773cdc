//! The type of a website; its CustomResourceDefinition is in `../websites.yaml`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "example.org",
    version = "v1",
    kind = "Website",
    namespaced,
    status = "WebsiteStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteSpec {
    pub title: String,
    /// The Secret with the field `motto` to show on the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    pub backend: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebsiteStatus {
    pub observed_generation: Option<i64>,
    /// Content of the page.
    pub page: Option<String>,
    pub conditions: Vec<Condition>,
}
