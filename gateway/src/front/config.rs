//! What a gateway is told.

use std::time::Duration;

use super::peer::Proxies;
use crate::head::Domains;

/// What a gateway is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The region that requests are signed for.
    pub region: String,
    /// Whose word about a client's address is believed.
    pub proxies: Proxies,
    /// Domains below which a host names a bucket.
    pub domains: Domains,
    /// Most calls to each store at once.
    pub backend_calls: usize,
    /// Most requests at once by the keys of one claim, and by everybody without a key of one
    /// bucket.
    pub per_claim: u32,
    /// Requests a second of one source to a public bucket, where its claim doesn't say.
    pub anonymous_rps: u32,
    /// How old what is known may be before nothing is served by it any more.
    pub max_staleness: Duration,
}

impl Default for Config {
    /// As the command line has it by default.
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
