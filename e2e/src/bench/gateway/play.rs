//! One case with one of those that are measured.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;

use super::Settings;
use super::asks::{Asking, Tenant};
use super::case::{Case, Figures};
use super::ground::Ground;
use super::load::{Ask, Job, Outcome, Target, play};
use super::subjects::Running;
use crate::bench::figures::{Unit, milliseconds, percentile};
use crate::bench::usage::Usage;

/// What each client has prepared: it asks as several tenants, in turns.
const TENANTS_OF_A_CLIENT: usize = 16;
/// How much of the time goes before that which counts: connections are made, keys of the day
/// derived.
const WARM_UP: u32 = 10;

/// What a case is made of.
#[derive(Clone, Copy)]
struct Shape {
    /// Whether only a gateway understands it.
    is_the_gateways: bool,
    /// Whether the store is asked.
    reaches_the_store: bool,
    /// Whether it is about bytes, and not about requests.
    is_large: bool,
}

impl Case {
    fn shape(self) -> Option<Shape> {
        let shape =
            |is_the_gateways, reaches_the_store, is_large| Some(Shape { is_the_gateways, reaches_the_store, is_large });
        match self {
            Self::Idle => None,
            Self::ListBuckets | Self::BadSignature | Self::Scope => shape(true, false, false),
            Self::Head | Self::GetSmall | Self::PutSmall => shape(false, true, false),
            Self::GetLarge | Self::PutLarge => shape(false, true, true),
        }
    }
}

/// Plays a case; nothing is told of one that is not for this subject.
pub(super) async fn play_case(
    settings: &Settings,
    ground: &Ground,
    running: &Running,
    case: Case,
    figures: &mut Figures,
) -> Result<()> {
    let Some(shape) = case.shape() else { return idle(running, figures) };
    if shape.is_the_gateways && !running.subject.is_gateway() {
        return Ok(());
    }
    let target = Target { address: running.address, tls: None };
    let job = |time| -> Result<Job> {
        Ok(Job { target: target.clone(), clients: clients(settings, ground, running, case, shape)?, time })
    };
    if !shape.is_large {
        play(job(settings.time / WARM_UP)?).await?;
    }
    let (before, own_before, asked_before) = (running.usage()?, Usage::of_this_process()?, ground.store.requests());
    let outcome = play(job(settings.time)?).await?;
    let (after, own_after) = (running.usage()?, Usage::of_this_process()?);
    let asked = ground.store.requests() - asked_before;
    let expected = if shape.reaches_the_store { outcome.answers } else { 0 };
    ensure!(asked == expected, "the store was asked {asked} times for {expected} answers that are its own");
    let cpu = after.cpu.saturating_sub(before.cpu);
    let own = own_after.cpu.saturating_sub(own_before.cpu);
    tell(case, &outcome, shape, cpu, figures);
    let share = |cpu: Duration, of: usize| 100.0 * cpu.as_secs_f64() / outcome.elapsed.as_secs_f64() / of as f64;
    if !cpu.is_zero() {
        figures.add(case, "of its core", Unit::Percent, share(cpu, 1));
    }
    figures.add(case, "clients and store, of theirs", Unit::Percent, share(own, settings.cpus.others_count()));
    Ok(())
}

/// Memory at rest.
fn idle(running: &Running, figures: &mut Figures) -> Result<()> {
    if running.subject.is_gateway() {
        let usage = running.usage()?;
        figures.add(Case::Idle, "memory", Unit::Mebibytes, mebibytes(usage.resident));
        figures.add(Case::Idle, "memory, peak until then", Unit::Mebibytes, mebibytes(usage.peak));
    }
    Ok(())
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// What came of a case.
fn tell(case: Case, outcome: &Outcome, shape: Shape, cpu: Duration, figures: &mut Figures) {
    let (answers, seconds) = (outcome.answers as f64, outcome.elapsed.as_secs_f64());
    if shape.is_large {
        let gigabytes = outcome.bytes as f64 / 1e9;
        figures.add(case, "throughput", Unit::GigabytesPerSecond, gigabytes / seconds);
        if !cpu.is_zero() {
            figures.add(case, "CPU per GB", Unit::SecondsPerGigabyte, cpu.as_secs_f64() / gigabytes);
        }
        return;
    }
    figures.add(case, "requests/s", Unit::PerSecond, answers / seconds);
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

/// What clients ask for.
fn clients(settings: &Settings, ground: &Ground, running: &Running, case: Case, shape: Shape) -> Result<Vec<Vec<Ask>>> {
    let host = running.address.to_string();
    let asking = Asking { host: &host, now: Timestamp::now() };
    let (count, tenants) = if shape.is_large {
        (settings.large_connections, 1)
    } else {
        (settings.connections, TENANTS_OF_A_CLIENT.min(ground.tenants.len()))
    };
    let tenant = |client: usize, nth: usize| ground.tenants.get((client * tenants + nth) % ground.tenants.len());
    let list = |client: usize| {
        let of_client = (0..tenants).filter_map(|nth| Some((tenant(client, nth)?, tenant(client, nth + 1)?)));
        of_client.map(|(tenant, next)| ask(settings, &asking, case, tenant, next)).collect::<Result<Vec<_>>>()
    };
    (0..count).map(list).collect()
}

fn ask(settings: &Settings, asking: &Asking<'_>, case: Case, tenant: &Tenant, next: &Tenant) -> Result<Ask> {
    match case {
        Case::Idle | Case::ListBuckets => asking.buckets(tenant),
        Case::BadSignature => asking.badly_signed(tenant),
        Case::Scope => asking.of_another(tenant, next),
        Case::Head => asking.head(tenant),
        Case::GetSmall => asking.get_small(tenant),
        Case::PutSmall => asking.put_small(tenant),
        Case::GetLarge => asking.get(tenant, settings.large),
        Case::PutLarge => asking.put(tenant, settings.large),
    }
}
