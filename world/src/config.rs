//! Configuration of the operator in a world.

use std::collections::BTreeSet;
use std::time::Duration;

use stowage_operator::Config;
use stowage_operator::api::{AddressingStyle, Endpoint, Gateway, Publishing, Unlabelled};
use stowage_operator::plan::Reach;
use stowage_operator::upstream::Limits;

use crate::installation::{GATEWAY_ENDPOINT, OPERATOR_NAMESPACE, PROVISIONER};
use crate::options::{Accesses, Options};

/// Returns the operator's configuration for these options.
pub(crate) fn of(options: &Options) -> Config {
    Config {
        max_concurrent_reconciles: options.max_concurrent_reconciles,
        purge_slice: options.purge_slice,
        accesses: options.accesses != Accesses::Absent,
        obc: options.foreign.map(|_| PROVISIONER.to_owned()),
        resync_interval: options.resync_interval,
        publishing: options.publishing.clone(),
        ..config_for(Endpoint::parse(GATEWAY_ENDPOINT).expect("it is a URL"))
    }
}

/// Returns the default configuration of an operator with this gateway endpoint.
pub fn config_for(gateway: Endpoint) -> Config {
    Config {
        operator_namespace: OPERATOR_NAMESPACE.to_owned(),
        usage_namespace: None,
        reach: Reach::Cluster,
        trusted_namespaces: BTreeSet::new(),
        unlabelled_credentials: Unlabelled::Refused,
        gateway: Gateway {
            endpoint: gateway,
            region: "us-east-1".to_owned(),
            addressing_style: AddressingStyle::Path,
            ca: None,
        },
        publishing: Publishing::default(),
        installation: None,
        read_only: false,
        election: None,
        max_concurrent_reconciles: 16,
        limits: Limits { calls: 32, timeout: Duration::from_secs(30) },
        purge_slice: 10_000,
        accesses: true,
        obc: None,
        resync_interval: Duration::from_secs(600),
    }
}
