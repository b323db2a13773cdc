//! The create path without faults: its cost, and that there is no further cost afterwards.

use std::time::Duration;

use crate::support::{Stage, assert_bound_once, claim, claim_with, internal_of};

// covers: 1.claim.bucketName.absent, 1.ready.Bound, 2.record.first, 3.1.order, 3.1.cost
// covers: 3.2.create.absence
#[test]
fn binding_a_claim_costs_seven_kubernetes_requests_and_three_s3_calls() {
    Stage::run("", async |stage| {
        let before = stage.world.effects.trace().effects();
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        let trace = stage.world.effects.trace();
        let lines: Vec<String> =
            trace.lines().iter().filter(|line| line.number > before).map(ToString::to_string).collect();
        println!("{}", lines.join("\n"));
        let calls: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().nth(1)).collect();
        let expected = [
            "kube:patch",
            "kube:create",
            "s3:GetBucketTagging",
            "kube:patch",
            "s3:CreateBucket",
            "s3:PutBucketTagging",
            "kube:create",
            "kube:create",
            "kube:patch",
            "kube:create",
        ];
        assert_eq!(calls, expected);
        let counters = trace.counters_after(before);
        assert_eq!((counters.kubernetes_requests, counters.kubernetes_lists, counters.s3_calls), (7, 0, 3));
        assert_bound_once(&stage).await;
    });
}

// covers: 3.idle
#[test]
fn looking_at_a_bound_claim_again_costs_nothing() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(10)).await;
        let before = stage.world.effects.trace().effects();
        for nudge in 0..10 {
            let annotated = claim("team-a", "photos").replace(
                "name: photos,",
                &format!("name: photos, annotations: {{broker.stowage.io/reconcile: \"{nudge}\"}},"),
            );
            stage.apply(&annotated).await;
            stage.world.pass(Duration::from_secs(1)).await;
        }
        let counters = stage.world.effects.trace().counters_after(before);
        assert_eq!(
            (counters.kubernetes_requests, counters.kubernetes_writes, counters.s3_calls),
            (0, 0, 0),
            "{}",
            stage.trace()
        );
    });
}

// covers: 1.status.atRest, 3.driftCheck
#[test]
fn an_hour_at_rest_writes_nothing_and_looks_at_the_bucket_at_most_once_in_an_interval() {
    Stage::run("", async |stage| {
        stage.apply(&claim("team-a", "photos")).await;
        stage.until_ready_is("team-a", "photos", "Bound").await;
        stage.world.pass(Duration::from_secs(10)).await;
        let before = stage.world.effects.trace().effects();
        stage.world.pass(Duration::from_secs(3600)).await;
        let counters = stage.world.effects.trace().counters_after(before);
        assert_eq!(counters.kubernetes_writes, 0, "{}", stage.trace());
        // Six intervals: at most seven checks of the bucket, and as many probes of the backend.
        assert!((2..=14).contains(&counters.s3_calls), "{} S3 calls\n{}", counters.s3_calls, stage.trace());
    });
}

/// The SDK sends requests for such a bucket to other hosts.
#[test]
fn a_bucket_name_that_s3_reserves_for_another_kind_of_bucket_is_not_to_be_had() {
    Stage::run("", async |stage| {
        stage.apply(&claim_with("team-a", "photos", "bucketName: photos--x-s3")).await;
        stage.until_ready_is("team-a", "photos", "TemplateInvalid").await;
        assert_eq!(internal_of(&stage.world, "photos"), Vec::<String>::new());
    });
}
