//! The accounting of one replica: how much may still be stored. Pure: the time is passed in.
//!
//! Counters only rise; only a scan lowers the usage of a bucket. A reservation counts before a byte
//! of it is sent to the store.
//!
//! # Maximum overshoot of a limit by all replicas
//!
//! Each replica publishes its counters. It gets them back by the same watch that delivers the
//! others' counters, in the order in which the API server stored them. So the usage that a replica
//! *knows* (published by all) is never older than its own last publication that came back. Its
//! bytes since then are *untold*. Of `n` replicas, each admits writes at once as long as its untold
//! bytes are within `(hard − known) / 2n`. Other writes wait until they were published, came back,
//! and still fit.
//!
//! Writes that waited are thus admitted in one order, that of the API server, and never exceed
//! `hard`. Writes that didn't wait may turn out to be too much while others continue: each replica
//! adds the bytes that it had admitted before it could know that the bucket is full, and none
//! after.
//!
//! `stored ≤ hard + Σ (hard − knownᵢ) / 2nᵢ`
//!
//! `knownᵢ` is the usage known to a replica when it admitted those bytes. The sum is less than half
//! of the room left when the replicas that lag behind last received an event; this depends on no
//! clock. A replica whose watch hangs, or that has lost its API server, uses up its share and then
//! waits. A replica with a working watch publishes within a second when its untold bytes exceed a
//! twentieth of the room that it knows. The overshoot is then the last second's bytes, and a
//! twentieth of the room that the last large write took. If a replica dies, its untold bytes are
//! unknown until a scan has seen them.

use std::collections::BTreeMap;
use std::time::Duration;

use stowage_api::{Counters, Figures, Limits, RecordName};
use tokio::time::Instant;

use super::view::View;

/// Minimum time for which a write of unknown outcome may still appear in a store. The store may
/// work on a request for as long as a response is waited for.
pub const DOUBT: Duration = Duration::from_secs(15 * 60);
/// Maximum interval between publications for a bucket far from its limit.
pub const SELDOM: Duration = Duration::from_secs(5 * 60);
/// Maximum interval between publications for a bucket near its limit.
pub const OFTEN: Duration = Duration::from_secs(5);
/// Minimum interval between publications for a bucket with waiting writes.
const AWAITED: Duration = Duration::from_millis(500);
/// Time after which counters that haven't come back are published again.
const AGAIN: Duration = Duration::from_secs(5);
/// Time after which a bucket without a limit is forgotten. Until then the limit may be set again.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// The result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// The write is counted, and may be stored now.
    Now,
    /// The write is counted. It may be stored once that count is published, if it is then within
    /// the limit.
    OnceTold,
}

/// The error of a write that would exceed the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The usage of the bucket, in bytes.
    pub used: u64,
    /// The limit, in bytes.
    pub hard: u64,
}

/// Bytes that this replica has written, and bytes that it may write.
#[derive(Debug)]
pub struct Ledger {
    me: String,
    buckets: BTreeMap<RecordName, Own>,
    /// The highest total ever counted, at which new counters begin.
    ever: u64,
}

#[derive(Debug)]
struct Own {
    shard: u16,
    limits: Limits,
    figures: Figures,
    /// Bytes of unknown outcome, which are a part of `open`: recent ones, and earlier ones.
    doubts: [u64; 2],
    turned: Instant,
    /// The figures of the last publication, and its time.
    said: Figures,
    said_at: Option<Instant>,
    /// The version in the response to the last publication, or `None` without a response.
    version: Option<String>,
    /// The least total that the API server may have while the last publication has not come back.
    /// If responses were lost, any of the publications may be stored.
    least: u64,
    /// True if a write waits for a publication.
    is_awaited: bool,
    touched: Instant,
    /// The time since which the bucket is counted.
    since: Instant,
}

impl Own {
    /// Returns the least total that the API server has, by what came back. The version decides if
    /// it is the last publication, as its figures may equal those of an earlier one.
    fn told(&self, me: &str, bucket: &RecordName, view: &View) -> u64 {
        // The first publication may not be stored yet, or the object was deleted.
        let Some(back) = view.figures(me, bucket) else { return self.figures.base };
        let is_last = self.version.is_some() && view.version(me, self.shard) == self.version.as_ref();
        if is_last { back.total() } else { back.total().min(self.least) }
    }

    /// Returns the figures to publish. They include the last publication while it has not come
    /// back, even if its writes were given up. Otherwise a client that retries would need a new
    /// publication each time, and wait for longer than the watch lags.
    fn announced(&self, told: u64) -> Figures {
        let under_way = if told < self.said.total() { self.said.total() } else { 0 };
        let open = under_way.saturating_sub(self.figures.written).max(self.figures.open);
        Figures { open, ..self.figures }
    }

    /// Counts bytes of unknown outcome as stored after long enough.
    fn turn(&mut self, now: Instant) {
        if self.doubts != [0, 0] && now.saturating_duration_since(self.turned) >= DOUBT {
            let [lately, before] = self.doubts;
            self.figures.open = self.figures.open.saturating_sub(before);
            self.figures.written = self.figures.written.saturating_add(before);
            self.doubts = [0, lately];
            self.turned = now;
        }
    }
}

impl Ledger {
    /// Creates an empty ledger.
    #[must_use]
    pub fn new(me: String) -> Self {
        Self { me, buckets: BTreeMap::new(), ever: 0 }
    }

    fn own(&mut self, bucket: &RecordName, limits: Limits, now: Instant) -> &mut Own {
        let shard = if self.buckets.contains_key(bucket) { 0 } else { self.free_shard() };
        let begin = Figures { base: self.ever, written: self.ever, open: 0, removals: 0 };
        let own = self.buckets.entry(bucket.clone()).or_insert_with(|| Own {
            shard,
            limits,
            figures: begin,
            doubts: [0, 0],
            turned: now,
            said: begin,
            said_at: None,
            version: None,
            least: begin.total(),
            is_awaited: false,
            touched: now,
            since: now,
        });
        own.limits = limits;
        own.touched = now;
        own.turn(now);
        own
    }

    /// Returns the first shard with room.
    fn free_shard(&self) -> u16 {
        let mut full: BTreeMap<u16, usize> = BTreeMap::new();
        for own in self.buckets.values() {
            *full.entry(own.shard).or_default() += 1;
        }
        let has_room = |shard: &u16| full.get(shard).is_none_or(|count| *count < Counters::MOST);
        (0..u16::MAX).find(has_room).unwrap_or(u16::MAX)
    }

    /// Returns the known usage of a bucket.
    #[must_use]
    pub fn used(&self, bucket: &RecordName, view: &View) -> u64 {
        view.used(bucket, &self.me, self.figures(bucket))
    }

    /// Returns this replica's figures of a bucket.
    #[must_use]
    pub fn figures(&self, bucket: &RecordName) -> Figures {
        self.buckets.get(bucket).map_or_else(Figures::default, |own| own.figures)
    }

    /// Counts bytes about to be stored, if there is room for them. `replicas` is the number of live
    /// replicas, including this one. Each success has to be followed by one of [`Ledger::commit`],
    /// [`Ledger::release`] and [`Ledger::doubt`].
    ///
    /// # Errors
    /// Returns an error if the limit would be exceeded; nothing is counted then.
    pub fn reserve(
        &mut self,
        bucket: &RecordName,
        limits: Limits,
        length: u64,
        view: &View,
        replicas: u64,
        now: Instant,
    ) -> Result<Reserved, Full> {
        let open = &mut self.own(bucket, limits, now).figures.open;
        *open = open.saturating_add(length);
        let Some(hard) = limits.hard.map(stowage_api::Bytes::get) else { return Ok(Reserved::Now) };
        let reserved = self.room(bucket, hard, length, view, replicas);
        if reserved.is_err() {
            self.release(bucket, length);
        }
        reserved
    }

    /// Checks if counted bytes, `length` of which are the caller's, may be stored now.
    ///
    /// # Errors
    /// Returns an error if the limit is exceeded.
    pub fn room(
        &mut self,
        bucket: &RecordName,
        hard: u64,
        length: u64,
        view: &View,
        replicas: u64,
    ) -> Result<Reserved, Full> {
        let used = self.used(bucket, view);
        if used > hard {
            return Err(Full { used: used.saturating_sub(length), hard });
        }
        let Reach { untold, head, .. } = self.reach(bucket, hard, view);
        if untold <= head / replicas.max(1).saturating_mul(2) {
            return Ok(Reserved::Now);
        }
        if let Some(own) = self.buckets.get_mut(bucket) {
            own.is_awaited = true;
        }
        Ok(Reserved::OnceTold)
    }

    fn reach(&self, bucket: &RecordName, hard: u64, view: &View) -> Reach {
        let own = self.figures(bucket);
        let told = self.buckets.get(bucket).map_or(own.base, |it| it.told(&self.me, bucket, view));
        let untold = own.total().saturating_sub(told);
        let known = self.used(bucket, view).saturating_sub(untold);
        Reach { untold, head: hard.saturating_sub(known), is_near: known >= hard - hard / 10 }
    }

    /// Records that reserved bytes are stored.
    pub fn commit(&mut self, bucket: &RecordName, length: u64) {
        if let Some(own) = self.buckets.get_mut(bucket) {
            own.figures.open = own.figures.open.saturating_sub(length);
            own.figures.written = own.figures.written.saturating_add(length);
        }
    }

    /// Records that reserved bytes are not stored, and won't be.
    pub fn release(&mut self, bucket: &RecordName, length: u64) {
        if let Some(own) = self.buckets.get_mut(bucket) {
            own.figures.open = own.figures.open.saturating_sub(length);
        }
    }

    /// Records that the outcome of reserved bytes is unknown.
    pub fn doubt(&mut self, bucket: &RecordName, length: u64, now: Instant) {
        if let Some(own) = self.buckets.get_mut(bucket) {
            if own.doubts == [0, 0] {
                own.turned = now;
            }
            own.turn(now);
            let [lately, _] = &mut own.doubts;
            *lately = lately.saturating_add(length);
        }
    }

    /// Records a deletion in a bucket. A scan will find how much was freed.
    pub fn removed(&mut self, bucket: &RecordName, limits: Limits, now: Instant) {
        let removals = &mut self.own(bucket, limits, now).figures.removals;
        *removals = removals.saturating_add(1);
    }

    /// Forgets idle buckets without a limit.
    pub fn keep(&mut self, is_limited: impl Fn(&RecordName) -> bool, now: Instant) {
        let ever = &mut self.ever;
        self.buckets.retain(|bucket, own| {
            own.turn(now);
            let is_idle = own.figures.open == 0 && now.saturating_duration_since(own.touched) > REMEMBERED;
            let stays = is_limited(bucket) || !is_idle;
            if !stays {
                *ever = (*ever).max(own.figures.total());
            }
            stays
        });
    }

    /// Returns the counters to publish now: those of one shard.
    #[must_use]
    pub fn due(&self, view: &View, now: Instant) -> Option<Counters> {
        let shard = self.buckets.iter().find(|(bucket, own)| self.is_due(bucket, own, view, now))?.1.shard;
        Some(self.shard(shard, view))
    }

    /// Returns all counters that were not published yet, for the shutdown of a replica.
    #[must_use]
    pub fn rest(&self, view: &View) -> Vec<Counters> {
        let is_open = |(bucket, own): &(&RecordName, &Own)| view.figures(&self.me, bucket) != Some(own.figures);
        let shards: std::collections::BTreeSet<u16> =
            self.buckets.iter().filter(is_open).map(|(_, own)| own.shard).collect();
        // No write waits for this replica any more, so it publishes the exact figures.
        shards.into_iter().map(|shard| self.counters(shard, |_, own| own.figures)).collect()
    }

    fn shard(&self, shard: u16, view: &View) -> Counters {
        self.counters(shard, |bucket, own| own.announced(own.told(&self.me, bucket, view)))
    }

    fn counters(&self, shard: u16, figures: impl Fn(&RecordName, &Own) -> Figures) -> Counters {
        let of = self.buckets.iter().filter(|(_, own)| own.shard == shard);
        let of = of.map(|(bucket, own)| (bucket.clone(), figures(bucket, own))).take(Counters::MOST).collect();
        Counters { replica: self.me.clone(), shard, of }
    }

    fn is_due(&self, bucket: &RecordName, own: &Own, view: &View, now: Instant) -> bool {
        let told = view.figures(&self.me, bucket);
        let unchanged = Figures { base: own.figures.base, written: own.figures.base, open: 0, removals: 0 };
        let back = own.told(&self.me, bucket, view);
        let announced = own.announced(back);
        if back >= announced.total() && told.unwrap_or(unchanged) == announced {
            return false;
        }
        let has_passed = |least| own.said_at.is_none_or(|said| now.saturating_duration_since(said) >= least);
        if own.said_at.is_some() && own.said == announced {
            // The last publication is on its way back.
            return has_passed(AGAIN);
        }
        if own.is_awaited && announced.total() > back {
            return has_passed(AWAITED);
        }
        let Some(hard) = own.limits.hard.map(stowage_api::Bytes::get) else { return has_passed(SELDOM) };
        let Reach { untold, head, is_near } = self.reach(bucket, hard, view);
        // A part of the share that may stay untold, so that no write has to wait for a publication.
        untold > head / 20 && has_passed(Duration::from_secs(1)) || is_near && has_passed(OFTEN) || {
            // A bucket is counted from its first use on.
            let first = own.said_at.unwrap_or(own.since);
            now.saturating_duration_since(first) >= SELDOM
        }
    }

    /// Records that a publication may have failed, and has to be repeated.
    pub fn unsaid(&mut self, counters: &Counters) {
        for bucket in counters.of.keys() {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.said_at = None;
                own.is_awaited = true;
            }
        }
    }

    /// Records that counters are about to be published. They count as known to the others once the
    /// watch delivers them.
    pub fn saying(&mut self, counters: &Counters, view: &View, now: Instant) {
        for (bucket, figures) in &counters.of {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.least = own.told(&self.me, bucket, view).min(figures.total());
                own.said = *figures;
                own.said_at = Some(now);
                own.version = None;
                own.is_awaited = false;
            }
        }
    }

    /// Records the version of the published counters.
    pub fn said(&mut self, counters: &Counters, version: &str) {
        for bucket in counters.of.keys() {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.version = Some(version.to_owned());
            }
        }
    }
}

/// The extent to which a replica may write without a publication.
struct Reach {
    /// Bytes counted by this replica and unknown to the others.
    untold: u64,
    /// The room beyond the usage that all replicas know.
    head: u64,
    /// True if the bucket is nearly full, by the usage that all replicas know.
    is_near: bool,
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
