//! The cost of bound claims when nothing happens, and of Secrets that are not ours.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use stowage_world::World;
use stowage_world::effects::{Call, KubeVerb};

use crate::support::{Stage, claim};

const MINUTE_MS: u64 = 60_000;
const RESYNC_MINUTES: usize = 10;

fn bound(world: &World) -> usize {
    let objects = world.cluster.objects();
    objects.iter().filter(|o| o.plural == "bucketclaims" && o.object["status"]["phase"] == "Bound").count()
}

async fn bind(stage: &Stage, claims: usize) {
    for number in 0..claims {
        stage.apply(&claim("team-a", &format!("c{number:04}"))).await;
    }
    while bound(&stage.world) < claims {
        stage.world.pass(Duration::from_secs(5)).await;
    }
    // Time for consequences, such as the backend's count.
    stage.world.pass(Duration::from_secs(60)).await;
}

/// Runs a day of fifty claims, most of it in 7,200 calls of the SDK: the cost of each claim doesn't
/// depend on their number.
// covers: 3.idle, 3.driftCheck, 1.status.atRest
#[test]
fn at_rest_nothing_is_written_and_the_drift_checks_are_few_and_spread() {
    let (claims, hours) = (50, 24);
    Stage::run("", async move |stage| {
        bind(&stage, claims).await;
        let (before, began_ms) = (stage.world.effects.trace().effects(), stage.world.effects.elapsed_ms());
        stage.world.pass(Duration::from_secs(hours as u64 * 3600)).await;
        let trace = stage.world.effects.trace();
        let calls = trace.counters_after(before);
        assert_eq!(calls.kubernetes_writes, 0);

        let mut operations: BTreeMap<&str, usize> = BTreeMap::new();
        let mut minutes = vec![0_usize; hours * 60 + 1];
        let mut reads = 0;
        for line in trace.lines().iter().filter(|line| line.number > before) {
            match &line.call {
                Call::S3(call) => {
                    *operations.entry(call.operation.name()).or_default() += 1;
                    let minute = usize::try_from((line.began_ms - began_ms) / MINUTE_MS).expect("a few days");
                    minutes[minute] += 1;
                }
                Call::Kube(call) => reads += usize::from(!matches!(call.verb, KubeVerb::Watch | KubeVerb::List)),
            }
        }
        let busiest = minutes.iter().max().copied().unwrap_or_default();
        let mean = claims.div_ceil(RESYNC_MINUTES);
        println!(
            "{claims} bound claims at rest for {hours} h: {} Kubernetes writes, {reads} reads, {} lists, {} watches; \
             S3 calls {operations:?}, {busiest} in the busiest minute (about {mean} on average)",
            calls.kubernetes_writes, calls.kubernetes_lists, calls.kubernetes_watches
        );
        // Every ten minutes, ± 10 %: at least 54 and at most 67 in ten hours.
        let (least, most) = (hours * 60 * 10 / 111, (hours * 60 * 10).div_ceil(90) + 1);
        assert_eq!(operations.keys().copied().collect::<Vec<_>>(), ["GetBucketTagging", "ListBuckets"]);
        let (looks, probes) = (operations["GetBucketTagging"], operations["ListBuckets"]);
        assert!((claims * least..=claims * most).contains(&looks), "{looks} drift checks");
        assert!((least..=most).contains(&probes), "{probes} probes");
        assert!(busiest <= 2 * mean + 10, "{busiest} in one minute");
        // The probe reads the admin Secret.
        assert!(reads <= probes, "{reads} reads");
        assert_eq!(calls.kubernetes_lists, 0);
    });
}

/// Returns the bytes that the operator receives from its start until ten claims are bound and an
/// hour has passed, in a cluster with this many unrelated Secrets of 32 KB each.
fn received_beside(foreign: usize) -> u64 {
    Stage::run("", async move |mut stage| {
        stage.operator.stop();
        stage.world.pass(Duration::from_secs(60)).await;
        let payload = BASE64_STANDARD.encode("x".repeat(32 * 1024));
        for number in 0..foreign {
            let metadata =
                json!({"name": format!("foreign-{number:05}"), "namespace": "team-a", "labels": {"app": "x"}});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": {"payload": payload}});
            assert!(stage.world.cluster.create(secret));
        }
        let operator = stage.world.start_operator();
        operator.ready().await;
        bind(&stage, 10).await;
        let changed = json!({"stringData": {"payload": "y".repeat(32 * 1024)}});
        for number in 0..foreign.min(100) {
            stage.patch("secrets", "team-a", &format!("foreign-{number:05}"), changed.clone()).await;
        }
        stage.world.pass(Duration::from_secs(3600)).await;
        operator.received()
    })
}

// covers: 3.8.lists
#[test]
fn secrets_of_others_cost_nothing() {
    const FOREIGN: usize = 20_000;
    let (alone, beside) = (received_beside(0), received_beside(FOREIGN));
    println!(
        "the API server sent the operator {beside} bytes in a cluster with {FOREIGN} foreign Secrets of 32 KB, \
         {alone} without"
    );
    assert!(alone > 10_000, "the claims and Secrets of ours at least");
    // Resource versions have more digits with the foreign Secrets; that is the only difference.
    assert!(beside.abs_diff(alone) < 16 * 1024, "not half of one foreign Secret");
}
