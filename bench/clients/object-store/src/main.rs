//! The client object_store.

use std::time::Duration;

use futures::TryStreamExt as _;
use matrix::{Client, Result, field};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::Signer as _;
use object_store::{ObjectStore as _, ObjectStoreExt as _, WriteMultipart};

const MINUTES: Duration = Duration::from_secs(300);

struct ObjectStore(AmazonS3);

/// Converts a key to a path without encoding it, as other constructors would.
fn path(key: &str) -> Result<Path> {
    Ok(Path::parse(key)?)
}

impl Client for ObjectStore {
    async fn put(&self, key: &str, data: Vec<u8>) -> Result<()> {
        self.0.put(&path(key)?, data.into()).await?;
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Vec<u8>> {
        Ok(self.0.get(&path(key)?).await?.bytes().await?.to_vec())
    }

    async fn get_range(&self, key: &str, first: u64, last: u64) -> Result<Vec<u8>> {
        Ok(self.0.get_range(&path(key)?, first..last + 1).await?.to_vec())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let found: Vec<_> = self.0.list(Some(&path(prefix.trim_end_matches('/'))?)).try_collect().await?;
        Ok(found.into_iter().map(|object| object.location.to_string()).collect())
    }

    async fn upload(&self, key: &str, data: Vec<u8>) -> Result<()> {
        let mut upload = WriteMultipart::new_with_chunk_size(self.0.put_multipart(&path(key)?).await?, 10 << 20);
        upload.write(&data);
        upload.finish().await?;
        Ok(())
    }

    async fn copy(&self, source: &str, key: &str) -> Result<()> {
        Ok(self.0.copy(&path(source)?, &path(key)?).await?)
    }

    async fn delete_many(&self, keys: Vec<String>) -> Result<()> {
        let keys: Vec<_> = keys.iter().map(|key| Path::parse(key).map_err(Into::into)).collect();
        let deleted: Vec<Path> = self.0.delete_stream(Box::pin(futures::stream::iter(keys))).try_collect().await?;
        if deleted.len() == 5 { Ok(()) } else { Err(format!("{} are told as deleted", deleted.len()).into()) }
    }

    async fn presign_put(&self, key: &str) -> Result<String> {
        Ok(self.0.signed_url(http::Method::PUT, &path(key)?, MINUTES).await?.to_string())
    }

    async fn presign_get(&self, key: &str) -> Result<String> {
        Ok(self.0.signed_url(http::Method::GET, &path(key)?, MINUTES).await?.to_string())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    matrix::begin();
    // Key, region and endpoint come from the environment.
    let allow_http = field("AWS_ENDPOINT_URL").starts_with("http:");
    let store = AmazonS3Builder::from_env().with_bucket_name(field("BUCKET_NAME")).with_allow_http(allow_http).build()?;
    matrix::play(ObjectStore(store)).await;
    Ok(())
}
