//! Limits per claim and per public bucket: concurrent requests and requests per second.

use tokio::time::Instant;

use super::authentication::Known;
use super::peer::Peer;
use super::record;
use super::shared::Shared;
use crate::decide::denied;
use crate::head::Ask;
use crate::limits::Source;
use crate::refusal::{Code, Refusal};
use crate::registry::Key;

/// The subject of a limit on concurrent requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Share {
    /// The claim or access with this UID: all its keys together.
    Holder(String),
    /// Requests without a key, to this bucket.
    Public(String),
}

/// Maximum number of concurrent requests from one source to one public bucket.
pub(super) const PER_SOURCE: u32 = 16;

impl Shared {
    /// Admits a request signed with a key.
    ///
    /// The limit is per claim or access, not per key: during a rotation two keys are valid.
    pub(super) fn admit_holder(&self, key: &Key) -> Result<record::Held, Refusal> {
        let holder = Share::Holder(key.holder_uid().to_owned());
        let counted = self.shares.take(holder).ok_or_else(slow_down)?;
        Ok(record::Held::new(counted))
    }

    /// Admits a request, with or without a key.
    pub(super) fn admit(&self, known: &Known, ask: &Ask, peer: &Peer) -> Result<record::Held, Refusal> {
        match known {
            Known::Key(key, _) | Known::Form(key) => self.admit_holder(key),
            Known::Nobody => {
                let bucket = ask.target.bucket().ok_or_else(denied)?;
                let asked = self.registry.binding(bucket.as_str()).map(|binding| binding.per_source_ip_rps);
                let rps = asked.filter(|rps| *rps > 0).unwrap_or(self.config.anonymous_rps);
                let key = (bucket.to_string(), Source::of(peer.address.ip()));
                self.rates.pass(key.clone(), rps, Instant::now()).map_err(|_| slow_down())?;
                let of_source = self.sources.take(key).ok_or_else(slow_down)?;
                let of_all = self.shares.take(Share::Public(bucket.to_string())).ok_or_else(slow_down)?;
                Ok(record::Held::new((of_source, of_all)))
            }
        }
    }
}

fn slow_down() -> Refusal {
    Refusal::new(Code::SlowDown, "Please reduce your request rate.")
}
