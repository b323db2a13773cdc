//! `spec.secretTemplate` and `status.binding` of a claim or an access, as the API server stores
//! them (spec §10).

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the Secret has besides the connection, or in its place.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretTemplate {
    /// Labels, as they are. Whoever runs the operator says which may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations, as they are. Whoever runs the operator says which may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 256 }))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Keys of the Secret, and what is to stand there. These fields may stand in it, and nothing
    /// else between two braces: `{{ .AccessKeyId }}`, `{{ .SecretAccessKey }}`, `{{ .Bucket }}`,
    /// `{{ .Buckets }}`, `{{ .Endpoint }}`, `{{ .Host }}`, `{{ .Port }}`, `{{ .Region }}`,
    /// `{{ .AddressingStyle }}`, `{{ .CABundle }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 4096 }))]
    pub data: Option<BTreeMap<String, String>>,
    /// The keys that every such Secret has are left out.
    #[serde(default)]
    pub omit_defaults: bool,
}

/// A Provisioned Service's Secret (Service Binding Specification for Kubernetes 1.0, "Provisioned
/// Service").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// Its name.
    pub name: String,
}
