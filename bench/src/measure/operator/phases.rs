//! The actions of each phase, and its values.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use stowage_testbed::console::tell;
use stowage_testbed::process::Process;
use tokio::time::sleep;

use super::claims::{Batch, Times};
use super::counts::Counts;
use super::environment::{Environment, HUNG, MAIN, Mark};
use super::phase::{Figures, Phase};
use super::settings::Settings;
use crate::measure::figures::{Part as _, Unit, milliseconds};

/// Longest time to wait until an operator with nothing to do sends no requests.
const SETTLING: Duration = Duration::from_secs(30);
/// Number of concurrent requests that fill a bucket.
const FILLERS: usize = 16;
/// Minimum number of requests per claim for a kind of request to get a separate line: one for every
/// fiftieth claim.
const SELDOM: f64 = 0.02;

/// One command in its environment.
pub(crate) struct Turn<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) environment: &'a Environment,
    /// Prefix of progress messages.
    pub(crate) title: String,
    pub(crate) figures: Figures,
    pub(crate) notes: Vec<String>,
    /// Requests to both servers until all claims were Bound.
    pub(crate) asked: Option<Asked>,
}

/// Requests for a number of claims.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) claims: usize,
    pub(crate) kubernetes: Counts,
    pub(crate) store: Counts,
}

impl Turn<'_> {
    /// Measures all selected phases, in order.
    pub(crate) async fn play(&mut self, operator: &mut Process) -> Result<()> {
        let asks = |phase| self.settings.phases.contains(&phase);
        let [idle, restart, purge, delete, hung] =
            [Phase::Idle, Phase::Restart, Phase::Purge, Phase::Delete, Phase::Hung].map(asks);
        let batch = self.settings.batch("create", self.settings.claims, MAIN);
        watched(operator, self.environment.until_backends_ready(self.settings.timeout)).await?;
        if asks(Phase::Create) || idle || restart || delete {
            self.create(operator, &batch).await?;
        }
        if idle {
            self.idle(operator).await?;
        }
        if restart {
            self.restart(operator).await?;
        }
        if purge {
            self.purge(operator).await?;
        }
        if delete {
            self.delete(operator, &batch).await?;
        }
        if hung {
            self.hung(operator).await?;
        }
        Ok(())
    }

    async fn create(&mut self, operator: &mut Process, batch: &Batch) -> Result<()> {
        self.tell(&format!("{} claims at once", batch.len()));
        self.environment.main.forget_most();
        let before = self.environment.mark(Some(operator))?;
        self.bind(operator, batch).await?;
        let bound = self.environment.mark(Some(operator))?;
        watched(operator, self.environment.until_quiet(SETTLING)).await?;
        let settled = self.environment.mark(Some(operator))?;
        let times = self.environment.claims.times_to_bound(batch);
        self.note_missing(Phase::Create, &times, batch, "Bound");
        self.asked = Some(Asked {
            claims: times.each.len(),
            kubernetes: bound.kubernetes.since(&before.kubernetes),
            store: bound.store.requests.since(&before.store.requests),
        });
        if !self.settings.phases.contains(&Phase::Create) {
            return Ok(());
        }
        let (phase, claims) = (Phase::Create, times.each.len());
        self.figures.add(phase, "claims/s", Unit::PerSecond, times.per_second());
        self.figures.add_times(phase, "to Bound", &times.each);
        let time = |name: &str| self.figures.get(phase, &format!("to Bound, {name}"));
        if let (Some(p50), Some(p99)) = (time("p50"), time("p99")) {
            self.figures.add(phase, "to Bound, p50 / p99", Unit::Ratio, p50 / p99);
        }
        self.add_costs(phase, &before, &bound, claims);
        let after = settled.kubernetes.since(&bound.kubernetes).total();
        self.add_each(phase, "Kubernetes requests after the last was Bound", after, claims);
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        self.figures.add(phase, "memory, peak", Unit::Megabytes, megabytes(settled.operator.peak));
        self.figures.add(phase, "memory, steady", Unit::Megabytes, megabytes(settled.operator.resident));
        // Absolute counts, because connections opened before the first claim are still in use.
        self.figures.add(phase, "connections to the store, opened", Unit::Count, settled.store.opened as f64);
        self.figures.add(phase, "connections to the store, most at once", Unit::Count, settled.store.most as f64);
        Ok(())
    }

    async fn idle(&mut self, operator: &mut Process) -> Result<()> {
        let time = self.settings.idle;
        self.tell(&format!("nobody asks for anything for {} s", time.as_secs()));
        let before = self.environment.mark(Some(operator))?;
        watched(operator, async {
            sleep(time).await;
            Ok(())
        })
        .await?;
        let after = self.environment.mark(Some(operator))?;
        let asked = after.kubernetes.since(&before.kubernetes).total();
        let calls = after.store.requests.since(&before.store.requests).total();
        let within = format!("in {} s", time.as_secs());
        self.figures.add(Phase::Idle, format!("Kubernetes requests {within}"), Unit::Count, asked as f64);
        self.figures.add(Phase::Idle, format!("S3 calls {within}"), Unit::Count, calls as f64);
        let cpu = after.operator.cpu.saturating_sub(before.operator.cpu);
        self.figures.add(Phase::Idle, format!("CPU {within}"), Unit::Milliseconds, milliseconds(cpu));
        Ok(())
    }

    async fn restart(&mut self, operator: &mut Process) -> Result<()> {
        self.tell("SIGTERM, start, a new claim");
        operator.end().await?;
        let before = self.environment.mark(None)?;
        let start = Instant::now();
        operator.start_again()?;
        let batch = self.settings.batch("restart", 1, MAIN);
        self.bind(operator, &batch).await?;
        let (took, bound) = (start.elapsed(), self.environment.mark(Some(operator))?);
        watched(operator, self.environment.until_quiet(SETTLING)).await?;
        let quiet = self.environment.mark(Some(operator))?;
        self.note_missing(Phase::Restart, &self.environment.claims.times_to_bound(&batch), &batch, "Bound");
        self.figures.add(Phase::Restart, "from the start to a new claim Bound", Unit::Milliseconds, milliseconds(took));
        for (until, mark) in [("until then", bound), ("until it is quiet", quiet)] {
            let asked = mark.kubernetes.since(&before.kubernetes).total();
            let calls = mark.store.requests.since(&before.store.requests).total();
            self.figures.add(Phase::Restart, format!("Kubernetes requests {until}"), Unit::Count, asked as f64);
            self.figures.add(Phase::Restart, format!("S3 calls {until}"), Unit::Count, calls as f64);
        }
        Ok(())
    }

    async fn delete(&mut self, operator: &mut Process, batch: &Batch) -> Result<()> {
        self.tell(&format!("{} claims deleted at once", batch.len()));
        let claims = &self.environment.claims;
        let before = self.environment.mark(Some(operator))?;
        let done = async {
            let told = |count| self.tell(&format!("{count} of {} are gone", batch.len()));
            tokio::try_join!(claims.delete(batch), claims.until_gone(batch, self.settings.timeout, told))
        };
        watched(operator, done).await?;
        let gone = self.environment.mark(Some(operator))?;
        watched(operator, self.environment.until_quiet(SETTLING)).await?;
        let settled = self.environment.mark(Some(operator))?;
        let times = claims.times_to_gone(batch);
        self.note_missing(Phase::Delete, &times, batch, "gone");
        self.figures.add(Phase::Delete, "deletions/s", Unit::PerSecond, times.per_second());
        self.figures.add_times(Phase::Delete, "to gone", &times.each);
        self.add_costs(Phase::Delete, &before, &gone, times.each.len());
        let after = settled.kubernetes.since(&gone.kubernetes).total();
        self.add_each(Phase::Delete, "Kubernetes requests after the last was gone", after, times.each.len());
        Ok(())
    }

    /// Creates claims on a store twice: alone, and while buckets there are emptied.
    async fn purge(&mut self, operator: &mut Process) -> Result<()> {
        let (healthy, purges, objects) = (self.settings.healthy, self.settings.purges, self.settings.purge_objects);
        let alone = self.settings.batch("alone", healthy, MAIN);
        self.bind(operator, &alone).await?;
        let mut full = self.settings.batch("full", purges, MAIN);
        full.further = json!({"deletionPolicy": "Delete", "forceDelete": true});
        self.bind(operator, &full).await?;
        self.tell(&format!("{objects} objects into each of {purges} buckets"));
        watched(operator, self.fill(&full, objects)).await?;
        self.tell(&format!("{healthy} claims while {purges} buckets are emptied"));
        self.environment.claims.delete(&full).await?;
        let beside = self.settings.batch("beside", healthy, MAIN);
        self.bind(operator, &beside).await?;
        let left = purges - self.environment.claims.gone(&full);
        self.figures.add(Phase::Purge, "purges still under way at the end", Unit::Count, left as f64);
        self.add_comparison(Phase::Purge, &alone, &beside);
        let ratio = self.figures.get(Phase::Purge, "beside / alone, p50").unwrap_or_default();
        if left == 0 && ratio < 1.5 {
            let note = "purge: all buckets were empty before the last claim beside them was Bound, so the ratio tells \
                        too little: give more by --purge-objects";
            self.notes.push(note.to_owned());
        }
        let gone = |count| self.tell(&format!("{count} of {purges} buckets are emptied"));
        let start = Instant::now();
        watched(operator, self.environment.claims.until_gone(&full, self.settings.timeout, gone)).await?;
        let times = self.environment.claims.times_to_gone(&full);
        self.note_missing(Phase::Purge, &times, &full, "gone");
        self.tell(&format!("emptied {:.1} s after the last was Bound", start.elapsed().as_secs_f64()));
        let rate = times.per_second() * objects as f64;
        self.figures.add(Phase::Purge, "objects deleted/s", Unit::PerSecond, rate);
        Ok(())
    }

    async fn fill(&self, full: &Batch, objects: usize) -> Result<()> {
        let buckets = full.claims().iter().map(|(namespace, name)| format!("{namespace}-{name}"));
        let puts = buckets.flat_map(|bucket| (0..objects).map(move |number| (bucket.clone(), number)));
        let puts = puts.map(|(bucket, number)| async move { self.environment.store.put(&bucket, number).await });
        Ok(futures::stream::iter(puts).buffer_unordered(FILLERS).try_collect::<()>().await?)
    }

    /// Creates claims on a store twice: alone, and while claims wait for another store, which
    /// accepts all requests and answers none.
    async fn hung(&mut self, operator: &mut Process) -> Result<()> {
        let (healthy, waiting) = (self.settings.healthy, self.settings.hung);
        let alone = self.settings.batch("before", healthy, MAIN);
        self.bind(operator, &alone).await?;
        self.tell(&format!("{healthy} claims beside {waiting} on a store that hangs"));
        self.environment.hung.hang(true);
        self.environment.claims.make(&self.settings.batch("hung", waiting, HUNG)).await?;
        // Gives them time to occupy everything that they can, before the others are created.
        sleep(Duration::from_secs(1)).await;
        let beside = self.settings.batch("healthy", healthy, MAIN);
        self.bind(operator, &beside).await?;
        self.environment.hung.hang(false);
        let bound = beside.len() - self.environment.claims.times_to_bound(&beside).missing;
        self.figures.add(Phase::Hung, "healthy claims Bound", Unit::Count, bound as f64);
        self.add_comparison(Phase::Hung, &alone, &beside);
        Ok(())
    }

    /// Creates a batch and waits until it is Bound.
    async fn bind(&self, operator: &mut Process, batch: &Batch) -> Result<()> {
        let claims = &self.environment.claims;
        let told = |count| self.tell(&format!("{count} of {} are Bound", batch.len()));
        let done =
            async { tokio::try_join!(claims.make(batch), claims.until_bound(batch, self.settings.timeout, told)) };
        watched(operator, done).await.map(|_| ())
    }

    /// Adds the times of claims alone and beside something else.
    fn add_comparison(&mut self, phase: Phase, alone: &Batch, beside: &Batch) {
        let claims = &self.environment.claims;
        let (alone_times, beside_times) = (claims.times_to_bound(alone), claims.times_to_bound(beside));
        self.note_missing(phase, &alone_times, alone, "Bound");
        self.note_missing(phase, &beside_times, beside, "Bound");
        self.figures.add_times(phase, "to Bound, alone", &alone_times.each);
        self.figures.add_times(phase, "to Bound, beside", &beside_times.each);
        for name in ["p50", "p99"] {
            let time = |what: &str| self.figures.get(phase, &format!("to Bound, {what}, {name}"));
            if let (Some(alone), Some(beside)) = (time("alone"), time("beside")) {
                self.figures.add(phase, format!("beside / alone, {name}"), Unit::Ratio, beside / alone);
            }
        }
    }

    /// Adds the cost per claim between two moments.
    fn add_costs(&mut self, phase: Phase, before: &Mark, after: &Mark, claims: usize) {
        let kubernetes = after.kubernetes.since(&before.kubernetes);
        let store = after.store.requests.since(&before.store.requests);
        for (what, counts) in [("Kubernetes requests", kubernetes), ("S3 calls", store)] {
            self.add_each(phase, what, counts.total(), claims);
            for (kind, count) in counts.sorted() {
                if count as f64 >= SELDOM * claims as f64 {
                    self.add_each(phase, &format!("  {kind}"), count, claims);
                }
            }
        }
        let took = after.at.saturating_duration_since(before.at).as_secs_f64().max(f64::EPSILON);
        for (what, usage) in Mark::PROCESSES {
            let cpu = usage(after).cpu.saturating_sub(usage(before).cpu);
            let each = milliseconds(cpu) / claims.max(1) as f64;
            self.figures.add(phase, format!("CPU per claim, {what}"), Unit::Milliseconds, each);
            let share = 100.0 * cpu.as_secs_f64() / took;
            self.figures.add(phase, format!("of one processor, {what}"), Unit::Percent, share);
        }
    }

    fn add_each(&mut self, phase: Phase, what: &str, count: u64, claims: usize) {
        self.figures.add(phase, what, Unit::PerClaim, count as f64 / claims.max(1) as f64);
    }

    fn note_missing(&mut self, phase: Phase, times: &Times, batch: &Batch, what: &str) {
        if times.missing > 0 {
            let (missing, all, seconds) = (times.missing, batch.len(), self.settings.timeout.as_secs());
            let title = &self.title;
            let name = phase.name();
            self.notes.push(format!("{title}, {name}: {missing} of {all} claims were not {what} within {seconds} s"));
        }
    }

    fn tell(&self, what: &str) {
        tell(&format!("{}: {what}", self.title));
    }
}

/// Runs `work` while the operator runs; fails if the operator ends first.
pub(crate) async fn watched<T>(operator: &mut Process, work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        why = operator.ended() => Err(why),
    }
}
