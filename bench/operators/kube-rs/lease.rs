//! Minimal leader election: one Lease, replaced at the version that was read.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::time::{Instant, sleep};

/// Lease duration, deadline for renewals, and interval of attempts.
const DURATION: Duration = Duration::from_secs(8);
const DEADLINE: Duration = Duration::from_secs(6);
const RETRY: Duration = Duration::from_secs(1);

/// A candidate, and the Lease to hold.
pub struct Election {
    pub leases: Api<Lease>,
    pub name: &'static str,
    pub identity: String,
}

impl Election {
    /// Resolves once this candidate leads. Another holder's Lease counts as expired by this
    /// machine's clock, from when it was last seen to change.
    pub async fn won(&self) {
        let mut seen: Option<(Option<String>, Instant)> = None;
        loop {
            let wait = match self.leases.get_opt(self.name).await {
                Ok(None) => self.write(None).await.is_none(),
                Ok(Some(lease)) => {
                    let version = lease.metadata.resource_version.clone();
                    let since = match &seen {
                        Some((known, since)) if *known == version => *since,
                        _ => Instant::now(),
                    };
                    seen = Some((version, since));
                    let is_free = holder(&lease).is_empty() || holder(&lease) == self.identity;
                    !(is_free || since.elapsed() > DURATION) || self.write(Some(lease)).await.is_none()
                }
                Err(_) => true,
            };
            if !wait {
                return;
            }
            sleep(RETRY).await;
        }
    }

    /// Resolves once this candidate is no longer the leader, because it could not renew in time.
    pub async fn lost(&self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < DEADLINE {
            sleep(RETRY).await;
            let written = match self.leases.get_opt(self.name).await {
                Ok(Some(lease)) if holder(&lease) != self.identity => return,
                Ok(lease) => self.write(lease).await,
                Err(_) => None,
            };
            if written.is_some() {
                renewed = Instant::now();
            }
        }
    }

    /// Releases the Lease, so that the next candidate need not wait.
    pub async fn release(&self) {
        if let Ok(Some(mut lease)) = self.leases.get_opt(self.name).await
            && holder(&lease) == self.identity
        {
            lease.spec.get_or_insert_default().holder_identity = Some(String::new());
            let _ = self.leases.replace(self.name, &PostParams::default(), &lease).await;
        }
    }

    /// Writes a Lease with this candidate as holder: a new one, or the given one replaced.
    async fn write(&self, lease: Option<Lease>) -> Option<Lease> {
        let now = MicroTime(Timestamp::now());
        let Some(mut lease) = lease else {
            let metadata = ObjectMeta { name: Some(self.name.to_owned()), ..ObjectMeta::default() };
            let spec = LeaseSpec {
                holder_identity: Some(self.identity.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            };
            let new = Lease { metadata, spec: Some(spec) };
            return self.leases.create(&PostParams::default(), &new).await.ok();
        };
        let is_other = holder(&lease) != self.identity;
        let spec = lease.spec.get_or_insert_default();
        spec.renew_time = Some(now.clone());
        if is_other {
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(now);
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + 1);
        }
        self.leases.replace(self.name, &PostParams::default(), &lease).await.ok()
    }
}

fn holder(lease: &Lease) -> &str {
    lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
}
