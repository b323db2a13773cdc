//! Types of `spec.secretTemplate` and `status.binding` of a claim or an access, as stored by the
//! API server (spec §10).

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Returns the CEL rule that bounds the length of each key of a map, which an OpenAPI schema cannot
/// express.
fn keys(longest: usize) -> String {
    format!("self.all(k, k.size() <= {longest})")
}

/// Returns the CEL rule that bounds the total length of the keys of all maps.
fn all_keys(most: usize) -> String {
    let of = |map: &str| format!("(has(self.{map}) ? self.{map}.map(k, k.size()).sum() : 0)");
    format!("{} + {} + {} <= {most}", of("labels"), of("annotations"), of("data"))
}

/// Additional or replacement contents of the Secret that receives the connection. The keys of
/// `labels`, `annotations` and `data` may have at most 4096 characters in total.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(all_keys(SecretTemplate::LONGEST_NAMES))
    .message("the keys of labels, annotations and data have more than 4096 characters together"))]
#[serde(rename_all = "camelCase")]
pub struct SecretTemplate {
    /// Labels to set on the Secret, at most 32, with keys of at most 317 characters. The operator's
    /// configuration determines the allowed prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_NAME))
        .message("a key of labels has 317 characters at most"))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations to set on the Secret, at most 32, with keys of at most 317 and values of at most
    /// 256 bytes. The operator's configuration determines the allowed prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 256 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_NAME))
        .message("a key of annotations has 317 characters at most"))]
    pub annotations: Option<BTreeMap<String, String>>,
    /// Keys to set in the Secret's data, and templates for their values: at most 32, with keys of
    /// at most 253 and templates of at most 4096 bytes. A template may contain the fields `{{
    /// .AccessKeyId }}`, `{{ .SecretAccessKey }}`, `{{ .Bucket }}`, `{{ .Buckets }}`, `{{ .Endpoint
    /// }}`, `{{ .Host }}`, `{{ .Port }}`, `{{ .Region }}`, `{{ .AddressingStyle }}` and `{{
    /// .CABundle }}`. Nothing else may appear between double braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32, "additionalProperties" = { "type": "string", "maxLength": 4096 }))]
    #[x_kube(validation = Rule::new(keys(SecretTemplate::LONGEST_KEY))
        .message("a key of data has 253 characters at most"))]
    pub data: Option<BTreeMap<String, String>>,
    /// If true, the default keys of the connection are left out of the Secret. Requires `data`.
    /// Defaults to false.
    #[serde(default)]
    pub omit_defaults: bool,
}

impl SecretTemplate {
    /// Maximum length of the key of a label or annotation: a prefix of 253 characters, a slash and
    /// a name of 63.
    pub const LONGEST_NAME: usize = 317;

    /// Maximum number of bytes in all keys.
    pub const LONGEST_NAMES: usize = 4 << 10;

    /// Maximum length of a key of a Secret's data.
    pub const LONGEST_KEY: usize = 253;
}

/// Reference to the Secret of a Provisioned Service (Service Binding Specification for Kubernetes
/// 1.0, "Provisioned Service").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    /// Name of the Secret.
    pub name: String,
}
