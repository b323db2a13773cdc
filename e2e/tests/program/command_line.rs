//! The command line, without a cluster.

use std::process::{Command, Output};

/// Every flag of `run`.
const FLAGS: [&str; 16] = [
    "--cluster",
    "--jobs",
    "--artifacts",
    "--kubeconfig",
    "--context",
    "--s3-endpoint",
    "--s3-region",
    "--s3-access-key",
    "--s3-secret-key-file",
    "--s3-secret-key",
    "--operator-command",
    "--gateway-command",
    "--timeout",
    "--plan",
    "--thorough",
    "--output",
];

fn e2e(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-e2e"));
    command.args(arguments).env_clear();
    command.output().expect("the binary of this package can be run")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Complete arguments for a cluster and a store that don't exist.
fn complete() -> Vec<&'static str> {
    let mut arguments = vec!["run", "--cluster", "existing", "--kubeconfig", "no-such-kubeconfig"];
    arguments.extend(["--s3-endpoint", "http://127.0.0.1:1", "--s3-access-key", "id", "--s3-secret-key", "key"]);
    arguments.extend(["--operator-command", "no-such-operator"]);
    arguments
}

#[test]
fn help_names_every_flag_with_its_variable() {
    let output = e2e(&["run", "--help"]);
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    for flag in FLAGS {
        let variable = format!("STOWAGE_{}", flag.trim_start_matches('-').to_uppercase().replace('-', "_"));
        assert!(help.contains(flag), "{flag} is not in the help");
        assert!(help.contains(&variable), "{variable} is not in the help");
    }
    assert!(help.contains("bind-and-delete"), "a scenario is not in the help");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_was_expected() {
    let wrong = |from: &str, to: &'static str| {
        let arguments: Vec<&str> = complete().into_iter().map(|word| if word == from { to } else { word }).collect();
        e2e(&arguments)
    };
    let cases = [
        (e2e(&[]), "Usage"),
        (e2e(&["run"]), "--cluster"),
        (e2e(&["run", "--cluster", "existing", "--operator-command", "operator"]), "--kubeconfig"),
        (without(&complete(), "--s3-secret-key"), "--s3-secret-key-file"),
        (wrong("existing", "moon"), "existing"),
        (wrong("no-such-operator", " "), "a program is needed"),
        (e2e(&[&complete()[..], &["no-such-scenario"]].concat()), "object-table"),
        (e2e(&[&complete()[..], &["--timeout", "0"]].concat()), "1..=3600"),
        (e2e(&[&complete()[..], &["--jobs", "0"]].concat()), "1..=64"),
        // It needs a gateway, which an existing cluster doesn't have.
        (e2e(&[&complete()[..], &["rotation-overlap"]].concat()), "have to be made for the run"),
        (e2e(&[&complete()[..], &["crash-create"]].concat()), "have to be made for the run"),
        // The same is missing beside an existing store, which also needs its keys.
        (e2e(&beside_store(&["--s3-access-key", "id", "--s3-secret-key", "key", "crash-create"])), "made for the run"),
        (e2e(&beside_store(&["--s3-access-key", "id"])), "--s3-secret-key-file"),
        (e2e(&beside_store(&[])), "--s3-access-key"),
        (e2e(&["run", "--cluster", "kind", "two-operators"]), "two-operators: it needs processes of this machine"),
        (e2e(&["run", "--cluster", "control-plane"]), "--operator-command"),
        // Faults are for one scenario that has an operator and no faults of its own, on a control
        // plane of the harness.
        (e2e(&[&complete()[..], &["--plan", "#1 hang", "restart"]].concat()), "to be made for the run"),
        (e2e(&planned("#1 hang", &[])), "has to be named"),
        (e2e(&planned("#1 hang", &["restart", "adoption"])), "has to be named"),
        (e2e(&planned("#1 hang", &["crash-create"])), "crash-create takes no --plan"),
        (e2e(&planned("#1 hang", &["object-table"])), "object-table takes no --plan"),
        (e2e(&planned("s3:CreateBucket@1 already-owned", &["restart"])), "already-owned can't be made to happen"),
        (e2e(&planned("#1 lost-anser", &["restart"])), "unknown fault `lost-anser`"),
    ];
    for (output, expected) in &cases {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        assert!(stderr(output).contains(expected), "{expected:?} is not in: {}", stderr(output));
    }
}

/// Returns arguments for these scenarios on a control plane of the harness, with a plan.
fn planned<'a>(plan: &'a str, scenarios: &[&'a str]) -> Vec<&'a str> {
    let given = ["run", "--cluster", "control-plane", "--operator-command", "no-such-operator", "--plan", plan];
    [&given[..], scenarios].concat()
}

/// Returns arguments for a control plane of the harness beside an existing store.
fn beside_store<'a>(further: &[&'a str]) -> Vec<&'a str> {
    let given = ["run", "--cluster", "control-plane", "--operator-command", "no-such-operator"];
    [&given[..], &["--s3-endpoint", "http://127.0.0.1:1"], further].concat()
}

/// Runs it without this flag and its value.
fn without(arguments: &[&str], flag: &str) -> Output {
    let at = arguments.iter().position(|argument| *argument == flag).expect("the flag is among them");
    e2e(&[&arguments[..at], &arguments[at + 2..]].concat())
}

#[test]
fn a_control_plane_that_nobody_built_is_an_error_that_says_what_builds_it() {
    let output = e2e(&["run", "--cluster", "control-plane", "--operator-command", "no-such-operator"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("just control-plane"), "{}", stderr(&output));
}

#[test]
fn the_guide_is_played_from_the_root_and_by_pages_that_are_there() {
    // The working directory of a test is that of its package.
    let output = e2e(&["guide"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is this the project's root?"), "{}", stderr(&output));
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-e2e"));
    let output = command.args(["guide", "docs/guide/no-such.md"]).current_dir("..").env_clear().output();
    let output = output.expect("the binary of this package can be run");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no page docs/guide/no-such.md"), "{}", stderr(&output));
}

#[test]
fn what_fails_is_said_in_one_sentence() {
    let output = e2e(&complete());
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.starts_with("stowage-e2e: no-such-kubeconfig: "), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
}
