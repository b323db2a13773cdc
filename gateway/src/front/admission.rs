//! Leave for one of many to go on: how many requests may be under way, and come in a second.

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

/// Who shares a bound on what is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Share {
    /// Who has a key of the claim or access with this UID.
    Holder(String),
    /// Who has no key, of this bucket.
    Public(String),
}

/// Most requests at once of one source to one public bucket.
pub(super) const PER_SOURCE: u32 = 16;

impl Shared {
    /// Leave to go on for a key: all of a claim or access together, as while one follows the other.
    pub(super) fn admit_holder(&self, key: &Key) -> Result<record::Held, Refusal> {
        let holder = Share::Holder(key.holder_uid().to_owned());
        let counted = self.shares.take(holder).ok_or_else(slow_down)?;
        Ok(record::Held::new(counted))
    }

    /// Leave to go on, for one of many.
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
