//! A tenant: somebody who has been given a connection Secret, and nothing else.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Secret;
use stowage_testbed::objects::text;
use stowage_testbed::store::{Key, Store, StoreError};
use thiserror::Error;

/// How many objects a tenant keeps.
const OBJECTS: usize = 10;

/// Why a tenant could not use its bucket.
#[derive(Debug, Error)]
pub(crate) enum UseError {
    /// The gateway did not do what was asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was put is not to be found.
    #[error("bucket {0} shows nothing of what was put into it")]
    Lost(String),
}

impl UseError {
    /// Whether the gateway does not know the tenant's key, or no longer.
    pub(crate) fn is_unknown_key(&self) -> bool {
        matches!(self, Self::Store(error) if error.is("InvalidAccessKeyId"))
    }
}

/// A tenant's client for the gateway, as its connection Secret describes it.
pub(crate) struct Tenant {
    /// The id of the key that it uses.
    pub(crate) key_id: String,
    bucket: String,
    store: Store,
}

impl Tenant {
    /// The tenant who has read this Secret. Makes no request.
    pub(crate) fn of(secret: &Secret) -> Result<Self> {
        let key = Key { id: text(secret, "AWS_ACCESS_KEY_ID"), secret: text(secret, "AWS_SECRET_ACCESS_KEY") };
        let key_id = key.id.clone();
        // Without retries: a request that has to be made twice has failed.
        let store = Store::without_retries(&text(secret, "AWS_ENDPOINT_URL"), &text(secret, "AWS_REGION"), &key)?;
        Ok(Self { key_id, bucket: text(secret, "BUCKET_NAME"), store })
    }

    /// Puts an object, and finds some in the bucket.
    pub(crate) async fn use_bucket(&self, use_number: usize) -> Result<(), UseError> {
        self.store.put(&self.bucket, use_number % OBJECTS).await?;
        if self.store.keys(&self.bucket).await?.is_empty() {
            return Err(UseError::Lost(self.bucket.clone()));
        }
        Ok(())
    }

    /// Tries what no tenant may: another bucket, and buckets themselves.
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

    /// A tenant of this store, whose key has this id and this secret.
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
