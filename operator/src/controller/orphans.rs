//! Sweeps of internal Secrets whose claim is no more (spec §3.4).
//!
//! A UID is suspected when a Secret of it is cached and no claim of it is: after the caches were
//! filled, when a claim disappears, when such a Secret turns up, and on the slow resync. To suspect
//! costs nothing; only a suspect that stays one for a moment is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared as SharedFuture};
use futures::stream::FuturesUnordered;
use kube::api::ListParams;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use crate::api::{BucketClaim, ClaimRef, ClaimUid};
use crate::kubernetes;
use crate::observe::Observer;
use crate::plan::orphans::{Sweep, SweepAnswer, SweepEnd, SweepStep, owner};
use crate::plan::{Failure, SecretRef, Stored};

use super::backoff::Backoff;
use super::clues::Clue;
use super::converse::{CarryOut, converse};
use super::jitter::jittered;
use super::objects::Claim;
use super::shared::Shared;

/// How many UIDs are swept at once: it is no hurry, and claims need the API server too.
const CONCURRENCY: usize = 4;

/// So long a suspect is left alone: what is only late shows until then.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// When a pass over the claim that was under way is asked after again.
const PASS_ENDS: Duration = Duration::from_secs(5);

/// Page size of the list of all claims: each may have a quarter of a megabyte of annotations.
const PAGE: u32 = 100;

/// Sweeps until `shutdown`; one that is under way then is let go: the next start takes it up.
pub(super) async fn run(
    shared: Arc<Shared>,
    claims: Store<Claim>,
    clues: UnboundedReceiver<Clue>,
    shutdown: SharedFuture<BoxFuture<'static, ()>>,
) {
    let work = async {
        if claims.wait_until_ready().await.is_ok() {
            Sweeper::new(shared, claims).run(clues).await;
        }
    };
    tokio::select! {
        biased;
        () = shutdown => {}
        () = work => {}
    }
}

struct Sweeper {
    shared: Arc<Shared>,
    claims: Store<Claim>,
    suspects: BTreeMap<ClaimUid, Suspect>,
    /// Those that are being swept. What is learnt of them meanwhile is among the suspects.
    under_way: BTreeMap<ClaimUid, Suspect>,
    sweeps: FuturesUnordered<BoxFuture<'static, (ClaimUid, SweepEnd)>>,
    backoff: Backoff,
    next_scan: Instant,
}

struct Suspect {
    due: Instant,
    /// Names of Secrets of it.
    names: BTreeSet<String>,
    /// Since when the claim has been known gone, with no pass over it under way.
    alone_since: Option<Instant>,
}

impl Sweeper {
    fn new(shared: Arc<Shared>, claims: Store<Claim>) -> Self {
        let next_scan = Instant::now() + jittered(shared.config.resync_interval);
        let (suspects, under_way) = (BTreeMap::new(), BTreeMap::new());
        let (sweeps, backoff) = (FuturesUnordered::new(), Backoff::default());
        Self { shared, claims, suspects, under_way, sweeps, backoff, next_scan }
    }

    async fn run(mut self, mut clues: UnboundedReceiver<Clue>) {
        loop {
            self.start_due();
            let due = self.next_due();
            tokio::select! {
                biased;
                Some(clue) = clues.recv() => self.take(clue),
                Some((uid, rest)) = self.sweeps.next() => self.finish(uid, rest),
                () = sleep_until(due) => {}
            }
        }
    }

    fn take(&mut self, clue: Clue) {
        match clue {
            Clue::Everything => self.scan(),
            Clue::Of(uid, name) => self.suspect(uid, name),
        }
    }

    fn suspect(&mut self, uid: ClaimUid, name: Option<String>) {
        let due = Instant::now() + DEBOUNCE;
        let new = || Suspect { due, names: BTreeSet::new(), alone_since: None };
        let suspect = self.suspects.entry(uid).or_insert_with(new);
        suspect.names.extend(name);
        if suspect.alone_since.is_some() {
            // It only waits for a call to end; what turned up meanwhile does not.
            suspect.due = suspect.due.min(due);
        }
    }

    fn scan(&mut self) {
        let live = self.live();
        for uid in self.shared.observer.internal.all().iter().filter_map(owner) {
            if !live.contains(uid.as_str()) {
                self.suspect(uid, None);
            }
        }
    }

    /// UIDs of the cached claims, also of those that can't be decoded.
    fn live(&self) -> BTreeSet<String> {
        self.claims.state().iter().filter_map(|claim| claim.meta().uid.clone()).collect()
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        if self.next_scan <= now {
            self.next_scan = now + jittered(self.shared.config.resync_interval);
            self.scan();
        }
        let due = |(uid, suspect): (&ClaimUid, &Suspect)| {
            (suspect.due <= now && !self.under_way.contains_key(uid)).then(|| uid.clone())
        };
        let due: Vec<ClaimUid> = self.suspects.iter().filter_map(due).collect();
        if due.is_empty() || self.sweeps.len() >= CONCURRENCY {
            return;
        }
        let live = self.live();
        for uid in due {
            if self.sweeps.len() >= CONCURRENCY {
                return;
            }
            if let Some(suspect) = self.suspects.remove(&uid)
                && !live.contains(uid.as_str())
            {
                self.start(uid, suspect);
            }
        }
    }

    /// Starts a sweep, if there is anything to be swept.
    fn start(&mut self, uid: ClaimUid, suspect: Suspect) {
        let mut seen = self.shared.observer.internal.of_claim(&uid);
        seen.retain(|secret| owner(secret).as_ref() == Some(&uid));
        if seen.is_empty() && suspect.names.is_empty() {
            return self.backoff.reset(uid.as_str());
        }
        let deadline = self.shared.config.limits.timeout;
        let landed = suspect.alone_since.is_some_and(|since| since.elapsed() >= deadline);
        let sweep = Sweep::new(uid.clone(), &seen, suspect.names.clone(), !landed);
        let span = tracing::info_span!("orphans", claim_uid = uid.as_str());
        let shared = self.shared.clone();
        let run = {
            let uid = uid.clone();
            async move {
                let mut sweep = sweep;
                let end = converse(&mut sweep, &shared.clock, &mut Hands { shared: &shared }).await;
                (uid, end)
            }
        };
        self.sweeps.push(run.instrument(span).boxed());
        self.under_way.insert(uid, suspect);
    }

    fn finish(&mut self, uid: ClaimUid, rest: SweepEnd) {
        let Some(mut suspect) = self.under_way.remove(&uid) else { return };
        let now = Instant::now();
        match rest {
            SweepEnd::Done => {
                // A credential without a record keeps others from the bucket too.
                self.shared.wakes.all_waiting();
                return self.backoff.reset(uid.as_str());
            }
            SweepEnd::Alive => return self.backoff.reset(uid.as_str()),
            SweepEnd::Held if self.shared.memory.is_under_way(uid.as_str()) => {
                suspect.alone_since = None;
                suspect.due = now + PASS_ENDS;
            }
            SweepEnd::Held => suspect.due = *suspect.alone_since.get_or_insert(now) + self.shared.config.limits.timeout,
            SweepEnd::Retry(why) => {
                suspect.due = now + self.backoff.failed(uid.as_str());
                tracing::warn!(claim_uid = uid.as_str(), why, "sweep failed, trying again later");
            }
        }
        if let Some(learnt) = self.suspects.remove(&uid) {
            suspect.names.extend(learnt.names);
        }
        self.suspects.insert(uid, suspect);
    }

    fn next_due(&self) -> Instant {
        let full = self.sweeps.len() >= CONCURRENCY;
        let waiting = self.suspects.iter().filter(|(uid, _)| !full && !self.under_way.contains_key(uid));
        waiting.map(|(_, suspect)| suspect.due).chain([self.next_scan]).min().unwrap_or(self.next_scan)
    }
}

/// Carries out the steps of one sweep.
struct Hands<'a> {
    shared: &'a Shared,
}

impl CarryOut<Sweep> for Hands<'_> {
    async fn carry_out(&mut self, sweep: &Sweep, step: &SweepStep) -> SweepAnswer {
        let answer = self.try_carry_out(sweep, step).await;
        answer.unwrap_or_else(|why| SweepAnswer::Failed(step.clone(), why))
    }
}

impl Hands<'_> {
    async fn try_carry_out(&self, sweep: &Sweep, step: &SweepStep) -> Result<SweepAnswer, String> {
        match step {
            SweepStep::Delete(secret) => Ok(SweepAnswer::Deleted(secret.clone(), delete(self.shared, secret).await?)),
            SweepStep::End(patch) => Ok(SweepAnswer::Ended(self.shared.actor.patch(patch).await.map_err(describe)?)),
            SweepStep::Claim(_) | SweepStep::Claims | SweepStep::Own | SweepStep::Internal(_) => {
                look(&self.shared.observer, sweep, step).await
            }
        }
    }
}

/// Answers a question of a sweep.
///
/// # Errors
/// When there is no answer, or the step is no question: says so.
pub(crate) async fn look(observer: &Observer, sweep: &Sweep, step: &SweepStep) -> Result<SweepAnswer, String> {
    Ok(match step {
        SweepStep::Claim(claim) => SweepAnswer::Claim(claim.clone(), uid_of(&observer.client, claim).await?),
        SweepStep::Claims => SweepAnswer::Claims(is_listed(&observer.client, sweep.uid()).await?),
        SweepStep::Own => SweepAnswer::Own(observer.own(sweep.uid()).await.map_err(describe)?),
        SweepStep::Internal(name) => {
            SweepAnswer::Internal(name.clone(), observer.internal_secret(name).await.map_err(describe)?)
        }
        SweepStep::Delete(_) | SweepStep::End(_) => return Err("that is no question".to_owned()),
    })
}

/// Only the object is asked for, not what it says: it counts also where it can't be decoded.
async fn uid_of(client: &Client, claim: &ClaimRef) -> Result<Option<ClaimUid>, String> {
    let api: Api<BucketClaim> = Api::namespaced(client.clone(), &claim.namespace);
    match api.get_metadata(&claim.name).await {
        Ok(live) => live.metadata.uid.map(|uid| Some(ClaimUid::new(uid))).ok_or_else(no_uid),
        Err(error) if kubernetes::is_absence_of(&error, &claim.name) => Ok(None),
        Err(error) => Err(kubernetes::describe(&error)),
    }
}

async fn is_listed(client: &Client, uid: &ClaimUid) -> Result<bool, String> {
    let api: Api<BucketClaim> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| kubernetes::describe(&error))?;
        if page.items.iter().any(|claim| claim.metadata.uid.as_deref() == Some(uid.as_str())) {
            return Ok(true);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(false),
        }
    }
}

async fn delete(shared: &Shared, secret: &SecretRef) -> Result<Option<Stored>, String> {
    let before = shared.observer.internal.get(&secret.namespace, &secret.name);
    let kept = shared.actor.delete(secret).await.map_err(describe)?;
    if kept.is_none() {
        tracing::info!(secret = secret.name, "deleted an orphan");
        shared.wakes.record_changed(&secret.name);
        before.iter().for_each(|before| shared.public_changed(before));
    }
    Ok(kept)
}

fn no_uid() -> String {
    "the claim has no UID".to_owned()
}

fn describe(failure: Failure) -> String {
    match failure {
        Failure::Kubernetes(why) | Failure::Refused(why) => why,
        other => format!("{other:?}"),
    }
}
