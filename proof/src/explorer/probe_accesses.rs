//! The final probe of accesses: an entry reported as open allows what it reports, and one reported
//! as closed allows nothing (A5, A1).

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use serde_json::Value;
use stowage_world::history::Facts;
use stowage_world::history::facts::field;

use super::stage::Stage;

/// Observed permissions of a key in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tried {
    lists: bool,
    puts: bool,
    deletes: bool,
}

impl Stage {
    /// Tries each entry of each access with the key from its Secret. Returns a sentence per entry
    /// whose status is not true.
    pub(super) async fn probe_accesses(&self, facts: &Facts) -> Vec<String> {
        let mut failed = Vec::new();
        for (namespace, name, access) in facts.all("bucketaccesses") {
            let Some(bound) = access["status"]["boundSecretName"].as_str() else { continue };
            let secret = facts.object("secrets", namespace, bound);
            let (Some(id), Some(key)) = (field(secret, "AWS_ACCESS_KEY_ID"), field(secret, "AWS_SECRET_ACCESS_KEY"))
            else {
                continue;
            };
            let client = self.world.tenant(&id, &key, "us-east-1");
            let told = access["status"]["buckets"].as_array().into_iter().flatten();
            for (at, (entry, told)) in access["spec"]["buckets"].as_array().into_iter().flatten().zip(told).enumerate()
            {
                let Some(bucket) = told["bucket"].as_str() else { continue };
                let prefix = entry["prefix"].as_str().unwrap_or_default();
                let tried = tried(&client, bucket, prefix).await;
                if tried != promised(told) {
                    failed
                        .push(format!("entry {at} of the access {namespace}/{name} tells {told}, and it is {tried:?}"));
                }
                if !prefix.is_empty() && lists(&client, bucket, "").await {
                    failed.push(format!("the access {namespace}/{name} lists more of {bucket} than {prefix}"));
                }
            }
        }
        failed
    }
}

fn promised(told: &Value) -> Tried {
    let mode = told["mode"].as_str().filter(|_| told["state"] == "Open");
    Tried {
        lists: matches!(mode, Some("ReadOnly" | "ReadWrite")),
        puts: matches!(mode, Some("WriteOnly" | "ReadWrite")),
        deletes: mode == Some("ReadWrite"),
    }
}

async fn tried(client: &Client, bucket: &str, prefix: &str) -> Tried {
    let key = format!("{prefix}probe-of-access");
    let body = ByteStream::from_static(b"probe");
    let puts = is_let_in(client.put_object().bucket(bucket).key(&key).body(body).send().await);
    let lists = lists(client, bucket, prefix).await;
    let deletes = is_let_in(client.delete_object().bucket(bucket).key(&key).send().await);
    Tried { lists, puts, deletes }
}

async fn lists(client: &Client, bucket: &str, prefix: &str) -> bool {
    is_let_in(client.list_objects_v2().bucket(bucket).prefix(prefix).send().await)
}

/// Returns true if the gateway let a request pass. A full bucket is the tenant's own concern, and a
/// missing one is reported by its claim.
fn is_let_in<T, E: ProvideErrorMetadata>(outcome: Result<T, E>) -> bool {
    outcome.map_or_else(|error| matches!(error.code(), Some("QuotaExceeded" | "NoSuchBucket")), |_| true)
}
