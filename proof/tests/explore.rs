//! Tests of `stowage-proof explore`, `replay`, `merge` and `model` as a user runs them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Returns `stowage-proof` without environment variables of this process that could change its
/// output.
fn command(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-proof"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("STOWAGE_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(directory);
    command
}

fn sim(arguments: &[&str], directory: &Path) -> Output {
    command(arguments, directory).output().expect("the binary is built")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("one document ({error}): {}", stderr(output)))
}

fn directory() -> TempDir {
    TempDir::new().expect("there is room")
}

#[test]
fn shards_are_merged_into_what_the_whole_would_have_been() {
    let home = directory();
    let explore = ["explore", "create", "--profile", "quick", "-o", "json"];
    let whole = document(&sim(&explore, home.path()));
    for shard in ["0/2", "1/2"] {
        let output = sim(&[&explore[..], &["--shard", shard]].concat(), home.path());
        fs::write(home.path().join(format!("{}.json", &shard[..1])), &output.stdout).expect("it can be written");
    }
    let output = sim(&["merge", "0.json", "1.json", "--report", "out/deep", "-o", "json"], home.path());
    let merged = document(&output);
    assert_eq!(output.status.code(), Some(i32::from(!merged["failures"].as_array().expect("a list").is_empty())));
    assert!(merged["schedules"].as_u64() > Some(20), "{merged}");
    for field in ["schedules", "seed", "profile", "shard", "complete", "cells", "reasons", "promises"] {
        assert_eq!(merged[field], whole[field], "{field}");
    }
    for field in ["name", "schedules", "effects", "crash_points", "crash_points_expected", "faults", "hash"] {
        assert_eq!(merged["scenarios"][0][field], whole["scenarios"][0][field], "{field}");
    }
    let written = |name: &str| fs::read_to_string(home.path().join("out/deep").join(name)).expect("it was written");
    assert_eq!(written("report.json").trim(), stdout(&output).trim());
    assert!(written("index.html").starts_with("<!DOCTYPE html>"));
    assert!(written("junit.xml").contains("<testsuite name=\"create\""));
}

#[test]
fn what_was_found_until_a_signal_is_reported() {
    let home = directory();
    let mut explore = command(&["explore", "create", "--jobs", "1", "-o", "json"], home.path());
    let mut child = explore.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary is built");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let first = told.next().expect("it tells of the first schedule").expect("UTF-8");
    assert!(first.starts_with("1/"), "{first}");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is a kill").success());
    let mut printed = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let report: Value = serde_json::from_str(&printed).expect("one document");
    assert_eq!((report["complete"].as_bool(), report["failures"].as_array().map(Vec::len)), (Some(false), Some(0)));
    assert!(report["schedules"].as_u64() > Some(0), "{report}");
    let last = told.last().expect("it says why").expect("UTF-8");
    assert!(last.starts_with("stowage-proof: interrupted after "), "{last}");
}

#[test]
fn the_model_tells_what_it_went_through_until_a_signal() {
    let home = directory();
    // The first is soon over, the second is not, the third is never started.
    let worlds = ["model", "vanished-bucket", "purge-slices", "pause", "--jobs", "1"];
    let mut child = command(&worlds, home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    let mut rows = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let first = rows.next().expect("a row").expect("UTF-8");
    assert!(first.starts_with("vanished-bucket ") && first.contains("complete"), "{first}");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("there is a kill").success());
    let rows: Vec<String> = rows.collect::<Result<_, _>>().expect("UTF-8");
    let left = rows.last().and_then(|last| last.strip_prefix("not begun: ")).expect("it says what is left");
    match left.split(", ").collect::<Vec<_>>()[..] {
        ["purge-slices", "pause"] => {}
        // The signal came after its start.
        ["pause"] => assert!(rows[0].starts_with("purge-slices ") && !rows[0].contains("complete"), "{rows:?}"),
        ref other => panic!("{other:?}"),
    }
    let mut said = String::new();
    child.stderr.take().expect("it is piped").read_to_string(&mut said).expect("UTF-8");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert!(said.lines().last().is_some_and(|last| last.starts_with("stowage-proof: interrupted after ")), "{said}");
}

#[test]
fn what_does_not_belong_together_is_not_merged() {
    let home = directory();
    let output = sim(&["explore", "create", "--profile", "quick", "--shard", "1/40", "-o", "json"], home.path());
    fs::write(home.path().join("one.json"), &output.stdout).expect("it can be written");
    fs::write(home.path().join("none.json"), "{}").expect("it can be written");
    for (files, problem) in [
        (&["one.json"][..], "of 40 shards these are missing: 0/40, 2/40"),
        (&["one.json", "one.json"], "shard 1/40 is there twice"),
        (&["none.json"], "none.json is no document of `stowage-proof explore -o json`"),
        (&["nowhere.json"], "can't read nowhere.json"),
    ] {
        let output = sim(&[&["merge"], files].concat(), home.path());
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(problem), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn two_processes_come_to_the_same_hashes_in_the_same_order() {
    let hashes = |jobs| {
        let part = ["explore", "create", "--profile", "quick", "--hashes", "--shard", "0/4", "--jobs", jobs];
        stdout(&sim(&part, directory().path()))
    };
    let (one, other) = (hashes("1"), hashes("2"));
    assert_eq!(one, other);
    assert!(one.lines().count() > 5);
    for line in one.lines() {
        let (hash, schedule) = line.split_once(' ').expect("two parts");
        assert!(hash.len() == 64 && schedule.starts_with("create 1"), "{line}");
    }
}

#[test]
fn a_schedule_is_replayed_with_the_hash_that_it_had() {
    let home = directory();
    let line = "create 1 s3:CreateBucket@1 lost-answer";
    let output = sim(&["replay", line, "-o", "json"], home.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let replayed = document(&output);
    assert_eq!(replayed["line"], line);
    assert_eq!(replayed["violations"].as_array().map(Vec::len), Some(0));
    let text = stdout(&sim(&["replay", line, "--width", "200"], home.path()));
    assert!(text.contains(replayed["trace_hash"].as_str().expect("it has a hash")), "{text}");
    assert!(text.contains("⚡lost-answer: CreateBucket") && text.contains("no promise was broken"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where there is no terminal");
    let transcript = || stdout(&sim(&["replay", line, "--transcript"], home.path()));
    assert_eq!(transcript(), transcript());
    assert!(
        transcript()
            .lines()
            .any(|line| line.contains(" secrets stowage-system/") && line.contains("creationTimestamp"))
    );
}

#[test]
fn scenarios_are_listed_with_what_they_are_about() {
    let text = stdout(&sim(&["explore", "--list"], directory().path()));
    assert!(
        text.lines().any(|line| line.starts_with("rotate ") && line.contains("a user asks for a new key")),
        "{text}"
    );
}

#[test]
fn a_flag_is_set_in_the_environment_in_any_words() {
    let home = directory();
    for (word, listed) in [("1", true), ("yes", true), ("true", true), ("0", false), ("off", false)] {
        let part = ["explore", "create", "--profile", "quick", "--shard", "1/40", "-o", "text"];
        // A switch that is off has no effect.
        let mut command = command(&part, home.path());
        command.env("STOWAGE_LIST", word).env("STOWAGE_HASHES", "off");
        let output = command.output().expect("the binary is built");
        assert_eq!(output.status.code(), Some(0), "{word}: {}", stderr(&output));
        assert_eq!(stdout(&output).starts_with("create  create"), listed, "{word}: {}", stdout(&output));
    }
}

/// No file can be created there, not even by root.
#[test]
fn where_no_report_can_be_written_nothing_is_explored() {
    let output = sim(&["explore", "create", "--report", "/proc/self"], directory().path());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("stowage-proof: can't "), "{}", stderr(&output));
    assert!(output.stdout.is_empty() && !stderr(&output).contains("schedules"), "{}", stderr(&output));
}

#[test]
fn a_report_that_can_not_be_written_is_printed_nevertheless() {
    let home = directory();
    fs::create_dir_all(home.path().join("out/report.json")).expect("there is room");
    let part = ["explore", "create", "--profile", "quick", "--shard", "1/40", "--report", "out"];
    let output = sim(&[&part[..], &["-o", "json"]].concat(), home.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(document(&output)["schedules"].is_u64());
    assert!(stderr(&output).contains("can't write out/report.json: "), "{}", stderr(&output));
    let output = sim(&part, home.path());
    assert!(stdout(&output).starts_with("SCENARIO ") && !stdout(&output).contains("see out"), "{}", stdout(&output));
}

#[test]
fn wrong_usage_says_what_was_expected() {
    let home = directory();
    for (arguments, problem) in [
        (&["replay", "creat 1"][..], "there are: create, "),
        (&["replay", "create 1", "--width", "20"], "expected a number from 80 to 65535"),
        (&["replay", "create 1", "--transcript", "-o", "json"], "--transcript prints lines of text: not with -o json"),
        (
            &["explore", "create", "--hashes", "--list"],
            "--hashes prints nothing else: not with --list, --report or -o json",
        ),
        (&["mutants", "--list", "-o", "markdown"], "--list prints text or JSON"),
        (&["model", "--time-limit", "0"], "expected whole seconds, at least 1"),
        (&["explore", "--shard", "8/8"], "expected I/N with I from 0 to N-1"),
        (&["merge"], "<FILE>"),
    ] {
        let output = sim(arguments, home.path());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(problem), "{}", stderr(&output));
    }
}
