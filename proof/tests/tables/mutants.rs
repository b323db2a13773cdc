//! Tests that the catalogue of mutants is complete: each patch describes itself, and applies to the
//! current operator.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use stowage_proof::explorer::{Schedule, scenarios};
use stowage_proof::mutants::{Mutant, load};
use stowage_proof::oracles::Promise;

/// Lowest number of mutants.
const LEAST: usize = 40;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn catalogue() -> Vec<Mutant> {
    load(&workspace()).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn there_are_enough_mutants() {
    assert!(catalogue().len() >= LEAST);
}

#[test]
fn every_mutant_applies_to_the_operator_as_it_stands() {
    let problems: Vec<String> = catalogue()
        .iter()
        .filter_map(|mutant| mutant.apply(&workspace()).err().map(|why| format!("{}: {why}", mutant.name)))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_mutant_is_first_looked_for_in_scenarios_that_there_are() {
    let unknown: Vec<String> = catalogue()
        .iter()
        .flat_map(|mutant| mutant.scenarios().iter().map(move |scenario| (mutant, scenario)))
        .filter(|(_, scenario)| scenarios::named(scenario).is_none())
        .map(|(mutant, scenario)| format!("{}: {scenario}", mutant.name))
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

#[test]
fn every_recorded_plan_is_a_schedule() {
    let catalogue = catalogue();
    let plans: Vec<_> = catalogue.iter().filter_map(|mutant| Some((mutant, mutant.plan()?))).collect();
    assert!(!plans.is_empty());
    let problem = |(mutant, plan): &(&Mutant, &str)| {
        plan.parse::<Schedule>().err().map(|why| format!("{}: {plan}: {why}", mutant.name))
    };
    let problems: Vec<String> = plans.iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_mutant_that_a_test_finds_names_one_that_there_is() {
    let catalogue = catalogue();
    let tests: Vec<_> = catalogue.iter().filter_map(Mutant::test).collect();
    assert!(!tests.is_empty());
    let problems: Vec<String> = tests.iter().filter_map(|test| test.problem(&workspace())).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_two_mutants_are_the_same_change() {
    let changed: BTreeSet<_> = catalogue().iter().map(|mutant| mutant.apply(&workspace())).collect();
    assert_eq!(changed.len(), catalogue().len());
}

#[test]
fn every_promise_is_one_that_a_mutant_breaks() {
    let broken: BTreeSet<_> = catalogue().iter().flat_map(|mutant| mutant.promises().to_vec()).collect();
    let unbroken: Vec<_> = Promise::ALL.iter().filter(|promise| !broken.contains(promise)).copied().collect();
    assert_eq!(unbroken, [], "no mutant shows that these can be broken");
}
