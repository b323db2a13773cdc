//! Tests of `stowage-sim demo` as a process.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

/// One claim and a backend with another endpoint and other names than in the examples.
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
metadata:
  name: keys
  namespace: stowage-system
  labels: {broker.stowage.io/backend-credentials: 'true'}
  annotations: {broker.stowage.io/endpoints: 'https://fast.example'}
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

/// Runs `stowage-sim` without environment variables that could change its output.
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

/// The output for the examples, run once for all tests.
struct Examples {
    text: Output,
    json: Output,
}

static EXAMPLES: LazyLock<Examples> =
    LazyLock::new(|| Examples { text: sim(&["demo"], ""), json: sim(&["demo", "-o", "json"], "") });

/// Parses the one document on stdout.
fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
}

/// Returns the names of the steps; failed ones are marked.
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
    let output = &EXAMPLES.json;
    let document = document(output);
    let expected = [
        "apply-manifests",
        "backends-ready",
        "claims-bound",
        "name-conflict",
        "connection-secret",
        "put-get-list",
        "neighbour-refused",
        "administration-refused",
        "rotation",
        "access-not-shared",
        "access-shared",
        "access-withdrawn",
        "claim-deleted",
        "old-key-refused",
        "bucket-retained",
        "loser-woken",
        "bucket-returned",
        "deletion-refused",
        "deletion-let-go",
        "deletion-forced",
        "adopted-kept",
        "events",
    ];
    assert_eq!(steps(&document), expected, "{document:#}");
    assert_eq!((output.status.code(), stderr(output).as_str()), (Some(0), ""));
    // The minimum for five bound claims is seven writes and three calls each, with fewer for the
    // adopted one.
    assert!(document["kubernetes_writes"].as_u64().is_some_and(|writes| writes >= 34), "{document:#}");
    assert!(document["s3_calls"].as_u64().is_some_and(|calls| calls >= 13), "{document:#}");
}

#[test]
fn text_tells_the_story_without_colours_when_piped() {
    let output = &EXAMPLES.text;
    let text = stdout(output);
    assert!(!text.contains('\u{1b}'), "escapes in what is piped");
    assert!(text.lines().all(|line| line.chars().count() <= 100 && line.trim_end() == line), "{text}");
    for part in [
        "team-a      photos     team-a-photos     Bound    True    main",
        "BucketNameConflict",
        "AWS_SECRET_ACCESS_KEY",
        "200   \"hello from team-a/photos\"     hello.txt",
        "GetObject 403 AccessDenied",
        "team-b/photos-reader: NotShared",
        "its key on team-a-photos: GetObject 200, PutObject 403 AccessDenied",
        "the same key: GetObject 403 AccessDenied, PutObject 403 AccessDenied;",
        "GetObject with the key of team-a/reports: 403 InvalidAccessKeyId",
        "tag broker.stowage.io/claim",
        "BucketExists",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(text.lines().count() <= 110, "it fits on two screens\n{text}");
    let last = text.lines().last().unwrap_or_default();
    let counts = Regex::new(r"^\d+ Kubernetes writes and \d+ S3 calls by the operator, \d+\.\d s$").expect("a pattern");
    assert!(counts.is_match(last), "{last}");
    assert_eq!(output.status.code(), Some(0));
}

/// Returns the text output of one step of the examples, and its detail.
fn shown(name: &str) -> (String, String) {
    let document = document(&EXAMPLES.json);
    let steps = document["steps"].as_array().expect("steps is a list");
    let number = steps.iter().position(|step| step["name"] == name).expect("there is such a step") + 1;
    let text = stdout(&EXAMPLES.text);
    let (_, from) = text.split_once(&format!("\n✓ {number:>2}. ")).expect("it is shown");
    let page = from.split_once("\n✓ ").map_or(from, |(page, _)| page);
    (page.to_owned(), steps[number - 1]["detail"].as_str().expect("a sentence").to_owned())
}

/// Returns the groups of the only match of a pattern.
fn matched<const N: usize>(pattern: &str, text: &str) -> [String; N] {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found = pattern.captures_iter(text).map(|captures| captures.extract().1.map(str::to_owned));
    let only = found.next().unwrap_or_else(|| panic!("{pattern} is not in\n{text}"));
    assert!(found.next().is_none(), "{pattern} is more than once in\n{text}");
    only
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{text} is a number"))
}

/// Returns the seconds since midnight of a time of day.
fn seconds(time: &str) -> u64 {
    time.split(':').fold(0, |sum, part| sum * 60 + number(part))
}

#[test]
fn a_key_is_replaced_under_a_tenant_that_never_fails_and_ends_when_it_was_said_to() {
    let (page, detail) = shown("rotation");
    let time = r"(\d\d:\d\d:\d\d)";
    let [old, old_from, until, puts, gets, answer] =
        matched(&format!(r"(AKIA…\w{{4}}) +{time} +{time} +(\d+) +(\d+) +0 +(\d.*)"), &page);
    let [new, new_from, more_puts, more_gets] =
        matched(&format!(r"(AKIA…\w{{4}}) +{time} +(\d+) +(\d+) +0 +200"), &page);
    assert_ne!(old, new);
    assert!(seconds(&old_from) < seconds(&new_from), "{page}");
    let both = seconds(&until) - seconds(&new_from);
    assert!((300..310).contains(&both), "the overlap is 300 s: {page}");
    assert_eq!(answer, "403 InvalidAccessKeyId");
    let counts = [puts, gets, more_puts, more_gets].map(|count| number(&count));
    assert!(counts.iter().all(|count| *count >= 10), "{page}");
    assert!(detail.starts_with(&format!("{} requests ", counts.iter().sum::<u64>())), "{detail}");
    assert!(detail.contains(", 0 failed,"), "{detail}");
}

#[test]
fn a_refused_deletion_names_the_way_out_and_it_is_one() {
    let (page, _) = shown("deletion-refused");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["team-b/invoices False BucketNotEmpty", "forceDelete: false", "deletionPolicy: Retain in one patch"] {
        assert!(page.contains(words), "{words} is missing in {page}");
    }
    let (page, detail) = shown("deletion-let-go");
    assert!(page.contains(r#"-p '{"spec":{"deletionPolicy":"Retain","forceDelete":false}}'"#), "{page}");
    assert_eq!(detail, "team-b/invoices is gone, team-b-invoices keeps hello.txt");
}

#[test]
fn a_forced_deletion_takes_versions_markers_and_uploads_in_slices() {
    let (page, detail) = shown("deletion-forced");
    let counts = matched::<3>(r"team-a-scratch +Enabled +(\d+) +(\d+) +(\d+)", &page).map(|count| number(&count));
    assert!(counts.iter().all(|count| *count > 0), "{page}");
    let all: u64 = counts.iter().sum();
    assert!(detail.contains(&format!("team-a-scratch with the {all} versions, markers and uploads")), "{detail}");
    let [slice, progress] = matched(r"objectsDeleted, in slices of (\d+): ([\d, ]+)", &page);
    let progress: Vec<u64> = progress.split(", ").map(number).collect();
    let slices: Vec<u64> = (1..).map(|nth| nth * number(&slice)).take_while(|deleted| *deleted < all).collect();
    assert_eq!(progress, slices, "{page}");
    let told: Vec<&str> = page.lines().filter_map(|line| line.trim().strip_prefix("Normal   ")).collect();
    let reasons: Vec<&str> = told.iter().filter_map(|event| event.split_whitespace().next()).collect();
    assert_eq!(reasons, ["Revoked", "Purging", "BucketDeleted"]);
    assert!(told[2].ends_with(&format!("bucket team-a-scratch is deleted with its {all} objects")), "{page}");
}

#[test]
fn an_adopted_bucket_outlives_its_claim_and_the_event_says_why() {
    let (page, detail) = shown("adopted-kept");
    assert!(page.contains("BucketRetained   bucket ledger-2019 was taken over and is kept"), "{page}");
    assert!(!page.contains("BucketDeleted") && !page.contains("Purging"), "{page}");
    assert_eq!(detail, "ledger-2019 keeps all that was in it: hello.txt, old.txt");
}

#[test]
fn colours_can_be_had_and_switched_off() {
    assert!(stdout(&sim(&["demo", "--color", "always", "-f", "-"], OWN)).contains("\u{1b}[32m"));
    assert!(!stdout(&sim(&["demo", "--color", "never", "-f", "-"], OWN)).contains('\u{1b}'));
}

/// Secret keys are 40 characters of the URL-safe base64 alphabet. Ids, names and UIDs in the tour
/// are shorter.
// covers: 4.secrecy
#[test]
fn no_secret_key_is_printed() {
    let secret = Regex::new("[A-Za-z0-9_-]{40}").expect("a pattern");
    assert!(secret.is_match("AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI_K7MDENG-bPxRfiCYEXAMPLEKEY"));
    let own = sim(&["demo", "-f", "-"], OWN);
    for output in [&EXAMPLES.text, &EXAMPLES.json, &own] {
        for text in [stdout(output), stderr(output)] {
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
    let timeless = |output: &Output| millis.replace_all(stdout(output).trim_end(), "").into_owned();
    assert_eq!(timeless(&EXAMPLES.text), timeless(&sim(&["demo"], "")));
    assert_eq!(timeless(&EXAMPLES.json), timeless(&sim(&["demo", "-o", "json"], "")));
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
        "rotation",
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

/// The tour can't show some steps with an unversioned bucket, or with rotation without overlap,
/// during which a tenant's requests can fail.
#[test]
fn what_own_manifests_give_no_occasion_for_is_left_out() {
    let spec =
        "{backendRef: {name: fast}, deletionPolicy: Delete, forceDelete: true, rotationPolicy: {overlapSeconds: 0}}";
    let forced = OWN.replace("{backendRef: {name: fast}}", spec);
    let output = sim(&["demo", "-f", "-", "-o", "json"], &forced);
    let steps = steps(&document(&output));
    assert_eq!(steps[6..], ["administration-refused", "deletion-forced", "events"], "{}", stdout(&output));
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&sim(&["demo", "-f", "-"], &forced)).contains("Unversioned"));
}

/// A claim for a backend that doesn't exist fails its step; the rest of the tour still runs.
#[test]
fn a_step_that_fails_is_shown_and_makes_the_exit_code() {
    let waiting = "---\napiVersion: broker.stowage.io/v1alpha1\nkind: BucketClaim\n\
                   metadata: {name: waiting, namespace: alone}\nspec: {backendRef: {name: slow}}\n";
    let output = sim(&["demo", "-f", "-"], &format!("{OWN}{waiting}"));
    let text = stdout(&output);
    let told = "still being worked on: alone/waiting: BackendNotReady, there is no S3Backend slow";
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("✗ 4. Claims that got no bucket: {told}")), "{text}");
    assert!(text.contains("\n✗ 1 of 14 steps failed\n"), "{text}");
    assert_eq!(stderr(&output), format!("stowage-sim: {told}\n"));
    assert_eq!(output.status.code(), Some(1));
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

/// The README shows the output of the demo, except for the durations.
#[test]
fn the_readme_shows_what_is_printed() {
    let readme = include_str!("../../README.md");
    let shown = readme.split("<!-- demo: begin -->\n").nth(1).and_then(|rest| rest.split("<!-- demo: end -->").next());
    let shown = shown.expect("the README has the demo's block");
    let took = Regex::new(r", \d+\.\d s$").expect("a pattern");
    let output = stdout(&EXAMPLES.text);
    let mut printed = output.lines().map(|line| took.replace(line, "").into_owned());
    for line in shown.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)) {
        let line = took.replace(line, "");
        assert!(printed.any(|printed| printed == line), "the demo no longer prints, at this place: {line:?}");
    }
}
