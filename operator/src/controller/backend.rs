//! Reconciles S3Backends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Resource, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use tracing::Span;

use crate::act::note;
use crate::api::{self, ConditionType, ObjectId, S3Backend, S3BackendStatus, ServedBy, kept, wire};
use crate::kubernetes::{self, json_patch, patch_params};
use crate::metrics::PassResult;
use crate::plan::backend::{
    BackendAnswer, BackendAnswered, BackendEnd, BackendMemory, BackendPass, BackendStep, Connected, Probed, Uptime,
    is_bound_on,
};
use crate::plan::preconditions;
use crate::upstream::{AccessError, Class, Upstream, UpstreamError};

use super::announcer::Announced;
use super::backoff::Backoff;
use super::drive::{CarryOut, drive};
use super::jitter::jittered;
use super::objects::{Backend, Claim};
use super::pace::WritePace;
use super::reconcile::Kind;
use super::secret_watches::SecretName;
use super::shared::Shared;
use super::slots::Slot;

/// Number of backends reconciled at once, not counting those that wait for their probe.
const CONCURRENCY: u16 = 16;

/// The [`Kind`] of S3Backends.
pub(super) struct Backends {
    shared: Arc<Shared>,
    claims: Store<Claim>,
    backoff: Backoff,
    pace: WritePace,
    /// Start of the clock that the passes use.
    began: Instant,
    memory: Mutex<BTreeMap<String, Memory>>,
    /// The operator that serves each backend which another operator serves, as last logged.
    anothers: Mutex<BTreeMap<String, ServedBy>>,
    /// UIDs of backends that had a pass, for which state may be stored.
    kept: Mutex<BTreeSet<String>>,
}

/// State kept between the passes over a backend, by UID.
#[derive(Clone)]
struct Memory {
    backend: BackendMemory,
    /// The client of the last completed check of the backend, if one could be created.
    client: Option<Arc<Upstream>>,
}

impl Kind for Backends {
    type Object = S3Backend;
    type End = (PassResult, Action);

    const CONTROLLER: &'static str = "s3backend";

    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn concurrency(&self) -> u16 {
        CONCURRENCY
    }

    fn latest(&self, seen: &S3Backend) -> Arc<S3Backend> {
        self.shared.written_backends.latest(seen)
    }

    fn log_undecodable(&self, backend: &str, error: &dyn Display) {
        tracing::warn!(backend, %error, "this backend can't be decoded and is left alone");
    }

    fn span(&self, backend: &S3Backend) -> Span {
        tracing::info_span!("backend", name = backend.name_any(), generation = backend.metadata.generation)
    }

    async fn reconcile(&self, raw: &S3Backend, slot: Slot<'_>) -> (PassResult, Action) {
        let (name, uid) = (raw.name_any(), raw.uid().unwrap_or_default());
        let before = self.memory.lock().get(&uid).cloned();
        let (memory, looked) = before.map(|memory| (memory.backend, memory.client)).unzip();
        let changed = self.shared.secret_watches.take_change(&name);
        let operator = self.shared.observer.setting.operator();
        let mut pass =
            BackendPass::new(operator, raw, memory, changed, self.shared.config.resync_interval, self.uptime());
        let mut hands = Hands { backends: self, raw: raw.clone(), slot, client: None, looked: looked.flatten() };
        let end = drive(&mut pass, &self.shared.clock, &mut hands).await;
        if pass.leaves_change() {
            self.shared.secret_watches.keep_change(&name);
        }
        match &end {
            BackendEnd::LeftAlone(by) => self.tell_whose(raw, by).await,
            BackendEnd::Rest { .. } | BackendEnd::Wait(_) | BackendEnd::Retry(_) => {
                self.anothers.lock().remove(&uid);
            }
        }
        if let Some(backend) = pass.remembered() {
            self.memory.lock().insert(uid.clone(), Memory { backend, client: hands.looked });
        }
        self.schedule(&uid, &end)
    }

    fn requeue(&self, _uid: &str, scheduled: (PassResult, Action)) -> (PassResult, Action) {
        scheduled
    }

    /// Drops the state of deleted backends.
    ///
    /// If the reconciled backend itself was deleted, the pass may have stored again what was
    /// dropped while it ran: the client and the watches of its Secrets.
    fn after(&self, _: &Backend, backend: &S3Backend, store: &Store<Backend>) {
        self.kept.lock().insert(backend.uid().unwrap_or_default());
        self.forget_gone(store);
        let name = backend.name_any();
        if store.get(&ObjectRef::new(&name)).is_none() {
            self.shared.forget_backend(&name);
        }
    }

    fn not_found(&self, store: &Store<Backend>) {
        self.forget_gone(store);
    }
}

/// Carries out the steps of one pass.
struct Hands<'a, 'slot> {
    backends: &'a Backends,
    raw: S3Backend,
    slot: Slot<'slot>,
    /// The client created by this pass.
    client: Option<Arc<Upstream>>,
    /// The client of the last completed check of the backend.
    looked: Option<Arc<Upstream>>,
}

impl CarryOut<BackendPass> for Hands<'_, '_> {
    async fn carry_out(&mut self, _: &BackendPass, step: &BackendStep) -> BackendAnswered {
        let answer = self.try_carry_out(step).await;
        let answer = answer.unwrap_or_else(|why| BackendAnswer::Failed(step.clone(), why));
        BackendAnswered { answer, at: self.backends.uptime() }
    }
}

impl Hands<'_, '_> {
    async fn try_carry_out(&mut self, step: &BackendStep) -> Result<BackendAnswer, String> {
        let (backends, name) = (self.backends, self.raw.name_any());
        Ok(match step {
            BackendStep::Serve(operator) => self.serve(operator).await?,
            BackendStep::Connect(backend) => BackendAnswer::Connected(self.connect(backend).await?),
            BackendStep::Probe => BackendAnswer::Probed(self.probe().await?),
            BackendStep::WakeClaims => {
                backends.shared.wakes.claims_on(&name);
                BackendAnswer::ClaimsWoken
            }
            BackendStep::Schedule(about) => {
                self.looked = self.client.take();
                BackendAnswer::Scheduled(*about, jittered(*about))
            }
            BackendStep::Count => BackendAnswer::Counted(backends.count_bound(&name)),
            BackendStep::WriteStatus(status) => self.write_status(status).await?,
        })
    }

    /// Writes the annotation that names the operator.
    ///
    /// The patch carries the resource version that was read without the annotation, so only one of
    /// two operators succeeds.
    async fn serve(&mut self, operator: &ServedBy) -> Result<BackendAnswer, String> {
        let annotated = self.raw.metadata.annotations.is_some();
        let mut operations = preconditions(&ObjectId::of(&self.raw));
        operations.push(note(annotated, operator));
        let api: Api<S3Backend> = Api::all(self.backends.shared.client.clone());
        let written = api.patch(&self.raw.name_any(), &patch_params(), &json_patch(operations)?).await;
        let written = kept::backend(&written.map_err(|error| kubernetes::describe(&error))?);
        self.backends.shared.written_backends.wrote(written.clone());
        self.raw = written;
        Ok(BackendAnswer::Served(operator.clone()))
    }

    async fn connect(&mut self, backend: &api::Backend) -> Result<Connected, String> {
        let shared = &self.backends.shared;
        // Don't watch Secrets in namespaces that are not trusted, nor our internal Secrets.
        let mut secrets = secrets_of(backend);
        let is_read = |(namespace, name): &SecretName| {
            shared.observer.setting.trusts(namespace) && !api::wire::is_internal_name(name)
        };
        secrets.retain(is_read);
        shared.secret_watches.set(&backend.name, &secrets);
        match shared.upstreams.refresh(backend).await {
            Ok(client) => {
                let same = self.looked.as_ref().is_some_and(|looked| Arc::ptr_eq(looked, &client));
                self.client = Some(client);
                Ok(if same { Connected::Same } else { Connected::Anew })
            }
            Err(error) => unconnected(&error),
        }
    }

    async fn probe(&mut self) -> Result<Probed, String> {
        let client = self.client.as_ref().ok_or("there is no client")?;
        Ok(probed(self.slot.aside(client.probe()).await))
    }

    async fn write_status(&self, status: &S3BackendStatus) -> Result<BackendAnswer, String> {
        let (backends, uid) = (self.backends, self.raw.uid().unwrap_or_default());
        if let Some(wait) = backends.pace.wait(&uid, Instant::now()) {
            tracing::warn!(
                seconds = wait.as_secs(),
                "the status is written too often: does another operator write it?"
            );
            return Ok(BackendAnswer::TooOften(status.clone(), wait));
        }
        backends.pace.did(&uid, Instant::now());
        let value = serde_json::to_value(status).map_err(|error| error.to_string())?;
        let mut operations = preconditions(&ObjectId::of(&self.raw));
        operations.push(json!({ "op": "add", "path": "/status", "value": value }));
        let api: Api<S3Backend> = Api::all(backends.shared.client.clone());
        let written = api.patch_status(&self.raw.name_any(), &patch_params(), &json_patch(operations)?).await;
        let written = written.map_err(|error| kubernetes::describe(&error))?;
        backends.shared.written_backends.wrote(kept::backend(&written));
        log_change(self.raw.status.as_ref(), status);
        Ok(BackendAnswer::Written(status.clone()))
    }
}

impl Backends {
    /// Creates the controller's state.
    pub(super) fn new(shared: Arc<Shared>, claims: Store<Claim>) -> Self {
        Self {
            shared,
            claims,
            backoff: Backoff::default(),
            pace: WritePace::default(),
            began: Instant::now(),
            memory: Mutex::default(),
            anothers: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Reports once that another operator serves a backend, in the log and by an Event.
    ///
    /// The status belongs to the other operator.
    async fn tell_whose(&self, raw: &S3Backend, by: &ServedBy) {
        let told = self.anothers.lock().insert(raw.uid().unwrap_or_default(), by.clone());
        if told.as_ref() == Some(by) {
            return;
        }
        let us = self.shared.observer.setting.operator();
        let note = format!(
            "{by} serves this backend, and {us} leaves it alone with all claims on it; an administrator who wants that \
             changed stops the other operator, then sets annotation {} to {us} here and on those claims",
            wire::SERVED_BY
        );
        tracing::warn!(note);
        let announced = Announced { warning: true, reason: "ServedByAnother", note: &note };
        if let Err(error) = self.shared.announcer.publish(&announced, raw.object_ref(&())).await {
            tracing::debug!(why = kubernetes::describe(&error), "event not published");
        }
    }

    fn schedule(&self, uid: &str, end: &BackendEnd) -> (PassResult, Action) {
        match end {
            BackendEnd::LeftAlone(_) => (PassResult::Success, Action::await_change()),
            BackendEnd::Rest { after, resets_backoff } => {
                if *resets_backoff {
                    self.backoff.reset(uid);
                }
                (PassResult::Success, Action::requeue(*after))
            }
            BackendEnd::Wait(wait) => (PassResult::RequeueAfter, Action::requeue(*wait)),
            BackendEnd::Retry(why) => {
                tracing::warn!(why, "trying again");
                (PassResult::Error, Action::requeue(self.backoff.failed(uid)))
            }
        }
    }

    fn uptime(&self) -> Uptime {
        Uptime(self.began.elapsed())
    }

    fn count_bound(&self, backend: &str) -> i64 {
        let bound = |claim: &Arc<Claim>| {
            let status = claim.0.as_ref().ok().and_then(|claim| claim.status.as_ref());
            status.is_some_and(|status| is_bound_on(status, backend))
        };
        let count = self.claims.state().iter().filter(|claim| bound(claim)).count();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Drops the state of deleted backends.
    ///
    /// Only passes store state, and each pass is followed by this.
    fn forget_gone(&self, store: &Store<Backend>) {
        let there: BTreeSet<String> = store.state().iter().filter_map(|backend| backend.uid()).collect();
        let mut kept = self.kept.lock();
        let gone: Vec<String> = kept.difference(&there).cloned().collect();
        for uid in &gone {
            kept.remove(uid);
            self.memory.lock().remove(uid);
            self.anothers.lock().remove(uid);
            self.pace.forget(uid);
            self.backoff.reset(uid);
        }
    }
}

/// Maps an error of creating a client to the state of the backend.
///
/// # Errors
/// Returns the message of an error that says nothing about the backend: a Secret could not be read.
pub(crate) fn unconnected(error: &AccessError) -> Result<Connected, String> {
    match error {
        AccessError::Unreadable(..) => Err(error.to_string()),
        AccessError::NoSecret(..) => Ok(Connected::Missing(error.to_string())),
        AccessError::Untrusted(..)
        | AccessError::Internal(..)
        | AccessError::Forbidden(..)
        | AccessError::NotOptedIn(..)
        | AccessError::NoField(..)
        | AccessError::Trust(_) => Ok(Connected::Unusable(error.to_string())),
    }
}

/// Maps the answer to a probe to its result.
pub(crate) fn probed(answer: Result<(), UpstreamError>) -> Probed {
    let Err(error) = answer else { return Probed::Succeeded };
    let why = error.to_string();
    match error.class {
        Class::NoAnswer(_) => Probed::NoAnswer(why),
        Class::Denied { .. } => Probed::Denied(why),
        Class::Unusable(_)
        | Class::Forbidden(_)
        | Class::Failing { .. }
        | Class::Throttled
        | Class::Unsupported
        | Class::Failed { .. } => Probed::Failed(why),
    }
}

/// Logs the state of the backend if it has changed.
///
/// The message is logged as a quoted field because it may have several lines.
fn log_change(before: Option<&S3BackendStatus>, now: &S3BackendStatus) {
    let ready = |status: &S3BackendStatus| {
        let ready = status.conditions.iter().find(|condition| condition.type_ == ConditionType::Ready.as_str());
        ready.map(|ready| (ready.status == "True", ready.reason.clone(), ready.message.clone()))
    };
    let now = ready(now);
    match &now {
        _ if before.and_then(ready) == now => {}
        Some((true, reason, _)) => tracing::info!(reason, "the backend is Ready"),
        Some((false, reason, why)) => tracing::warn!(reason, why, "the backend is not Ready"),
        None => {}
    }
}

fn secrets_of(backend: &api::Backend) -> BTreeSet<SecretName> {
    let admin = (backend.credentials.namespace.clone(), backend.credentials.name.clone());
    let bundle = backend.tls.ca_bundle_secret_ref.as_ref();
    bundle.map(|bundle| (bundle.namespace.clone(), bundle.name.clone())).into_iter().chain([admin]).collect()
}
