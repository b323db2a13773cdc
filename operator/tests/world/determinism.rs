//! The same seed gives the same trace of calls: twice in one process, and in two processes.

use std::process::Command;
use std::time::Duration;

use stowage_world::determinism::run_seeded;
use stowage_world::{Options, World};

use crate::support::{BASE, claim_with, object, ready};

const FAULTY: &str = "#30 crash(after-effect); kube:create secrets@5 lost-answer; s3:CreateBucket@3 lost-answer; \
    kube:patch bucketclaims/status@4 conflict; s3:PutBucketTagging@2 slow-down";

/// Runs twenty claims, some of which compete for a bucket; returns the hash of the trace.
fn crowd(plan: &str) -> String {
    let plan = plan.parse().expect("the plan is well-formed");
    run_seeded(9, || async move {
        let mut world = World::new(Options { seed: 9, plan, ..Options::default() });
        world.apply(&world.kube(), BASE).await;
        for number in 0..20 {
            let spec = if number % 7 == 3 { "bucketName: shared" } else { "" };
            world.apply(&world.kube(), &claim_with("team-a", &format!("claim-{number}"), spec)).await;
        }
        let _operator = world.start_operator();
        let settled = |world: &World, number| {
            ["Bound", "BucketNameConflict"].contains(&ready(world, "team-a", &format!("claim-{number}")).as_str())
        };
        world.until(|world| (0..20).all(|number| settled(world, number))).await.expect("all settle");
        world.pass(Duration::from_secs(60)).await;
        assert!(object(&world, "bucketclaims", "team-a", "claim-0").is_object());
        world.effects.trace().hash()
    })
}

const CHILD: &str = "STOWAGE_TEST_PRINT_TRACES";

#[test]
fn the_same_seed_gives_the_same_trace_in_one_process_and_in_two() {
    let hashes = ["", FAULTY].map(crowd);
    if std::env::var_os(CHILD).is_some() {
        println!("\nhashes {}", hashes.join(" "));
        return;
    }
    assert_eq!(hashes, ["", FAULTY].map(crowd), "in one process");
    let test = "determinism::the_same_seed_gives_the_same_trace_in_one_process_and_in_two";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout).into_owned();
    let theirs = printed.lines().find_map(|line| line.strip_prefix("hashes ")).expect("the child prints its hashes");
    assert_eq!(theirs, hashes.join(" "), "in two processes");
}
