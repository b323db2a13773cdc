//! `spec.secretTemplate` and `status.binding` of a claim or an access, as the API server stores
//! them (spec §10).

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that no key of a map is longer. OpenAPI has none of its own for that.
fn keys(longest: usize) -> String {
    format!("self.all(k, k.size() <= {longest})")
}

/// The rule that the keys of all maps have this much at most.
fn all_keys(most: usize) -> String {
    let of = |map: &str| format!("(has(self.{map}) ? self.{map}.map(k, k.size()).sum() : 0)");
    format!("{} + {} + {} <= {most}", of("labels"), of("annotations"), of("data"))
}

/// What the Secret has besides the connection, or in its place.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(all_keys(SecretTemplate::LONGEST_NAMES))
    .message("the keys of labels, annotations and data have more than 4096 characters together"))]
#[serde(rename_all = "camelCase")]
pub struct SecretTemplate {
    /// Labels, as they are. Whoever runs the operator says which may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_NAME))
        .message("a key of labels has 317 characters at most"))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations, as they are. Whoever runs the operator says which may be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 256 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_NAME))
        .message("a key of annotations has 317 characters at most"))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Keys of the Secret, and what is to stand there. These fields may stand in it, and nothing
    /// else between two braces: `{{ .AccessKeyId }}`, `{{ .SecretAccessKey }}`, `{{ .Bucket }}`,
    /// `{{ .Buckets }}`, `{{ .Endpoint }}`, `{{ .Host }}`, `{{ .Port }}`, `{{ .Region }}`,
    /// `{{ .AddressingStyle }}`, `{{ .CABundle }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 4096 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_KEY))
        .message("a key of data has 253 characters at most"))]
    pub data: Option<BTreeMap<String, String>>,
    /// The keys that every such Secret has are left out.
    #[serde(default)]
    pub omit_defaults: bool,
}

impl SecretTemplate {
    /// Longest name of a label or annotation: a prefix of 253, a slash and 63.
    pub const LONGEST_NAME: usize = 317;

    /// Most bytes that the names of all keys have together.
    pub const LONGEST_NAMES: usize = 4 << 10;

    /// Longest key of a Secret's data.
    pub const LONGEST_KEY: usize = 253;
}

/// A Provisioned Service's Secret (Service Binding Specification for Kubernetes 1.0, "Provisioned
/// Service").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// Its name.
    pub name: String,
}
