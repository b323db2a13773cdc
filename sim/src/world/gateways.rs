//! The gateways of a world, and how faults come to their calls.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use explore::{ApiBody, services};
use faults::Surroundings;
use http::request::Parts;
use kube_sim::Cluster;
use s3_sim::Store;
use seeded::WallClock;
use tower::{Layer, ServiceExt};

use super::OPERATOR_NAMESPACE;
use super::transport::Stores;
use crate::effects::{Call, Gate, GatewayEffects, GatewayFault, GatewayPlan, OfGateway, S3Fault};
use crate::gateway::Gateway;
use crate::gateway::wire::{Mailbox, Wire};

/// The gateways of a world.
pub(super) struct Gateways {
    /// They, at least one.
    pub(super) all: Vec<Gateway>,
    /// What their calls are numbered and broken by, if they are.
    pub(super) effects: GatewayEffects,
    /// What the stores are asked by them, where their calls are numbered.
    pub(super) mailbox: Mailbox,
}

/// So many gateways. With a plan, also an empty one, their calls are numbered and noted.
pub(super) fn gateways(
    count: usize,
    plan: Option<GatewayPlan>,
    cluster: &Cluster,
    stores: &Stores,
    clock: &WallClock,
) -> Gateways {
    let (are_numbered, mailbox) = (plan.is_some(), Mailbox::default());
    let effects = GatewayEffects::within(plan.unwrap_or_default(), Arc::new(Behind { stores: stores.clone() }));
    let one = |_| match are_numbered {
        true => numbered(&effects, &mailbox, cluster, stores, clock),
        false => Gateway::new(cluster.client(OPERATOR_NAMESPACE), OPERATOR_NAMESPACE, clock.clone(), stores.clone()),
    };
    let all = (0..count.max(1)).map(one).collect();
    Gateways { all, effects, mailbox }
}

fn numbered(
    effects: &GatewayEffects,
    mailbox: &Mailbox,
    cluster: &Cluster,
    stores: &Stores,
    clock: &WallClock,
) -> Gateway {
    let instance = effects.instance();
    let (received, gate) = (Arc::new(AtomicU64::new(0)), Gate::before(&instance));
    let counted = move |body| ApiBody::counted(body, received.clone(), gate.clone());
    let api = cluster.service().map_response(move |response| response.map(counted));
    let client = kube::Client::new(effects.kube_layer(&instance).layer(api), OPERATOR_NAMESPACE);
    let stores = effects.s3_layer(&instance).layer(Wire::new(stores.clone(), mailbox.clone()));
    Gateway::new(client, OPERATOR_NAMESPACE, clock.clone(), stores)
}

/// What is behind the gateways.
#[derive(Debug)]
struct Behind {
    stores: Stores,
}

impl Surroundings<GatewayFault> for Behind {
    fn expect(&self, plan: &GatewayPlan) {
        if plan.entries.iter().any(|entry| entry.fault == OfGateway::S3(S3Fault::StaleRead)) {
            self.stores.services().for_each(Store::remember_past);
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
