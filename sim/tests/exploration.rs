//! The quick profile of the exploration, and that the same schedule is the same run in every process.

#![expect(clippy::print_stdout, reason = "figures for people, and hashes for the parent process")]

use std::collections::BTreeSet;
use std::process::Command;

use stowage_sim::explorer::{Campaign, Order, Phase, Profile, Report, Schedule, Shard, explore, run, scenarios};

fn quick() -> Campaign {
    Campaign {
        scenarios: scenarios::ALL.to_vec(),
        profile: Profile::Quick,
        seed: 1,
        jobs: std::thread::available_parallelism().map_or(1, Into::into),
        time_limit: None,
        shard: Shard::WHOLE,
        fail_fast: false,
        order: Order::Listed,
        random: None,
        hashes: false,
    }
}

fn assert_kept(report: &Report) {
    let broken: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("stowage-sim replay '{}': {}: {}", failure.line, failure.promise, failure.message))
        .collect();
    assert!(broken.is_empty(), "{} of {} schedules:\n{}", broken.len(), report.schedules, broken.join("\n"));
}

#[test]
fn every_promise_is_kept_under_every_fault_in_every_phase() {
    let report = explore(&quick(), |_| {});
    println!("{} schedules in {:.1} s, {} cells", report.schedules, report.seconds, report.cells().len());
    assert_kept(&report);
    assert!(report.complete);
    assert!(!report.cells_expected().is_empty());
    assert_eq!(report.unmet(), BTreeSet::new(), "every fault meets a call in every phase that has calls for it");
    let met: BTreeSet<(&str, Phase)> = report.cells().into_keys().collect();
    let unforeseen = met.difference(&report.cells_expected()).copied().collect::<Vec<_>>();
    assert_eq!(unforeseen, [], "what can't be met is not met");
    for (name, row) in &report.scenarios {
        assert!(row.schedules > 5 && row.effects > 0, "{name} was hardly played: {row:?}");
        assert_eq!(row.crash_points_expected, 3 * row.effects, "{name}");
    }
    let told =
        ["Bound", "BackendNotReady", "BackendNotAllowed", "TemplateInvalid", "BucketNameConflict", "BucketExists"];
    let stuck =
        ["BucketMissing", "SecretConflict", "CreationInconsistent", "BackendError", "BucketNotEmpty", "Purging"];
    for reason in told.into_iter().chain(stuck).chain(["DeletionBlocked", "Paused"]) {
        assert!(report.reasons.contains(reason), "no schedule came to {reason}");
    }
}

/// Environment variable by which this test has itself run once more.
const CHILD: &str = "STOWAGE_TEST_PRINT_HASHES";
const SEEDS: u64 = 1_000;

fn hashes() -> Vec<String> {
    let seeds: Vec<u64> = (1..=SEEDS).collect();
    let hash = |seed: &u64| {
        // Every other one with something that goes wrong.
        let plan =
            if seed.is_multiple_of(2) { " kube:create secrets@1 lost-answer; #25 crash(after-effect)" } else { "" };
        let schedule: Schedule = format!("create {seed}{plan}").parse().expect("a schedule");
        run(&schedule).hash
    };
    let jobs = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        let parts: Vec<_> = seeds
            .chunks(seeds.len().div_ceil(jobs))
            .map(|part| scope.spawn(move || part.iter().map(hash).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("no schedule panics")).collect()
    })
}

#[test]
fn a_thousand_seeds_have_the_same_hashes_in_two_processes() {
    let mine = hashes();
    if std::env::var_os(CHILD).is_some() {
        println!("\nhashes {}", mine.join(" "));
        return;
    }
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args(["a_thousand_seeds_have_the_same_hashes_in_two_processes", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .expect("this test again");
    let printed = String::from_utf8_lossy(&child.stdout).into_owned();
    let theirs = printed.lines().find_map(|line| line.strip_prefix("hashes ")).expect("the child prints its hashes");
    for (seed, (mine, theirs)) in (1..).zip(mine.iter().zip(theirs.split(' '))) {
        assert_eq!(mine, theirs, "seed {seed}");
    }
    let different: BTreeSet<&String> = mine.iter().collect();
    assert!(different.len() > mine.len() / 2, "seeds make runs different");
}

#[test]
fn a_schedule_is_the_same_run_whatever_ran_before_it() {
    let hash = |line: &str| run(&line.parse().expect("a schedule")).hash;
    let lines = ["rotate 1", "create 1 kube:create secrets@1 twin", "two-operators 1 kube:create secrets@1 pause(20)"];
    let first = lines.map(hash);
    for other in ["create 1 #20 hang", "delete-forced 1", "two-operators 3"] {
        hash(other);
        assert_eq!(lines.map(hash), first, "after {other}");
    }
}
