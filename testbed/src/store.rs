//! A client of the S3 store that bypasses the operator.

use std::collections::BTreeMap;
use std::error::Error as StdError;

use anyhow::Result;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketVersioningStatus, Tag, Tagging, VersioningConfiguration};
use s3_sim::BucketSnapshot;
use stowage_operator::upstream::{Connect, RustlsConnect, Trust};
use thiserror::Error;

/// A key for a store.
#[derive(Clone)]
pub struct Key {
    /// Access key id.
    pub id: String,
    /// Secret access key.
    pub secret: String,
}

/// Error of a store operation.
#[derive(Debug, Error)]
#[error("{what}: {told}")]
pub struct StoreError {
    /// The operation that failed.
    what: String,
    /// The S3 error code, if the store sent one.
    code: Option<String>,
    /// The SDK's error with all its causes.
    told: String,
}

impl StoreError {
    /// True if the S3 error code is `code`.
    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}

/// A store, or a gateway to one, accessed with one key.
pub struct Store {
    /// Its region.
    pub region: String,
    client: Client,
}

impl Store {
    /// Creates a client with the SDK's standard retries. Sends no request.
    pub fn new(endpoint: &str, region: &str, key: &Key) -> Result<Self> {
        Self::connect(endpoint, region, key, RetryConfig::standard(), trust(endpoint))
    }

    /// Creates a client that doesn't retry.
    pub fn without_retries(endpoint: &str, region: &str, key: &Key) -> Result<Self> {
        Self::connect(endpoint, region, key, RetryConfig::disabled(), trust(endpoint))
    }

    /// Creates a client that doesn't retry and accepts any certificate, for a key that is not
    /// secret.
    pub fn of_whoever_answers(endpoint: &str, region: &str, key: &Key) -> Result<Self> {
        Self::connect(endpoint, region, key, RetryConfig::disabled(), Trust::Anything)
    }

    fn connect(endpoint: &str, region: &str, key: &Key, retries: RetryConfig, trust: Trust) -> Result<Self> {
        let http = RustlsConnect.connect(&trust)?;
        let config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .credentials_provider(Credentials::new(&key.id, &key.secret, None, None, "stowage-e2e"))
            .endpoint_url(endpoint)
            .force_path_style(true)
            .region(Region::new(region.to_owned()))
            .retry_config(retries)
            .http_client(http)
            .build();
        let client = Client::from_conf(config);
        Ok(Self { region: region.to_owned(), client })
    }

    /// Checks that the store answers.
    pub async fn probe(&self) -> Result<(), StoreError> {
        let answer = self.client.list_buckets().send().await;
        answer.map(|_| ()).map_err(failed("the store doesn't answer"))
    }

    /// Returns the tags of a bucket; `None` if it doesn't exist.
    pub async fn tags(&self, bucket: &str) -> Result<Option<BTreeMap<String, String>>, StoreError> {
        match self.client.get_bucket_tagging().bucket(bucket).send().await {
            Ok(answer) => Ok(Some(answer.tag_set.into_iter().map(|tag| (tag.key, tag.value)).collect())),
            Err(error) => match error.code() {
                Some("NoSuchBucket") => Ok(None),
                // MinIO sends this code for a bucket that doesn't exist, too.
                Some("NoSuchTagSet") => Ok(self.is_there(bucket).await?.then(BTreeMap::new)),
                _ => Err(failed(format!("can't read the tags of bucket {bucket}"))(error)),
            },
        }
    }

    async fn is_there(&self, bucket: &str) -> Result<bool, StoreError> {
        match self.client.head_bucket().bucket(bucket).send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(false),
            Err(error) => Err(failed(format!("can't look at bucket {bucket}"))(error)),
        }
    }

    /// Puts a small object, with this number in its key.
    pub async fn put(&self, bucket: &str, number: usize) -> Result<(), StoreError> {
        self.put_object(bucket, &format!("objects/{number:05}")).await
    }

    /// Puts a small object.
    pub async fn put_object(&self, bucket: &str, key: &str) -> Result<(), StoreError> {
        let put = self.client.put_object().bucket(bucket).key(key);
        let answer = put.body(ByteStream::from_static(b"data")).send().await;
        answer.map(|_| ()).map_err(failed(format!("can't put into bucket {bucket}")))
    }

    /// Creates a bucket that belongs to no claim.
    pub async fn make(&self, bucket: &str) -> Result<(), StoreError> {
        let answer = self.client.create_bucket().bucket(bucket).send().await;
        answer.map(|_| ()).map_err(failed(format!("can't make bucket {bucket}")))
    }

    /// Replaces the tags of a bucket.
    pub async fn tag(&self, bucket: &str, tags: &[(&str, &str)]) -> Result<()> {
        let tags = tags.iter().map(|(key, value)| Tag::builder().key(*key).value(*value).build());
        let tagging = Tagging::builder().set_tag_set(Some(tags.collect::<Result<_, _>>()?)).build()?;
        let answer = self.client.put_bucket_tagging().bucket(bucket).tagging(tagging).send().await;
        Ok(answer.map(|_| ()).map_err(failed(format!("can't tag bucket {bucket}")))?)
    }

    /// Returns the keys of a bucket's objects, on the first page of the listing only.
    pub async fn keys(&self, bucket: &str) -> Result<Vec<String>, StoreError> {
        let answer = self.client.list_objects_v2().bucket(bucket).send().await;
        let answer = answer.map_err(failed(format!("can't list bucket {bucket}")))?;
        Ok(answer.contents.unwrap_or_default().into_iter().filter_map(|object| object.key).collect())
    }

    /// Enables versioning of a bucket.
    pub async fn keep_versions(&self, bucket: &str) -> Result<(), StoreError> {
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let put = self.client.put_bucket_versioning().bucket(bucket).versioning_configuration(enabled);
        let answer = put.send().await;
        answer.map(|_| ()).map_err(failed(format!("can't version bucket {bucket}")))
    }

    /// Begins a multipart upload that is never completed.
    pub async fn begin_upload(&self, bucket: &str) -> Result<(), StoreError> {
        let answer = self.client.create_multipart_upload().bucket(bucket).key("unfinished").send().await;
        answer.map(|_| ()).map_err(failed(format!("can't upload to bucket {bucket}")))
    }

    /// Makes one of the calls that an operator makes for a claim. An error response, for example
    /// for a missing bucket or missing tags, counts as success.
    pub async fn call(&self, operation: &str, bucket: &str) -> Result<(), StoreError> {
        let (client, what) = (&self.client, format!("{operation} {bucket}"));
        let tags = || {
            let tag = Tag::builder().key("stowage-bench").value(bucket).build().ok();
            Tagging::builder().set_tag_set(Some(tag.into_iter().collect())).build().ok()
        };
        match operation {
            "CreateBucket" => self.make(bucket).await,
            "PutBucketTagging" => {
                let put = client.put_bucket_tagging().bucket(bucket).set_tagging(tags());
                put.send().await.map(|_| ()).map_err(failed(what))
            }
            "GetBucketTagging" => {
                let answer = client.get_bucket_tagging().bucket(bucket).send().await;
                answer.map(|_| ()).or_else(|error| answered(error, what))
            }
            "GetBucketVersioning" => {
                let answer = client.get_bucket_versioning().bucket(bucket).send().await;
                answer.map(|_| ()).or_else(|error| answered(error, what))
            }
            _ => self.is_there(bucket).await.map(|_| ()),
        }
    }

    /// Deletes a bucket with the few objects, versions and uploads that a scenario may have left in
    /// it.
    pub async fn remove(&self, bucket: &str) -> Result<(), StoreError> {
        let failed_to_empty = || format!("can't empty bucket {bucket}");
        let uploads = self.client.list_multipart_uploads().bucket(bucket).send().await;
        for upload in uploads.map_err(failed(failed_to_empty()))?.uploads.unwrap_or_default() {
            let abort = self.client.abort_multipart_upload().bucket(bucket);
            let answer = abort.set_key(upload.key).set_upload_id(upload.upload_id).send().await;
            answer.map_err(failed(failed_to_empty()))?;
        }
        loop {
            let page = self.client.list_object_versions().bucket(bucket).send().await;
            let page = page.map_err(failed(format!("can't list bucket {bucket}")))?;
            let versions = page.versions.unwrap_or_default().into_iter().map(|it| (it.key, it.version_id));
            let markers = page.delete_markers.unwrap_or_default().into_iter().map(|it| (it.key, it.version_id));
            let all: Vec<_> = versions.chain(markers).collect();
            if all.is_empty() {
                return self.remove_empty(bucket).await;
            }
            for (key, version) in all {
                let delete = self.client.delete_object().bucket(bucket).set_key(key).set_version_id(version);
                delete.send().await.map_err(failed(failed_to_empty()))?;
            }
        }
    }

    /// Deletes an empty bucket.
    pub async fn remove_empty(&self, bucket: &str) -> Result<(), StoreError> {
        let answer = self.client.delete_bucket().bucket(bucket).send().await;
        answer.map(|_| ()).map_err(failed(format!("can't delete bucket {bucket}")))
    }

    /// Returns the names of the buckets with this prefix.
    async fn names(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let answer = self.client.list_buckets().send().await;
        let buckets = answer.map_err(failed("can't list the buckets"))?.buckets.unwrap_or_default();
        Ok(buckets.into_iter().filter_map(|bucket| bucket.name).filter(|name| name.starts_with(prefix)).collect())
    }

    /// Returns the buckets with this prefix: their tags, and their number of objects, as far as
    /// these fit on one page.
    pub async fn buckets(&self, prefix: &str) -> Result<BTreeMap<String, BucketSnapshot>, StoreError> {
        let mut buckets = BTreeMap::new();
        for name in self.names(prefix).await? {
            if let Some(tags) = self.tags(&name).await? {
                let objects = self.keys(&name).await?.len();
                let tags = Some(tags).filter(|tags| !tags.is_empty());
                buckets.insert(name, BucketSnapshot { tags, objects, ..BucketSnapshot::default() });
            }
        }
        Ok(buckets)
    }

    /// Deletes the buckets with this prefix.
    pub async fn remove_all(&self, prefix: &str) -> Result<(), StoreError> {
        for name in self.names(prefix).await? {
            self.remove(&name).await?;
        }
        Ok(())
    }
}

/// Without TLS no certificate is checked. Loading the system's authorities could fail, as a machine
/// may have none.
fn trust(endpoint: &str) -> Trust {
    if endpoint.starts_with("https:") { Trust::System } else { Trust::Anything }
}

/// Maps an error response to success: only a call without a response fails.
fn answered<E>(error: SdkError<E, HttpResponse>, what: String) -> Result<(), StoreError>
where
    SdkError<E, HttpResponse>: ProvideErrorMetadata + StdError,
{
    if error.raw_response().is_some() { Ok(()) } else { Err(failed(what)(error)) }
}

/// Returns a converter of the SDK's errors; `what` describes the failed operation.
fn failed<E: ProvideErrorMetadata + StdError>(what: impl Into<String>) -> impl FnOnce(E) -> StoreError {
    let what = what.into();
    move |error| StoreError {
        what,
        code: error.code().map(str::to_owned),
        told: DisplayErrorContext(error).to_string(),
    }
}
