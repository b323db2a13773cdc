//! How much may still be stored: pure, the clock is passed in.
//!
//! Counters only rise; only a scan lowers what a bucket holds. What is reserved counts before a
//! byte of it goes to the store.
//!
//! # By how much replicas can pass a limit together
//!
//! A replica tells the others what it has counted, and its own word comes back to it by the watch
//! that brings theirs, in the order in which the API server took them. So what a replica *knows*
//! (what all have told) is never older than its own last word that came back, and what it has
//! counted since is *untold*. Of `n` replicas each lets in what keeps its untold bytes within
//! `(hard − known) / 2n`; more waits until it was told, came back, and still fits.
//!
//! So what waited is admitted in one order, that of the API server, and never makes it more than
//! `hard`. What did not wait may turn out to be too much while others go on: each replica adds what
//! it had let in when it did not know yet that the bucket is full, and nothing after.
//!
//! `stored ≤ hard + Σ (hard − knownᵢ) / 2nᵢ`
//!
//! `knownᵢ` is what a replica knew when it let that in. The sum is less than half of what was left
//! when the replicas that are behind last heard; no clock is needed for that. A replica whose watch
//! hangs, or whose API server is away, uses its share up and then waits. One that hears in time
//! tells within a second when its untold bytes are more than a twentieth of what is left by what it
//! knows: then it is the last second's, and a twentieth of the room that the last large write took.
//! A replica that dies takes what it had not told with it, until a scan has seen that.

use std::collections::BTreeMap;
use std::time::Duration;

use stowage_api::{Counters, Figures, Limits, RecordName};
use tokio::time::Instant;

use super::view::View;

/// How long something may still turn up in a store whose outcome is not known, at least. It may
/// work on a request for as long as it is waited for.
pub const DOUBT: Duration = Duration::from_secs(15 * 60);
/// How often a bucket far from its limit is told of, at least.
pub const SELDOM: Duration = Duration::from_secs(5 * 60);
/// How often a bucket near its limit is told of, at least.
pub const OFTEN: Duration = Duration::from_secs(5);
/// How often one is told of whose writers wait for it, at most.
const AWAITED: Duration = Duration::from_millis(500);
/// How long is waited for one's own word to come back, before it is said again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a bucket without a limit is remembered: edits come and go.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// What came of the wish to store something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is counted, and may be stored.
    Now,
    /// It is counted, and may be stored once it was told, and is still no more than the limit then.
    OnceTold,
}

/// Nothing may be stored: it would be more than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What the bucket holds, in bytes.
    pub used: u64,
    /// The limit, in bytes.
    pub hard: u64,
}

/// What this replica has written, and what it may write.
#[derive(Debug)]
pub struct Ledger {
    me: String,
    buckets: BTreeMap<RecordName, Own>,
    /// All that was ever counted: where the next count begins.
    ever: u64,
}

#[derive(Debug)]
struct Own {
    shard: u16,
    limits: Limits,
    figures: Figures,
    /// Of what is open: what is of unknown outcome, lately and before that.
    doubts: [u64; 2],
    turned: Instant,
    /// What was said last, and when.
    said: Figures,
    said_at: Option<Instant>,
    /// The version that it has there by the answer; `None` = no answer came.
    version: Option<String>,
    /// The least that the API server may have for it, as long as what was said last has not come
    /// back: of words whose answer was lost nobody knows which one stands.
    least: u64,
    /// Somebody waits for it to be told.
    is_awaited: bool,
    touched: Instant,
    /// Since when it is counted.
    since: Instant,
}

impl Own {
    /// What the API server has for it at least, as far as came back. That it is the last word tells
    /// its version: figures may be those of an earlier one again.
    fn told(&self, me: &str, bucket: &RecordName, view: &View) -> u64 {
        // It may be that no word came there yet, or that somebody removed it.
        let Some(back) = view.figures(me, bucket) else { return self.figures.base };
        let is_last = self.version.is_some() && view.version(me, self.shard) == self.version.as_ref();
        if is_last { back.total() } else { back.total().min(self.least) }
    }

    /// What is to be said. What was said last and has not come back stays in it, given up or not:
    /// else whoever asks again would wait for a new word each time, longer than the watch is late.
    fn announced(&self, told: u64) -> Figures {
        let under_way = if told < self.said.total() { self.said.total() } else { 0 };
        let open = under_way.saturating_sub(self.figures.written).max(self.figures.open);
        Figures { open, ..self.figures }
    }

    /// What is of unknown outcome for long enough counts as stored.
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
    /// Nothing was written yet.
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

    /// The first shard with room.
    fn free_shard(&self) -> u16 {
        let mut full: BTreeMap<u16, usize> = BTreeMap::new();
        for own in self.buckets.values() {
            *full.entry(own.shard).or_default() += 1;
        }
        let has_room = |shard: &u16| full.get(shard).is_none_or(|count| *count < Counters::MOST);
        (0..u16::MAX).find(has_room).unwrap_or(u16::MAX)
    }

    /// What a bucket holds, as far as is known.
    #[must_use]
    pub fn used(&self, bucket: &RecordName, view: &View) -> u64 {
        view.used(bucket, &self.me, self.figures(bucket))
    }

    /// This replica's figures of a bucket.
    #[must_use]
    pub fn figures(&self, bucket: &RecordName) -> Figures {
        self.buckets.get(bucket).map_or_else(Figures::default, |own| own.figures)
    }

    /// Counts what somebody is about to store, if there is room for it, where so many replicas
    /// live, this one among them. To be followed by one of [`Ledger::commit`], [`Ledger::release`]
    /// and [`Ledger::doubt`].
    ///
    /// # Errors
    /// When it may not be stored; then nothing is counted.
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

    /// Whether what is counted, so many bytes among it, may be stored by now.
    ///
    /// # Errors
    /// When it is more than the limit.
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

    /// What was reserved is stored.
    pub fn commit(&mut self, bucket: &RecordName, length: u64) {
        if let Some(own) = self.buckets.get_mut(bucket) {
            own.figures.open = own.figures.open.saturating_sub(length);
            own.figures.written = own.figures.written.saturating_add(length);
        }
    }

    /// What was reserved is not stored, and won't be.
    pub fn release(&mut self, bucket: &RecordName, length: u64) {
        if let Some(own) = self.buckets.get_mut(bucket) {
            own.figures.open = own.figures.open.saturating_sub(length);
        }
    }

    /// Nobody knows whether what was reserved is stored, or will be.
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

    /// Something was taken out of a bucket: a scan will tell how much.
    pub fn removed(&mut self, bucket: &RecordName, limits: Limits, now: Instant) {
        let removals = &mut self.own(bucket, limits, now).figures.removals;
        *removals = removals.saturating_add(1);
    }

    /// Forgets what nobody limits any more.
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

    /// What is to be told now: the figures of one shard.
    #[must_use]
    pub fn due(&self, view: &View, now: Instant) -> Option<Counters> {
        let shard = self.buckets.iter().find(|(bucket, own)| self.is_due(bucket, own, view, now))?.1.shard;
        Some(self.shard(shard, view))
    }

    /// All that was not told yet, for the last words of a replica.
    #[must_use]
    pub fn rest(&self, view: &View) -> Vec<Counters> {
        let is_open = |(bucket, own): &(&RecordName, &Own)| view.figures(&self.me, bucket) != Some(own.figures);
        let shards: std::collections::BTreeSet<u16> =
            self.buckets.iter().filter(is_open).map(|(_, own)| own.shard).collect();
        // Nobody asks this replica again: it says no more than what is so.
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
            // It is on its way back.
            return has_passed(AGAIN);
        }
        if own.is_awaited && announced.total() > back {
            return has_passed(AWAITED);
        }
        let Some(hard) = own.limits.hard.map(stowage_api::Bytes::get) else { return has_passed(SELDOM) };
        let Reach { untold, head, is_near } = self.reach(bucket, hard, view);
        // A part of what may stay untold, so that nobody has to wait for the telling.
        untold > head / 20 && has_passed(Duration::from_secs(1)) || is_near && has_passed(OFTEN) || {
            // It was counted first when it was touched first.
            let first = own.said_at.unwrap_or(own.since);
            now.saturating_duration_since(first) >= SELDOM
        }
    }

    /// Notes that what was about to be said may not have been, and is to be said again.
    pub fn unsaid(&mut self, counters: &Counters) {
        for bucket in counters.of.keys() {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.said_at = None;
                own.is_awaited = true;
            }
        }
    }

    /// Notes that something is about to be said; it is told once the watch brings it back.
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

    /// Notes the version of what was said.
    pub fn said(&mut self, counters: &Counters, version: &str) {
        for bucket in counters.of.keys() {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.version = Some(version.to_owned());
            }
        }
    }
}

/// How far a replica may go.
struct Reach {
    /// What it has counted, and the others don't know yet.
    untold: u64,
    /// How much there is room for beyond what all know.
    head: u64,
    /// Whether the bucket is nearly full, by what all know.
    is_near: bool,
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
