//! Rotation of a tenant's key during its work. A simulated pod reads and writes all the time with
//! the last key that it read from its Secret. It reads the Secret again only now and then, as pods
//! do.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use stowage_operator::api::wire::{EXPIRES_AT, ROTATE};
use stowage_operator::api::{BucketClaim, ClaimRef};
use stowage_world::{OPERATOR_NAMESPACE, World};
use terminal::Line;
use terminal::Table;
use tokio::time::Instant;

use super::access::{KEY, key_is_unknown, new_tenant, said, toned};
use super::kubectl;
use super::step::{DemoStep, Finding, Page};
use super::tenant::{Tenant, TenantResult};
use super::text::PAGE_WIDTH;
use super::tour::Tour;
use super::views;

/// Overlaps, in seconds, that the tour can show: long enough for the pod to read the new key, and
/// short enough to wait for.
const OVERLAPS: RangeInclusive<i32> = 10..=3600;

/// Maximum time until a changed Secret reaches a pod.
const REREAD: Duration = Duration::from_secs(60);

/// Time that a rotation takes besides the overlap: it begins at the earliest a minute after the key
/// was created, and the old key's Secret is deleted a minute after its expiry.
const MARGIN: Duration = Duration::from_secs(120);

/// Approximate number of times that the pod writes and reads during the rotation.
const ROUNDS: u32 = 80;

/// A claim whose key can be rotated, and its overlap.
pub(super) struct Rotating {
    claim: ClaimRef,
    overlap: Duration,
}

/// Returns the first bound claim with a suitable overlap.
pub(super) fn rotating<S>(tour: &Tour<S>) -> Option<Rotating> {
    let overlap = |claim: &BucketClaim| claim.spec.rotation_policy.overlap_seconds;
    let fits = |claim: &BucketClaim| views::is_bound(claim) && OVERLAPS.contains(&overlap(claim));
    let claim = views::claims(&tour.world).into_iter().find(fits)?;
    let overlap = Duration::from_secs(overlap(&claim).unsigned_abs().into());
    Some(Rotating { claim: views::place(&claim), overlap })
}

/// Requests a rotation while a pod works, and waits until the old key is deleted.
pub(super) async fn rotation<S: FnMut(&DemoStep)>(tour: &mut Tour<S>, page: &mut Page, rotating: &Rotating) -> Finding {
    let (world, claim) = (&tour.world, &rotating.claim);
    let over = Cell::new(false);
    let story = async {
        let told = replace(world, page, claim).await;
        over.set(true);
        told
    };
    let (used, retired) = futures::join!(work(world, rotating, &over), story);
    let (mut used, retired) = (used?, retired?);
    let (Some(new), Some(old), true) = (used.pop(), used.pop(), used.is_empty()) else {
        return Err(format!("the pod of {claim} was not given one new key"));
    };
    let window = Window::of(world, &new.tenant)?;
    let now = new.tenant.get(&new.tenant.bucket, KEY).await;
    let mut table = Table::new(&["KEY", "VALID FROM", "UNTIL", "PUTS", "GETS", "FAILED", "GET AFTER THAT"]);
    table.row(old.row(&retired.window, &retired.afterwards, key_is_unknown(&retired.afterwards)));
    table.row(new.row(&window, &now, now.is_ok()));
    page.lines(table.lines(PAGE_WIDTH));

    let found = verdict(rotating, [&old, &new], &retired.window, &window);
    if !key_is_unknown(&retired.afterwards) || now.is_err() {
        return Err(format!("of the keys of {claim} the old one still works, or the new one doesn't"));
    }
    if let Some(tenant) = tour.tenants.iter_mut().find(|tenant| tenant.claim == *claim) {
        *tenant = new.tenant;
    }
    found
}

/// Checks that no request failed, and that the old key worked for the whole overlap.
fn verdict(rotating: &Rotating, used: [&Used; 2], old: &Window, new: &Window) -> Finding {
    let (claim, overlap) = (&rotating.claim, rotating.overlap.as_secs());
    let requests: u32 = used.iter().map(|used| used.puts + used.gets).sum();
    let failed: Vec<&String> = used.iter().flat_map(|used| &used.failed).collect();
    if let Some(first) = failed.first() {
        return Err(format!("{} of {requests} requests by a pod of {claim} failed, first with {first}", failed.len()));
    }
    if old.until.is_none_or(|until| until.duration_since(new.from).unsigned_abs() < rotating.overlap) {
        return Err(format!("the old key of {claim} ended before its overlap of {overlap} s"));
    }
    let reread = rotating.reread().as_secs();
    Ok(format!(
        "{requests} requests by a pod of {claim}, 0 failed, though it rereads its Secret only every {reread} s; \
         both keys worked for {overlap} s"
    ))
}

impl Rotating {
    /// Returns the interval at which the pod reads its Secret again.
    fn reread(&self) -> Duration {
        REREAD.min(self.overlap / 4)
    }

    /// Returns the interval at which the pod writes and reads.
    fn pace(&self) -> Duration {
        (self.overlap + MARGIN) / ROUNDS
    }
}

/// A key that the pod used, and the results of its requests.
struct Used {
    tenant: Tenant,
    puts: u32,
    gets: u32,
    failed: Vec<String>,
}

/// Runs the pod until the rotation is over.
async fn work(world: &World, rotating: &Rotating, over: &Cell<bool>) -> Result<Vec<Used>, String> {
    let mut used: Vec<Used> = Vec::new();
    let mut reread = Instant::now();
    while !over.get() {
        if reread <= Instant::now() {
            let tenant = tenant_of(world, &rotating.claim)?;
            if used.last().is_none_or(|last| last.tenant.key != tenant.key) {
                used.push(Used { tenant, puts: 0, gets: 0, failed: Vec::new() });
            }
            reread += rotating.reread();
        }
        if let Some(current) = used.last_mut() {
            current.put_and_get().await;
        }
        world.pass(rotating.pace()).await;
    }
    Ok(used)
}

impl Used {
    /// Writes a new value and reads it back.
    async fn put_and_get(&mut self) {
        let (bucket, key, text) = (&self.tenant.bucket, "pulse.txt", format!("{} {}", self.tenant.key, self.puts));
        self.puts += 1;
        self.failed.extend(self.tenant.put(bucket, key, &text).await.err().map(|refused| refused.to_string()));
        self.gets += 1;
        match self.tenant.get(bucket, key).await {
            Ok(read) if read == text => {}
            Ok(_) => self.failed.push("an object that is not what was written".to_owned()),
            Err(refused) => self.failed.push(refused.to_string()),
        }
    }

    fn row(&self, window: &Window, afterwards: &TenantResult<String>, as_due: bool) -> Line {
        let time = |time: Timestamp| time.strftime("%H:%M:%S").to_string();
        vec![
            self.tenant.short_key().into(),
            time(window.from).into(),
            window.until.map(time).unwrap_or_default().into(),
            self.puts.to_string().into(),
            self.gets.to_string().into(),
            toned(self.failed.len().to_string(), self.failed.is_empty()),
            toned(said(afterwards, |_| "200".to_owned()), as_due),
        ]
    }
}

fn tenant_of(world: &World, claim: &ClaimRef) -> Result<Tenant, String> {
    let found = views::claim(world, claim).ok_or_else(|| format!("{claim} is gone"))?;
    new_tenant(world, &found)
}

/// The lifetime of a key: from its creation to its expiry, if it has one.
struct Window {
    from: Timestamp,
    until: Option<Timestamp>,
}

impl Window {
    /// Reads the lifetime from the key's internal Secret.
    fn of(world: &World, tenant: &Tenant) -> Result<Self, String> {
        let secret = views::secret(world, OPERATOR_NAMESPACE, &internal_name(tenant));
        let secret = secret.ok_or_else(|| format!("there is no internal Secret of key {}", tenant.short_key()))?;
        let from = secret.creation_timestamp().ok_or("a Secret has no creation timestamp")?.0;
        let until = secret.annotations().get(EXPIRES_AT).and_then(|stamp| stamp.parse().ok());
        Ok(Self { from, until })
    }
}

fn internal_name(tenant: &Tenant) -> String {
    format!("vc-{}", tenant.key.to_ascii_lowercase())
}

/// The lifetime of an old key, and the answer to a request right after its expiry.
struct Retired {
    window: Window,
    afterwards: TenantResult<String>,
}

/// Requests a new key, waits for the expiry of the old one, tries it once more, and waits until its
/// Secret is deleted.
async fn replace(world: &World, page: &mut Page, claim: &ClaimRef) -> Result<Retired, String> {
    let old = tenant_of(world, claim)?;
    let request = world.clock.now().as_second().to_string();
    kubectl::annotate(world, page, claim, ROTATE, &request).await?;
    let stamped = |world: &World| Window::of(world, &old).is_ok_and(|window| window.until.is_some());
    wait(world, stamped).await.map_err(|()| format!("the old key of {claim} was not given an end"))?;
    let window = Window::of(world, &old)?;
    let until = window.until.map(|until| until.duration_since(world.clock.now()).unsigned_abs());
    world.pass(until.unwrap_or_default()).await;
    let afterwards = old.get(&old.bucket, KEY).await;
    let gone = |world: &World| views::secret(world, OPERATOR_NAMESPACE, &internal_name(&old)).is_none();
    wait(world, gone).await.map_err(|()| format!("the Secret of the old key of {claim} is still there"))?;
    Ok(Retired { window, afterwards })
}

/// Waits until a condition is true, for twice the time that it should take at most.
async fn wait(world: &World, holds: impl Fn(&World) -> bool) -> Result<(), ()> {
    for _ in 0..2 * MARGIN.as_secs() {
        if holds(world) {
            return Ok(());
        }
        world.pass(Duration::from_secs(1)).await;
    }
    Err(())
}
