//! The [`Config`] type.

use std::time::Duration;

use super::peer::Proxies;
use crate::head::Domains;

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The region that requests are signed for.
    pub region: String,
    /// The proxies that are trusted to report a client's address.
    pub proxies: Proxies,
    /// The domains below which a host name names a bucket.
    pub domains: Domains,
    /// Maximum number of concurrent calls to each store.
    pub backend_calls: usize,
    /// Maximum number of concurrent requests by the keys of one claim, and by all clients without a
    /// key to one bucket.
    pub per_claim: u32,
    /// Maximum number of requests per second from one source to a public bucket whose claim sets no
    /// limit.
    pub anonymous_rps: u32,
    /// Maximum age of the cached cluster state; beyond it every request is refused.
    pub max_staleness: Duration,
}

impl Default for Config {
    /// Returns the command line's defaults.
    fn default() -> Self {
        Self {
            region: "us-east-1".to_owned(),
            proxies: Proxies::default(),
            domains: Domains::default(),
            backend_calls: 512,
            per_claim: 128,
            anonymous_rps: 50,
            max_staleness: Duration::from_secs(60 * 60),
        }
    }
}
