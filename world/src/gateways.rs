//! The gateways of a world, how tenants reach them, and how faults come to their calls.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use aws_smithy_async::time::{SharedTimeSource, TimeSource};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use explore::{ApiBody, services};
use faults::Surroundings;
use http::request::Parts;
use kube_sim::Cluster;
use s3_sim::{InProcess, Store};
use seeded::{VirtualClock, WallClock};
use tower::{Layer, ServiceExt};

use super::transport::{Hosts, Stores};
use super::{GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, Options, World, authority};
use crate::effects::{Call, Gate, GatewayEffects, GatewayFault, GatewayPlan, OfGateway, S3Fault};
use crate::gateway::wire::{Mailbox, Wire};
use crate::gateway::{Gateway, Given};
use crate::history::Contents;

/// The gateways of a world.
pub(super) struct Gateways {
    /// They, at least one.
    pub(super) all: Vec<Gateway>,
    /// What their calls are numbered and broken by, if they are.
    pub(super) effects: GatewayEffects,
    /// What the stores are asked by them, where their calls are numbered.
    pub(super) mailbox: Mailbox,
}

/// As many gateways as are asked for. With a plan, also an empty one, their calls are numbered and
/// noted.
pub(super) fn gateways(options: &Options, cluster: &Cluster, stores: &Stores, clock: &WallClock) -> Gateways {
    let (plan, mailbox) = (options.gateway_plan.clone(), Mailbox::default());
    let are_numbered = plan.is_some();
    let effects = GatewayEffects::within(plan.unwrap_or_default(), Arc::new(Behind { stores: stores.clone() }));
    let one = |number| {
        let own = Own { number, watch: options.gateway_watch, clock };
        match are_numbered {
            true => numbered(&own, &effects, &mailbox, cluster, stores),
            false => Gateway::new(own.given(cluster.client(OPERATOR_NAMESPACE), stores.clone())),
        }
    };
    let all = (0..).take(options.gateways.max(1)).map(one).collect();
    Gateways { all, effects, mailbox }
}

fn numbered(own: &Own<'_>, effects: &GatewayEffects, mailbox: &Mailbox, cluster: &Cluster, stores: &Stores) -> Gateway {
    let instance = effects.instance();
    let (received, gate) = (Arc::new(AtomicU64::new(0)), Gate::before(&instance));
    let counted = move |body| ApiBody::counted(body, received.clone(), gate.clone());
    let api = cluster.service().map_response(move |response| response.map(counted));
    let client = kube::Client::new(effects.kube_layer(&instance).layer(api), OPERATOR_NAMESPACE);
    let stores = effects.s3_layer(&instance).layer(Wire::new(stores.clone(), mailbox.clone()));
    Gateway::new(own.given(client, stores))
}

/// What a gateway has of its own.
struct Own<'w> {
    number: u32,
    watch: Option<Duration>,
    clock: &'w WallClock,
}

impl Own<'_> {
    /// What a gateway is given whose clients have its own clock.
    fn given<S>(&self, client: kube::Client, stores: S) -> Given<S> {
        Given {
            number: self.number,
            client,
            operator_namespace: OPERATOR_NAMESPACE,
            clock: self.clock.clone(),
            clock_of_clients: self.clock.clone(),
            stores,
            watch: self.watch,
            log: None,
        }
    }
}

impl World {
    /// A tenant's client for the gateway, with nothing but what a consumer Secret holds.
    pub fn tenant(&self, access_key: &str, secret_key: &str, region: &str) -> aws_sdk_s3::Client {
        let client = InProcess::new(self.gateway().http()).client(access_key, secret_key, region);
        let config = client.config().to_builder().time_source(self.tenants_time()).build();
        aws_sdk_s3::Client::from_conf(config)
    }

    /// A tenant's HTTP client: it reaches the gateway at [`GATEWAY_ENDPOINT`], and nothing else.
    pub fn tenant_http(&self) -> SharedHttpClient {
        SharedHttpClient::new(InProcess::new(Hosts::new([(authority(GATEWAY_ENDPOINT), self.gateway().http())])))
    }

    /// What tenants' clients read the time from: the gateway takes no signature of another day.
    pub fn tenants_time(&self) -> SharedTimeSource {
        SharedTimeSource::new(TimeOf(self.clock.clone()))
    }

    /// Sends a request to the gateway as it is, signed or not; the status of the answer.
    ///
    /// # Panics
    /// When the gateway gives no answer, which it always does.
    pub async fn send_to_gateway(&self, request: http::Request<s3s::Body>) -> http::StatusCode {
        let answer = tower::ServiceExt::oneshot(self.gateway().http(), request).await;
        answer.expect("the gateway answers").status()
    }

    /// The gateway; the first of several.
    pub fn gateway(&self) -> Gateway {
        self.gateways[0].clone()
    }

    /// All gateways.
    pub fn gateways(&self) -> &[Gateway] {
        &self.gateways
    }

    /// Hosts and ports of all stores.
    pub fn hosts(&self) -> impl Iterator<Item = String> {
        self.stores.all().into_iter().map(|(host, _)| host)
    }

    /// The present objects of all buckets.
    pub fn contents(&self) -> Contents {
        let of_store = |(host, store): (String, Store)| {
            let buckets = store.buckets().into_keys();
            buckets.map(|name| ((host.clone(), name.clone()), store.objects(&name))).collect::<Vec<_>>()
        };
        self.stores.all().into_iter().flat_map(of_store).collect()
    }
}

/// The time of a world, as the SDK asks for it.
#[derive(Debug)]
struct TimeOf(VirtualClock);

impl TimeSource for TimeOf {
    fn now(&self) -> SystemTime {
        self.0.now().into()
    }
}

/// What is behind the gateways.
#[derive(Debug)]
struct Behind {
    stores: Stores,
}

impl Surroundings<GatewayFault> for Behind {
    fn expect(&self, plan: &GatewayPlan) {
        if plan.entries.iter().any(|entry| entry.fault == OfGateway::S3(S3Fault::StaleRead)) {
            self.stores.all().iter().for_each(|(_, store)| store.remember_past());
        }
    }

    fn befall(&self, fault: OfGateway, _: &Call, request: &mut Parts) {
        services::mark(fault, request);
        if let OfGateway::Project(fault) = fault {
            request.extensions.insert(fault);
        }
    }

    fn arrives(&self, _: u64, _: &Call, _: &mut Parts) {}

    fn carried_out(&self, _: u64, _: &Call, _: &str, _: u16) {}
}
