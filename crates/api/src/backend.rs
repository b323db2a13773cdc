//! `S3Backend` as the API server stores it (spec §1).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use super::sharing::SharedBucket;

/// Where the store is, how it is called, and which claims may have which buckets on it.
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
    /// URL of the store: http or https and a host, no user info, path or query.
    // A rule rather than a pattern, for one message without a regular expression.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(
        "self.matches('^https?://[^/?#]+([/?].*)?$') && isURL(self) && !self.contains('@') && url(self).getHostname() != '' && url(self).getEscapedPath() in ['', '/'] && url(self).getQuery().size() == 0"
    ).message("endpoint must be a URL of scheme http or https with a host, no user info, path or query"))]
    pub endpoint: String,
    /// Earlier URLs of the same store, each as `endpoint` is: keys that were made for one of them
    /// go on opening their buckets. One is to be named before `endpoint` is edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(max = 2048)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new(
        "self.all(it, it.matches('^https?://[^/?#]+([/?].*)?$') && isURL(it) && !it.contains('@') && url(it).getHostname() != '' && url(it).getEscapedPath() in ['', '/'] && url(it).getQuery().size() == 0)"
    ).message("each of formerEndpoints must be a URL of scheme http or https with a host, no user info, path or query"))]
    pub former_endpoints: Option<Vec<String>>,
    /// Region that requests are signed for and buckets are made in.
    #[serde(default = "S3BackendSpec::default_region")]
    #[schemars(length(min = 1, max = 63))]
    pub region: String,
    /// How a bucket's name is put into a request's URL.
    #[serde(default)]
    pub addressing_style: AddressingStyle,
    /// The Secret with the admin credentials.
    pub admin_credentials_secret_ref: AdminCredentialsSecretRef,
    /// The Secret with the credentials that the gateway passes tenants' requests on with, under the
    /// same rules as the admin credentials. Absent = those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_credentials_secret_ref: Option<AdminCredentialsSecretRef>,
    /// How the store's certificate is checked.
    #[serde(default)]
    pub tls: BackendTls,
    /// Name of a bucket whose claim gives none: `a-z 0-9 . -` and `{{ .Namespace }}`,
    /// `{{ .Name }}`, `{{ .Hash }}`.
    #[serde(default = "S3BackendSpec::default_template")]
    #[schemars(length(min = 1, max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^([a-z0-9.-]|[{][{] *[.](Namespace|Name|Hash) *[}][}])+$')")
        .message("only a-z 0-9 . - and {{ .Namespace }}, {{ .Name }}, {{ .Hash }} may stand in a template"))]
    pub bucket_name_template: String,
    /// Namespaces whose claims may use this backend; absent = all, present and empty = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
    /// What may happen when a bucket of the wanted name exists and no live claim holds it.
    #[serde(default)]
    pub adoption_policy: AdoptionPolicy,
    /// What shows that a bucket to be adopted is of the account of the admin credentials.
    #[serde(default)]
    pub adoption_proof: AdoptionProof,
    /// Which web pages browsers let use the buckets of this backend at the gateway. Absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<CorsRule>,
    /// Buckets that no claim has, and that accesses of these namespaces may open. A claim can have
    /// none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub shared_buckets: Option<Vec<SharedBucket>>,
}

impl S3BackendSpec {
    /// Most endpoints that a store may have had before.
    pub const MOST_FORMER_ENDPOINTS: usize = 16;

    fn default_region() -> String {
        "us-east-1".to_owned()
    }

    fn default_template() -> String {
        "{{ .Namespace }}-{{ .Name }}".to_owned()
    }
}

/// How a bucket's name is put into a request's URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AddressingStyle {
    /// `https://host/bucket/key`
    #[default]
    Path,
    /// `https://bucket.host/key`
    Virtual,
}

impl AddressingStyle {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Path, Self::Virtual];

    /// The word that stands in manifests and in the consumer Secret.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Virtual => "virtual",
        }
    }
}

/// Names the Secret with the admin credentials, and the fields in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdminCredentialsSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace: the operator's, or one that the operator was told to trust.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Field that holds the access key id.
    #[serde(default = "AdminCredentialsSecretRef::default_access_key_field")]
    #[schemars(length(min = 1, max = 253))]
    pub access_key_field: String,
    /// Field that holds the secret key.
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

/// How the store's certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendTls {
    /// Accept any certificate. For tests only.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// Certificate authorities to trust in place of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_secret_ref: Option<CaBundleSecretRef>,
}

/// Names a Secret with certificate authorities in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaBundleSecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace: the operator's, or one that the operator was told to trust.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Field that holds the certificates.
    #[serde(default = "CaBundleSecretRef::default_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

impl CaBundleSecretRef {
    fn default_key() -> String {
        "ca.crt".to_owned()
    }
}

/// Namespaces whose claims may use a backend: those that `names` lists *or* `selector` matches.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowedNamespaces {
    /// Namespaces by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(min = 1, max = 63)))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub names: Option<Vec<String>>,
    /// Namespaces by label. A present but empty selector matches every namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = StructMerge::Atomic)]
    pub selector: Option<LabelSelector>,
}

/// A label selector as Kubernetes has it, with bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have just these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 1000, "additionalProperties" = { "type": "string", "maxLength": 63 }))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub match_expressions: Option<Vec<LabelRequirement>>,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelRequirement {
    /// The label's key.
    #[schemars(length(max = 1024))]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`. A selector with any other word matches nothing.
    #[schemars(length(max = 1024))]
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(max = 1024)))]
    pub values: Option<Vec<String>>,
}

/// What may happen when a bucket of the wanted name exists and no live claim holds it (spec §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionPolicy {
    /// Such a bucket is never taken.
    Never,
    /// Taken only when its tags name this installation, namespace and claim.
    #[default]
    Owned,
    /// Taken unless its tags name another claim.
    Any,
}

/// What shows that a bucket is of our own account, where the accounts of a store share its names
/// (spec §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdoptionProof {
    /// The store names the same owner for the bucket and for the account.
    #[default]
    Owner,
    /// The store may name no owner: nobody but this account makes buckets there.
    SoleAccount,
}

/// Which web pages browsers let use the buckets of a backend at the gateway.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsRule {
    /// Origins of pages, as `https://app.example`. One `*` in each may stand for anything.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 256)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[!-)+-~]*[*]?[!-)+-~]*$'))")
        .message("each of allowedOrigins is an origin, in which one * may stand for anything"))]
    pub allowed_origins: Vec<String>,
    /// Methods that such a page may use.
    #[schemars(length(min = 1, max = 5))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub allowed_methods: Vec<CorsMethod>,
    /// Headers that it may send beyond those that browsers let any page send, in any case. One `*`
    /// in each may stand for anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[0-9A-Za-z_.-]*[*]?[0-9A-Za-z_.-]*$'))")
        .message("each of allowedHeaders is the name of a header, in which one * may stand for anything"))]
    pub allowed_headers: Option<Vec<String>>,
    /// Headers of answers that it may read beyond those that browsers let any page read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 128)))]
    #[x_kube(merge_strategy = ListMerge::Set, validation = Rule::new("self.all(it, it.matches('^[0-9A-Za-z_.-]+$'))")
        .message("each of exposeHeaders is the name of a header"))]
    pub expose_headers: Option<Vec<String>>,
    /// For how many seconds a browser may go by what it was told. Absent = as browsers have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub max_age_seconds: Option<i64>,
}

/// A method that a page of another origin may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CorsMethod {
    /// Reads and lists.
    Get,
    /// Reads without the bytes.
    Head,
    /// Writes.
    Put,
    /// Forms, multipart uploads, and removal of many objects.
    Post,
    /// Removes.
    Delete,
}

impl CorsMethod {
    /// The word that stands in manifests and in requests.
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

/// What the operator found out about a backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct S3BackendStatus {
    /// The generation that this status speaks of; -1 = nobody has looked at the backend yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Claims in phase `Bound` on this backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket_count: Option<i64>,
    /// `Ready`, and `Reconciling` or `Stalled` while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Condition>")]
    pub conditions: Vec<Condition>,
}
