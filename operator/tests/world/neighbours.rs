//! Neighbours: a store that hangs, throttles or fails permanently doesn't delay claims on other
//! stores, is called a bounded number of times, and gets its claims bound soon after it has
//! recovered (spec §3.5; L5, E2 of the oracles).

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use rstest::rstest;
use stowage_operator::api::Endpoint;
use stowage_world::effects::{Call, CallFault, Counters, Fault, KubeVerb, Line, Outage, S3Fault, S3Operation};
use stowage_world::{BackendStore, Options, World};

use crate::support::{Stage, backend, claim, claim_on, condition, object};

/// Many more than the limit of concurrent claims.
const AILING: usize = 200;
const HEALTHY: usize = 100;
const AILING_HOST: &str = "ailing.example:9000";
const HEALTHY_HOST: &str = "s3.example:9000";

/// Time between two arrivals of claims on the healthy store, which takes over a minute in total. If
/// all arrived at once, an undisturbed operator would bind them in so little time that a tenth of
/// it means nothing.
const ARRIVAL: Duration = Duration::from_millis(600);

/// Delays of the API server for the requests of a claim on its way to `Bound`, so that the
/// operator's slots matter.
const SLOW_API: &str = "kube:patch bucketclaims slow(10); kube:patch bucketclaims/status slow(10); \
    kube:get bucketclaims slow(10); kube:create secrets slow(10); kube:patch secrets slow(10); kube:create events slow(10)";

/// The fault of the ailing store.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    Hangs,
    Unreachable,
    Throttles,
    /// Every call takes most of the deadline.
    Slow,
    LookThrottles,
    CreateFails,
    CreateHangs,
}

impl Trouble {
    fn outage(self) -> Outage {
        let (operation, fault) = match self {
            Self::Hangs => (None, Fault::Call(CallFault::Hang)),
            Self::Unreachable => (None, Fault::S3(S3Fault::Unreachable)),
            Self::Throttles => (None, Fault::S3(S3Fault::SlowDown)),
            Self::Slow => (None, Fault::Call(CallFault::Slow { millis: 20_000 })),
            Self::LookThrottles => (Some("GetBucketTagging"), Fault::S3(S3Fault::SlowDown)),
            Self::CreateFails => (Some("CreateBucket"), Fault::S3(S3Fault::InternalError)),
            Self::CreateHangs => (Some("CreateBucket"), Fault::Call(CallFault::Hang)),
        };
        Outage { host: AILING_HOST.to_owned(), operation: operation.and_then(S3Operation::named), fault }
    }
}

/// Returns the options of a world with two stores, both Ready. The healthy one answers in a tenth
/// of a second.
fn options(plan: &str) -> Options {
    let ailing = BackendStore {
        name: "ailing".to_owned(),
        endpoint: Endpoint::parse(&format!("http://{AILING_HOST}")).expect("it is a URL"),
        ..BackendStore::main()
    };
    let plan = plan.parse().expect("the plan is well-formed");
    Options { plan, backends: vec![BackendStore::main(), ailing], ..Options::default() }
}

async fn add_ailing_backend(stage: &Stage) {
    stage.apply(&backend("ailing", &format!("http://{AILING_HOST}"), "")).await;
    let ready = |world: &World| condition(&object(world, "s3backends", "", "ailing"), "Ready") == "EndpointReachable";
    stage.until("the second backend is Ready", ready).await;
}

/// Applies claims on the ailing store, all in one burst.
async fn burst_of_ailing(stage: &Stage, claims: usize) {
    for number in 0..claims {
        stage.apply(&claim_on("ailing", "team-b", &format!("ailing-{number:03}"), "")).await;
    }
}

/// Returns the number of claims of a namespace in each phase.
fn phases(world: &World, namespace: &str) -> BTreeMap<String, usize> {
    let mut phases = BTreeMap::new();
    for claim in world.cluster.objects().iter().filter(|o| o.plural == "bucketclaims" && o.namespace == namespace) {
        *phases.entry(claim.object["status"]["phase"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    phases
}

/// Returns the time of each claim on the healthy store from its arrival to `Bound`, with or without
/// neighbours in trouble.
fn times_to_bound(neighbours: Option<Trouble>) -> Vec<Duration> {
    Stage::run_with(options(SLOW_API), async move |stage| {
        add_ailing_backend(&stage).await;
        let slow = Outage {
            host: HEALTHY_HOST.to_owned(),
            operation: None,
            fault: Fault::Call(CallFault::Slow { millis: 100 }),
        };
        stage.world.effects.begin_outage(slow);
        if let Some(trouble) = neighbours {
            stage.world.effects.begin_outage(trouble.outage());
            burst_of_ailing(&stage, AILING).await;
        }
        let (start, before) = (tokio::time::Instant::now(), stage.world.effects.trace().effects());
        let began_ms = stage.world.effects.elapsed_ms();
        for number in 0..HEALTHY {
            tokio::time::sleep_until(start + ARRIVAL * u32::try_from(number).expect("few")).await;
            stage.apply(&claim("team-a", &format!("healthy-{number:03}"))).await;
        }
        stage.world.pass(Duration::from_secs(30)).await;
        assert_eq!(phases(&stage.world, "team-a"), BTreeMap::from([("Bound".to_owned(), HEALTHY)]));
        let trace = stage.world.effects.trace();
        let bound = trace.lines().iter().filter(|line| line.number > before && writes_status_in(line, "team-a"));
        // Without disturbance, a claim's status is written once, when it is bound.
        let ended: BTreeMap<String, u64> = bound.map(|line| (line.call.to_string(), line.began_ms)).collect();
        assert_eq!(ended.len(), HEALTHY);
        let arrived = |number: usize| began_ms + 600 * number as u64;
        let took = ended.values().enumerate().map(|(number, ended)| ended.saturating_sub(arrived(number)));
        took.map(Duration::from_millis).collect()
    })
}

fn writes_status_in(line: &Line, namespace: &str) -> bool {
    let Call::Kube(call) = &line.call else { return false };
    call.verb == KubeVerb::Patch
        && call.subresource.as_deref() == Some("status")
        && call.namespace.as_deref() == Some(namespace)
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).expect("few")
}

// covers: 3.5.isolation
#[rstest]
#[case::hangs(Trouble::Hangs)]
#[case::throttles(Trouble::Throttles)]
#[case::slow(Trouble::Slow)]
#[case::create_fails(Trouble::CreateFails)]
fn claims_on_a_healthy_store_are_bound_as_fast_as_alone(#[case] trouble: Trouble) {
    static ALONE: LazyLock<Vec<Duration>> = LazyLock::new(|| times_to_bound(None));
    let (alone, beside) = (&ALONE, times_to_bound(Some(trouble)));
    let (mean_alone, mean_beside) = (mean(alone), mean(&beside));
    println!(
        "{HEALTHY} claims beside {AILING} on a store in trouble ({trouble:?}): bound after {mean_beside:?} on average, \
         {:?} at most; alone {mean_alone:?}, {:?}",
        beside.iter().max(),
        alone.iter().max()
    );
    assert!(mean_beside <= mean_alone.mul_f64(1.1), "{mean_beside:?} beside the others, {mean_alone:?} alone");
}

/// Maximum time in seconds until the recovery of a store is noticed, by the next probe or the next
/// trial.
const NOTICED: u64 = 660;

/// Number of requests in some time.
struct Requests {
    s3: usize,
    kubernetes: Counters,
}

async fn requests_within(stage: &Stage, time: Duration) -> Requests {
    let before = stage.world.effects.trace().effects();
    stage.world.pass(time).await;
    let trace = stage.world.effects.trace();
    // Calls that hang never reach the world, but they count.
    let s3 = trace.lines().iter().filter(|line| line.number > before && matches!(line.call, Call::S3(_)));
    Requests { s3: s3.count(), kubernetes: trace.counters_after(before) }
}

/// Returns the maximum number of S3 calls in an hour, after things have settled.
///
/// Two backends are probed: a healthy one every ten minutes, one whose probe fails every four, ± 10
/// %. A backend whose probe fails is not Ready, and its claims make no calls. If the probe
/// succeeds, an operation without usable answers has its trials, every five minutes ± 25 %. A call
/// with an answer is repeated by each claim after its backoff, five minutes ± 25 %.
fn most_calls(trouble: Trouble, claims: usize) -> usize {
    const PROBES: usize = 7 + 17;
    const TRIALS: usize = 16;
    let tries = 16 * claims;
    match trouble {
        Trouble::Hangs | Trouble::Unreachable | Trouble::Throttles => PROBES,
        Trouble::LookThrottles => PROBES + TRIALS,
        Trouble::CreateHangs => PROBES + TRIALS + tries,
        Trouble::CreateFails => PROBES + 2 * tries,
        Trouble::Slow => unreachable!("it works"),
    }
}

// covers: 3.5.backoff, 1.condition.message
#[rstest]
#[case::hangs(Trouble::Hangs, "BackendNotReady", 60)]
#[case::unreachable(Trouble::Unreachable, "BackendNotReady", 60)]
#[case::look_throttles(Trouble::LookThrottles, "BackendError", 60)]
#[case::create_hangs(Trouble::CreateHangs, "BackendError", 60)]
#[case::create_fails(Trouble::CreateFails, "BackendError", 400)]
fn a_store_in_trouble_for_good_is_asked_seldom_told_of_once_and_taken_up_when_it_is_back(
    #[case] trouble: Trouble,
    #[case] reason: &str,
    #[case] recovery: u64,
) {
    // Several times the limit of concurrent claims; more would show nothing new.
    let claims = 100;
    Stage::run_with(options(""), async move |stage| {
        add_ailing_backend(&stage).await;
        stage.world.effects.begin_outage(trouble.outage());
        burst_of_ailing(&stage, claims).await;
        let first = requests_within(&stage, Duration::from_secs(1800)).await;
        let settled = requests_within(&stage, Duration::from_secs(3600)).await;
        println!(
            "{claims} claims on a store in trouble ({trouble:?}): {} S3 calls and {} Kubernetes writes in half an \
             hour; {} S3 calls, {} Kubernetes requests, {} of them writes, in the hour after",
            first.s3,
            first.kubernetes.kubernetes_writes,
            settled.s3,
            settled.kubernetes.kubernetes_requests,
            settled.kubernetes.kubernetes_writes
        );
        assert!(settled.s3 <= most_calls(trouble, claims), "{} S3 calls", settled.s3);
        assert_eq!(settled.kubernetes.kubernetes_writes, 0, "at rest nothing is written\n{}", last_writes(&stage));
        // Live reads of the claim, of its possible key and of its record before each create. Probes
        // read Secrets.
        assert!(settled.kubernetes.kubernetes_requests <= 3 * 16 * claims as u64 + 24);
        assert_eq!(settled.kubernetes.kubernetes_lists, 0, "whatever there is of others");
        let objects = stage.world.cluster.objects();
        let stored: Vec<_> = objects.iter().filter(|o| o.plural == "bucketclaims").map(|o| &o.object).collect();
        assert_eq!(stored.len(), claims);
        assert!(stored.iter().all(|claim| condition(claim, "Reconciling") == reason));

        stage.world.effects.end_outages(AILING_HOST);
        let healed = tokio::time::Instant::now();
        while phases(&stage.world, "team-b").get("Bound") != Some(&claims) {
            assert!(
                healed.elapsed() <= Duration::from_secs(NOTICED + recovery),
                "{:?}",
                phases(&stage.world, "team-b")
            );
            stage.world.pass(Duration::from_secs(5)).await;
        }
        println!("{claims} claims bound within {:?} of the end of the trouble ({trouble:?})", healed.elapsed());
    });
}

fn last_writes(stage: &Stage) -> String {
    let trace = stage.world.effects.trace();
    let writes = trace.lines().iter().rev().filter(|line| match &line.call {
        Call::Kube(call) => call.verb.is_write(),
        Call::S3(_) => false,
    });
    writes.take(20).map(|line| format!("{line}\n")).collect()
}
