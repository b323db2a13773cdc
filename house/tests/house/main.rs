//! The shape of the house: who may depend on whom, how long a file may be, and how it reads.

mod circles;
mod code;
mod contents;
mod graph;
mod plain;

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use code::{code, root};

/// Libraries that know nothing of Stowage: any project could use them.
const GENERAL: [&str; 8] = ["daemon", "explore", "faults", "kube-sim", "s3-sim", "seeded", "store-tls", "terminal"];

/// What operator and gateway are built on, of the house.
const SHARED: [&str; 3] = ["daemon", "stowage-api", "store-tls"];

/// The crates of Stowage that a world runs.
const SIMULATED: [&str; 3] = ["stowage-api", "stowage-gateway", "stowage-operator"];

/// The crates of Stowage whose reading is fuzzed.
const FUZZED: [&str; 3] = ["stowage-api", "stowage-gateway", "stowage-operator"];

/// Longest that a file of shipped or library code may be, its tests apart.
const LONGEST: usize = 400;
/// Files that may be longer, with the reason.
const LONG: [(&str, &str); 0] = [];

/// Each package of the workspace, with the names of those that it depends on; its tests' and build
/// scripts' apart.
fn packages() -> Vec<(String, BTreeSet<String>)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs these tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let packages = metadata["packages"].as_array().expect("it has packages").iter().map(|package| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        let name = |value: &Value| value["name"].as_str().expect("it has a name").to_owned();
        (name(package), normal.map(name).collect())
    });
    packages.collect()
}

/// Dependencies that break the order of the house.
fn upward(package: &str, dependencies: &BTreeSet<String>) -> Vec<String> {
    let has = |name: &str| dependencies.contains(name);
    let stowage: Vec<&String> = dependencies.iter().filter(|name| name.starts_with("stowage-")).collect();
    let mut wrong = Vec::new();
    let mut refuse = |names: Vec<&String>| wrong.extend(names.into_iter().map(|name| format!("{package} -> {name}")));
    match package {
        _ if GENERAL.contains(&package) => refuse(stowage),
        "stowage-api" => refuse(dependencies.iter().filter(|name| is_of_house(name)).collect()),
        "stowage-operator" | "stowage-gateway" => {
            let others = dependencies.iter().filter(|name| is_of_house(name) && !SHARED.contains(&name.as_str()));
            refuse(others.collect());
        }
        "stowage-world" => refuse(stowage.into_iter().filter(|name| !SIMULATED.contains(&name.as_str())).collect()),
        // The page needs no oracle, and the proof no page.
        "stowage-sim" | "stowage-proof" => {
            refuse(stowage.into_iter().filter(|name| !is_played(name)).collect());
        }
        "stowage-testbed" => refuse(stowage.into_iter().filter(|name| !is_played(name)).collect()),
        "stowage-e2e" => {
            assert!(has("stowage-sim") && has("stowage-operator"), "e2e plays both");
            refuse(stowage.into_iter().filter(|name| is_on_top(name)).collect());
        }
        // A measurement needs no oracle and no page.
        "stowage-bench" => {
            refuse(stowage.into_iter().filter(|name| !is_played(name) && *name != "stowage-testbed").collect());
        }
        // It reads what others read, and nothing is built on it.
        "stowage-fuzz" => refuse(stowage.into_iter().filter(|name| FUZZED.iter().all(|it| it != name)).collect()),
        // It reads the sources as text.
        "stowage-house" => refuse(stowage),
        other => panic!("{other} has no place in this test yet: say what it may depend on"),
    }
    wrong
}

/// Crates that nothing is built on.
fn is_on_top(name: &str) -> bool {
    matches!(name, "stowage-bench" | "stowage-e2e" | "stowage-fuzz" | "stowage-house")
}

/// Crates of Stowage that a world runs, and the world.
fn is_played(name: &str) -> bool {
    SIMULATED.contains(&name) || name == "stowage-world"
}

fn is_of_house(name: &str) -> bool {
    name.starts_with("stowage-") || GENERAL.contains(&name)
}

#[test]
fn no_crate_depends_on_one_above_it() {
    let packages = packages();
    for general in GENERAL {
        assert!(packages.iter().any(|(name, _)| name == general), "there is no {general}");
    }
    let wrong: Vec<String> = packages.iter().flat_map(|(name, dependencies)| upward(name, dependencies)).collect();
    assert_eq!(wrong, [] as [&str; 0]);
}

#[test]
fn an_arrow_that_runs_up_is_seen() {
    let on = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(upward("kube-sim", &on(&["kube", "stowage-api"])), ["kube-sim -> stowage-api"]);
    assert_eq!(
        upward("stowage-gateway", &on(&["store-tls", "stowage-api", "stowage-operator"])),
        ["stowage-gateway -> stowage-operator"]
    );
    assert_eq!(upward("stowage-operator", &on(&["faults", "stowage-api"])), ["stowage-operator -> faults"]);
}

/// Decisions are made of the contract and of what the planner itself knows; nothing else is in its
/// reach.
#[test]
fn the_planner_imports_the_contract_and_itself_alone() {
    let of_crate = |line: &str| {
        let named = line.split("crate::").skip(1);
        named
            .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let mut wrong = Vec::new();
    for (file, text) in code(&["operator/src/plan"]) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            wrong.extend(
                of_crate(line).into_iter().filter(|it| it != "api" && it != "plan").map(|it| format!("{file}: {it}")),
            );
            for outside in ["tokio::", "futures::", "kube::Client", "std::time::SystemTime", "fastrand::", "async "] {
                if line.contains(outside) {
                    wrong.push(format!("{file}: {outside}"));
                }
            }
        }
    }
    assert_eq!(wrong, [] as [&str; 0]);
}

#[test]
fn a_file_can_be_read_in_one_sitting() {
    let mut long = Vec::new();
    for (file, text) in code(&["operator/src", "crates"]) {
        let lines = text.lines().count();
        let allowed = LONG.iter().any(|(name, _)| *name == file);
        assert!(lines > LONGEST || !allowed, "{file} is short enough by now: it needs no exception");
        if lines > LONGEST && !allowed {
            long.push(format!("{file}: {lines} lines"));
        }
    }
    assert_eq!(long, [] as [&str; 0], "each of these hides two");
}
