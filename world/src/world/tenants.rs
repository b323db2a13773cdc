//! Tenants' clients for the gateways of a world, and the contents of its buckets.

use std::time::SystemTime;

use aws_smithy_async::time::{SharedTimeSource, TimeSource};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use s3_sim::{InProcess, Store};
use seeded::VirtualClock;

use super::World;
use crate::gateway::Gateway;
use crate::history::Contents;
use crate::installation::GATEWAY_ENDPOINT;
use crate::transport::{Hosts, authority};

impl World {
    /// Returns a tenant's client for the gateway. It needs only the contents of a consumer Secret.
    pub fn tenant(&self, access_key: &str, secret_key: &str, region: &str) -> aws_sdk_s3::Client {
        let client = InProcess::new(self.gateway().http()).client(access_key, secret_key, region);
        let config = client.config().to_builder().time_source(self.tenants_time()).build();
        aws_sdk_s3::Client::from_conf(config)
    }

    /// Returns a tenant's HTTP client, which can reach only the gateway at [`GATEWAY_ENDPOINT`].
    pub fn tenant_http(&self) -> SharedHttpClient {
        SharedHttpClient::new(InProcess::new(Hosts::new([(authority(GATEWAY_ENDPOINT), self.gateway().http())])))
    }

    /// Returns the clock of tenants' clients. They need it because the gateway refuses signatures
    /// of another day.
    pub fn tenants_time(&self) -> SharedTimeSource {
        SharedTimeSource::new(TimeOf(self.clock.clone()))
    }

    /// Sends a request to the gateway unchanged, signed or not. Returns the status of the answer.
    ///
    /// # Panics
    /// Panics if the gateway does not answer, which does not happen.
    pub async fn send_to_gateway(&self, request: http::Request<s3s::Body>) -> http::StatusCode {
        let answer = tower::ServiceExt::oneshot(self.gateway().http(), request).await;
        answer.expect("the gateway answers").status()
    }

    /// Returns the gateway; the first of several.
    pub fn gateway(&self) -> Gateway {
        self.gateways[0].clone()
    }

    /// Returns all gateways.
    pub fn gateways(&self) -> &[Gateway] {
        &self.gateways
    }

    /// Iterates over hosts and ports of all stores.
    pub fn hosts(&self) -> impl Iterator<Item = String> {
        self.stores.all().into_iter().map(|(host, _)| host)
    }

    /// Returns the current objects of all buckets.
    pub fn contents(&self) -> Contents {
        let of_store = |(host, store): (String, Store)| {
            let buckets = store.buckets().into_keys();
            buckets.map(|name| ((host.clone(), name.clone()), store.objects(&name))).collect::<Vec<_>>()
        };
        self.stores.all().into_iter().flat_map(of_store).collect()
    }
}

/// The time of a world as a time source of the SDK.
#[derive(Debug)]
struct TimeOf(VirtualClock);

impl TimeSource for TimeOf {
    fn now(&self) -> SystemTime {
        self.0.now().into()
    }
}
