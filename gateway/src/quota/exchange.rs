//! The exchange of usage between replicas, by ConfigMaps and Leases in the namespace of
//! `--usage-namespace`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use daemon::backoff::WatchBackoff;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use stowage_api::wire::{USAGE, Usage};
use stowage_api::{Counters, RecordName, Snapshot};
use tokio::time::{Instant, sleep, timeout};

use super::peers::RENEWAL;
use super::scanner::ClientOf;
use super::{Quotas, State};
use crate::clock::WallClock;
use crate::registry::{Limited, Registry, Source, Tables};

/// Time limit of a call to the API server.
const DEADLINE: Duration = Duration::from_secs(5);
/// Interval between two checks of which buckets have limits.
const LOOK: Duration = Duration::from_secs(2);
/// Silence after which a replica's Lease is deleted, once nothing of the replica is needed.
const BURIED: Duration = Duration::from_secs(20 * 60);
const LEASE_PREFIX: &str = "stowage-gateway-";
/// Maximum length of a replica's name in bytes.
const LONGEST_REPLICA: usize = 63;
const RENEWALS: &str = "broker.stowage.io/renewals";
/// Number of objects in a page of a list. Each may have more than a megabyte.
const PAGE: u32 = 25;

/// Access to the ConfigMaps and Leases by which replicas exchange their usage.
#[derive(Clone)]
pub(super) struct Board {
    maps: Api<ConfigMap>,
    leases: Api<Lease>,
    namespace: String,
    watch: watcher::Config,
    clock: WallClock,
}

impl Board {
    pub(super) fn new(client: &Client, namespace: &str, watch: watcher::Config, clock: WallClock) -> Self {
        let maps = Api::namespaced(client.clone(), namespace);
        let leases = Api::namespaced(client.clone(), namespace);
        Self { maps, leases, namespace: namespace.to_owned(), watch: watch.labels(USAGE).page_size(PAGE), clock }
    }

    pub(super) fn clock(&self) -> WallClock {
        self.clock.clone()
    }

    /// Writes a ConfigMap over this version only, so that a delayed request changes nothing.
    /// Returns the new version, or `None` if the stored version is another.
    async fn put(&self, mut map: ConfigMap, version: Option<String>) -> Result<Option<String>, String> {
        let name = map.metadata.name.clone().unwrap_or_default();
        let is_new = version.is_none();
        map.metadata.resource_version = version;
        let params = PostParams::default();
        let written = if is_new {
            timeout(DEADLINE, self.maps.create(&params, &map)).await
        } else {
            timeout(DEADLINE, self.maps.replace(&name, &params, &map)).await
        };
        match written {
            Ok(Ok(map)) => Ok(map.metadata.resource_version),
            // The stored version is another, the ConfigMap was deleted, or an earlier try succeeded
            // and its response was lost.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => Ok(None),
            Ok(Err(error)) => Err(words(&error)),
            Err(_) => Err("no answer".to_owned()),
        }
    }

    /// Writes a snapshot. Returns false if the stored version is another.
    pub(super) async fn publish(&self, snapshot: &Snapshot, version: Option<String>) -> Result<bool, String> {
        self.put(snapshot.config_map(&self.namespace), version).await.map(|version| version.is_some())
    }

    async fn remove<K>(&self, api: &Api<K>, name: &str)
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        // The next sweep finds it again after a failure.
        let _ = timeout(DEADLINE, api.delete(name, &DeleteParams::default())).await;
    }

    async fn renew(&self, me: &str, number: u64) -> Result<(), String> {
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(format!("{LEASE_PREFIX}{me}")),
                namespace: Some(self.namespace.clone()),
                labels: Some([(USAGE.to_owned(), Usage::Replica.as_str().to_owned())].into()),
                annotations: Some([(RENEWALS.to_owned(), number.to_string())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(me.to_owned()),
                lease_duration_seconds: Some(40),
                renew_time: Some(MicroTime((self.clock)())),
                ..LeaseSpec::default()
            }),
        };
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        let (params, patch) = (PatchParams::default(), Patch::Merge(&lease));
        let patched = self.leases.patch(name, &params, &patch);
        match timeout(DEADLINE, patched).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                let created = timeout(DEADLINE, self.leases.create(&PostParams::default(), &lease)).await;
                created.map_err(|_| "no answer".to_owned())?.map(|_| ()).map_err(|error| words(&error))
            }
            Ok(Err(error)) => Err(words(&error)),
            Err(_) => Err("no answer".to_owned()),
        }
    }
}

/// Describes an error in the gateway's own words.
fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("the API server answers {}", status.code),
        _ => "the API server does not answer".to_owned(),
    }
}

impl Quotas {
    /// Checks repeatedly which buckets have limits, once the registry is ready. Never returns.
    pub(super) async fn look_at(&self, registry: &Registry) -> Infallible {
        let mut known = None;
        let mut limited = Arc::default();
        loop {
            if registry.is_ready() {
                // Every key is examined, so only after changes.
                let told = Some(registry.told());
                if known != told {
                    limited = Arc::new(registry.ask(Tables::limited));
                    known = told;
                }
                self.learn(Arc::clone(&limited));
                let _ = timeout(LOOK, self.0.to_look.notified()).await;
            } else {
                sleep(LOOK / 20).await;
            }
        }
    }

    fn learn(&self, limited: Arc<BTreeMap<RecordName, Limited>>) {
        let mut state = self.0.state.lock();
        state.ledger.keep(|bucket| limited.contains_key(bucket), Instant::now());
        state.limited = Some(limited);
        drop(state);
        self.0.told.notify_waiters();
    }

    /// Waits until any bucket has a limit. Without limits there is nothing to exchange.
    pub(super) async fn are_wanted(&self) {
        while self.0.state.lock().limited().next().is_none() {
            // The notification may have come between the check and the wait.
            let _ = timeout(LOOK, self.0.told.notified()).await;
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock());
        self.0.told.notify_waiters();
    }

    /// Watches the counters and snapshots of all replicas. Never returns.
    pub(super) async fn hear_of_counters(&self, board: &Board) -> Infallible {
        let told = watcher(board.maps.clone(), board.watch.clone()).backoff(WatchBackoff::new(Instant::now));
        let mut told = std::pin::pin!(told);
        loop {
            match told.next().await {
                Some(Ok(event)) => self.update(|state| state.view.apply(event)),
                Some(Err(error)) => tracing::warn!(%error, "what other replicas store can't be watched"),
                None => std::future::pending().await,
            }
        }
    }

    /// Watches the Leases of all replicas. Never returns.
    pub(super) async fn hear_of_replicas(&self, board: &Board) -> Infallible {
        let told = watcher(board.leases.clone(), board.watch.clone()).backoff(WatchBackoff::new(Instant::now));
        let mut told = std::pin::pin!(told);
        loop {
            match told.next().await {
                Some(Ok(Event::InitApply(lease) | Event::Apply(lease))) => {
                    if let Some((replica, number)) = sign(&lease) {
                        self.update(|state| state.peers.saw(replica, number, Instant::now()));
                    }
                }
                Some(Ok(Event::Delete(lease))) => {
                    if let Some(replica) = replica(&lease) {
                        self.update(|state| state.peers.left(replica));
                    }
                }
                Some(Ok(Event::Init)) => self.update(|state| state.peers.begin_list()),
                Some(Ok(Event::InitDone)) => self.update(|state| state.peers.end_list()),
                Some(Err(error)) => tracing::warn!(%error, "other replicas can't be watched"),
                None => std::future::pending().await,
            }
        }
    }

    /// Renews this replica's Lease. Never returns.
    pub(super) async fn live(&self, board: &Board) -> Infallible {
        for number in 1.. {
            self.0.state.lock().peers.sending(number, Instant::now());
            let wait = match board.renew(&self.0.me, number).await {
                Ok(()) => RENEWAL,
                Err(why) => {
                    tracing::warn!(why, "the Lease of this replica can't be renewed");
                    RENEWAL / 5
                }
            };
            sleep(wait).await;
        }
        std::future::pending().await
    }

    /// Publishes this replica's counters. Never returns.
    pub(super) async fn tell(&self, board: &Board) -> Infallible {
        loop {
            let due = {
                let state = self.0.state.lock();
                state.ledger.due(state.view.live(), Instant::now())
            };
            let Some(counters) = due else {
                let _ = timeout(Duration::from_secs(1), self.0.to_tell.notified()).await;
                continue;
            };
            if !self.say(board, &counters).await {
                sleep(Duration::from_secs(1)).await;
                self.0.state.lock().ledger.unsaid(&counters);
            }
        }
    }

    /// Publishes the counters of a shard. Returns true if they were stored.
    async fn say(&self, board: &Board, counters: &Counters) -> bool {
        let version = {
            let mut state = self.0.state.lock();
            let State { ledger, view, versions, .. } = &mut *state;
            ledger.saying(counters, view.live(), Instant::now());
            // The version of the last response is never older than the watch's.
            versions.remove(&counters.shard).or_else(|| view.live().version(&self.0.me, counters.shard).cloned())
        };
        let why = match board.put(counters.config_map(&board.namespace), version).await {
            Ok(Some(version)) => {
                let mut state = self.0.state.lock();
                state.ledger.said(counters, &version);
                state.versions.insert(counters.shard, version);
                drop(state);
                // The watch may have delivered it before the response.
                self.0.told.notify_waiters();
                return true;
            }
            Ok(None) => "the watch has not brought the last word back yet".to_owned(),
            Err(why) => why,
        };
        tracing::warn!(why, "what this replica stores can't be told");
        false
    }

    /// Publishes all remaining counters of this replica, and deletes its Lease.
    pub(crate) async fn part(&self, source: &Source, clock: WallClock) {
        let board = Board::new(&source.client, &source.namespace, source.watch.clone(), clock);
        let rest = {
            let state = self.0.state.lock();
            state.ledger.rest(state.view.live())
        };
        for counters in rest {
            self.say(&board, &counters).await;
        }
        // The replica no longer takes a share. If there are no limits, there is no Lease.
        if !self.0.state.lock().peers.has_sent() {
            return;
        }
        board.remove(&board.leases, &format!("{LEASE_PREFIX}{}", self.0.me)).await;
    }

    /// Deletes objects that are no longer needed: those of replicas that are gone, and of buckets
    /// without a limit. Never returns.
    pub(super) async fn sweep(&self, board: &Board) -> Infallible {
        loop {
            sleep(Duration::from_secs(60)).await;
            for name in self.litter() {
                board.remove(&board.maps, &name).await;
            }
            let buried = self.buried();
            for replica in buried {
                board.remove(&board.leases, &format!("{LEASE_PREFIX}{replica}")).await;
            }
        }
    }

    fn litter(&self) -> Vec<String> {
        let state = self.0.state.lock();
        let now = Instant::now();
        let alive = state.peers.alive(now);
        // Only the first replica does it.
        if !state.peers.is_fresh(now) || !state.has_heard(now) || alive.first() != Some(&self.0.me) {
            return Vec::new();
        }
        let view = state.view.live();
        let covered = view.covered(&alive, |bucket| state.is_limited(bucket));
        let counters = covered.into_iter().map(|(replica, shard)| Counters::name(&replica, shard));
        let unlimited = view.measured().filter(|bucket| !state.is_limited(bucket));
        counters.chain(unlimited.map(Snapshot::name)).collect()
    }

    fn buried(&self) -> Vec<String> {
        let state = self.0.state.lock();
        let view = state.view.live();
        let long = state.peers.gone(Instant::now()).filter(|(_, silence)| *silence > BURIED);
        long.filter(|(replica, _)| !view.has(replica)).map(|(replica, _)| replica.to_owned()).collect()
    }

    pub(super) fn clock(board: &Board) -> Timestamp {
        (board.clock)()
    }

    /// Runs all background tasks of quotas. Never returns.
    pub(crate) async fn follow(
        &self,
        registry: &Registry,
        source: Source,
        clock: WallClock,
        client: ClientOf,
    ) -> Infallible {
        let board = Board::new(&source.client, &source.namespace, source.watch, clock);
        let rest = async {
            self.are_wanted().await;
            tokio::select! {
                biased;
                never = self.hear_of_counters(&board) => never,
                never = self.hear_of_replicas(&board) => never,
                never = self.live(&board) => never,
                never = self.tell(&board) => never,
                never = self.scan(&board, &client) => never,
                never = self.sweep(&board) => never,
            }
        };
        tokio::select! {
            biased;
            never = self.look_at(registry) => never,
            never = rest => never,
        }
    }
}

/// Returns the replica of a Lease, or `None` if the name is longer than any replica's.
fn replica(lease: &Lease) -> Option<&str> {
    let replica = lease.metadata.name.as_deref()?.strip_prefix(LEASE_PREFIX)?;
    (1..=LONGEST_REPLICA).contains(&replica.len()).then_some(replica)
}

/// Returns the sign of life in a Lease: the replica, and the number of its renewals.
fn sign(lease: &Lease) -> Option<(&str, u64)> {
    let number = lease.metadata.annotations.as_ref()?.get(RENEWALS)?.parse().ok()?;
    Some((replica(lease)?, number))
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
