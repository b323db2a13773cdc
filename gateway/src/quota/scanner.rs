//! Scans of buckets: each bucket by one replica, one bucket of a backend at a time, in turns, and
//! at half of the store's speed.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::{HeaderMap, Method};
use http_body_util::BodyExt;
use stowage_api::{BucketName, Measured, RecordName, Scanning, Snapshot};
use tokio::task::{self, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::exchange::Board;
use super::ledger::DOUBT;
use super::list::{LONGEST_PAGE, Page, page};
use super::scan::{Question, Scan, due};
use super::turns::{Rank, Turns};
use super::{Quotas, State};
use crate::clock::WallClock;
use crate::head::{Key, Target};
use crate::registry::Limited;
use crate::upstream::{Call, Client, NotNow, Tenant};

/// Time limit of a page.
const PAGE: Duration = Duration::from_secs(60);
/// Maximum duration of a scan while others wait.
const TURN: Duration = Duration::from_secs(5);
/// Maximum number of paused scans with a page of uploads in memory. Further scans continue to the
/// end of their page.
const MOST_WITHIN: usize = 16;
/// Interval between two publications of a scan's progress.
const TELLING: Duration = Duration::from_secs(30);
/// Base and maximum of the delay of a retry. It is twice the base at first, and doubles.
const RETRY: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(10 * 60));

/// A function that returns the client of a bucket's backend.
pub(crate) type ClientOf = Arc<dyn Fn(&Limited) -> Option<Arc<Client>> + Send + Sync>;

/// The number of consecutive failures of each bucket, and the time of the next try.
type Failures = BTreeMap<RecordName, (u32, Instant)>;

/// A paused scan.
struct PutOff {
    measured: Measured,
    scan: Scan,
    /// The time of its last published progress.
    told: Instant,
}

/// The outcome of a scan.
enum Outcome {
    Good,
    Failed,
    PutOff(Box<PutOff>),
}

/// The failure of a scan, which decides if it can be resumed.
enum Failure {
    /// The store can't answer now. The scan can be resumed.
    Store(&'static str),
    /// The list can't be continued from here.
    List(&'static str),
}

impl From<&'static str> for Failure {
    fn from(why: &'static str) -> Self {
        Self::Store(why)
    }
}

/// The scans of this replica.
#[derive(Default)]
struct Work {
    failures: Failures,
    put_off: BTreeMap<RecordName, Box<PutOff>>,
    turns: Turns,
    /// The buckets that are being scanned, each by a task, and one at most of each backend.
    busy: Vec<(task::Id, Limited)>,
}

impl Work {
    /// Records the outcome of a scan.
    fn ended(&mut self, limited: &Limited, outcome: Outcome) {
        self.busy.retain(|(_, it)| it.backend.name != limited.backend.name);
        self.turns.had(limited, Instant::now());
        match outcome {
            Outcome::Good => {
                self.failures.remove(&limited.id);
            }
            Outcome::Failed => {
                let count = self.failures.get(&limited.id).map_or(0, |(count, _)| *count).saturating_add(1);
                let wait = RETRY.0.saturating_mul(1 << count.min(6)).min(RETRY.1);
                self.failures.insert(limited.id.clone(), (count, Instant::now() + wait));
            }
            Outcome::PutOff(put_off) => {
                self.put_off.insert(limited.id.clone(), put_off);
            }
        }
    }

    /// Records that a task has panicked: its backend is free, and its bucket is tried again later.
    fn panicked(&mut self, task: task::Id) {
        let limited = self.busy.iter().find(|(id, _)| *id == task).map(|(_, limited)| limited.clone());
        if let Some(limited) = limited {
            self.ended(&limited, Outcome::Failed);
        }
    }

    /// Returns true while a scan may be paused within a page, with uploads in memory.
    fn has_room(&self) -> bool {
        self.put_off.values().filter(|it| it.scan.marker().is_none()).count() < MOST_WITHIN
    }
}

impl Quotas {
    /// Scans the buckets that are assigned to this replica. Never returns.
    pub(super) async fn scan(&self, board: &Board, client: &ClientOf) -> Infallible {
        let mut work = Work::default();
        let mut running: JoinSet<(Limited, Outcome)> = JoinSet::new();
        loop {
            while let Some(ended) = running.try_join_next() {
                match ended {
                    Ok((limited, outcome)) => work.ended(&limited, outcome),
                    Err(error) => work.panicked(error.id()),
                }
            }
            for limited in self.wanted(board, &mut work) {
                let scanned = limited.clone();
                let (quotas, board, client) = (self.clone(), board.clone(), client.clone());
                let (begun, has_room) = (work.put_off.remove(&limited.id), work.has_room());
                let task = running.spawn(async move {
                    let outcome = quotas.scan_one(&board, &client, &limited, (begun, has_room)).await;
                    (limited, outcome)
                });
                work.busy.push((task.id(), scanned));
            }
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Returns the next bucket that is due, for each backend.
    fn wanted(&self, board: &Board, work: &mut Work) -> Vec<Limited> {
        let (now, clock) = (Instant::now(), Self::clock(board));
        let state = self.0.state.lock();
        if !state.peers.is_fresh(now) || !state.view.is_whole() {
            return Vec::new();
        }
        let alive = state.peers.alive(now);
        let view = state.view.live();
        let is_ours = |id: &RecordName| chosen(id, alive.iter()) == Some(self.0.me.as_str());
        work.turns.keep(state.limited().map(|(_, limited)| limited));
        work.put_off.retain(|id, _| state.is_limited(id) && is_ours(id));
        let mut wanted: BTreeMap<&str, (Rank, &Limited)> = BTreeMap::new();
        for (id, limited) in state.limited() {
            let name = limited.backend.name.as_str();
            let may = !work.busy.iter().any(|(_, it)| it.backend.name == name)
                && work.failures.get(id).is_none_or(|(_, again)| now >= *again);
            let rank = work.turns.rank(limited);
            if !may || wanted.get(name).is_some_and(|(other, _)| *other <= rank) || !is_ours(id) {
                continue;
            }
            let used = state.ledger.used(id, view);
            let snapshot = view.snapshot(id).map(|seen| &seen.snapshot);
            let is_due = due(snapshot, view.of(id), used, limited.limits).is_none_or(|at| clock >= at);
            if is_due || work.put_off.contains_key(id) {
                wanted.insert(name, (rank, limited));
            }
        }
        wanted.into_values().map(|(_, limited)| limited.clone()).collect()
    }

    /// Returns the state of a scan that begins now, or of a published one that can be resumed.
    fn begin(state: &State, bucket: &RecordName, me: &str, clock: jiff::Timestamp) -> (Measured, Scan) {
        let view = state.view.live();
        let snapshot = view.snapshot(bucket).map(|seen| &seen.snapshot);
        if let Some(Scanning { so_far, marker }) = snapshot.and_then(|snapshot| snapshot.scanning.clone()) {
            let age = clock.duration_since(so_far.began);
            let scan = Scan::resume(&marker, so_far.bytes, so_far.objects).filter(|_| age.as_hours() < 24);
            if let Some(scan) = scan {
                return (so_far, scan);
            }
        }
        let now = Instant::now();
        let alive = state.peers.alive(now);
        let silent: BTreeMap<&str, Duration> = state.peers.gone(now).collect();
        let mut covers = BTreeMap::new();
        let mut removals = BTreeMap::new();
        let own = (me, state.ledger.figures(bucket));
        let others = view.of(bucket).filter(|(replica, _)| *replica != me);
        // The writes of a replica that the measurement doesn't name count in full.
        for (replica, figures) in [own].into_iter().chain(others).take(Measured::MOST_REPLICAS) {
            // Open writes of a replica that is long gone have either happened by now, or never
            // will.
            let is_long_gone = !alive.contains(replica) && silent.get(replica).is_none_or(|silence| *silence > DOUBT);
            covers.insert(replica.to_owned(), if is_long_gone { figures.total() } else { figures.written });
            removals.insert(replica.to_owned(), figures.removals);
        }
        let number = snapshot.map_or(0, Snapshot::number) + 1;
        let measured = Measured { number, bytes: 0, objects: 0, began: clock, took_ms: 0, covers, removals };
        (measured, Scan::begin())
    }

    /// Scans one bucket for the length of a turn. Continues a paused scan.
    async fn scan_one(
        &self,
        board: &Board,
        client: &ClientOf,
        limited: &Limited,
        (begun, has_room): (Option<Box<PutOff>>, bool),
    ) -> Outcome {
        let began = Instant::now();
        let PutOff { mut measured, mut scan, mut told } = match begun {
            Some(begun) => *begun,
            None => {
                let clock = Self::clock(board);
                let (measured, scan) = Self::begin(&self.0.state.lock(), &limited.id, &self.0.me, clock);
                PutOff { measured, scan, told: began }
            }
        };
        let taken = measured.took_ms;
        while let Some(question) = scan.question() {
            let is_over = began.elapsed() >= TURN && (has_room || scan.marker().is_some());
            if is_over {
                return Outcome::PutOff(Box::new(PutOff { measured, scan, told }));
            }
            let asked = Instant::now();
            if let Err(why) = turn(client, limited, &question, &mut scan, &board.clock()).await {
                self.failed(board, limited, why).await;
                return Outcome::Failed;
            }
            measured.took_ms = taken.saturating_add(millis(began.elapsed()));
            if let Some(marker) = scan.marker().filter(|_| told.elapsed() >= TELLING) {
                told = Instant::now();
                (measured.bytes, measured.objects) = (scan.bytes, scan.objects);
                let so_far = measured.clone();
                self.publish(board, &limited.id, |snapshot| {
                    snapshot.scanning = Some(Scanning { so_far, marker });
                })
                .await;
            }
            sleep(asked.elapsed().clamp(Duration::from_millis(5), Duration::from_secs(1))).await;
        }
        (measured.bytes, measured.objects) = (scan.bytes, scan.objects);
        tracing::debug!(bucket = %limited.bucket, bytes = scan.bytes, "a bucket was measured");
        let is_told = self.publish(board, &limited.id, |snapshot| {
            if snapshot.measured.as_ref().is_none_or(|it| it.number < measured.number) {
                snapshot.measured = Some(measured);
            }
            (snapshot.scanning, snapshot.failing_since) = (None, None);
        });
        if is_told.await { Outcome::Good } else { Outcome::Failed }
    }

    /// Publishes that a bucket can't be measured. If its list can't be continued, the next scan
    /// starts from the beginning.
    async fn failed(&self, board: &Board, limited: &Limited, why: Failure) {
        let (why, is_over) = match why {
            Failure::Store(why) => (why, false),
            Failure::List(why) => (why, true),
        };
        tracing::warn!(bucket = %limited.bucket, backend = limited.backend.name, why, "a bucket can't be measured");
        let clock = Self::clock(board);
        self.publish(board, &limited.id, |snapshot| {
            snapshot.failing_since.get_or_insert(clock);
            if is_over {
                snapshot.scanning = None;
            }
        })
        .await;
    }

    /// Publishes a change of the snapshot, over its last known version.
    async fn publish(&self, board: &Board, bucket: &RecordName, change: impl FnOnce(&mut Snapshot)) -> bool {
        let seen = self.0.state.lock().view.live().snapshot(bucket).cloned();
        let (before, version) = seen.map_or((None, None), |seen| (Some(seen.snapshot), seen.version));
        let mut snapshot = before.clone().unwrap_or_else(|| Snapshot::of(bucket.clone()));
        change(&mut snapshot);
        if before.as_ref() == Some(&snapshot) {
            return true;
        }
        match board.publish(&snapshot, version).await {
            Ok(true) => true,
            // The watch will deliver the other version. The store hasn't failed, but the next scan
            // waits, because this replica lags behind.
            Ok(false) => {
                tracing::debug!(%bucket, "another word of what a bucket holds was there");
                false
            }
            Err(why) => {
                tracing::warn!(why, "what a bucket holds can't be told");
                false
            }
        }
    }
}

/// Returns the replica that scans a bucket: the one with the highest hash (rendezvous hashing).
pub(super) fn chosen<'a>(bucket: &RecordName, alive: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    let hash = |replica: &str| {
        let text = format!("{replica}/{bucket}");
        ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().to_vec()
    };
    alive.map(String::as_str).max_by_key(|replica| hash(replica))
}

/// Requests a page, and adds it to the scan.
async fn turn(
    client: &ClientOf,
    limited: &Limited,
    question: &Question,
    scan: &mut Scan,
    clock: &WallClock,
) -> Result<(), Failure> {
    let client = client(limited).ok_or("the backend can't be asked")?;
    let answer = timeout(PAGE, ask(&client, &limited.bucket, question, clock)).await;
    match answer.map_err(|_| "no whole answer in time")?? {
        Ok(page) => {
            let why = "a list doesn't go on from where it was, or names an upload that isn't there";
            scan.take(page).map_err(|_| Failure::List(why))
        }
        Err(status) => scan.refused(status).map_err(|_| {
            let why = "the store refuses a list";
            if status >= 500 { Failure::Store(why) } else { Failure::List(why) }
        }),
    }
}

/// Requests a page. Returns the status if the store refuses it.
async fn ask(
    client: &Client,
    bucket: &BucketName,
    question: &Question,
    clock: &WallClock,
) -> Result<Result<Page, u16>, Failure> {
    let key = question.key.as_deref().map(Key::held).transpose().map_err(|_| "a key can't be asked for")?;
    let target = match key {
        Some(key) => Target::Object(bucket.clone(), key),
        None => Target::Bucket(bucket.clone()),
    };
    let admitted = loop {
        match client.admit(Tenant::Gateway, Instant::now()) {
            Ok(admitted) => break admitted,
            Err(NotNow::Busy | NotNow::Share) => sleep(Duration::from_millis(100)).await,
            Err(NotNow::Resting) => return Err(Failure::Store("the store could not be reached of late")),
        }
    };
    let call = Call::without_body(Method::GET, target, question.query.clone(), HeaderMap::new());
    let answer = client.ask(call, &admitted, clock()).await.map_err(|_| "the store does not answer")?;
    let status = answer.status();
    let mut body = answer.into_body();
    let mut text = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|_| "an answer broke off")?.into_data().unwrap_or_default();
        if text.len() + data.len() > LONGEST_PAGE {
            return Err(Failure::Store("a page is too long"));
        }
        text.extend_from_slice(&data);
    }
    drop(admitted);
    if !status.is_success() {
        return Ok(Err(status.as_u16()));
    }
    page(question.root, &question.query, &text)
        .map(Ok)
        .ok_or(Failure::List("what answers is no list, or goes on from a key that can't be named"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::turns::tests::limited;
    use super::*;

    #[tokio::test]
    async fn a_scan_that_panics_keeps_its_backend_from_no_other() {
        let (bucket, mut work) = (limited("photos", None), Work::default());
        let task = tokio::spawn(async { panic!("as planned") });
        work.busy.push((task.id(), bucket.clone()));
        work.panicked(task.await.expect_err("it panics").id());
        assert!(work.busy.is_empty());
        assert!(work.failures.contains_key(&bucket.id), "the bucket is tried again after a while");
    }
}
