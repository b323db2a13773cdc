//! A tenant: somebody who has been given a connection Secret, and nothing else.

use k8s_openapi::api::core::v1::Secret;

use crate::failure::check;
use crate::objects::text;
use crate::store::{Key, Store};

/// How many objects a tenant keeps.
const OBJECTS: usize = 10;

/// A tenant's client for the gateway, as its connection Secret describes it.
pub(crate) struct Tenant {
    /// The id of the key that it uses.
    pub(crate) key_id: String,
    bucket: String,
    store: Store,
}

impl Tenant {
    /// The tenant who has read this Secret. Makes no request.
    pub(crate) fn of(secret: &Secret) -> Result<Self, String> {
        let key = Key { id: text(secret, "AWS_ACCESS_KEY_ID"), secret: text(secret, "AWS_SECRET_ACCESS_KEY") };
        let key_id = key.id.clone();
        // Without retries: a request that has to be made twice has failed.
        let store = Store::without_retries(&text(secret, "AWS_ENDPOINT_URL"), &text(secret, "AWS_REGION"), &key)?;
        Ok(Self { key_id, bucket: text(secret, "BUCKET_NAME"), store })
    }

    /// Puts an object, and finds some in the bucket.
    pub(crate) async fn use_bucket(&self, use_number: usize) -> Result<(), String> {
        self.store.put(&self.bucket, use_number % OBJECTS).await?;
        let found = self.store.keys(&self.bucket).await?;
        check(!found.is_empty(), || format!("bucket {} shows nothing of what was put into it", self.bucket))
    }

    /// Tries what no tenant may: another bucket, and buckets themselves.
    pub(crate) async fn is_kept_out_of(&self, other: &str) -> Result<(), String> {
        let tries = [
            ("list another's bucket", self.store.keys(other).await.map(|_| ())),
            ("put into another's bucket", self.store.put(other, 1).await),
            ("make a bucket", self.store.make(&format!("{}-mine", self.bucket)).await),
            ("delete its bucket", self.store.remove_empty(&self.bucket).await),
        ];
        for (what, answer) in tries {
            let refused = answer.as_ref().is_err_and(|why| why.contains("AccessDenied"));
            check(refused, || format!("a tenant tried to {what}, and was answered {answer:?}"))?;
        }
        Ok(())
    }
}
