//! `stowage-sim demo`, run as a user runs it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

/// A backend in another place than the examples', under other names, and one claim.
const OWN: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: alone}
---
apiVersion: broker.stowage.io/v1alpha1
kind: BucketClaim
metadata: {name: only, namespace: alone}
spec: {backendRef: {name: fast}}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: stowage-system}
stringData: {id: OWNADMIN, key: a-secret-of-the-administrators-own}
---
apiVersion: broker.stowage.io/v1alpha1
kind: S3Backend
metadata: {name: fast}
spec:
  endpoint: https://fast.example
  region: eu-central-1
  bucketNameTemplate: 'x-{{ .Hash }}'
  adminCredentialsSecretRef: {name: keys, namespace: stowage-system, accessKeyField: id, secretKeyField: key}
";

/// Runs `stowage-sim` with nothing of this process's environment that could change what it prints.
fn sim(arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-sim"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["STOWAGE_FILENAME", "STOWAGE_OUTPUT", "STOWAGE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().expect("the binary is built");
    child.stdin.take().expect("it is piped").write_all(stdin.as_bytes()).expect("it reads its input, or ends");
    child.wait_with_output().expect("it ends")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// The one document on stdout.
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

/// Names of the steps, those that failed with a mark.
fn steps(document: &Value) -> Vec<String> {
    let steps = document["steps"].as_array().expect("steps is a list").iter();
    let name = |step: &Value| {
        assert!(step["millis"].is_u64() && step["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
        let failed = if step["ok"] == true { "" } else { "!" };
        format!("{failed}{}", step["name"].as_str().expect("a name"))
    };
    steps.map(name).collect()
}

fn file(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("manifest.yaml");
    std::fs::write(&path, text).expect("it is writable");
    (directory, path)
}

#[test]
fn the_examples_show_the_whole_tour() {
    let output = sim(&["demo", "-o", "json"], "");
    let document = document(&output);
    let expected = [
        "apply-manifests",
        "backends-ready",
        "claims-bound",
        "name-conflict",
        "connection-secret",
        "put-get-list",
        "neighbour-refused",
        "administration-refused",
        "claim-deleted",
        "old-key-refused",
        "bucket-retained",
        "loser-woken",
        "bucket-returned",
        "events",
    ];
    assert_eq!(steps(&document), expected, "{document:#}");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    // Two claims bound at seven writes and three calls each are the least that it can be.
    assert!(document["kubernetes_writes"].as_u64().is_some_and(|writes| writes >= 14), "{document:#}");
    assert!(document["s3_calls"].as_u64().is_some_and(|calls| calls >= 6), "{document:#}");
}

#[test]
fn text_tells_the_story_without_colours_when_piped() {
    let output = sim(&["demo"], "");
    let text = stdout(&output);
    assert!(!text.contains('\u{1b}'), "escapes in what is piped");
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line.trim_end() == line), "{text}");
    for part in [
        "team-a      photos    team-a-photos    Bound    True    main",
        "BucketNameConflict",
        "AWS_SECRET_ACCESS_KEY:  40 bytes",
        "200, \"hello from team-a/photos\"",
        "403 AccessDenied",
        "403 InvalidAccessKeyId",
        "broker.stowage.io/claim-uid",
        "BucketExists",
        "BucketRetained",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let last = text.lines().last().unwrap_or_default();
    let counts = Regex::new(r"^\d+ Kubernetes writes and \d+ S3 calls by the operator, \d+\.\d s$").expect("a pattern");
    assert!(counts.is_match(last), "{last}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn colours_can_be_had_and_switched_off() {
    assert!(stdout(&sim(&["demo", "--color", "always"], "")).contains("\u{1b}[32m"));
    assert!(!stdout(&sim(&["demo", "--color", "never"], "")).contains('\u{1b}'));
}

/// Secret keys are 40 characters of the alphabet of base64 for URLs; ids, names and UIDs of the tour are shorter.
// covers: 4.secrecy
#[test]
fn no_secret_key_is_printed() {
    let secret = Regex::new("[A-Za-z0-9_-]{40}").expect("a pattern");
    assert!(secret.is_match("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI_K7MDENG-bPxRfiCYEXAMPLEKEY"));
    let runs = [sim(&["demo"], ""), sim(&["demo", "-o", "json"], ""), sim(&["demo", "-f", "-"], OWN)];
    for output in runs {
        for text in [stdout(&output), stderr(&output)] {
            let found = secret.find(&text).map(|found| found.as_str());
            assert_eq!(found, None, "in\n{text}");
            for admin in ["demo-admin-secret-not-for-production", "a-secret-of-the-administrators-own"] {
                assert!(!text.contains(admin), "{admin} in\n{text}");
            }
        }
    }
}

#[test]
fn two_runs_print_the_same() {
    let millis = Regex::new(r#""millis": \d+|\d+\.\d s$"#).expect("a pattern");
    for arguments in [&["demo"][..], &["demo", "-o", "json"]] {
        let [one, two] = [(); 2].map(|()| millis.replace_all(stdout(&sim(arguments, "")).trim_end(), "").into_owned());
        assert_eq!(one, two);
    }
}

// covers: 1.backend.credentials.fields
#[test]
fn own_manifests_have_their_own_store_and_fewer_steps() {
    let (_directory, path) = file(OWN);
    let path = path.to_str().expect("UTF-8");
    let output = sim(&["demo", "-f", path, "-o", "json"], "");
    let expected = [
        "apply-manifests",
        "backends-ready",
        "claims-bound",
        "connection-secret",
        "put-get-list",
        "neighbour-refused",
        "administration-refused",
        "claim-deleted",
        "old-key-refused",
        "bucket-retained",
        "bucket-returned",
        "events",
    ];
    assert_eq!(steps(&document(&output)), expected, "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&sim(&["demo", "-f", "-"], OWN));
    assert!(text.contains("https://fast.example") && text.contains("alone       only"), "{text}");
}

#[test]
fn a_refused_manifest_is_told_in_the_servers_words_with_its_place() {
    let good = "apiVersion: v1\nkind: Namespace\nmetadata: {name: fine}\n---\n";
    let unknown = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: fine}\ndate: {}\n";
    let rule = "apiVersion: broker.stowage.io/v1alpha1\nkind: S3Backend\nmetadata: {name: main}\n\
                spec: {endpoint: 'ftp://x', adminCredentialsSecretRef: {name: a, namespace: b}}\n";
    let cases = [
        (unknown, ".date: field not declared in schema"),
        (rule, "S3Backend.broker.stowage.io \"main\" is invalid: spec.endpoint: Invalid value"),
        ("kind: [unclosed\n", ""),
    ];
    for (bad, words) in cases {
        let (_directory, path) = file(&format!("{good}{bad}"));
        let path = path.to_str().expect("UTF-8");
        let output = sim(&["demo", "-f", path], "");
        let told = stderr(&output);
        assert!(told.contains(&format!("{path}, document 2: ")), "{told}");
        assert!(told.contains(words), "{words} is missing in {told}");
        assert_eq!(output.status.code(), Some(1));
        let output = sim(&["demo", "-f", path, "-o", "json"], "");
        assert_eq!(steps(&document(&output)), ["!apply-manifests"]);
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn nothing_bound_is_a_failure_that_says_why() {
    let lonely = OWN.replace("backendRef: {name: fast}", "backendRef: {name: slow}");
    let output = sim(&["demo", "-f", "-"], &lonely);
    let told = stderr(&output);
    assert_eq!(told.trim_end().lines().count(), 1, "{told}");
    assert!(told.contains("no claim was bound: alone/only: BackendNotReady, there is no S3Backend slow"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_is_wrong_with_the_command_line_is_told() {
    assert_eq!(sim(&["demo", "--no-such-flag"], "").status.code(), Some(2));
    assert_eq!(sim(&["demo", "-o", "yaml"], "").status.code(), Some(2));
    let output = sim(&["demo", "-f", "no/such.yaml"], "");
    assert!(stderr(&output).contains("can't read no/such.yaml: "), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    let help = stdout(&sim(&["demo", "--help"], ""));
    assert!(help.contains("--filename") && help.contains("Exit codes"), "{help}");
}

/// What the README shows is what the demo prints, but for how long it took.
#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../README.md");
    let shown = readme.split("<!-- demo: begin -->\n").nth(1).and_then(|rest| rest.split("<!-- demo: end -->").next());
    let shown = shown.expect("the README has the demo's block");
    let took = Regex::new(r", \d+\.\d s$").expect("a pattern");
    let output = stdout(&sim(&["demo", "--color", "never"], ""));
    let mut printed = output.lines().map(|line| took.replace(line, "").into_owned());
    for line in shown.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)) {
        let line = took.replace(line, "");
        assert!(printed.any(|printed| printed == line), "the demo no longer prints, at this place: {line:?}");
    }
}
