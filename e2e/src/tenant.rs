//! A tenant that has a connection Secret, and nothing else.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use stowage_testbed::objects::text;
use stowage_testbed::store::{Key, Store, StoreError};
use thiserror::Error;

/// Number of objects that a tenant writes.
const OBJECTS: usize = 10;

/// Reason why a tenant could not use its bucket.
#[derive(Debug, Error)]
pub(crate) enum UseError {
    /// A request failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An object that was put is not listed.
    #[error("bucket {0} shows nothing of what was put into it")]
    Lost(String),
}

impl UseError {
    /// True if the gateway doesn't know the tenant's key.
    pub(crate) fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Store(error) if error.is("InvalidAccessKeyId"))
    }
}

/// A tenant's client of the gateway, configured by its connection Secret.
pub(crate) struct Tenant {
    /// Id of its key.
    pub(crate) key_id: String,
    bucket: String,
    store: Store,
}

impl Tenant {
    /// Creates the client for this Secret. Sends no request.
    pub(crate) fn of(secret: &Secret) -> Result<Self> {
        let key = Key { id: text(secret, "AWS_ACCESS_KEY_ID"), secret: text(secret, "AWS_SECRET_ACCESS_KEY") };
        let key_id = key.id.clone();
        // Without retries, so that a request that would have to be repeated is a failure.
        let store = Store::without_retries(&text(secret, "AWS_ENDPOINT_URL"), &text(secret, "AWS_REGION"), &key)?;
        Ok(Self { key_id, bucket: text(secret, "BUCKET_NAME"), store })
    }

    /// Puts an object, and checks that the bucket lists objects.
    pub(crate) async fn use_bucket(&self, use_number: usize) -> Result<(), UseError> {
        self.store.put(&self.bucket, use_number % OBJECTS).await?;
        if self.store.keys(&self.bucket).await?.is_empty() {
            return Err(UseError::Lost(self.bucket.clone()));
        }
        Ok(())
    }

    /// Checks that requests that are denied to every tenant fail: to another bucket, and to create
    /// and delete buckets.
    pub(crate) async fn is_kept_out_of(&self, other: &str) -> Result<()> {
        let tries = [
            ("list another's bucket", self.store.keys(other).await.map(|_| ())),
            ("put into another's bucket", self.store.put(other, 1).await),
            ("make a bucket", self.store.make(&format!("{}-mine", self.bucket)).await),
            ("delete its bucket", self.store.remove_empty(&self.bucket).await),
        ];
        for (what, answer) in tries {
            match answer {
                Err(why) if why.is("AccessDenied") => {}
                Err(why) => return Err(why).with_context(|| format!("a tenant tried to {what}, and was not refused")),
                Ok(()) => bail!("a tenant tried to {what}, and could"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;

    use super::*;
    use stowage_testbed::simulated::{REGION, Simulated};

    /// Returns a tenant of this store with this key.
    fn tenant(simulated: &Simulated, id: &str, secret: &str) -> Tenant {
        let endpoint = simulated.endpoint();
        let fields = [
            ("AWS_ACCESS_KEY_ID", id),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_REGION", REGION),
            ("BUCKET_NAME", "photos"),
        ];
        let data = fields.map(|(name, value)| (name.to_owned(), ByteString(value.as_bytes().to_vec())));
        Tenant::of(&Secret { data: Some(BTreeMap::from(data)), ..Secret::default() }).unwrap()
    }

    #[tokio::test]
    async fn a_key_that_is_unknown_is_told_from_a_bucket_that_is_not_there() {
        let simulated = Simulated::start().await.unwrap();
        let known = tenant(&simulated, &simulated.admin.id, &simulated.admin.secret);
        let unknown = tenant(&simulated, "NOBODY", "guessed");
        assert!(!known.use_bucket(1).await.unwrap_err().is_unknown_key());
        assert!(unknown.use_bucket(1).await.unwrap_err().is_unknown_key());
    }
}
