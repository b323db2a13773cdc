//! A tenant: a client of the AWS SDK that is configured from a connection Secret, and its answers.

use std::collections::BTreeMap;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Config, Credentials, Region};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use k8s_openapi::api::core::v1::Secret;
use stowage_operator::api::ClaimRef;

/// A client with the content of a connection Secret and nothing else.
pub(super) struct Tenant {
    /// The claim of the Secret.
    pub(super) claim: ClaimRef,
    /// Name of the Secret.
    pub(super) secret: String,
    /// The bucket that the Secret names.
    pub(super) bucket: String,
    /// The access key id in the Secret.
    pub(super) key: String,
    client: Client,
}

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// HTTP status; `None` if there was no answer.
    pub(super) status: Option<u16>,
    /// S3's code, such as `AccessDenied`.
    pub(super) code: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status} {}", self.code),
            None => f.write_str(&self.code),
        }
    }
}

/// The result of a request.
pub(super) type TenantResult<T> = Result<T, Refused>;

fn refused<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Refused {
    let status = error.raw_response().map(|response| response.status().as_u16());
    Refused { status, code: error.code().unwrap_or("no answer").to_owned() }
}

/// Returns the fields of a Secret that are text.
pub(super) fn fields(secret: &Secret) -> BTreeMap<String, String> {
    let data = secret.data.iter().flatten();
    data.filter_map(|(key, value)| Some((key.clone(), String::from_utf8(value.0.clone()).ok()?))).collect()
}

impl Tenant {
    /// Creates a client with endpoint, region, addressing style and keys from the Secret. It
    /// doesn't retry, so that a refusal is visible at once.
    ///
    /// # Errors
    /// Returns a message about the field that is missing.
    pub(super) fn new(
        claim: ClaimRef,
        name: &str,
        secret: &Secret,
        http: SharedHttpClient,
        time: SharedTimeSource,
    ) -> Result<Self, String> {
        let fields = fields(secret);
        let field = |key: &str| fields.get(key).ok_or_else(|| format!("Secret {name} of {claim} has no {key}"));
        let keys = (field("AWS_ACCESS_KEY_ID")?, field("AWS_SECRET_ACCESS_KEY")?);
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(Credentials::new(keys.0, keys.1, None, None, "connection Secret"))
            .endpoint_url(field("AWS_ENDPOINT_URL_S3")?)
            .region(Region::new(field("AWS_REGION")?.clone()))
            .force_path_style(field("S3_ADDRESSING_STYLE")? == "path")
            .retry_config(RetryConfig::disabled())
            .http_client(http)
            .time_source(time)
            .build();
        let (bucket, key) = (field("BUCKET_NAME")?.clone(), keys.0.clone());
        Ok(Self { bucket, key, secret: name.to_owned(), client: Client::from_conf(config), claim })
    }

    /// Returns the namespace and name of the Secret.
    pub(super) fn secret_place(&self) -> String {
        format!("{}/{}", self.claim.namespace, self.secret)
    }

    /// Returns the beginning and the end of the access key id.
    pub(super) fn short_key(&self) -> String {
        let tail = self.key.get(self.key.len().saturating_sub(4)..).unwrap_or_default();
        format!("{}…{tail}", self.key.get(..4).unwrap_or_default())
    }

    /// Stores an object.
    pub(super) async fn put(&self, bucket: &str, key: &str, text: &str) -> TenantResult<()> {
        let body = ByteStream::from(text.as_bytes().to_vec());
        let sent = self.client.put_object().bucket(bucket).key(key).body(body).send().await;
        sent.map(drop).map_err(|error| refused(&error))
    }

    /// Reads an object.
    pub(super) async fn get(&self, bucket: &str, key: &str) -> TenantResult<String> {
        let answer = self.client.get_object().bucket(bucket).key(key).send().await;
        let body = answer.map_err(|error| refused(&error))?.body.collect().await;
        let bytes = body.map_err(|error| Refused { status: None, code: error.to_string() })?.into_bytes();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Lists the keys of a bucket, first page only.
    pub(super) async fn list(&self, bucket: &str) -> TenantResult<Vec<String>> {
        let answer = self.client.list_objects_v2().bucket(bucket).send().await.map_err(|error| refused(&error))?;
        Ok(answer.contents().iter().filter_map(|object| object.key().map(ToOwned::to_owned)).collect())
    }

    /// Deletes an object. In a versioned bucket this creates a delete marker.
    pub(super) async fn delete(&self, bucket: &str, key: &str) -> TenantResult<()> {
        self.client.delete_object().bucket(bucket).key(key).send().await.map(drop).map_err(|error| refused(&error))
    }

    /// Begins a multipart upload without completing it.
    pub(super) async fn start_upload(&self, bucket: &str, key: &str) -> TenantResult<()> {
        let sent = self.client.create_multipart_upload().bucket(bucket).key(key).send().await;
        sent.map(drop).map_err(|error| refused(&error))
    }

    /// Deletes a bucket.
    pub(super) async fn delete_bucket(&self, bucket: &str) -> TenantResult<()> {
        self.client.delete_bucket().bucket(bucket).send().await.map(drop).map_err(|error| refused(&error))
    }

    /// Creates a bucket.
    pub(super) async fn create_bucket(&self, bucket: &str) -> TenantResult<()> {
        self.client.create_bucket().bucket(bucket).send().await.map(drop).map_err(|error| refused(&error))
    }
}
