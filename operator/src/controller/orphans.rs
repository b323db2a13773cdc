//! Sweeps: deletes internal Secrets whose claim or access is deleted (spec §3.4).
//!
//! A UID is suspected if the cache has a Secret of it and no claim or access with it. This is
//! checked after the caches are filled, when a claim or access disappears, when such a Secret
//! appears, and on the slow resync. A suspicion costs nothing. The API server is asked only about a
//! suspect that stays one for a moment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared as SharedFuture};
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::Store;
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;

use crate::api::{AccessUid, BucketAccess, BucketClaim, ClaimUid};
use crate::kubernetes;
use crate::observe::Observer;
use crate::plan::orphans::{Kind, OfAccess, OfClaim, Sweep, SweepAnswer, SweepEnd, SweepStep};
use crate::plan::{Failure, Reach, SecretRef, Stored};

use super::backoff::Backoff;
use super::clues::{Clue, Gone};
use super::drive::{CarryOut, drive};
use super::jitter::jittered;
use super::objects::Claim;
use super::shared::Shared;

/// Number of UIDs swept at once. It is low because sweeps are not urgent and claims need the API
/// server too.
const CONCURRENCY: usize = 4;

/// Delay before a suspect is swept, in which late watch events may clear it.
const DEBOUNCE: Duration = Duration::from_secs(2);

/// Delay before a sweep checks again if the running pass over the claim has ended.
const PASS_ENDS: Duration = Duration::from_secs(5);

/// Page size of the list of all claims or accesses. Each may have a quarter of a megabyte of
/// annotations.
const PAGE: u32 = 100;

/// Sweeps until `shutdown`. A running sweep is dropped then, and the next start repeats it.
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
    suspects: BTreeMap<Gone, Suspect>,
    /// Running sweeps. New names found in the meantime are stored in `suspects`.
    under_way: BTreeMap<Gone, Suspect>,
    sweeps: FuturesUnordered<BoxFuture<'static, (Gone, SweepEnd)>>,
    backoff: Backoff,
    next_scan: Instant,
}

struct Suspect {
    due: Instant,
    /// Names of the Secrets of the claim.
    names: BTreeSet<String>,
    /// Time since which the claim is known to be deleted with no pass over it running.
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
                Some((gone, rest)) = self.sweeps.next() => self.finish(gone, rest),
                () = sleep_until(due) => {}
            }
        }
    }

    fn take(&mut self, clue: Clue) {
        match clue {
            Clue::Everything => self.scan(),
            Clue::Of(gone, name) => self.suspect(gone, name),
        }
    }

    fn suspect(&mut self, gone: Gone, name: Option<String>) {
        let due = Instant::now() + DEBOUNCE;
        let new = || Suspect { due, names: BTreeSet::new(), alone_since: None };
        let suspect = self.suspects.entry(gone).or_insert_with(new);
        suspect.names.extend(name);
        if suspect.alone_since.is_some() {
            // The suspect only waits for a call to end; the new Secrets need not.
            suspect.due = suspect.due.min(due);
        }
    }

    fn scan(&mut self) {
        let live = self.live();
        let reach = &self.shared.config.reach;
        // Skip Secrets of namespaces that others serve: thousands would be suspected on each scan.
        let all = self.shared.observer.internal.all().into_iter().filter(|secret| !names_another(reach, secret));
        let owners: Vec<Gone> = all.filter_map(|secret| Gone::of(&secret)).collect();
        for gone in owners {
            if !live.has(&gone) {
                self.suspect(gone, None);
            }
        }
    }

    fn live(&self) -> Live {
        let claims = self.claims.state().iter().filter_map(|claim| claim.meta().uid.clone()).collect();
        Live { claims, accesses: self.shared.observer.accesses.uids() }
    }

    fn start_due(&mut self) {
        let now = Instant::now();
        if self.next_scan <= now {
            self.next_scan = now + jittered(self.shared.config.resync_interval);
            self.scan();
        }
        let due = |(gone, suspect): (&Gone, &Suspect)| {
            (suspect.due <= now && !self.under_way.contains_key(gone)).then(|| gone.clone())
        };
        let due: Vec<Gone> = self.suspects.iter().filter_map(due).collect();
        if due.is_empty() || self.sweeps.len() >= CONCURRENCY {
            return;
        }
        let live = self.live();
        for gone in due {
            if self.sweeps.len() >= CONCURRENCY {
                return;
            }
            if let Some(suspect) = self.suspects.remove(&gone)
                && !live.has(&gone)
            {
                self.start(gone, suspect);
            }
        }
    }

    /// Starts a sweep if there is anything to sweep.
    fn start(&mut self, gone: Gone, suspect: Suspect) {
        let internal = &self.shared.observer.internal;
        let mut seen = match &gone {
            Gone::Claim(uid) => internal.of_claim(uid),
            Gone::Access(uid) => internal.of_access(uid),
        };
        seen.retain(|secret| Gone::of(secret).as_ref() == Some(&gone));
        if seen.is_empty() && suspect.names.is_empty() {
            return self.backoff.reset(gone.uid());
        }
        let deadline = self.shared.config.limits.timeout;
        let landed = suspect.alone_since.is_some_and(|since| since.elapsed() >= deadline);
        let (shared, names) = (self.shared.clone(), suspect.names.clone());
        let reach = shared.config.reach.clone();
        let run = match &gone {
            Gone::Claim(uid) => sweep(shared, Sweep::<OfClaim>::new(uid.clone(), &seen, names, !landed, reach)).boxed(),
            Gone::Access(uid) => {
                sweep(shared, Sweep::<OfAccess>::new(uid.clone(), &seen, names, !landed, reach)).boxed()
            }
        };
        let span = tracing::info_span!("orphans", uid = gone.uid());
        let whose = gone.clone();
        self.sweeps.push(run.map(|end| (whose, end)).instrument(span).boxed());
        self.under_way.insert(gone, suspect);
    }

    fn finish(&mut self, gone: Gone, rest: SweepEnd) {
        let Some(mut suspect) = self.under_way.remove(&gone) else { return };
        let now = Instant::now();
        match rest {
            SweepEnd::Done => {
                // A credential without a record blocks the bucket for others too.
                self.shared.wakes.all_waiting();
                return self.backoff.reset(gone.uid());
            }
            SweepEnd::Alive | SweepEnd::Elsewhere => return self.backoff.reset(gone.uid()),
            SweepEnd::Held if self.shared.memory.is_under_way(gone.uid()) => {
                suspect.alone_since = None;
                suspect.due = now + PASS_ENDS;
            }
            SweepEnd::Held => suspect.due = *suspect.alone_since.get_or_insert(now) + self.shared.config.limits.timeout,
            SweepEnd::Retry(why) => {
                suspect.due = now + self.backoff.failed(gone.uid());
                tracing::warn!(uid = gone.uid(), why, "sweep failed, trying again later");
            }
        }
        if let Some(learnt) = self.suspects.remove(&gone) {
            suspect.names.extend(learnt.names);
        }
        self.suspects.insert(gone, suspect);
    }

    fn next_due(&self) -> Instant {
        let full = self.sweeps.len() >= CONCURRENCY;
        let waiting = self.suspects.iter().filter(|(gone, _)| !full && !self.under_way.contains_key(gone));
        waiting.map(|(_, suspect)| suspect.due).chain([self.next_scan]).min().unwrap_or(self.next_scan)
    }
}

/// Returns true if a Secret's labels name an owner in a namespace that is not served. A sweep would
/// end without doing anything then.
fn names_another(reach: &Reach, secret: &Stored) -> bool {
    let claim = secret.claim().map(|claim| claim.namespace);
    let access = secret.access().map(|access| access.namespace);
    [claim, access].iter().flatten().any(|namespace| !reach.has(namespace))
}

/// UIDs of the cached claims, including those that can't be decoded, and of the cached accesses.
/// `accesses` is `None` if that cache is not filled.
struct Live {
    claims: BTreeSet<String>,
    accesses: Option<BTreeSet<AccessUid>>,
}

impl Live {
    /// Returns true if the owner is cached. Accesses count as existing while their cache is not
    /// filled.
    fn has(&self, gone: &Gone) -> bool {
        match gone {
            Gone::Claim(uid) => self.claims.contains(uid.as_str()),
            Gone::Access(uid) => self.accesses.as_ref().is_none_or(|accesses| accesses.contains(uid)),
        }
    }
}

/// The API calls of a sweep for one kind of owner.
pub(crate) trait Asked: Kind {
    /// The owner as an API object.
    type Object: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + fmt::Debug;

    /// Lists the internal Secrets of an owner.
    fn own(observer: &Observer, uid: &Self::Uid) -> impl Future<Output = Result<Vec<Stored>, Failure>> + Send;
}

impl Asked for OfClaim {
    type Object = BucketClaim;

    async fn own(observer: &Observer, uid: &ClaimUid) -> Result<Vec<Stored>, Failure> {
        observer.own(uid).await
    }
}

impl Asked for OfAccess {
    type Object = BucketAccess;

    async fn own(observer: &Observer, uid: &AccessUid) -> Result<Vec<Stored>, Failure> {
        observer.own_of_access(uid).await
    }
}

async fn sweep<K: Asked>(shared: Arc<Shared>, mut sweep: Sweep<K>) -> SweepEnd {
    drive(&mut sweep, &shared.clock, &mut Hands { shared: &shared }).await
}

/// Carries out the steps of one sweep.
struct Hands<'a> {
    shared: &'a Shared,
}

impl<K: Asked> CarryOut<Sweep<K>> for Hands<'_> {
    async fn carry_out(&mut self, sweep: &Sweep<K>, step: &SweepStep<K>) -> SweepAnswer<K> {
        let answer = self.try_carry_out(sweep, step).await;
        answer.unwrap_or_else(|why| SweepAnswer::Failed(step.clone(), why))
    }
}

impl Hands<'_> {
    async fn try_carry_out<K: Asked>(&self, sweep: &Sweep<K>, step: &SweepStep<K>) -> Result<SweepAnswer<K>, String> {
        match step {
            SweepStep::Delete(secret) => Ok(SweepAnswer::Deleted(secret.clone(), delete(self.shared, secret).await?)),
            SweepStep::End(patch) => Ok(SweepAnswer::Ended(self.shared.actor.patch(patch).await.map_err(describe)?)),
            SweepStep::Owner(_) | SweepStep::Owners | SweepStep::Own | SweepStep::Internal(_) => {
                look(&self.shared.observer, sweep, step).await
            }
        }
    }
}

/// Answers a read-only step of a sweep.
///
/// # Errors
/// Returns an error if the request fails, or the step is not read-only.
pub(crate) async fn look<K: Asked>(
    observer: &Observer,
    sweep: &Sweep<K>,
    step: &SweepStep<K>,
) -> Result<SweepAnswer<K>, String> {
    Ok(match step {
        SweepStep::Owner(owner) => SweepAnswer::Owner(owner.clone(), uid_of::<K>(observer, owner).await?),
        SweepStep::Owners => SweepAnswer::Owners(is_listed::<K>(&observer.client, sweep.uid()).await?),
        SweepStep::Own => SweepAnswer::Own(K::own(observer, sweep.uid()).await.map_err(describe)?),
        SweepStep::Internal(name) => {
            SweepAnswer::Internal(name.clone(), observer.internal_secret(name).await.map_err(describe)?)
        }
        SweepStep::Delete(_) | SweepStep::End(_) => return Err("that is no question".to_owned()),
    })
}

/// Returns the UID of an owner. Only metadata is read, so an object that can't be decoded counts as
/// well.
async fn uid_of<K: Asked>(observer: &Observer, owner: &K::At) -> Result<Option<K::Uid>, String> {
    let (namespace, name) = K::parts(owner);
    let api: Api<K::Object> = Api::namespaced(observer.client.clone(), namespace);
    match api.get_metadata(name).await.map(|live| live.metadata.uid) {
        Ok(uid) => uid.map(|uid| Some(K::uid(&uid))).ok_or_else(|| format!("the {} has no UID", K::NOUN)),
        Err(error) if kubernetes::is_absence_of(&error, name) => Ok(None),
        // The RoleBinding that allowed the read was deleted together with the namespace.
        Err(kube::Error::Api(status)) if status.is_forbidden() && is_gone(observer, namespace).await => Ok(None),
        Err(error) => Err(kubernetes::describe(&error)),
    }
}

/// Returns true if a namespace that is served by its name is deleted.
///
/// A cluster-wide operator returns false: its rights don't depend on a namespace.
async fn is_gone(observer: &Observer, namespace: &str) -> bool {
    if observer.setting.reach.is_whole() {
        return false;
    }
    let api: Api<Namespace> = Api::all(observer.client.clone());
    let found = api.get_metadata(namespace).await;
    found.is_err_and(|error| kubernetes::is_absence_of(&error, namespace))
}

async fn is_listed<K: Asked>(client: &Client, uid: &K::Uid) -> Result<bool, String> {
    let api: Api<K::Object> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list_metadata(&params).await.map_err(|error| kubernetes::describe(&error))?;
        if page.items.iter().any(|owner| owner.metadata.uid.as_deref() == Some(K::text(uid))) {
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

fn describe(failure: Failure) -> String {
    match failure {
        Failure::Kubernetes(why) | Failure::Refused(why) => why,
        other => format!("{other:?}"),
    }
}
