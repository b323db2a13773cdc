//! A small measurement of a gateway, with every case that needs no further program: each case has
//! its values, and a program that is no gateway is reported as an error.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rstest::rstest;
use serde_json::Value;

/// Small numbers, to keep the test short.
const LITTLE: &str = "bench gateway --rounds 1 --seconds 1 --large 4 --keys 20 --streams 20 --revocations 3 \
                      --connections 4 -o json --gateway-command";

/// Values that show that a case took place, each with its minimum.
const EXPECTED: [(&str, &str, f64); 16] = [
    ("idle", "memory", 1.0),
    ("slow-get", "memory", 1.0),
    ("slow-put", "memory", 1.0),
    ("list-buckets", "requests/s", 1.0),
    ("bad-signature", "requests/s", 1.0),
    ("scope", "requests/s", 1.0),
    ("head", "requests/s", 1.0),
    ("get-small", "CPU per request", 1.0),
    ("put-small", "requests/s", 1.0),
    ("get-large", "throughput", 0.001),
    ("get-large", "of the copy proxy", 0.1),
    ("put-large", "throughput", 0.001),
    ("put-chunks", "throughput", 0.001),
    ("tls-get", "throughput", 0.001),
    ("tls-put", "throughput", 0.001),
    ("revoke", "to the refusal, p99", 0.001),
];

fn gateway() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_stowage-bench")).with_file_name("stowage-gateway");
    assert!(program.is_file(), "there is no {}: `cargo build --workspace --bins` makes it", program.display());
    program
}

fn measure(more: &[&str], command: &str) -> Output {
    let bench = Path::new(env!("CARGO_BIN_EXE_stowage-bench"));
    Command::new(bench).args(LITTLE.split_whitespace()).arg(command).args(more).output().expect("it can be started")
}

fn figure(column: &Value, case: &str, name: &str) -> Option<f64> {
    let figures = column["figures"].as_array()?;
    figures.iter().find(|it| it["phase"] == case && it["name"] == name)?["value"].as_f64()
}

#[test]
fn a_gateway_is_measured_in_every_case() {
    let output = measure(&[], &gateway().display().to_string());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let column = &report["columns"][0];
    for (case, name, least) in EXPECTED {
        let value = figure(column, case, name);
        assert!(value.is_some_and(|value| value >= least), "{case}, {name} is {value:?}: {report:#}");
    }
    let named = |name: &str| report["columns"].as_array().into_iter().flatten().any(|column| column["name"] == name);
    assert!(named("copy proxy") && named("direct"), "{report:#}");
}

/// Programs that don't answer like a gateway.
#[rstest]
#[case("/bin/false", "did not read its credentials")]
#[case("/nowhere/gateway", "can't start")]
fn what_is_no_gateway_is_no_measurement(#[case] command: &str, #[case] expected: &str) {
    let output = measure(&["--cases", "list-buckets", "--timeout", "2"], command);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains(expected), "{told}");
    assert!(output.stdout.is_empty());
}
