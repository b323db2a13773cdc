//! Leader election (spec §5): one of several operators works, the others stand by.
//!
//! ```text
//! candidate   the next move of a candidate; pure
//! lease       reads and writes of the Lease
//! mod         runs both, and the operator while it leads
//! ```
//!
//! Losing the Lease is like a crash: the operator's future is dropped, and a new one begins when
//! the Lease is won again. A Lease that can't be renewed isn't lost yet: the operator keeps
//! running, and changes nothing until the Lease is renewed or has another holder. A restart would
//! fill all caches again, just when the API server is slow.

mod candidate;
mod lease;

use std::pin::pin;
use std::time::Duration;

use daemon::backoff::WatchBackoff;
use futures::future::{self, BoxFuture, FutureExt, OptionFuture};
use futures::stream::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Error};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::{Clock, Uptime};
use crate::kubernetes;
use crate::mandate::Tenure;
use crate::metrics::Metrics;

pub use candidate::Terms;
use candidate::{Candidate, Move, News, Record, Term};
use lease::{Leases, NAME};

/// Timeout of a request about the Lease. Several fit into the time for which a leader is confirmed.
const REQUEST: Duration = Duration::from_secs(4);

/// Configuration of a candidate.
#[derive(Clone, Debug)]
pub struct Election {
    /// Name of the process in the Lease, unique also across restarts.
    pub id: String,
    /// The durations.
    pub terms: Terms,
}

impl Terms {
    /// Creates the terms for operators whose calls end within this time.
    pub fn for_calls_of(call: Duration) -> Self {
        Self {
            confirmed: Duration::from_secs(15),
            call: call.max(kubernetes::DEADLINE),
            renewal: Duration::from_secs(5),
            retry: Duration::from_secs(1),
        }
    }
}

/// Dependencies of an election.
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) clock: Clock,
    pub(crate) uptime: Uptime,
    pub(crate) metrics: Metrics,
    /// Set once the Lease, or its absence, was seen.
    pub(crate) ready: Option<tokio::sync::watch::Sender<bool>>,
}

/// Runs the operator (`life`) whenever this process leads, until one run ends by itself, or
/// `shutdown` resolves while the process stands by.
///
/// # Errors
/// Returns the error of the run that ended.
pub(crate) async fn run<E: 'static>(
    election: Election,
    surroundings: Surroundings,
    life: impl Fn(Tenure) -> BoxFuture<'static, Result<(), E>>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), E> {
    let Surroundings { client, namespace, clock, uptime, metrics, ready } = surroundings;
    let Election { id, terms } = election;
    let leases = Leases { api: Api::namespaced(client, &namespace), id: id.clone(), terms };
    let booth = Booth { candidate: Candidate::new(id, terms), leases, clock, uptime, metrics, ready };
    booth.run(life, shutdown).await
}

/// The state of a running election.
struct Booth {
    candidate: Candidate,
    leases: Leases,
    clock: Clock,
    uptime: Uptime,
    metrics: Metrics,
    ready: Option<tokio::sync::watch::Sender<bool>>,
}

/// The running operator.
struct Life<E> {
    tenure: Tenure,
    /// The term in which it was last confirmed.
    term: Term,
    work: BoxFuture<'static, Result<(), E>>,
}

/// The result of a request about the Lease.
enum Came {
    Looked(Result<Option<Record>, String>),
    Wrote { began: Duration, written: Result<Record, String> },
}

impl Booth {
    async fn run<E: 'static>(
        mut self,
        start: impl Fn(Tenure) -> BoxFuture<'static, Result<(), E>>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), E> {
        let mut news = pin!(self.news());
        let mut shutdown = pin!(shutdown);
        let mut request: Option<BoxFuture<'static, Came>> = None;
        let mut life: Option<Life<E>> = None;
        self.metrics.leads(false);
        loop {
            let now = self.uptime.now();
            if let Some(loss) = self.candidate.steps_down(now) {
                tracing::warn!(why = %loss, "this operator changes nothing until it is confirmed to lead");
                request = None;
            }
            self.keep(&mut life, &start);
            let mut wake = self.candidate.ends();
            if request.is_none() {
                match self.candidate.next(now) {
                    Move::Wait(until) => wake = until,
                    wanted => request = Some(self.ask(wanted)),
                }
            }
            let timer = wake.map(|moment| sleep(moment.saturating_sub(now)));
            tokio::select! {
                biased;
                Some(came) = OptionFuture::from(request.as_mut()) => {
                    request = None;
                    self.take_in(came);
                }
                Some(heard) = news.next() => self.hear(heard),
                Some(ended) = OptionFuture::from(life.as_mut().map(|life| &mut life.work)) => {
                    let tenure = life.take().map(|life| life.tenure);
                    self.release(tenure).await;
                    return ended;
                }
                () = &mut shutdown, if life.is_none() => {
                    self.release(None).await;
                    return Ok(());
                }
                Some(()) = OptionFuture::from(timer) => {}
            }
        }
    }

    /// Starts the operator when this process leads, extends its tenure, and drops it once another
    /// may have led.
    fn keep<E>(&self, life: &mut Option<Life<E>>, start: impl Fn(Tenure) -> BoxFuture<'static, Result<(), E>>) {
        self.metrics.leads(self.candidate.ends().is_some());
        if life.as_ref().is_some_and(|life| self.candidate.is_over(&life.term)) {
            tracing::warn!("another operator may lead, or have led: what is under way is dropped");
            *life = None;
        }
        let (Some(end), Some(term)) = (self.candidate.ends(), self.candidate.term()) else { return };
        match life {
            Some(life) => {
                life.tenure.extend(end);
                life.term = term;
            }
            None => {
                tracing::info!(id = self.leases.id, "this operator leads");
                let tenure = Tenure::until(end, self.uptime.clone());
                *life = Some(Life { tenure: tenure.clone(), term, work: start(tenure) });
            }
        }
    }

    /// Sends the request for a move, with a timeout.
    fn ask(&self, wanted: Move) -> BoxFuture<'static, Came> {
        let (leases, now, began) = (self.leases.clone(), self.clock.now(), self.uptime.now());
        async move {
            match wanted {
                Move::Create => Came::Wrote { began, written: in_time(leases.create(now)).await },
                Move::Take(record) => Came::Wrote { began, written: in_time(leases.take(&record, now)).await },
                Move::Look | Move::Wait(_) => Came::Looked(in_time(leases.look()).await),
            }
        }
        .boxed()
    }

    fn take_in(&mut self, came: Came) {
        let now = self.uptime.now();
        match came {
            Came::Looked(Ok(record)) => {
                self.candidate.looks(record, now);
                self.is_ready();
            }
            Came::Wrote { began, written: Ok(record) } => self.candidate.wrote(record, began, now),
            Came::Looked(Err(why)) | Came::Wrote { written: Err(why), .. } => {
                tracing::debug!(why, "the Lease can't be read or written, trying again");
                self.candidate.failed(now);
            }
        }
    }

    fn hear(&mut self, news: News) {
        let before = self.candidate.lease().and_then(|lease| lease.holder.clone());
        self.candidate.hears(news, self.uptime.now());
        let holder = self.candidate.lease().and_then(|lease| lease.holder.clone());
        if holder != before && holder.as_ref() != Some(&self.leases.id) {
            tracing::info!(leader = holder.as_deref().unwrap_or("nobody"), "standing by");
        }
        self.is_ready();
    }

    fn is_ready(&self) {
        if let Some(ready) = &self.ready {
            ready.send_if_modified(|ready| !std::mem::replace(ready, true));
        }
    }

    /// Releases the Lease at once if this process holds it and all its changes are over. Otherwise
    /// the Lease is left to expire, because a call may take effect until then.
    async fn release(&mut self, tenure: Option<Tenure>) {
        self.metrics.leads(false);
        if self.candidate.steps_down(self.uptime.now()).is_some() || self.candidate.ends().is_none() {
            return;
        }
        if tenure.is_some_and(|tenure| !tenure.is_settled()) {
            tracing::info!("calls are under way that nobody waits for: the Lease is kept until they are over");
            return;
        }
        let Some(record) = self.candidate.lease() else { return };
        match in_time(self.leases.release(record, self.clock.now())).await {
            Ok(_) => tracing::info!("the Lease is free"),
            Err(why) => tracing::info!(why, "the Lease is not known to be free; it runs out"),
        }
    }

    /// Watches the Lease.
    fn news(&self) -> impl Stream<Item = News> + Send + use<> {
        let (api, terms): (Api<Lease>, Terms) = (self.leases.api.clone(), self.leases.terms);
        let config = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
        let mut listed = false;
        watcher(api, config).backoff(WatchBackoff::new(Instant::now)).filter_map(move |event| {
            let news = match event {
                Ok(Event::Init) => {
                    listed = false;
                    None
                }
                Ok(Event::InitApply(lease)) => {
                    listed = true;
                    Some(News::There(Record::read(&lease, &terms)))
                }
                Ok(Event::Apply(lease)) => Some(News::There(Record::read(&lease, &terms))),
                Ok(Event::InitDone) if listed => None,
                Ok(Event::InitDone) => Some(News::Absent),
                Ok(Event::Delete(_)) => Some(News::Deleted),
                Err(error) => {
                    tracing::warn!(%error, "watch of the Lease failed, trying again");
                    None
                }
            };
            future::ready(news)
        })
    }
}

/// Returns the result of a request, or an error at its timeout.
async fn in_time<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match timeout(REQUEST, request).await {
        Ok(came) => came.map_err(|error| kubernetes::describe(&error)),
        Err(_) => Err(format!("no answer within {} s", REQUEST.as_secs())),
    }
}
