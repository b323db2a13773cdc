//! The gateways of a world, and the injection of faults into their calls.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use explore::{ApiBody, services};
use faults::Surroundings;
use http::request::Parts;
use kube_sim::Cluster;
use seeded::WallClock;
use tower::{Layer, ServiceExt};

use crate::effects::{Call, Gate, GatewayEffects, GatewayFault, GatewayPlan, OfGateway, S3Fault};
use crate::gateway::wire::{Mailbox, Wire};
use crate::gateway::{Gateway, Given};
use crate::installation::OPERATOR_NAMESPACE;
use crate::options::Options;
use crate::transport::Stores;

/// The gateways of a world.
pub(super) struct Gateways {
    /// All gateways; at least one.
    pub(super) all: Vec<Gateway>,
    /// Numbering and faults of their calls, if there is a plan.
    pub(super) effects: GatewayEffects,
    /// Requests that the stores received from them, if their calls are numbered.
    pub(super) mailbox: Mailbox,
}

/// Creates the gateways. With a plan, even an empty one, their calls are numbered and recorded.
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

/// Parameters of one gateway.
struct Own<'w> {
    number: u32,
    watch: Option<Duration>,
    clock: &'w WallClock,
}

impl Own<'_> {
    /// Returns the parameters of a gateway whose clients use its own clock.
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

/// The stores behind the gateways.
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
