//! The final probe of a run: `Ready` promises a tenant access, and its key opens nothing else.

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use http::Method;
use stowage_world::history::facts::field;
use stowage_world::history::{Facts, Tried, What};
use tokio::time::{Duration, Instant, sleep};

use super::stage::Stage;

/// Time that a tenant retries after SlowDown: longer than any watch lags.
const PATIENCE: Duration = Duration::from_secs(60);
/// Wait between two retries, as in `Retry-After`.
const AGAIN: Duration = Duration::from_secs(1);

impl Stage {
    /// Puts an object with the key of each bound claim, reads it back and finds it in a list,
    /// through the gateway. Returns a sentence per claim for which that fails.
    pub(super) async fn probe(&self, facts: &Facts) -> Vec<String> {
        let mut failed = Vec::new();
        for (namespace, name, _) in facts.all("bucketclaims").filter(|(space, name, _)| facts.is_bound(space, name)) {
            if let Err(why) = self.probe_claim(facts, namespace, name).await {
                failed.push(format!("the claim {namespace}/{name} is Ready, but its tenant {why}"));
            }
        }
        failed
    }

    async fn probe_claim(&self, facts: &Facts, namespace: &str, name: &str) -> Result<(), String> {
        let bound = facts.claim(namespace, name)["status"]["boundSecretName"].as_str().unwrap_or_default();
        let secret = facts.object("secrets", namespace, bound);
        let read = |key: &str| field(secret, key).ok_or_else(|| format!("finds no {key} in the Secret {bound}"));
        let client =
            self.world.tenant(&read("AWS_ACCESS_KEY_ID")?, &read("AWS_SECRET_ACCESS_KEY")?, &read("AWS_REGION")?);
        let bucket = read("BUCKET_NAME")?;
        self.try_more(&read("AWS_ACCESS_KEY_ID")?, &read("AWS_SECRET_ACCESS_KEY")?, &bucket);
        put_get_list(&client, &bucket).await
    }

    /// Tries requests that a key must not allow (I15): another bucket, and deleting its own.
    fn try_more(&self, id: &str, key: &str, bucket: &str) {
        let other = format!("{bucket}-of-others");
        for (operation, wanted, bucket) in [
            ("ListObjectsV2", (&Method::GET, "list-type=2"), other.as_str()),
            ("CreateBucket", (&Method::PUT, ""), other.as_str()),
            ("DeleteBucket", (&Method::DELETE, ""), bucket),
        ] {
            let passed = self.world.gateway().passes_on(id, key, wanted, bucket);
            self.world.note(What::Tried(Tried {
                access_key_id: id.to_owned(),
                operation: operation.to_owned(),
                bucket: bucket.to_owned(),
                allowed: passed == Some(true),
            }));
        }
    }
}

/// Writes, reads and lists an object, as a tenant does first with its bucket.
async fn put_get_list(client: &aws_sdk_s3::Client, bucket: &str) -> Result<(), String> {
    const PROBE: &str = "probe";
    let put = || {
        let body = ByteStream::from_static(PROBE.as_bytes());
        client.put_object().bucket(bucket).key(PROBE).body(body).send()
    };
    let until = Instant::now() + PATIENCE;
    let mut last = put().await;
    // A gateway that waits for its peers answers SlowDown, and the tenant retries.
    while last.as_ref().is_err_and(|error| error.code() == Some("SlowDown")) && Instant::now() < until {
        sleep(AGAIN).await;
        last = put().await;
    }
    if last.as_ref().is_err_and(|error| error.code() == Some("QuotaExceeded")) {
        // The bucket is full, and the answer states it.
        return Ok(());
    }
    last.map_err(|error| format!("can't put an object into {bucket}: {error:?}"))?;
    let got = client.get_object().bucket(bucket).key(PROBE).send().await;
    let got = got.map_err(|error| format!("can't read an object of {bucket}: {error:?}"))?;
    let bytes = got.body.collect().await.map_err(|error| format!("can't read an object of {bucket}: {error:?}"))?;
    if bytes.to_vec() != PROBE.as_bytes() {
        return Err(format!("reads another object from {bucket} than it put there"));
    }
    let listed = client.list_objects_v2().bucket(bucket).prefix(PROBE).send().await;
    let listed = listed.map_err(|error| format!("can't list the objects of {bucket}: {error:?}"))?;
    let is_there = listed.contents().iter().any(|object| object.key() == Some(PROBE));
    if is_there { Ok(()) } else { Err(format!("doesn't find in the list of {bucket} what it put there")) }
}
