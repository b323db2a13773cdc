//! Priorities: emptying buckets doesn't block new claims, no namespace blocks another one, and work
//! that has begun finishes soon (spec §3.5, §3.6).

use std::time::Duration;

use stowage_world::effects::{Call, CallFault, Fault, KubeVerb, Line, Outage};
use stowage_world::{Options, World};
use tokio::time::Instant;

use crate::support::{Stage, claim, claim_with, object, ready};

const STORE_HOST: &str = "s3.example:9000";

/// Number of buckets emptied at once, and of requests for each: uploads are aborted one by one.
const PURGES: usize = 50;
const UPLOADS: usize = 100;

/// Delays every call to the store by this time.
fn slow_store(stage: &Stage, millis: u64) {
    let fault = Fault::Call(CallFault::Slow { millis });
    stage.world.effects.begin_outage(Outage { host: STORE_HOST.to_owned(), operation: None, fault });
}

/// Returns the time until a new claim is bound.
async fn time_to_bound(stage: &Stage, namespace: &str, name: &str) -> Duration {
    let began = Instant::now();
    stage.apply(&claim(namespace, name)).await;
    stage.until_ready_is(namespace, name, "Bound").await;
    began.elapsed()
}

fn aborts(world: &World) -> usize {
    let abort = |line: &&Line| line.call.to_string().starts_with("s3:AbortMultipartUpload");
    world.effects.trace().lines().iter().filter(abort).count()
}

// covers: 3.5.share
#[test]
fn fifty_buckets_that_are_emptied_keep_nobody_from_being_bound() {
    Stage::run("", async |stage| {
        let full = |number: usize| format!("full-{number}");
        for number in 0..PURGES {
            stage.apply(&claim_with("team-b", &full(number), "deletionPolicy: Delete, forceDelete: true")).await;
        }
        let all_bound = |world: &World| (0..PURGES).all(|number| ready(world, "team-b", &full(number)) == "Bound");
        stage.until("all are bound", all_bound).await;
        for (number, upload) in (0..PURGES).flat_map(|number| (0..UPLOADS).map(move |upload| (number, upload))) {
            stage.world.store.start_upload(&format!("team-b-{}", full(number)), &format!("key-{upload}"));
        }
        slow_store(&stage, 200);
        let alone = time_to_bound(&stage, "team-a", "alone").await;
        for number in 0..PURGES {
            stage.delete("bucketclaims", "team-b", &full(number)).await;
        }
        stage.until("the buckets are being emptied", |world| aborts(world) > PURGES).await;
        let beside = time_to_bound(&stage, "team-a", "beside").await;
        println!("bound after {beside:?} beside {PURGES} buckets that are emptied, {alone:?} alone");
        assert!(aborts(&stage.world) < PURGES * UPLOADS, "they are emptied all the while");
        assert!(beside < alone.mul_f64(1.5), "{beside:?} beside them, {alone:?} alone");
        let gone =
            |world: &World| (0..PURGES).all(|number| object(world, "bucketclaims", "team-b", &full(number)).is_null());
        stage.until("all buckets are emptied in the end", gone).await;
    });
}

/// Delays of the API server for the requests of a claim on its way to `Bound`.
const SLOW_API: &str = "kube:patch bucketclaims slow(10); kube:patch bucketclaims/status slow(10); \
    kube:get bucketclaims slow(10); kube:create secrets slow(10); kube:patch secrets slow(10); kube:create events slow(10)";

/// Claims of one namespace, created at once.
const BURST: usize = 1000;

/// Returns the times at which statuses of a namespace were written, in order, in milliseconds of
/// the run.
fn bound_at(world: &World, namespace: &str) -> Vec<u64> {
    let is_status = |line: &&Line| match &line.call {
        Call::Kube(call) => {
            call.verb == KubeVerb::Patch
                && call.subresource.as_deref() == Some("status")
                && call.namespace.as_deref() == Some(namespace)
        }
        Call::S3(_) => false,
    };
    world.effects.trace().lines().iter().filter(is_status).map(|line| line.began_ms).collect()
}

// covers: 3.6.begun, 3.6.turns
#[test]
fn a_burst_of_one_namespace_is_done_one_after_the_other_and_holds_nobody_else_up() {
    let options = Options {
        plan: SLOW_API.parse().expect("the plan is well-formed"),
        max_concurrent_reconciles: 4,
        ..Options::default()
    };
    Stage::run_with(options, async |stage| {
        slow_store(&stage, 100);
        let alone = time_to_bound(&stage, "team-b", "alone").await;
        let began = stage.world.effects.elapsed_ms();
        for number in 0..BURST {
            stage.apply(&claim("team-a", &format!("burst-{number:04}"))).await;
        }
        let beside = time_to_bound(&stage, "team-b", "beside").await;
        stage.until("the burst is bound", |world| bound_at(world, "team-a").len() >= BURST).await;
        let times: Vec<u64> = bound_at(&stage.world, "team-a").iter().map(|at| at - began).collect();
        let (half, most) = (times[BURST / 2], times[BURST * 99 / 100]);
        println!(
            "{BURST} claims: half bound after {half} ms, 99 % after {most} ms; another's {beside:?}, {alone:?} alone"
        );
        assert!(beside < alone + Duration::from_secs(2), "{beside:?} beside the burst, {alone:?} alone");
        assert!(10 * half <= 6 * most, "half of them after {half} ms, 99 % after {most} ms");
    });
}
