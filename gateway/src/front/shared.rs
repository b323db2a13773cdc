//! The dependencies of a gateway, and the state shared by its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

use super::admission::{PER_SOURCE, Share};
use super::config::Config;
use super::deleting::Deletions;
use super::documents::Documents;
use super::segments::Stores;
use super::upload::Forms;
use crate::audit::Log;
use crate::clock::WallClock;
use crate::limits::{Counts, Rates, Source};
use crate::metrics::Metrics;
use crate::quota::Quotas;
use crate::registry::{Live, Registry};
use crate::upstream::{Clients, Connect};

/// The dependencies of a gateway.
pub struct Gears {
    /// The cached cluster state.
    pub registry: Registry,
    /// Live reads of keys that the registry doesn't have yet.
    pub live: Live,
    /// Connections to stores.
    pub connect: Box<dyn Connect>,
    /// The clock by which keys expire.
    pub clock: WallClock,
    /// The clock by which clients date their signatures. It is the same as `clock`, except in a
    /// simulator that advances its own clock while clients use the machine's.
    pub clock_of_clients: WallClock,
    /// The start of the sequence of request ids: a random number.
    pub first_id: u64,
    /// The access log, if there is one.
    pub log: Option<Log>,
    /// The metrics.
    pub metrics: Metrics,
}

/// The state shared by all handles of a gateway.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) registry: Registry,
    pub(super) live: Live,
    pub(super) clients: Clients,
    pub(super) clock: WallClock,
    pub(super) clock_of_clients: WallClock,
    next_id: AtomicU64,
    pub(super) log: Option<Log>,
    pub(super) metrics: Metrics,
    pub(super) shares: Counts<Share>,
    pub(super) sources: Counts<(String, Source)>,
    pub(super) rates: Rates<(String, Source)>,
    pub(super) documents: Documents,
    pub(super) deletions: Arc<Deletions>,
    pub(super) forms: Forms,
    pub(super) stores: Stores,
    pub(super) quotas: Quotas,
    pub(super) begun: Instant,
}

impl Shared {
    /// Creates the state, with no request in progress.
    pub(super) fn new(gears: Gears, config: Config) -> Self {
        Self {
            registry: gears.registry,
            live: gears.live,
            clients: Clients::new(gears.connect, config.backend_calls),
            clock: gears.clock,
            clock_of_clients: gears.clock_of_clients,
            next_id: AtomicU64::new(gears.first_id),
            log: gears.log,
            metrics: gears.metrics,
            shares: Counts::new(config.per_claim),
            sources: Counts::new(PER_SOURCE),
            rates: Rates::default(),
            documents: Documents::default(),
            deletions: Arc::default(),
            forms: Forms::default(),
            stores: Stores::default(),
            quotas: Quotas::new(format!("{:016x}", mixed(!gears.first_id))),
            begun: Instant::now(),
            config,
        }
    }

    /// Returns the id for a new request.
    pub(super) fn next_request_id(&self) -> String {
        format!("{:016X}", mixed(self.next_id.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Mixes consecutive numbers into ids that don't reveal how many there were (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
