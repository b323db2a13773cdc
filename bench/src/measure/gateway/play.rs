//! One case with one subject.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use tokio::time::sleep;

use super::asks::{Asking, Tenant};
use super::case::{Case, Figures, Shape};
use super::environment::Environment;
use super::load::{Ask, Job, Outcome, Target, play};
use super::revoke;
use super::settings::Settings;
use super::slow::Slow;
use super::subjects::{Running, Subject};
use crate::measure::figures::{Unit, milliseconds, percentile};
use crate::measure::usage::Usage;

/// Number of tenants that a client makes requests for, in turns.
const TENANTS_OF_A_CLIENT: usize = 16;
/// Divisor of the measured time that gives the warm-up before it, in which connections are opened
/// and the day's signing keys are derived.
const WARM_UP: u32 = 10;
/// Size of a slow client's object, in bytes; no client reaches its end.
const SLOW: u64 = 1 << 30;
/// Maximum size of an object in signed chunks, which are prepared in advance, in bytes.
const IN_CHUNKS: u64 = 64 << 20;
const MIB: u64 = 1 << 20;

/// A subject with its environment.
pub(super) struct Turn<'a> {
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a Environment,
    pub(super) running: &'a Running,
}

/// Server and tenants of the clients.
struct Way {
    target: Target,
    tenants: Vec<Tenant>,
}

impl Turn<'_> {
    /// Plays a case. Adds no values if the case is not for this subject, or not possible on this
    /// machine.
    pub(super) async fn play(&self, case: Case, figures: &mut Figures) -> Result<()> {
        let is_gateway = self.running.subject.is_gateway();
        match case.shape() {
            Shape::Rest if is_gateway => {
                let usage = self.running.usage()?;
                figures.add(case, MEMORY, Unit::Mebibytes, mebibytes(usage.resident));
                figures.add(case, "memory, peak until then", Unit::Mebibytes, mebibytes(usage.peak));
                Ok(())
            }
            Shape::Slow { sends } if is_gateway => self.slow(case, sends, figures).await,
            Shape::Revocation if is_gateway => {
                revoke::play(self.settings, self.environment, self.running, figures).await
            }
            Shape::Local | Shape::Large { signed: true } if is_gateway => self.ask(case, figures).await,
            Shape::Small | Shape::Large { signed: false } | Shape::LargeTls | Shape::Real => {
                self.ask(case, figures).await
            }
            Shape::Rest | Shape::Slow { .. } | Shape::Revocation | Shape::Local | Shape::Large { signed: true } => {
                Ok(())
            }
        }
    }

    /// Returns the server and tenants for this case; `None` if the subject doesn't have it.
    fn way(&self, case: Case) -> Option<Way> {
        let plain = || Target { address: self.running.address, tls: None };
        let over_tls = |address: SocketAddr| Target { address, tls: Some(self.environment.tls.connector.clone()) };
        match (case.shape(), &self.running.subject) {
            (Shape::LargeTls, Subject::Gateway { .. }) => {
                let (address, _) = self.running.tls.as_ref()?;
                Some(Way { target: over_tls(*address), tenants: vec![self.environment.over_tls.clone()?] })
            }
            (Shape::LargeTls, Subject::Direct) => Some(Way {
                target: over_tls(self.environment.store.tls?),
                tenants: vec![self.environment.over_tls.clone()?],
            }),
            (Shape::Real, Subject::Gateway { .. }) => {
                Some(Way { target: plain(), tenants: vec![self.environment.real.as_ref()?.tenant.clone()] })
            }
            (Shape::Real, Subject::Direct) => {
                let real = self.environment.real.as_ref()?;
                Some(Way { target: Target { address: real.address, tls: None }, tenants: vec![real.owner.clone()] })
            }
            (Shape::LargeTls | Shape::Real, _) => None,
            (_, _) => Some(Way { target: plain(), tenants: self.environment.tenants.clone() }),
        }
    }

    fn usage(&self, case: Case) -> Result<Usage> {
        if case.shape() == Shape::LargeTls { self.running.usage_over_tls() } else { self.running.usage() }
    }

    /// Measures a case with many requests in sequence.
    async fn ask(&self, case: Case, figures: &mut Figures) -> Result<()> {
        let Some(way) = self.way(case) else { return Ok(()) };
        let (time, store) = (self.settings.time, &self.environment.store);
        let job =
            |time| -> Result<Job> { Ok(Job { target: way.target.clone(), clients: self.clients(case, &way)?, time }) };
        if !is_large(case) {
            play(job(time / WARM_UP)?).await?;
        }
        let job = job(time)?;
        let (before, own_before, asked_before) = (self.usage(case)?, Usage::of_this_process()?, store.requests());
        let outcome = play(job).await?;
        let (after, own_after, asked) = (self.usage(case)?, Usage::of_this_process()?, store.requests() - asked_before);
        let expected = match case.shape() {
            Shape::Local | Shape::Real => 0,
            _ => outcome.answers,
        };
        ensure!(asked == expected, "the store was asked {asked} times, for {expected} answers that are its own");
        let (cpu, own) = (after.cpu.saturating_sub(before.cpu), own_after.cpu.saturating_sub(own_before.cpu));
        tell(case, &outcome, cpu, figures);
        let share = |cpu: Duration, of: usize| 100.0 * cpu.as_secs_f64() / outcome.elapsed.as_secs_f64() / of as f64;
        if !cpu.is_zero() {
            figures.add(case, CORE, Unit::Percent, share(cpu, 1));
        }
        let others = self.settings.cpus.others_count();
        figures.add(case, OTHERS, Unit::Percent, share(own, others));
        Ok(())
    }

    /// Returns the requests of each client.
    fn clients(&self, case: Case, way: &Way) -> Result<Vec<Vec<Ask>>> {
        let host = way.target.address.to_string();
        let asking = Asking { host: &host, now: Timestamp::now() };
        let count = if is_large(case) { self.settings.large_connections } else { self.settings.connections };
        let tenants = if is_large(case) { 1 } else { TENANTS_OF_A_CLIENT.min(way.tenants.len()) };
        let tenant = |nth: usize| way.tenants.get(nth % way.tenants.len()).context("there is no tenant");
        let list = |client: usize| {
            let nth = (0..tenants).map(|nth| client * tenants + nth);
            nth.map(|nth| self.one(&asking, case, tenant(nth)?, tenant(nth + 1)?)).collect::<Result<Vec<_>>>()
        };
        (0..count).map(list).collect()
    }

    fn one(&self, asking: &Asking<'_>, case: Case, tenant: &Tenant, next: &Tenant) -> Result<Ask> {
        match case {
            Case::ListBuckets | Case::Idle | Case::Revoke => asking.buckets(tenant),
            Case::BadSignature => asking.badly_signed(tenant),
            Case::Scope => asking.of_another(tenant, next),
            Case::Head => asking.head(tenant),
            Case::GetSmall | Case::StoreGet => asking.get_small(tenant),
            Case::PutSmall | Case::StorePut => asking.put_small(tenant),
            Case::GetLarge | Case::TlsGet => asking.get(tenant, self.settings.large),
            Case::PutLarge | Case::TlsPut => asking.put(tenant, self.settings.large),
            Case::PutChunks => asking.put_chunks(tenant, self.settings.large.min(IN_CHUNKS)),
            Case::StoreGetMib => asking.get(tenant, MIB),
            Case::SlowGet => asking.get(tenant, SLOW),
            Case::SlowPut => asking.put(tenant, SLOW),
        }
    }

    /// Measures memory with many slow clients.
    async fn slow(&self, case: Case, sends: bool, figures: &mut Figures) -> Result<()> {
        let Some(way) = self.way(case) else { return Ok(()) };
        let host = way.target.address.to_string();
        let asking = Asking { host: &host, now: Timestamp::now() };
        let tenants = way.tenants.iter().cycle().take(self.settings.streams);
        let asks = tenants.map(|tenant| self.one(&asking, case, tenant, tenant)).collect::<Result<Vec<_>>>()?;
        let slow = Slow::start(way.target, asks, sends, SLOW).await?;
        sleep(self.settings.time).await;
        let usage = self.running.usage()?;
        slow.stop().await?;
        figures.add(case, MEMORY, Unit::Mebibytes, mebibytes(usage.resident));
        figures.add(case, "memory, peak until then", Unit::Mebibytes, mebibytes(usage.peak));
        Ok(())
    }
}

fn is_large(case: Case) -> bool {
    matches!(case.shape(), Shape::Large { .. } | Shape::LargeTls)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}

/// Adds the results of a case.
fn tell(case: Case, outcome: &Outcome, cpu: Duration, figures: &mut Figures) {
    let (answers, seconds) = (outcome.answers as f64, outcome.elapsed.as_secs_f64());
    if is_large(case) {
        let gigabytes = outcome.bytes as f64 / 1e9;
        figures.add(case, THROUGHPUT, Unit::GigabytesPerSecond, gigabytes / seconds);
        if !cpu.is_zero() {
            figures.add(case, "CPU per GB", Unit::SecondsPerGigabyte, cpu.as_secs_f64() / gigabytes);
        }
        return;
    }
    figures.add(case, REQUESTS, Unit::PerSecond, answers / seconds);
    if !cpu.is_zero() {
        figures.add(case, "requests per CPU second", Unit::PerSecond, answers / cpu.as_secs_f64());
        figures.add(case, "CPU per request", Unit::Microseconds, cpu.as_secs_f64() * 1e6 / answers);
    }
    for (name, hundredth) in [("p50", 50), ("p99", 99)] {
        if let Some(time) = percentile(&outcome.times, hundredth) {
            figures.add(case, name, Unit::Milliseconds, milliseconds(time));
        }
    }
}

/// Name of a process' resident memory.
pub(super) const MEMORY: &str = "memory";
/// Name of the measured program's CPU load.
pub(super) const CORE: &str = "of its core";
/// Name of the CPU load of clients and store.
pub(super) const OTHERS: &str = "clients and store, of theirs";
/// Name of the speed in bytes.
pub(super) const THROUGHPUT: &str = "throughput";
/// Name of the speed in requests.
pub(super) const REQUESTS: &str = "requests/s";
