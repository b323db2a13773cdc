//! A small measurement of the operator, with every phase.
//!
//! Needs the programs of a control plane. If one is missing, the test is listed as ignored, with
//! the reason.

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use stowage_testbed::control_plane::missing;

/// Small numbers, to keep the test short.
const ARGUMENTS: [&str; 20] = [
    "bench",
    "--store",
    "simulated",
    "--claims",
    "20",
    "--namespaces",
    "3",
    "--healthy",
    "5",
    "--hung",
    "5",
    "--purges",
    "2",
    "--purge-objects",
    "20",
    "--idle",
    "1",
    "-o",
    "json",
    "--operator-command",
];

/// Values that show that a phase took place, each with its minimum.
const EXPECTED: [(&str, &str, f64); 10] = [
    ("create", "claims/s", 0.1),
    ("create", "to Bound, p99", 0.1),
    ("create", "Kubernetes requests", 3.0),
    ("create", "S3 calls", 2.0),
    ("create", "memory, peak", 1.0),
    ("idle", "Kubernetes requests in 1 s", 0.0),
    ("restart", "from the start to a new claim Bound", 0.1),
    ("purge", "beside / alone, p50", 0.0),
    ("delete", "deletions/s", 0.1),
    ("hung", "healthy claims Bound", 5.0),
];

fn main() -> ExitCode {
    let missing = missing();
    let trial = Trial::test("an_operator_is_measured_in_every_phase", || measure().map_err(Failed::from));
    let trial = trial.with_ignored_flag(missing.is_some());
    let trial = match missing {
        Some(program) => trial.with_kind(program.to_string()),
        None => trial,
    };
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn measure() -> Result<(), String> {
    let bench = Path::new(env!("CARGO_BIN_EXE_stowage-bench"));
    let operator = bench.with_file_name("stowage-operator");
    if !operator.is_file() {
        return Err(format!("there is no {}: `cargo build --workspace --bins` makes it", operator.display()));
    }
    let output = Command::new(bench).args(ARGUMENTS).arg(operator).output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(told);
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{error}: {told}"))?;
    let [operator, ceiling] = report["columns"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Err(format!("there should be two columns: {report:#}"));
    };
    for (phase, name, least) in EXPECTED {
        let value = figure(operator, phase, name);
        if value.is_none_or(|value| value < least) {
            return Err(format!("{phase}, {name} is {value:?}, not {least} at least: {report:#}"));
        }
    }
    if figure(ceiling, "create", "claims/s").is_none_or(|rate| rate <= 0.0) {
        return Err(format!("the bare loop bound nothing: {report:#}"));
    }
    let missed = report["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match missed.clone().find(|note| note.contains("were not")) {
        Some(note) => Err(note.to_owned()),
        None => Ok(()),
    }
}

fn figure(column: &Value, phase: &str, name: &str) -> Option<f64> {
    let figures = column["figures"].as_array()?;
    figures.iter().find(|it| it["phase"] == phase && it["name"] == name)?["value"].as_f64()
}
