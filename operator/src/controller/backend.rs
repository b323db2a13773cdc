//! Passes over backends: probe, judge, write the status where it says something else.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, Shared as SharedFuture};
use futures::stream::{self, StreamExt};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tracing::Instrument;

use crate::api::{self, BackendReason, InvalidSpec, ObjectId, Phase, S3Backend};
use crate::kubernetes::{self, CONTROLLER};
use crate::metrics::{ControllerMetrics, PassResult};
use crate::plan::backend::{self as plan, Health, Verdict};
use crate::plan::preconditions;
use crate::upstream::{AccessError, Class, Upstream, UpstreamError};

use super::backoff::Backoff;
use super::feeds;
use super::jitter::jittered;
use super::objects::{Backend, Claim};
use super::pace::Pace;
use super::secret_watches::SecretName;
use super::shared::Shared;
use super::slots::{Slot, Slots};

/// How many backends are worked on at once, not counting those whose probe is under way.
const CONCURRENCY: u16 = 16;

/// Claims come in bursts; the count of buckets follows at this distance.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);

struct Context {
    shared: Arc<Shared>,
    store: Store<Backend>,
    slots: Slots,
    metrics: ControllerMetrics,
    claims: Store<Claim>,
    backoff: Backoff,
    pace: Pace,
    memory: Mutex<BTreeMap<String, Memory>>,
    /// UIDs of backends that had a pass, and of which something may be kept therefore.
    kept: Mutex<BTreeSet<String>>,
}

/// What this process knows of a backend, by UID.
#[derive(Clone)]
struct Memory {
    health: Health,
    upstream: Option<Arc<Upstream>>,
    next_probe: Instant,
    count: Option<i64>,
    /// When to count again.
    count_due: Option<Instant>,
}

/// Runs passes until `shutdown`.
pub(super) async fn run(
    shared: Arc<Shared>,
    store: Store<Backend>,
    claims: Store<Claim>,
    wakes: UnboundedReceiver<ObjectRef<Backend>>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let metrics = shared.metrics.controller("s3backend", CONCURRENCY);
    let context = Arc::new(Context {
        shared,
        metrics,
        store: store.clone(),
        slots: Slots::new(CONCURRENCY, shutdown.clone()),
        claims,
        backoff: Backoff::default(),
        pace: Pace::default(),
        memory: Mutex::default(),
        kept: Mutex::default(),
    });
    Controller::for_stream(stream::pending(), store)
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(feeds::receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, |_, error: &Infallible, _| match *error {}, context.clone())
        .for_each(|done| {
            // What went wrong is in the log and in the status; that a backend whose pass is due is
            // gone is no error at all.
            if let Err(controller::Error::ObjectNotFound(_)) = done {
                context.forget_gone();
            }
            std::future::ready(())
        })
        .await;
}

/// Waits for a slot, then runs a pass over the backend as it is by then.
async fn reconcile(backend: Arc<Backend>, context: Arc<Context>) -> Result<Action, Infallible> {
    let queued = context.metrics.queued();
    let Some(slot) = context.slots.take().await else { return Ok(Action::await_change()) };
    let measured = queued.begin();
    let Some(backend) = context.store.get(&ObjectRef::from_obj(backend.as_ref())) else {
        return Ok(Action::await_change());
    };
    let raw = match &backend.0 {
        Ok(raw) => context.shared.written_backends.latest(raw),
        Err(error) => {
            tracing::warn!(backend = backend.name_any(), %error, "this backend can't be decoded and is left alone");
            return Ok(Action::await_change());
        }
    };
    let span = tracing::info_span!("backend", name = raw.name_any(), generation = raw.metadata.generation);
    let (action, result) = context.pass(&raw, slot).instrument(span).await;
    context.ended(&raw);
    measured.end(result);
    Ok(action)
}

impl Context {
    async fn pass(&self, raw: &S3Backend, mut slot: Slot<'_>) -> (Action, PassResult) {
        let uid = raw.uid().unwrap_or_default();
        let memory = match self.examine(raw, &uid, &mut slot).await {
            Ok(memory) => memory,
            Err(why) => {
                tracing::warn!(why, "can't probe the backend, trying again");
                return (Action::requeue(self.backoff.failed(&uid)), PassResult::Error);
            }
        };
        let (count, recount) = self.count(&raw.name_any(), &uid);
        let current = raw.status.clone().unwrap_or_default();
        // Until the next count, what another operator has counted is as good: or the two write over
        // each other's.
        let count = recount.and(current.bucket_count).unwrap_or(count);
        let generation = raw.metadata.generation.unwrap_or_default();
        let wanted = plan::status(&current, generation, &memory.health.verdict, count, self.shared.clock.now());
        if wanted != current {
            if let Some(wait) = self.pace.wait(&uid, Instant::now()) {
                tracing::warn!(
                    seconds = wait.as_secs(),
                    "the status is written too often: does another operator write it?"
                );
                return (Action::requeue(wait), PassResult::RequeueAfter);
            }
            self.pace.wrote(&uid, Instant::now());
            if let Err(why) = self.write_status(raw, &wanted).await {
                tracing::warn!(why, "can't write the status, trying again");
                return (Action::requeue(self.backoff.failed(&uid)), PassResult::Error);
            }
        }
        if recount.is_none() {
            // A pass that doesn't count may have nothing to write, which is no sign that it would
            // go well.
            self.backoff.reset(&uid);
        }
        let probe = memory.next_probe.saturating_duration_since(Instant::now());
        (Action::requeue(recount.map_or(probe, |recount| recount.min(probe))), PassResult::Success)
    }

    /// What is known of the backend, after a probe if one is due. Errors are those of the API
    /// server: they say nothing about the backend.
    async fn examine(&self, raw: &S3Backend, uid: &str, slot: &mut Slot<'_>) -> Result<Memory, String> {
        let before = self.memory.lock().get(uid).cloned();
        let generation = raw.metadata.generation.unwrap_or_default();
        // Nothing has changed in what is looked at for the first time.
        let changed = self.shared.secret_watches.take_change(&raw.name_any()) && before.is_some();
        // After a start the probe of a backend that is Ready is a periodic one: it shows no more
        // than any other.
        let shown = || raw.status.as_ref().and_then(|status| Health::from_status(status, generation));
        let health = before.as_ref().map(|memory| memory.health.clone()).or_else(shown);
        let edited = health.as_ref().is_none_or(|health| health.generation != generation);
        let periodic = before.as_ref().is_none_or(|memory| memory.next_probe <= Instant::now());
        if let Some(memory) = before.as_ref().filter(|_| !changed && !edited && !periodic) {
            return Ok(memory.clone());
        }
        let (verdict, upstream) = match api::Backend::parse(raw) {
            Ok(backend) => {
                // One that is not trusted is nobody's business here.
                let mut secrets = secrets_of(&backend);
                secrets.retain(|(namespace, _)| self.shared.observer.setting.trusts(namespace));
                self.shared.secret_watches.set(&backend.name, &secrets);
                let upstream = self.shared.upstreams.refresh(&backend).await;
                if let (Ok(now), Some(memory)) = (&upstream, &before)
                    && !edited
                    && !periodic
                    && memory.upstream.as_ref().is_some_and(|then| Arc::ptr_eq(then, now))
                {
                    return Ok(memory.clone());
                }
                let probed = probe(upstream, slot).await;
                if changed && probed.is_err() {
                    // What changed has not been looked at.
                    self.shared.secret_watches.keep_change(&backend.name);
                }
                probed?
            }
            Err(error) => (unreadable(&error), None),
        };
        if changed {
            // Other credentials: what the store refused before, it may do now.
            self.shared.wakes.claims_on(&raw.name_any());
        }
        let tolerant = periodic && !edited && !changed;
        let health = Health::after(health.as_ref(), generation, tolerant, verdict);
        let wait = jittered(health.next_probe(self.shared.config.resync_interval));
        let (count, count_due) = before.map(|memory| (memory.count, memory.count_due)).unwrap_or_default();
        let memory = Memory { health, upstream, next_probe: Instant::now() + wait, count, count_due };
        self.memory.lock().insert(uid.to_owned(), memory.clone());
        Ok(memory)
    }

    /// Claims in phase `Bound` on this backend, as last counted; and how long until they are
    /// counted again, unless they just were. A burst of claims makes one count.
    fn count(&self, name: &str, uid: &str) -> (i64, Option<Duration>) {
        let mut memory = self.memory.lock();
        let Some(memory) = memory.get_mut(uid) else { return (self.count_bound(name), None) };
        match (memory.count, memory.count_due) {
            (Some(count), None) => {
                memory.count_due = Some(Instant::now() + COUNT_INTERVAL);
                (count, Some(COUNT_INTERVAL))
            }
            (Some(count), Some(due)) if due > Instant::now() => {
                (count, Some(due.saturating_duration_since(Instant::now())))
            }
            _ => {
                let count = self.count_bound(name);
                memory.count = Some(count);
                memory.count_due = None;
                (count, None)
            }
        }
    }

    fn count_bound(&self, name: &str) -> i64 {
        let bound = |claim: &Arc<Claim>| {
            let status = claim.0.as_ref().ok().and_then(|claim| claim.status.as_ref());
            status.is_some_and(|status| {
                status.phase == Some(Phase::Bound)
                    && status.backend.as_ref().is_some_and(|backend| backend.name == name)
            })
        };
        let count = self.claims.state().iter().filter(|claim| bound(claim)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    async fn write_status(&self, raw: &S3Backend, status: &api::S3BackendStatus) -> Result<(), String> {
        let status = serde_json::to_value(status).map_err(|error| error.to_string())?;
        let mut operations = preconditions(&ObjectId::of(raw));
        operations.push(json!({ "op": "add", "path": "/status", "value": status }));
        let patch = serde_json::from_value(Value::Array(operations)).map_err(|error| error.to_string())?;
        let api: Api<S3Backend> = Api::all(self.shared.client.clone());
        let params = PatchParams { field_manager: Some(CONTROLLER.to_owned()), ..PatchParams::default() };
        let answer = api.patch_status(&raw.name_any(), &params, &Patch::Json::<()>(patch)).await;
        self.shared.written_backends.wrote(answer.map_err(|error| kubernetes::describe(&error))?);
        Ok(())
    }

    /// After a pass: what is gone is forgotten. If it is this very backend, the pass may have made
    /// anew what was forgotten while it was under way: the client, the watches of its Secrets.
    fn ended(&self, backend: &S3Backend) {
        self.kept.lock().insert(backend.uid().unwrap_or_default());
        self.forget_gone();
        let name = backend.name_any();
        if self.store.get(&ObjectRef::new(&name)).is_none() {
            self.shared.forget_backend(&name);
        }
    }

    /// Nothing is kept of backends that are gone. Whatever is kept of one is what its own passes
    /// put by, and each of them is followed by this.
    fn forget_gone(&self) {
        let there: BTreeSet<String> = self.store.state().iter().filter_map(|backend| backend.uid()).collect();
        let mut kept = self.kept.lock();
        let gone: Vec<String> = kept.difference(&there).cloned().collect();
        for uid in &gone {
            kept.remove(uid);
            self.memory.lock().remove(uid);
            self.pace.forget(uid);
            self.backoff.reset(uid);
        }
    }
}

/// ListBuckets with the admin credentials (spec §1).
async fn probe(
    upstream: Result<Arc<Upstream>, AccessError>,
    slot: &mut Slot<'_>,
) -> Result<(Verdict, Option<Arc<Upstream>>), String> {
    let upstream = match upstream {
        Ok(upstream) => upstream,
        Err(error @ AccessError::Unreadable(..)) => return Err(error.to_string()),
        Err(error) => {
            let verdict = Verdict { reason: BackendReason::CredentialsInvalid, message: error.to_string() };
            return Ok((verdict, None));
        }
    };
    let verdict = judge(slot.aside(upstream.probe()).await);
    Ok((verdict, Some(upstream)))
}

fn judge(probe: Result<(), UpstreamError>) -> Verdict {
    match probe {
        Ok(()) => Verdict {
            reason: BackendReason::EndpointReachable,
            message: "ListBuckets with the admin credentials succeeds".to_owned(),
        },
        Err(error) => {
            let reason = match error.class {
                Class::NoAnswer => BackendReason::EndpointUnreachable,
                Class::Denied { .. } => BackendReason::CredentialsInvalid,
                Class::Failing { .. } | Class::Throttled | Class::Unsupported | Class::Failed { .. } => {
                    BackendReason::BackendError
                }
            };
            Verdict { reason, message: error.to_string() }
        }
    }
}

fn unreadable(error: &InvalidSpec) -> Verdict {
    let template = error.field == "spec.bucketNameTemplate";
    let reason = if template { BackendReason::TemplateInvalid } else { BackendReason::BackendError };
    Verdict { reason, message: error.to_string() }
}

fn secrets_of(backend: &api::Backend) -> BTreeSet<SecretName> {
    let admin = (backend.credentials.namespace.clone(), backend.credentials.name.clone());
    let bundle = backend.tls.ca_bundle_secret_ref.as_ref();
    bundle.map(|bundle| (bundle.namespace.clone(), bundle.name.clone())).into_iter().chain([admin]).collect()
}
