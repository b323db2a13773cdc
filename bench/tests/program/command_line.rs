//! The command line, without a cluster.

use std::process::{Command, Output};

/// Every flag of `bench`.
const FLAGS: [&str; 16] = [
    "--operator-command",
    "--against",
    "--crds",
    "--against-crds",
    "--rounds",
    "--claims",
    "--namespaces",
    "--phases",
    "--store",
    "--healthy",
    "--hung",
    "--purges",
    "--purge-objects",
    "--idle",
    "--timeout",
    "--output",
];

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stowage-bench"));
    command.args(arguments).env_clear();
    command.output().expect("the binary of this package can be run")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_names_every_flag_with_its_variable() {
    let output = bench(&["bench", "--help"]);
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    for flag in FLAGS {
        let variable = format!("STOWAGE_{}", flag.trim_start_matches('-').to_uppercase().replace('-', "_"));
        assert!(help.contains(flag), "{flag} is not in the help");
        assert!(help.contains(&variable), "{variable} is not in the help");
    }
    assert!(help.contains("versitygw or MinIO"), "the stores are not in the help");
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_was_expected() {
    let cases = [
        (bench(&[]), "Usage"),
        (bench(&["bench", "--phases", "moon"]), "possible values: create, idle, restart"),
        (bench(&["bench", "--claims", "0"]), "1..=99999"),
        (bench(&["bench", "--operator-command", "x", "--phases", "ceiling"]), "--phases needs create"),
    ];
    for (output, expected) in &cases {
        assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
        assert!(stderr(output).contains(expected), "{expected:?} is not in: {}", stderr(output));
    }
}

#[test]
fn a_measurement_says_what_it_lacks() {
    let output = bench(&["bench", "--operator-command", "no-such-operator"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("just control-plane"), "{}", stderr(&output));
    let output = bench(&["bench", "--operator-command", "no-such-operator", "--store", "no-such-store"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no no-such-store: --store takes"), "{}", stderr(&output));
}
