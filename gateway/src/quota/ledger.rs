//! How much may still be stored: pure, the clock is passed in.
//!
//! Counters only rise; only a scan lowers what a bucket holds. What is reserved counts before a
//! byte of it goes to the store.

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
/// How often a bucket near its limit is told of, at most.
pub const OFTEN: Duration = Duration::from_secs(5);
/// How long is waited for one's own word to come back, before it is said again.
const AGAIN: Duration = Duration::from_secs(5);
/// How long a bucket without a limit is remembered: edits come and go.
const REMEMBERED: Duration = Duration::from_secs(60 * 60);

/// Where this replica stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How many live, this one among them.
    pub replicas: u64,
    /// Whether it sees them.
    pub is_fresh: bool,
}

/// What came of the wish to store something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It is counted, and may be stored.
    Now,
    /// It is counted, and may be stored once it was told.
    OnceTold,
}

/// Why nothing may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// It would be more than the limit.
    Exceeded {
        /// What the bucket holds, in bytes.
        used: u64,
        /// The limit, in bytes.
        hard: u64,
    },
    /// It may be too much: nobody knows what others have stored meanwhile.
    Unseen,
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
    said_at: Instant,
    /// Somebody waits for it to be told.
    is_awaited: bool,
    touched: Instant,
}

impl Own {
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
            said_at: now,
            is_awaited: false,
            touched: now,
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

    /// Counts what somebody is about to store, if there is room for it. To be followed by one of
    /// [`Ledger::commit`], [`Ledger::release`] and [`Ledger::doubt`].
    ///
    /// # Errors
    /// When it may not be stored; then nothing is counted.
    pub fn reserve(
        &mut self,
        bucket: &RecordName,
        limits: Limits,
        length: u64,
        view: &View,
        standing: Standing,
        now: Instant,
    ) -> Result<Reserved, Full> {
        let open = &mut self.own(bucket, limits, now).figures.open;
        *open = open.saturating_add(length);
        let Some(hard) = limits.hard.map(stowage_api::Bytes::get) else { return Ok(Reserved::Now) };
        let used = self.used(bucket, view);
        let reserved = if used > hard {
            Err(Full::Exceeded { used: used.saturating_sub(length), hard })
        } else {
            self.room(bucket, hard, view, standing)
        };
        match reserved {
            Ok(Reserved::OnceTold) => {
                if let Some(own) = self.buckets.get_mut(bucket) {
                    own.is_awaited = true;
                }
            }
            Ok(Reserved::Now) => {}
            Err(_) => self.release(bucket, length),
        }
        reserved
    }

    /// Whether what is counted may be stored by now.
    ///
    /// # Errors
    /// [`Full::Unseen`] where nothing is seen of the others any more.
    pub fn room(&self, bucket: &RecordName, hard: u64, view: &View, standing: Standing) -> Result<Reserved, Full> {
        let Reach { untold, head, is_near } = self.reach(bucket, hard, view);
        let replicas = standing.replicas.max(1);
        if !standing.is_fresh {
            let share = head / replicas.saturating_mul(2);
            return if untold <= share { Ok(Reserved::Now) } else { Err(Full::Unseen) };
        }
        // A tenth; of more than five replicas each has half of its share.
        let share = head / replicas.saturating_mul(2).max(10);
        let is_alone = standing.replicas <= 1;
        if is_alone || is_near || untold <= share { Ok(Reserved::Now) } else { Ok(Reserved::OnceTold) }
    }

    fn reach(&self, bucket: &RecordName, hard: u64, view: &View) -> Reach {
        let own = self.figures(bucket);
        let told = view.figures(&self.me, bucket).map_or(own.base, |told| told.total().max(own.base));
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
        Some(self.shard(shard))
    }

    /// All that was not told yet, for the last words of a replica.
    #[must_use]
    pub fn rest(&self, view: &View) -> Vec<Counters> {
        let is_open = |(bucket, own): &(&RecordName, &Own)| view.figures(&self.me, bucket) != Some(own.figures);
        let shards: std::collections::BTreeSet<u16> =
            self.buckets.iter().filter(is_open).map(|(_, own)| own.shard).collect();
        shards.into_iter().map(|shard| self.shard(shard)).collect()
    }

    fn shard(&self, shard: u16) -> Counters {
        let of = self.buckets.iter().filter(|(_, own)| own.shard == shard);
        let of = of.map(|(bucket, own)| (bucket.clone(), own.figures)).take(Counters::MOST).collect();
        Counters { replica: self.me.clone(), shard, of }
    }

    fn is_due(&self, bucket: &RecordName, own: &Own, view: &View, now: Instant) -> bool {
        let told = view.figures(&self.me, bucket);
        let unchanged = Figures { base: own.figures.base, written: own.figures.base, open: 0, removals: 0 };
        if told.unwrap_or(unchanged) == own.figures {
            return false;
        }
        let since = now.saturating_duration_since(own.said_at);
        if own.said == own.figures && told.is_some_and(|told| told != own.figures) || since < Duration::from_millis(50)
        {
            // It is on its way back.
            return since >= AGAIN;
        }
        let Some(hard) = own.limits.hard.map(stowage_api::Bytes::get) else { return since >= SELDOM };
        let Reach { untold, head, is_near } = self.reach(bucket, hard, view);
        if own.is_awaited {
            return own.said != own.figures || since >= AGAIN;
        }
        // Half of what may stay untold, so that nobody has to wait for the telling.
        is_near && since >= OFTEN || untold > head / 20 && since >= Duration::from_secs(1) || since >= SELDOM
    }

    /// Notes that something was said; it is told once the watch brings it back.
    pub fn said(&mut self, counters: &Counters, now: Instant) {
        for (bucket, figures) in &counters.of {
            if let Some(own) = self.buckets.get_mut(bucket) {
                own.said = *figures;
                own.said_at = now;
                own.is_awaited = false;
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
