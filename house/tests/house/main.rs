//! Tests of the project's structure: dependencies between crates, sizes of files, and style.

#![expect(clippy::print_stdout, reason = "words of each page, for people")]

mod circles;
mod code;
mod comments;
mod contents;
mod floors;
mod graph;
mod pages;
mod plain;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use code::{code, code_and_tests, root};

/// Libraries that don't depend on Stowage: any project could use them.
const GENERAL: [&str; 9] =
    ["daemon", "explore", "faults", "kube-front", "kube-sim", "s3-sim", "seeded", "store-tls", "terminal"];

/// Crates of this project that operator and gateway may depend on.
const SHARED: [&str; 3] = ["daemon", "stowage-api", "store-tls"];

/// Stowage's crates that a world runs.
const SIMULATED: [&str; 3] = ["stowage-api", "stowage-gateway", "stowage-operator"];

/// Stowage's crates with parsers that are fuzzed.
const FUZZED: [&str; 3] = ["stowage-api", "stowage-gateway", "stowage-operator"];

/// Maximum number of lines in a file of shipped or library code, without its tests.
const LONGEST: usize = 400;
/// Files that may be longer, with the reason.
const LONG: [(&str, &str); 0] = [];

/// Returns each package of the workspace with its dependencies, without those of its tests and
/// build scripts.
fn packages() -> Vec<(String, BTreeSet<String>)> {
    let packages = metadata();
    let packages = packages.iter().map(|package| (name(package), dependencies(package, Value::is_null)));
    packages.collect()
}

/// Returns each package of the workspace with its folder relative to the root, and with all its
/// dependencies.
fn manifests() -> Vec<(String, String, BTreeSet<String>)> {
    let packages = metadata();
    packages.iter().map(|package| (name(package), folder(package), dependencies(package, |_| true))).collect()
}

/// Returns a package's folder relative to the root.
fn folder(package: &Value) -> String {
    let root = root().canonicalize().expect("there is a root");
    let manifest = Path::new(package["manifest_path"].as_str().expect("it has a manifest"));
    let folder = manifest.parent().and_then(|folder| folder.strip_prefix(&root).ok());
    folder.expect("it is below the root").display().to_string()
}

fn name(value: &Value) -> String {
    value["name"].as_str().expect("it has a name").to_owned()
}

/// Returns the names of a package's dependencies of some kinds; the kind is null for those of its
/// code.
fn dependencies(package: &Value, of_kind: impl Fn(&Value) -> bool) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.filter(|dependency| of_kind(&dependency["kind"])).map(name).collect()
}

/// Returns the packages of the workspace from `cargo metadata`.
fn metadata() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs these tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    metadata["packages"].as_array().expect("it has packages").clone()
}

/// Returns the dependencies that a package may not have.
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
        // The simulator needs no oracle, and the proof no simulator.
        "stowage-sim" | "stowage-proof" => {
            refuse(stowage.into_iter().filter(|name| !is_played(name)).collect());
        }
        "stowage-testbed" => refuse(stowage.into_iter().filter(|name| !is_played(name)).collect()),
        "stowage-e2e" => {
            assert!(has("stowage-sim") && has("stowage-operator"), "e2e plays both");
            refuse(stowage.into_iter().filter(|name| is_on_top(name)).collect());
        }
        // A measurement needs no oracle and no simulator.
        "stowage-bench" => {
            refuse(stowage.into_iter().filter(|name| !is_played(name) && *name != "stowage-testbed").collect());
        }
        // It uses the parsers that it tests, and no crate depends on it.
        "stowage-fuzz" => refuse(stowage.into_iter().filter(|name| FUZZED.iter().all(|it| it != name)).collect()),
        // It reads the sources as text.
        "stowage-house" => refuse(stowage),
        other => panic!("{other} has no place in this test yet: say what it may depend on"),
    }
    wrong
}

/// True for crates that no crate may depend on.
fn is_on_top(name: &str) -> bool {
    matches!(name, "stowage-bench" | "stowage-e2e" | "stowage-fuzz" | "stowage-house")
}

/// True for Stowage's crates that a world runs, and for the world.
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

/// The planner decides from the contract and from its own types, so it may depend on nothing else.
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

/// One convention for modules: a module with submodules is `x/mod.rs`, never `x.rs` beside `x/`.
#[test]
fn a_module_with_rooms_is_in_its_folder() {
    let folders =
        ["crates", "operator", "gateway", "world", "sim", "proof", "testbed", "e2e", "bench", "fuzz", "house"];
    let files = code_and_tests(&folders);
    let beside: Vec<&String> =
        files.iter().map(|(file, _)| file).filter(|file| root().join(file.trim_end_matches(".rs")).is_dir()).collect();
    assert_eq!(beside, [] as [&String; 0], "move each to `mod.rs` in the folder of its name");
}

/// Libraries with a different name in code than that of their package.
const NAMED_OTHERWISE: [(&str, &str); 2] = [("md-5", "md5"), ("rustls-webpki", "webpki")];

/// A dependency that is not used in code: it selects the version of Kubernetes that the crate
/// `kube` is built for.
const CHOSEN: &str = "k8s-openapi";

/// Crates without examples in their documentation disable doc tests, which would take seconds per
/// crate.
#[test]
fn examples_in_documentation_are_run() {
    let mut left_out = Vec::new();
    let has_examples_left_out = |package: &Value| {
        let targets = package["targets"].as_array().expect("it has targets");
        targets.iter().any(|target| target["kind"][0] == "lib" && target["doctest"] == false)
    };
    for package in metadata().iter().filter(|package| has_examples_left_out(package)) {
        let begins = |line: &&str| line.trim_start().starts_with("//! ```") || line.trim_start().starts_with("/// ```");
        for (file, text) in code_and_tests(&[&format!("{}/src", folder(package))]) {
            // Every second fence opens a block.
            let mut opening = text.lines().filter(begins).step_by(2);
            if opening.any(|fence| !fence.ends_with("```text")) {
                left_out.push(file);
            }
        }
    }
    assert!(left_out.is_empty(), "doctest = false, and there is an example: {left_out:?}");
}

#[test]
fn a_manifest_names_what_its_crate_uses() {
    let mut unused = Vec::new();
    for (package, folder, dependencies) in manifests() {
        let text: String = code_and_tests(&[&folder]).into_iter().map(|(_, text)| text).collect();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for dependency in dependencies {
            let renamed = NAMED_OTHERWISE.iter().find(|(name, _)| *name == dependency);
            let name = renamed.map_or_else(|| dependency.replace('-', "_"), |(_, name)| (*name).to_owned());
            if dependency != CHOSEN && !words.contains(name.as_str()) {
                unused.push(format!("{package}: {dependency}"));
            }
        }
    }
    assert_eq!(unused, [] as [&str; 0], "no code of these crates names these libraries");
}
