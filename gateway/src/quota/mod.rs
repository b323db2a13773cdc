//! Quotas: limits on the bytes stored in a bucket, enforced by all replicas of the gateway together
//! (spec §6).
//!
//! [`ledger`], [`view`], [`peers`], [`scan`] and [`list`] are pure. `exchange` connects them to the
//! API server and `scanner` to the stores.

mod exchange;
pub mod ledger;
pub mod list;
pub mod peers;
pub mod scan;
mod scanner;
mod turns;
pub mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use stowage_api::{Limits, RecordName};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::ledger::{Full, Ledger, Reserved};
use self::peers::Peers;
use self::view::View;
use crate::refusal::{Code, Refusal};
use crate::registry::{Limited, Listed};

/// Time after which a write that can't be admitted yet is refused with `SlowDown`.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time after which a replica becomes ready even if it has not received the others' counters.
/// Writes that it can't judge wait, whether it is ready or not.
const UNHEARD: Duration = Duration::from_secs(30);
/// Time after which writes to a bucket with a hard limit are refused if its scans keep failing.
const UNMEASURED: SignedDuration = SignedDuration::from_hours(1);

/// Handle to the quota state of this replica. Clones share the state.
#[derive(Clone)]
pub struct Quotas(Arc<Shared>);

struct Shared {
    me: String,
    state: Mutex<State>,
    /// Wakes the waiting writes: counters, a Lease or the limits have changed.
    told: Notify,
    /// Wakes the task that publishes this replica's counters.
    to_tell: Notify,
    /// Wakes the task that collects the limits from the registry: a write to a bucket with a limit
    /// came before any limit was known.
    to_look: Notify,
}

struct State {
    ledger: Ledger,
    view: Listed<View>,
    peers: Peers,
    /// The buckets with limits. `None`: not known yet.
    limited: Option<Arc<BTreeMap<RecordName, Limited>>>,
    /// True once the quotas were ready.
    was_ready: bool,
    /// The versions of this replica's counters, by shard, from the last responses.
    versions: BTreeMap<u16, String>,
}

impl State {
    fn replicas(&self, now: Instant) -> u64 {
        u64::try_from(self.peers.alive(now).len()).unwrap_or(u64::MAX)
    }

    /// Returns true if the watches have delivered the counters of all replicas, and this replica's
    /// own Lease.
    fn has_heard(&self, now: Instant) -> bool {
        self.view.is_whole() && self.peers.age(now).is_some()
    }

    fn limited(&self) -> impl Iterator<Item = (&RecordName, &Limited)> {
        self.limited.iter().flat_map(|limited| limited.iter())
    }

    fn is_limited(&self, bucket: &RecordName) -> bool {
        self.limited.as_ref().is_some_and(|limited| limited.contains_key(bucket))
    }
}

/// Values of the quota metrics, over all buckets with a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Buckets with a limit.
    pub limited: u64,
    /// Buckets above their soft limit.
    pub above_soft: u64,
    /// Buckets at their hard limit.
    pub full: u64,
    /// Buckets whose scans fail.
    pub failing: u64,
    /// Live replicas, including this one.
    pub replicas: u64,
}

impl Quotas {
    /// Creates the state of a replica that has received nothing yet. `me` is unique to this run of
    /// this process.
    #[must_use]
    pub fn new(me: String) -> Self {
        let (ledger, peers) = (Ledger::new(me.clone()), Peers::new(me.clone()));
        let (view, versions) = (Listed::default(), BTreeMap::new());
        let state = State { ledger, view, peers, limited: None, was_ready: false, versions };
        Self(Arc::new(Shared {
            me,
            state: Mutex::new(state),
            told: Notify::new(),
            to_tell: Notify::new(),
            to_look: Notify::new(),
        }))
    }

    /// Reserves room for the bytes of a write. Waits up to 5 seconds for what it needs from the
    /// other replicas: their usage, and that they learn of these bytes.
    ///
    /// # Errors
    /// `QuotaExceeded` if there is no room; `SlowDown` if the bytes could not be published to the
    /// others in time; `ServiceUnavailable` if scans of the bucket have failed for an hour.
    pub async fn reserve(
        &self,
        bucket: RecordName,
        limits: Limits,
        length: u64,
        clock: Timestamp,
    ) -> Result<Reservation, Refusal> {
        let until = Instant::now() + PATIENCE;
        let mut counted: Option<Reservation> = None;
        loop {
            let told = self.0.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let reservation =
                || Reservation { quotas: self.clone(), bucket: bucket.clone(), length, fate: Fate::Unsent };
            match self.look(&bucket, limits, length, counted.is_some(), clock)? {
                Some(Ok(Reserved::Now)) => return Ok(counted.unwrap_or_else(reservation)),
                Some(Ok(Reserved::OnceTold)) => {
                    counted.get_or_insert_with(reservation);
                    self.0.to_tell.notify_one();
                }
                Some(Err(full)) => return Err(exceeded(full)),
                None => {}
            }
            if timeout_at(until, told).await.is_err() {
                return Err(slow_down());
            }
        }
    }

    /// Tries to reserve once, without waiting. Returns `None` if the others' usage is not known
    /// yet.
    fn look(
        &self,
        bucket: &RecordName,
        limits: Limits,
        length: u64,
        is_counted: bool,
        clock: Timestamp,
    ) -> Result<Option<Result<Reserved, Full>>, Refusal> {
        let now = Instant::now();
        let mut state = self.0.state.lock();
        if limits.hard.is_some() && !state.has_heard(now) {
            if state.limited().next().is_none() {
                self.0.to_look.notify_one();
            }
            return Ok(None);
        }
        let replicas = state.replicas(now);
        let State { ledger, view, .. } = &mut *state;
        let failing = view.live().snapshot(bucket).and_then(|seen| seen.snapshot.failing_since);
        let is_unmeasured = failing.is_some_and(|since| clock.duration_since(since) >= UNMEASURED);
        if is_unmeasured && limits.hard.is_some() {
            let message = "What this bucket holds could not be measured for an hour. Please try again later.";
            return Err(Refusal::new(Code::ServiceUnavailable, message));
        }
        Ok(Some(match limits.hard {
            Some(hard) if is_counted => ledger.room(bucket, hard.get(), length, view.live(), replicas),
            _ => ledger.reserve(bucket, limits, length, view.live(), replicas, now),
        }))
    }

    /// Returns true if requests may be routed to this replica, `uptime` after its start.
    #[must_use]
    pub fn is_ready(&self, now: Instant, uptime: Duration) -> bool {
        let mut state = self.0.state.lock();
        // Without limits there is nothing to wait for.
        let is_unlimited = state.limited.as_ref().is_some_and(|limited| limited.is_empty());
        let knows = is_unlimited || state.limited.is_some() && state.has_heard(now);
        // Losing contact with the API server later doesn't make it unready, as all replicas would
        // become so at once.
        state.was_ready |= knows || uptime >= UNHEARD;
        state.was_ready
    }

    /// Records a deletion in a bucket. The next scan finds how much it freed.
    pub fn removed(&self, bucket: &RecordName, limits: Limits) {
        self.0.state.lock().ledger.removed(bucket, limits, Instant::now());
    }

    /// Returns the known usage of a bucket in bytes.
    #[must_use]
    pub fn used(&self, bucket: &RecordName) -> u64 {
        let state = self.0.state.lock();
        state.ledger.used(bucket, state.view.live())
    }

    /// Returns the metrics.
    #[must_use]
    pub fn gauge(&self, now: Instant) -> Gauge {
        let state = self.0.state.lock();
        let mut gauge = Gauge { replicas: state.replicas(now), ..Gauge::default() };
        for (id, limited) in state.limited() {
            let used = state.ledger.used(id, state.view.live());
            let snapshot = state.view.live().snapshot(id);
            gauge.limited += 1;
            gauge.above_soft += u64::from(limited.limits.soft.is_some_and(|soft| used > soft.get()));
            gauge.full += u64::from(limited.limits.hard.is_some_and(|hard| used >= hard.get()));
            gauge.failing += u64::from(snapshot.is_some_and(|seen| seen.snapshot.failing_since.is_some()));
        }
        gauge
    }
}

fn exceeded(Full { used, hard }: Full) -> Refusal {
    let message =
        format!("The bucket holds {used} bytes of the {hard} that it may hold: this is more than there is room for.");
    Refusal::new(Code::QuotaExceeded, message)
}

fn slow_down() -> Refusal {
    let message = "It can't be told now how much this bucket holds. Please reduce your request rate.";
    Refusal::new(Code::SlowDown, message)
}

/// The outcome of a write that has a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// No byte was sent, or the store has refused the write.
    Unsent,
    /// The store has confirmed the write.
    Stored,
    /// The store may have carried out the write.
    Unknown,
}

/// Reserved bytes of one write. They are settled on drop, by the outcome that was set last.
pub struct Reservation {
    quotas: Quotas,
    bucket: RecordName,
    length: u64,
    fate: Fate,
}

impl Reservation {
    /// Sets the outcome as known so far.
    pub fn is(&mut self, fate: Fate) {
        self.fate = fate;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.quotas.0.state.lock();
        match self.fate {
            Fate::Unsent => state.ledger.release(&self.bucket, self.length),
            Fate::Stored => state.ledger.commit(&self.bucket, self.length),
            Fate::Unknown => state.ledger.doubt(&self.bucket, self.length, Instant::now()),
        }
        drop(state);
        self.quotas.0.to_tell.notify_one();
    }
}
