//! The gateway as seen by its server and its metrics endpoint.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Method, Request, Response};
use stowage_api::{BucketName, RecordName};
use tokio::time::Instant;

use super::config::Config;
use super::peer::Peer;
use super::record::Record;
use super::shared::{Gears, Shared};
use crate::body::Body;
use crate::cors;
use crate::metrics::Gauges;
use crate::registry::{Limited, Registry, Source, Tables};

/// The gateway. Clones are handles to the same one.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Creates a gateway. It serves requests once its registry is ready.
    #[must_use]
    pub fn new(gears: Gears, config: Config) -> Self {
        Self(Arc::new(Shared::new(gears, config)))
    }

    /// Answers a request. There is always a response; a body that breaks off ends the connection.
    pub async fn serve(&self, request: Request<Body>, peer: Peer) -> Response<Body> {
        let shared = &self.0;
        let (parts, body) = request.into_parts();
        let client = shared.config.proxies.client(peer.address.ip(), &parts.headers);
        let peer = Peer { address: (client, peer.address.port()).into(), ..peer };
        let id = shared.next_request_id();
        let mut record = Record::of(&parts, &peer, id, (shared.clock)());
        let is_head = parts.method == Method::HEAD;
        let resource = parts.uri.path().to_owned();
        let asked = cors::Asked::of(&parts);
        let answered = shared.answer(parts, body, &peer, &mut record).await;
        let mut answer = answered.unwrap_or_else(|unhappy| {
            record.fail(&unhappy);
            unhappy.into_answer(&resource, record.id(), is_head)
        });
        shared.mark(&asked, record.backend(), &mut answer);
        record.close(answer, shared.log.clone(), shared.metrics.clone())
    }

    /// Reports readiness: a line with the age of the cached cluster state.
    ///
    /// # Errors
    /// Returns a line with the reason why requests can't be served now.
    pub fn fitness(&self, now: Instant) -> Result<String, String> {
        let age = self.0.fit(now)?;
        if !self.0.quotas.is_ready(now, now.saturating_duration_since(self.0.begun)) {
            return Err("what the other replicas store is not known yet".to_owned());
        }
        Ok(format!("ok: the API server was heard of {} s ago", age.as_secs()))
    }

    /// Renders all metrics as text.
    #[must_use]
    pub fn measure(&self, now: Instant, dropped: u64, gauges: &Gauges) -> String {
        let age = self.0.registry.age(now).map_or(0, |age| age.as_secs());
        let keys = self.0.registry.ask(Tables::counts).keys as u64;
        let (open, refused) = (gauges.open.load(Ordering::Relaxed), gauges.refused.load(Ordering::Relaxed));
        self.0.metrics.read_off(dropped, open, refused, age, keys);
        self.0.metrics.quotas(&self.0.quotas.gauge(now));
        self.0.metrics.resting(&self.0.clients.resting());
        self.0.metrics.text().unwrap_or_default()
    }

    /// Returns the cached cluster state.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Counts the usage of buckets with limits, together with the other replicas. Never returns.
    pub async fn keep_quotas(&self, source: Source) -> Infallible {
        let shared = self.0.clone();
        let client = move |limited: &Limited| shared.client(&limited.backend).ok();
        self.0.quotas.follow(&self.0.registry, source, self.0.clock.clone(), Arc::new(client)).await
    }

    /// Returns the known usage of a backend's bucket in bytes, or `None` if the backend doesn't
    /// exist.
    #[must_use]
    pub fn used(&self, backend: &str, bucket: &str) -> Option<u64> {
        let backend = self.0.registry.backend(backend)?;
        let bucket = BucketName::parse(bucket).ok()?;
        Some(self.0.quotas.used(&RecordName::of(&backend.endpoint, &bucket)))
    }

    /// Publishes to the other replicas the usage that they don't know yet.
    pub async fn part(&self, source: &Source) {
        self.0.quotas.part(source, self.0.clock.clone()).await;
    }
}
