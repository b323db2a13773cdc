//! Tests of the exploration: parts of every scenario, some scenarios under every single fault; and
//! that a schedule gives the same run in every process.

#![expect(clippy::print_stdout, reason = "figures for people, and hashes for the parent process")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::process::Command;

use rstest::rstest;
use stowage_proof::explorer::{
    Campaign, CampaignReport, Detail, Order, Profile, Scenario, ScenarioPhase, Schedule, Shard, explore, run, scenarios,
};

/// Returns a campaign of a profile for these scenarios, on this many threads.
fn campaign(scenarios: &[&'static Scenario], profile: Profile, jobs: usize) -> Campaign {
    Campaign {
        scenarios: scenarios.to_vec(),
        profile,
        seed: 1,
        jobs,
        time_limit: None,
        shard: Shard::WHOLE,
        fail_fast: false,
        order: Order::Listed,
        random: None,
        hashes: None,
    }
}

fn assert_kept(report: &CampaignReport) {
    let broken: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("stowage-proof replay '{}': {}: {}", failure.line, failure.promise, failure.message))
        .collect();
    assert!(broken.is_empty(), "{} of {} schedules:\n{}", broken.len(), report.schedules, broken.join("\n"));
}

#[test]
fn every_promise_is_kept_under_every_fault_in_every_phase() {
    let jobs = std::thread::available_parallelism().map_or(1, Into::into);
    let report = explore(&campaign(scenarios::ALL, Profile::Quick, jobs), |_| ControlFlow::Continue(()));
    println!("{} schedules in {:.1} s, {} cells", report.schedules, report.seconds, report.cells().len());
    assert_kept(&report);
    assert!(report.complete);
    assert!(!report.cells_expected().is_empty());
    assert_eq!(report.gaps(), Vec::<String>::new(), "every fault in every phase that has calls for it, every reason");
    let met: BTreeSet<(&str, ScenarioPhase)> = report.cells().into_keys().collect();
    let unforeseen = met.difference(&report.cells_expected()).copied().collect::<Vec<_>>();
    assert_eq!(unforeseen, [], "what can't be met is not met");
    for (name, row) in &report.scenarios {
        assert!(row.schedules > 5 && row.effects > 0, "{name} was hardly played: {row:?}");
        assert_eq!(row.crash_points_expected, 3 * row.effects, "{name}");
    }
}

/// Plays a scenario with every single fault at every call, and with a crash before each, after its
/// effect and after its answer.
///
/// It ends as its user wanted, or as other actors' changes made it end, and every promise is kept.
fn whatever_happens(scenario: &str) {
    let scenario = scenarios::named(scenario).expect("there is one of this name");
    // Tests run in parallel: one thread for each is enough.
    let report = explore(&campaign(&[scenario], Profile::Singles, 1), |_| ControlFlow::Continue(()));
    let row = &report.scenarios[scenario.name];
    println!(
        "{}: {} schedules over {} effects, {} of them crashes, in {:.1} s; {} honest limits",
        scenario.name, row.schedules, row.effects, row.crash_points, report.seconds, row.limits
    );
    assert_kept(&report);
    assert!(report.complete && row.effects > 0, "{row:?}");
    assert_eq!(row.crash_points, 3 * row.effects, "every effect x before, after the effect, after the answer");
    assert_eq!(row.unmet, 0, "each single fault meets the call that it is for");
}

// covers: 3.1.interrupted, 3.5.permanent.recovers
#[rstest]
fn a_claim_is_bound_whatever_happens(#[values("create", "adopt")] scenario: &str) {
    whatever_happens(scenario);
}

// covers: 1.credentialsProvisioned.SecretWritten, 3.3.resumed, 3.3.stamp.fixed
// covers: 3.3.neverEarly, 3.3.noStray
#[test]
fn a_key_is_rotated_whatever_happens() {
    whatever_happens("rotate");
}

#[rstest]
fn an_edit_takes_effect_whatever_happens(#[values("quota", "rename")] scenario: &str) {
    whatever_happens(scenario);
}

// covers: 3.7.backendRef, 3.3.neverEarly
#[test]
fn a_claim_moves_to_another_store_whatever_happens() {
    whatever_happens("move-public");
}

// covers: 3.2.moved.found
#[test]
fn a_bucket_is_found_at_its_stores_new_endpoint_whatever_happens() {
    whatever_happens("endpoint");
}

// covers: 3.4.interrupted
#[rstest]
fn a_claim_goes_whatever_happens(#[values("delete", "delete-public", "delete-empty", "delete-forced")] scenario: &str) {
    whatever_happens(scenario);
}

// covers: 3.4.orphans.gone, 3.4.orphans.bucket
#[test]
fn what_is_left_of_a_claim_is_swept_whatever_happens() {
    whatever_happens("orphans");
}

/// Environment variable that makes the test below run as a child process: empty for the hashes of
/// all its schedules, or a schedule for its transcript.
const CHILD: &str = "STOWAGE_TEST_PRINT";
const TEST: &str = "hundreds_of_schedules_are_the_same_runs_in_two_processes";
const SCHEDULES: usize = 400;

/// Returns hundreds of schedules: all scenarios in turn except those of hundreds of calls, each
/// with another seed. Every second one has faults.
fn hundreds() -> Vec<Schedule> {
    let long = ["ten-years", "rotate-by-time", "many-keys"];
    let short: Vec<_> = scenarios::ALL.iter().filter(|scenario| !long.contains(&scenario.name)).collect();
    let schedule = |(seed, scenario): (usize, &&&Scenario)| {
        let plan =
            if seed.is_multiple_of(2) { "kube:create secrets@1 lost-answer; #25 crash(after-effect)" } else { "" };
        format!("{} {seed} {plan}", scenario.name).parse().expect("a schedule")
    };
    (1..=SCHEDULES).zip(short.iter().cycle()).map(schedule).collect()
}

fn hashes() -> Vec<String> {
    let schedules = hundreds();
    let jobs = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        let parts: Vec<_> = schedules
            .chunks(schedules.len().div_ceil(jobs))
            .map(|part| scope.spawn(move || part.iter().map(|it| run(it).hash(Detail::All)).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().expect("no schedule panics")).collect()
    })
}

/// Returns the transcript of a schedule, with a prefix that no other output of a test has.
fn transcript(schedule: &str) -> String {
    let transcript = run(&schedule.parse().expect("a schedule")).transcript(Detail::All).to_string();
    transcript.lines().map(|line| format!("| {line}\n")).collect()
}

/// Returns the output of the test below in another process.
fn elsewhere(what: &str) -> String {
    again(TEST, what)
}

/// Returns the output of a test in another process, with this value in its environment.
fn again(test: &str, what: &str) -> String {
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, what)
        .output()
        .expect("this test again");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    String::from_utf8_lossy(&child.stdout).into_owned()
}

/// Returns the first line in which two transcripts differ. Other lines of the second text are
/// ignored.
fn first_difference(here: &str, there: &str) -> String {
    let there = there.lines().filter(|line| line.starts_with("| "));
    let both = here.lines().map(Some).chain([None]).zip(there.map(Some).chain([None]));
    let different = (1..).zip(both).find(|(_, (here, there))| here != there);
    match different {
        Some((number, (here, there))) => {
            let (here, there) = (here.unwrap_or("none"), there.unwrap_or("none"));
            let alike = here.chars().zip(there.chars()).take_while(|(here, there)| here == there).count();
            format!("line {number} here:\n{}\nthere:\n{}", around(here, alike), around(there, alike))
        }
        None => "this time they were the same".to_owned(),
    }
}

/// Returns the start of a long line, and the part where it differs from another.
fn around(line: &str, parts: usize) -> String {
    const SHOWN: usize = 120;
    let piece = |from, most| line.chars().skip(from).take(most).collect::<String>();
    match parts.checked_sub(SHOWN) {
        Some(from) if from > SHOWN => format!("{} … {}", piece(0, SHOWN), piece(from, 3 * SHOWN)),
        _ => piece(0, 4 * SHOWN),
    }
}

#[test]
fn hundreds_of_schedules_are_the_same_runs_in_two_processes() {
    match std::env::var(CHILD).as_deref() {
        Ok("") => return println!("\nhashes {}", hashes().join(" ")),
        Ok(schedule) => return println!("\n{}", transcript(schedule)),
        Err(_) => {}
    }
    let mine = hashes();
    let printed = elsewhere("");
    let theirs = printed.lines().find_map(|line| line.strip_prefix("hashes ")).expect("the child prints its hashes");
    let theirs: Vec<&str> = theirs.split(' ').collect();
    assert_eq!(mine.len(), theirs.len());
    for (schedule, (mine, theirs)) in hundreds().iter().zip(mine.iter().zip(theirs)) {
        let line = schedule.to_string();
        assert!(
            mine == theirs,
            "{line} is another run there: {}",
            first_difference(&transcript(&line), &elsewhere(&line))
        );
    }
    let different: BTreeSet<&String> = mine.iter().collect();
    assert!(different.len() > mine.len() / 2, "seeds make runs different");
}

#[test]
fn of_two_transcripts_the_first_line_that_differs_is_told() {
    let here = "| one\n| two\n";
    assert_eq!(first_difference(here, "running 1 test\n| one\n| 2\n"), "line 2 here:\n| two\nthere:\n| 2");
    assert_eq!(first_difference(here, "| one\n"), "line 2 here:\n| two\nthere:\nnone");
    assert_eq!(first_difference(here, here), "this time they were the same");
    let schedule = "create 1 #20 hang";
    assert_eq!(first_difference(&transcript(schedule), &elsewhere(schedule)), "this time they were the same");
    let other = first_difference(&transcript("create 1"), &elsewhere(schedule));
    assert!(other.contains(" here:\n| #20 ") && other.contains("\nthere:\n| #20 "), "{other}");
    let long = |end: &str| format!("| stored {}{end}\n", "x".repeat(900));
    let other = first_difference(&long("one"), &long("two"));
    let [_, here, _, there] = other.lines().collect::<Vec<_>>()[..] else { panic!("{other}") };
    assert!(here.starts_with("| stored xx") && here.ends_with("xxone") && here.chars().count() < 300, "{here}");
    assert!(there.ends_with("xxtwo"), "{there}");
}

/// Work that a process does once, on first use, must not change later runs. A difference shows only
/// if two events happen at the same time, as in the first of these schedules.
#[test]
fn the_first_run_of_a_process_is_like_any_other() {
    const TEST: &str = "the_first_run_of_a_process_is_like_any_other";
    if std::env::var(CHILD).is_ok() {
        let found = "move 504 kube:create secrets@1 lost-answer; #25 crash(after-effect)";
        let all: BTreeMap<&str, Schedule> = hundreds().into_iter().map(|it| (it.scenario.name, it)).collect();
        let all: Vec<Schedule> = std::iter::once(found.parse().expect("a schedule")).chain(all.into_values()).collect();
        let twice = |schedule: &Schedule| [(); 2].map(|()| run(schedule).hash(Detail::All));
        let differ = all.iter().filter(|it| matches!(twice(it), [first, second] if first != second));
        return println!("\n{} played; differ: {:?}", all.len(), differ.map(ToString::to_string).collect::<Vec<_>>());
    }
    let printed = again(TEST, "");
    let told = printed.lines().find(|line| line.contains(" played; ")).expect("the child says which differ");
    let short: BTreeSet<&str> = hundreds().iter().map(|it| it.scenario.name).collect();
    assert_eq!(told, format!("{} played; differ: []", short.len() + 1));
}

#[test]
fn a_schedule_is_the_same_run_whatever_ran_before_it() {
    let hash = |line: &str| run(&line.parse().expect("a schedule")).hash(Detail::All);
    let lines = ["rotate 1", "create 1 kube:create secrets@1 twin", "two-operators 1 kube:create secrets@1 pause(20)"];
    let first = lines.map(hash);
    for other in ["create 1 #20 hang", "delete-forced 1", "two-operators 3"] {
        hash(other);
        assert_eq!(lines.map(hash), first, "after {other}");
    }
}
