//! The object table, played to the simulated API: with the project's definitions, and with two written by hand that
//! they must agree with (`reference/`), in answers and in structure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use stowage_sim::kubernetes::{Clock, Cluster};
use stowage_sim::objects::{self, Outcome, Rules};

fn reference() -> [CustomResourceDefinition; 2] {
    let texts = [include_str!("reference/bucketclaims.yaml"), include_str!("reference/s3backends.yaml")];
    texts.map(|text| serde_saphyr::from_str(text).expect("the reference is a CRD"))
}

async fn play(rules: Rules, definitions: &[CustomResourceDefinition]) -> Vec<Outcome> {
    let clock: Clock = Arc::new(|| Timestamp::UNIX_EPOCH);
    let cluster = Cluster::new(clock, 1);
    for definition in definitions {
        cluster.install_crd(definition).expect("the definition is accepted");
    }
    let outcomes = objects::run(&cluster.client("default"), rules, &objects::cases()).await;
    outcomes.expect("the namespace can be made and deleted")
}

fn assert_all_agree(outcomes: &[Outcome]) {
    assert!(outcomes.len() >= 60, "the table is too short: {} cases", outcomes.len());
    let differs = |outcome: &Outcome| Some(format!("{}: {}", outcome.name, outcome.result.as_ref().err()?));
    let differences: Vec<String> = outcomes.iter().filter_map(differs).collect();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[tokio::test]
async fn every_object_is_answered_as_expected_with_the_projects_definitions() {
    assert_all_agree(&play(Rules::Project, &stowage_operator::api::crds()).await);
}

#[tokio::test]
async fn every_object_is_answered_as_expected_with_the_reference_definitions() {
    assert_all_agree(&play(Rules::Reference, &reference()).await);
}
