//! Passes over claims.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::future::{BoxFuture, Shared as SharedFuture};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::events::{Event, EventType};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use tokio::sync::mpsc::UnboundedReceiver;
use tracing::Instrument;

use crate::api::BucketClaim;
use crate::kubernetes;
use crate::plan::{self, Act, Announcement, Answer, Failure, Look, Rest, Step, Then, View};

use super::backoff::Backoff;
use super::feeds::{self, Claim, Main};
use super::looks::Looks;
use super::{Shared, jittered};

/// No pass is longer: a store or API server that contradicts itself must not keep a claim in one for ever. Reads of
/// internal Secrets by name have a bound of their own: a deletion makes one for each generation.
const MOST_STEPS: usize = 200;
const MOST_READS_BY_NAME: usize = 100_000;

struct Context {
    shared: Arc<Shared>,
}

/// What this process remembers of claims, by UID: nothing that it could not do without.
#[derive(Default)]
pub(super) struct Memory {
    backoff: Backoff,
    looks: Looks,
    /// Claims that a pass is under way over.
    under_way: Mutex<BTreeSet<String>>,
}

impl Memory {
    /// Forgets a claim that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.backoff.reset(uid);
        self.looks.forget(uid);
    }

    /// Whether a pass over the claim is under way: also one that is gone may have one.
    pub(super) fn is_under_way(&self, uid: &str) -> bool {
        self.under_way().contains(uid)
    }

    fn begin(&self, uid: &str) -> UnderWay<'_> {
        self.under_way().insert(uid.to_owned());
        UnderWay { memory: self, uid: uid.to_owned() }
    }

    fn under_way(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // The set is whole whatever happened to a thread that held it.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pass, until it is dropped.
struct UnderWay<'a> {
    memory: &'a Memory,
    uid: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.memory.under_way().remove(&self.uid);
    }
}

/// Runs passes until `shutdown`.
pub(super) async fn run(
    shared: Arc<Shared>,
    (stream, store): Main<Claim>,
    wakes: UnboundedReceiver<ObjectRef<Claim>>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let config = controller::Config::default().concurrency(shared.config.max_concurrent_reconciles);
    let context = Arc::new(Context { shared });
    Controller::for_stream(stream, store)
        .with_config(config)
        .reconcile_on(feeds::receiver_stream(wakes))
        .graceful_shutdown_on(shutdown)
        .run(reconcile, |_, error: &Infallible, _| match *error {}, context)
        // What went wrong is in the log and in the status; that a woken claim is gone is no error at all.
        .for_each(|_| std::future::ready(()))
        .await;
}

async fn reconcile(claim: Arc<Claim>, context: Arc<Context>) -> Result<Action, Infallible> {
    let raw = match &claim.0 {
        Ok(raw) => context.shared.written.latest(raw),
        Err(error) => {
            tracing::warn!(claim = claim.name_any(), %error, "this claim can't be decoded and is left alone");
            return Ok(Action::await_change());
        }
    };
    let span = tracing::info_span!(
        "claim",
        namespace = raw.namespace().unwrap_or_default(),
        name = raw.name_any(),
        generation = raw.metadata.generation
    );
    Ok(context.pass(&raw).instrument(span).await)
}

impl Context {
    async fn pass(&self, raw: &BucketClaim) -> Action {
        let uid = raw.uid().unwrap_or_default();
        let _under_way = self.shared.memory.begin(&uid);
        let mut view = self.shared.observer.begin(raw);
        self.shared.memory.looks.recall(&uid, &mut view, self.shared.config.resync_interval);
        let rest = self.converse(&mut view).await;
        self.shared.memory.looks.remember(&uid, &view, self.shared.config.resync_interval);
        for announcement in &rest.events {
            self.announce(raw, announcement).await;
        }
        if let Some((record, _)) = view.holder.as_ref().filter(|_| rest.waits_for.is_none()) {
            self.shared.wakes.stop_waiting(record.as_str(), &view.claim.at);
        }
        self.schedule(&uid, &rest.then)
    }

    /// Asks for the next step and takes it, until the step is to rest.
    async fn converse(&self, view: &mut View) -> Rest {
        let (mut steps, mut reads) = (0, 0);
        while steps < MOST_STEPS && reads < MOST_READS_BY_NAME {
            let step = plan::next(view, self.shared.clock.now());
            let answer = match &step {
                Step::Rest(rest) => return rest.clone(),
                Step::Look(look) => self.look(view, look).await,
                Step::Act(act) => self.act(view, act).await,
            };
            if let Answer::Failed(failure) = &answer {
                tracing::warn!(%step, ?failure, "step failed");
            }
            match step {
                Step::Look(Look::Internal(_)) => reads += 1,
                _ => steps += 1,
            }
            view.learn(&step, answer);
        }
        tracing::error!(steps, reads, "the pass does not come to an end");
        Rest { then: Then::Retry("the pass does not come to an end".to_owned()), events: Vec::new(), waits_for: None }
    }

    async fn look(&self, view: &View, look: &Look) -> Answer {
        if let Look::Holder(target) = look {
            // Before the look, so that no change falls between the two.
            self.shared.wakes.wait_for(target.record().as_str(), &view.claim.at);
        }
        let answer = self.shared.observer.answer(&view.claim, look).await;
        if let (Look::Internal(_), Answer::Secret(Some(secret))) = (look, &answer) {
            // Whoever holds the bucket may be gone, and the cache may not have the record.
            self.shared.orphans.in_the_way(secret);
        }
        answer
    }

    async fn act(&self, view: &View, act: &Act) -> Answer {
        tracing::info!(step = %act, "acting");
        let answer = self.shared.actor.perform(&view.claim, act).await;
        match (act, &answer) {
            // The watch will show it as the echo of our own write: whoever waits for the name is told here.
            (Act::Delete(secret), Answer::Done) => self.shared.wakes.record_changed(&secret.name),
            (Act::CreateBucket(_), Answer::Failed(Failure::Upstream(_))) => {
                let deadline = self.shared.config.limits.timeout;
                self.shared.memory.looks.create_unanswered(view.claim.uid.as_str(), deadline);
            }
            _ => {}
        }
        answer
    }

    fn schedule(&self, uid: &str, then: &Then) -> Action {
        match then {
            Then::AwaitChange => {
                self.shared.memory.backoff.reset(uid);
                let resync = jittered(self.shared.config.resync_interval);
                Action::requeue(self.shared.memory.looks.until_due(uid).map_or(resync, |due| due.min(resync)))
            }
            Then::After(delay) => {
                self.shared.memory.backoff.reset(uid);
                Action::requeue((*delay).min(jittered(self.shared.config.resync_interval)))
            }
            Then::Retry(why) => {
                let delay = self.shared.memory.backoff.failed(uid);
                tracing::info!(why, seconds = delay.as_secs_f32(), "trying again later");
                Action::requeue(delay)
            }
        }
    }

    /// Events are best effort, and never fail a pass (spec §3).
    async fn announce(&self, raw: &BucketClaim, announcement: &Announcement) {
        let event = Event {
            type_: if announcement.warning { EventType::Warning } else { EventType::Normal },
            reason: announcement.reason.clone(),
            note: Some(announcement.note.chars().take(1024).collect()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        let reference = raw.object_ref(&());
        if let Err(error) = self.shared.recorder.publish(&event, &reference).await {
            tracing::debug!(reason = announcement.reason, why = kubernetes::describe(&error), "event not published");
        }
    }
}
