//! Tenants: they read the consumer Secret now and then, keep what they read, as pods do, and use
//! it.

use std::time::Duration;

use jiff::Timestamp;
use kube_sim::Cluster;
use seeded::VirtualClock;
use stowage_world::gateway::Gateway;
use stowage_world::history::facts::field;
use stowage_world::history::{Chronicle, Used, What};

/// Maximum time between two uses, in seconds.
const PAUSE: u64 = 12;
/// A tenant reads the Secret again at one of this many uses, on average.
const USES: u32 = 4;

/// A tenant of one claim, or of one access.
pub(super) struct Tenant {
    pub(super) cluster: Cluster,
    pub(super) gateway: Gateway,
    /// The index of the gateway.
    pub(super) at: usize,
    pub(super) chronicle: Chronicle,
    pub(super) clock: VirtualClock,
    /// The resource that the tenant belongs to: `bucketclaims` or `bucketaccesses`.
    pub(super) plural: &'static str,
    pub(super) namespace: &'static str,
    pub(super) claim: &'static str,
}

/// A key as read by a tenant.
struct Held {
    secret: String,
    id: String,
    key: String,
    bucket: String,
    read_at: Timestamp,
}

impl Tenant {
    /// Works for ever; the times are drawn from `seed`.
    pub(super) async fn work(self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut held: Option<Held> = None;
        loop {
            tokio::time::sleep(Duration::from_millis(random.u64(500..PAUSE * 1000))).await;
            if held.is_none() || random.u32(0..USES) == 0 {
                // If there is nothing to read, the tenant goes on with the key it has.
                held = self.read().or(held);
            }
            if let Some(held) = &held {
                self.use_key(held);
            }
        }
    }

    /// Returns the key that the claim's status refers to, if it is complete.
    fn read(&self) -> Option<Held> {
        let claim = self.cluster.object(self.plural, self.namespace, self.claim)?;
        let name = claim["status"]["boundSecretName"].as_str()?;
        let secret = self.cluster.object("secrets", self.namespace, name)?;
        Some(Held {
            secret: name.to_owned(),
            id: field(&secret, "AWS_ACCESS_KEY_ID")?,
            key: field(&secret, "AWS_SECRET_ACCESS_KEY")?,
            bucket: field(&secret, "BUCKET_NAME")?,
            read_at: self.clock.now(),
        })
    }

    fn use_key(&self, held: &Held) {
        let list = (&http::Method::GET, "list-type=2");
        let passed = self.gateway.passes_on(&held.id, &held.key, list, &held.bucket);
        let used = Used {
            namespace: self.namespace.to_owned(),
            secret: held.secret.clone(),
            access_key_id: held.id.clone(),
            bucket: held.bucket.clone(),
            read_at: held.read_at,
            allowed: passed == Some(true),
        };
        self.chronicle.note(match self.at {
            _ if self.plural == "bucketaccesses" => What::AccessUsed(used),
            0 => What::Used(used),
            gateway => What::UsedAt { gateway, used },
        });
    }
}
