//! `S3Backend` as stored by the API server (spec §1).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::sharing::SharedBucket;

/// Location of an S3-compatible store, its credentials, and the claims that may use it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "broker.stowage.io",
    version = "v1alpha1",
    kind = "S3Backend",
    doc = "An S3-compatible store, with the admin credentials that buckets are made with.",
    plural = "s3backends",
    singular = "s3backend",
    shortname = "s3b",
    category = "stowage",
    status = "S3BackendStatus",
    derive = "PartialEq",
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".spec.endpoint"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Buckets", type_ = "integer", json_path = ".status.bucketCount"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct S3BackendSpec {
    /// URL of the store: scheme `http` or `https` and a host, without user info, path or query.
    // A rule instead of a pattern, so that there is one message, without a regular expression.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(
        "self.matches('^https?://[^/?#]+([/?].*)?$') && isURL(self) && !self.contains('@') && url(self).getHostname() != '' && url(self).getEscapedPath() in ['', '/'] && url(self).getQuery().size() == 0"
    ).message("endpoint must be a URL of scheme http or https with a host, no user info, path or query"))]
    pub endpoint: String,
    /// Earlier URLs of the same store, at most 16, in the format of `endpoint`. Credentials that
    /// were created for one of them continue to open their buckets. Add the current URL here before
    /// editing `endpoint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(max = 2048)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new(
        "self.all(it, it.matches('^https?://[^/?#]+([/?].*)?$') && isURL(it) && !it.contains('@') && url(it).getHostname() != '' && url(it).getEscapedPath() in ['', '/'] && url(it).getQuery().size() == 0)"
    ).message("each of formerEndpoints must be a URL of scheme http or https with a host, no user info, path or query"))]
    pub former_endpoints: Option<Vec<String>>,
    /// Region for which requests are signed and in which buckets are created, 1 to 63 characters.
    /// Defaults to `us-east-1`.
    #[serde(default = "S3BackendSpec::default_region")]
    #[schemars(length(min = 1, max = 63))]
    pub region: String,
    /// Position of the bucket name in request URLs: `path` or `virtual`. Defaults to `path`.
    #[serde(default)]
    pub addressing_style: AddressingStyle,
    /// Secret that contains the admin credentials of the store.
    pub admin_credentials_secret_ref: AdminCredentialsSecretRef,
    /// Secret that contains the credentials with which the gateway forwards the requests of
    /// tenants. The rules for `adminCredentialsSecretRef` apply to it too. If unset, the gateway
    /// uses the admin credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_credentials_secret_ref: Option<AdminCredentialsSecretRef>,
    /// Verification of the store's TLS certificate.
    #[serde(default)]
    pub tls: BackendTls,
    /// Template for the name of a bucket whose claim does not specify one. It consists of the
    /// characters `a-z 0-9 . -` and the fields `{{ .Namespace }}`, `{{ .Name }}` and `{{ .Hash }}`.
    /// Defaults to `{{ .Namespace }}-{{ .Name }}`.
    #[serde(default = "S3BackendSpec::default_template")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^([a-z0-9.-]|[{][{] *[.](Namespace|Name|Hash) *[}][}])+$')")
        .message("only a-z 0-9 . - and {{ .Namespace }}, {{ .Name }}, {{ .Hash }} may stand in a template"))]
    pub bucket_name_template: String,
    /// Namespaces whose claims may use this backend. If unset, all namespaces may use it; if empty,
    /// none may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
    /// Policy for a bucket that already exists and that no live claim holds. `Never` does not adopt
    /// it. `Owned` adopts it if its tags name this installation, namespace and claim. `Any` adopts
    /// it unless its tags name another claim. Defaults to `Owned`.
    #[serde(default)]
    pub adoption_policy: AdoptionPolicy,
    /// Proof required that a bucket to adopt belongs to the account of the admin credentials. With
    /// `Owner`, the store must report the same owner for both. With `SoleAccount`, the store need
    /// not report an owner, because no other account creates buckets there. Defaults to `Owner`.
    #[serde(default)]
    pub adoption_proof: AdoptionProof,
    /// Web pages to which browsers grant access to the buckets of this backend at the gateway. If
    /// unset, no page has access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<CorsRule>,
    /// Buckets that belong to no claim and that BucketAccesses from the listed namespaces may open,
    /// at most 64. A claim cannot use any of these buckets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub shared_buckets: Option<Vec<SharedBucket>>,
}

impl S3BackendSpec {
    /// Maximum number of former endpoints of a store.
    pub const MOST_FORMER_ENDPOINTS: usize = 16;

    fn default_region() -> String {
        "us-east-1".to_owned()
    }

    fn default_template() -> String {
        "{{ .Namespace }}-{{ .Name }}".to_owned()
    }
}

/// Position of the bucket name in request URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AddressingStyle {
    /// Bucket name in the path: `https://host/bucket/key`.
    #[default]
    Path,
    /// Bucket name in the host: `https://bucket.host/key`.
    Virtual,
}

impl AddressingStyle {
    /// Every addressing style.
    pub const ALL: [Self; 2] = [Self::Path, Self::Virtual];

    /// Returns the value used in manifests and in the consumer Secret.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Virtual => "virtual",
        }
    }
}

/// Reference to a Secret that contains credentials of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminCredentialsSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret. It must be the operator's namespace or one that the operator is
    /// configured to trust.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Key in the Secret's data that contains the access key id. Defaults to `AWS_ACCESS_KEY_ID`.
    #[serde(default = "AdminCredentialsSecretRef::default_access_key_field")]
    #[schemars(length(min = 1, max = 253))]
    pub access_key_field: String,
    /// Key in the Secret's data that contains the secret key. Defaults to `AWS_SECRET_ACCESS_KEY`.
    #[serde(default = "AdminCredentialsSecretRef::default_secret_key_field")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_key_field: String,
}

impl AdminCredentialsSecretRef {
    fn default_access_key_field() -> String {
        "AWS_ACCESS_KEY_ID".to_owned()
    }

    fn default_secret_key_field() -> String {
        "AWS_SECRET_ACCESS_KEY".to_owned()
    }
}

/// Verification of the store's TLS certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendTls {
    /// If true, any certificate is accepted. Use it for tests only. Defaults to false.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Secret that contains the certificate authorities to trust instead of those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_secret_ref: Option<CaBundleSecretRef>,
}

/// Reference to a Secret that contains certificate authorities in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaBundleSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the Secret. It must be the operator's namespace or one that the operator is
    /// configured to trust.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Key in the Secret's data that contains the certificates. Defaults to `ca.crt`.
    #[serde(default = "CaBundleSecretRef::default_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

impl CaBundleSecretRef {
    fn default_key() -> String {
        "ca.crt".to_owned()
    }
}

/// Namespaces whose claims may use a backend: those listed in `names` and those matched by
/// `selector`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedNamespaces {
    /// Names of namespaces, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Option<Vec<String>>,
    /// Selector over the labels of namespaces. An empty selector matches all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = StructMerge::Atomic)]
    pub selector: Option<LabelSelector>,
}

/// A label selector like the one of Kubernetes, with bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels and the values that they must have, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 1000, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements, all of which must be satisfied, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub match_expressions: Option<Vec<LabelRequirement>>,
}

/// A requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelRequirement {
    /// Key of the label.
    #[schemars(length(max = 1024))]
    pub key: String,
    /// Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`. A selector with any other operator
    /// matches nothing.
    #[schemars(length(max = 1024))]
    pub operator: String,
    /// Values for the operators `In` and `NotIn`, at most 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 1024)))]
    pub values: Option<Vec<String>>,
}

/// Policy for a bucket that already exists and that no live claim holds (spec §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// Such a bucket is never adopted.
    Never,
    /// Adopted only if its tags name this installation, namespace and claim.
    #[default]
    Owned,
    /// Adopted unless its tags name another claim.
    Any,
}

/// Proof that a bucket belongs to the account of the admin credentials, in a store whose accounts
/// share one namespace of bucket names (spec §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionProof {
    /// The store must report the same owner for the bucket and for the account.
    #[default]
    Owner,
    /// The store need not report an owner, because no other account creates buckets there.
    SoleAccount,
}

/// Web pages to which browsers grant access to the buckets of a backend at the gateway.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsRule {
    /// Origins of the pages, 1 to 64, such as `https://app.example`. Each may contain one `*`,
    /// which matches any string.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[!-)+-~]*[*]?[!-)+-~]*$'))")
        .message("each of allowedOrigins is an origin, in which one * may stand for anything"))]
    pub allowed_origins: Vec<String>,
    /// Methods that the pages may use.
    #[schemars(length(min = 1, max = 5))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_methods: Vec<CorsMethod>,
    /// Request headers that the pages may send besides those that browsers always allow, at most
    /// 64. Names are not case-sensitive. Each may contain one `*`, which matches any string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[0-9A-Za-z_.-]*[*]?[0-9A-Za-z_.-]*$'))")
        .message("each of allowedHeaders is the name of a header, in which one * may stand for anything"))]
    pub allowed_headers: Option<Vec<String>>,
    /// Response headers that the pages may read besides those that browsers always allow, at most
    /// 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[0-9A-Za-z_.-]+$'))")
        .message("each of exposeHeaders is the name of a header"))]
    pub expose_headers: Option<Vec<String>>,
    /// Time for which a browser may cache the answer to a preflight request, 0 to 86400 seconds. If
    /// unset, the browser's default applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub max_age_seconds: Option<i64>,
}

/// A method that a page of another origin may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CorsMethod {
    /// Reads and lists objects.
    Get,
    /// Reads the metadata of objects.
    Head,
    /// Stores objects.
    Put,
    /// Uploads by forms, multipart uploads and DeleteObjects.
    Post,
    /// Deletes objects.
    Delete,
}

impl CorsMethod {
    /// Returns the value used in manifests and in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// Most recently observed state of an S3Backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3BackendStatus {
    /// Generation of the spec that this status describes. -1 until the operator has processed the
    /// S3Backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of claims in phase `Bound` on this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_count: Option<i64>,
    /// Conditions of the S3Backend: `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}
