//! The object table, played against the simulated API: with the project's definitions, and with two
//! handwritten ones (`reference/`). Both must agree in answers and in structure. Manifests of the
//! guides must be valid by the project's definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_sim::Cluster;
use serde_json::Value;
use stowage_proof::objects::{self, CaseOutcome, Rules};
use stowage_world::{apply, parse};

fn reference() -> [CustomResourceDefinition; 2] {
    let texts = [include_str!("reference/bucketclaims.yaml"), include_str!("reference/s3backends.yaml")];
    texts.map(|text| serde_saphyr::from_str(text).expect("the reference is a CRD"))
}

async fn play(rules: Rules, definitions: &[CustomResourceDefinition]) -> Vec<CaseOutcome> {
    let cluster = Cluster::new(Arc::new(|| Timestamp::UNIX_EPOCH), 1);
    for definition in definitions {
        cluster.install_crd(definition).expect("the definition is accepted");
    }
    let outcomes = objects::run(&cluster.client("default"), rules, &objects::cases()).await;
    outcomes.expect("the namespace can be made and deleted")
}

/// Cases with an answer that differs from the table, and the reason. Where the cause is kube-cel,
/// which evaluates the rules here, the server's own CEL agrees with the table.
const DIFFERENT: [(Rules, &str, &str); 9] = [
    (Rules::Project, "a quota above 7Ei by less than the smallest fraction that a quantity can hold", DIGITS),
    (Rules::Reference, "a quota above 7Ei by less than the smallest fraction that a quantity can hold", DIGITS),
    (Rules::Reference, "an endpoint with a fragment", URLS),
    (Rules::Reference, "an endpoint with a path but no host", URLS),
    (Rules::Reference, "a key of 254 characters in the template of a claim", FIELDS),
    (Rules::Reference, "keys of a template that have more than 4096 characters together", FIELDS),
    (Rules::Reference, "sharing with 4080 bytes of names", FIELDS),
    (Rules::Reference, "sharing with 4140 bytes of names", FIELDS),
    (Rules::Reference, "sharing with 4804 bytes in selectors", FIELDS),
];
const FIELDS: &str = "the reference has no such field";
/// Refused as well, with another message.
const DIGITS: &str = "it holds 38 digits of a quantity; one with more is an error in the rule";
const URLS: &str = "it reads URLs as browsers do: http:///a has the host a, and a fragment may follow the host";

fn assert_all_agree(rules: Rules, outcomes: &[CaseOutcome]) {
    assert!(outcomes.len() >= 60, "the table is too short: {} cases", outcomes.len());
    let known = |name: &str| DIFFERENT.iter().any(|(of, case, _)| *of == rules && *case == name);
    let wrong = |outcome: &CaseOutcome| match &outcome.result {
        Err(mismatch) if !known(&outcome.name) => Some(format!("{}: {mismatch}", outcome.name)),
        Ok(()) if known(&outcome.name) => Some(format!("{}: agrees now, strike it from the list", outcome.name)),
        _ => None,
    };
    let differences: Vec<String> = outcomes.iter().filter_map(wrong).collect();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

// covers: 1.crd.rules
#[tokio::test]
async fn every_object_is_answered_as_expected_with_the_projects_definitions() {
    assert_all_agree(Rules::Project, &play(Rules::Project, &stowage_operator::api::crds()).await);
}

#[tokio::test]
async fn every_object_is_answered_as_expected_with_the_reference_definitions() {
    assert_all_agree(Rules::Reference, &play(Rules::Reference, &reference()).await);
}

/// Returns the complete manifests of a page: blocks of YAML that begin with `apiVersion`.
fn manifests(page: &str) -> Vec<String> {
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with("apiVersion: broker.stowage.io/")).map(str::to_owned).collect()
}

/// Every manifest of the guides is accepted, without unknown fields.
#[tokio::test]
async fn every_manifest_of_the_guides_is_a_good_object() {
    let cluster = Cluster::new(Arc::new(|| Timestamp::UNIX_EPOCH), 1);
    for definition in stowage_operator::api::crds() {
        cluster.install_crd(&definition).expect("the definition is accepted");
    }
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide");
    let mut taken = 0;
    for guide in std::fs::read_dir(guides).expect("the guides are there") {
        let path = guide.expect("it can be read").path();
        let Some(page) = path.extension().filter(|it| *it == "md").and_then(|_| std::fs::read_to_string(&path).ok())
        else {
            continue;
        };
        for text in manifests(&page) {
            let documents = parse(&path.display().to_string(), &text).unwrap_or_else(|error| panic!("{error}"));
            for document in documents {
                let namespace = document.object.metadata.namespace.clone();
                make_namespace(&cluster, namespace.as_deref().unwrap_or("default")).await;
                apply(&cluster.client("default"), &document).await.unwrap_or_else(|error| panic!("{error}"));
                taken += 1;
            }
        }
    }
    assert!(taken >= 5, "the guides have {taken} manifests");
}

async fn make_namespace(cluster: &Cluster, name: &str) {
    let manifest = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
    for document in parse("namespace", &manifest).expect("it is YAML") {
        apply(&cluster.client("default"), &document).await.expect("it is taken");
    }
}

/// Intended differences of the project's definitions from the reference: the beginning of a path,
/// and the reason.
const DEPARTURES: [(&str, &str); 15] = [
    ("bucketclaims.status", "the reference's status is partial; that of the project is whole"),
    ("s3backends.status", "the reference's status is partial; that of the project is whole"),
    ("bucketclaims.spec.bucketName.pattern", "a rule with a message says it"),
    ("bucketclaims.spec.bucketName.x-kubernetes-validations", "a rule with a message in place of the pattern"),
    ("bucketclaims.spec.writeConnectionSecretToRef.name.pattern", "a rule with a message says it"),
    ("bucketclaims.spec.writeConnectionSecretToRef.name.x-kubernetes-validations", "in place of the pattern"),
    ("s3backends.spec.endpoint.pattern", "the rule says it, so that there is one message"),
    ("s3backends.spec.endpoint.x-kubernetes-validations", "holds the pattern too, and its message names all parts"),
    ("s3backends.spec.adoptionProof", "the reference takes buckets of other accounts"),
    ("bucketclaims.spec.sharing", "the reference has no accesses"),
    ("bucketclaims.spec.secretTemplate", "the reference has no templates"),
    ("s3backends.spec.sharedBuckets", "the reference has no accesses"),
    ("s3backends.spec.tls.default", "defaults of objects are written out in full"),
    ("s3backends.spec.allowedNamespaces.selector", "lists and maps have bounds here"),
    ("bucketclaims.spec.anonymousAccess.perSourceIPRPS.format", "a server checks no integer format"),
];

/// Returns the definition as a flat list of facts, such as
/// `bucketclaims.spec.quota.hard.maxLength`, which is 32.
fn facts(definition: &CustomResourceDefinition) -> BTreeMap<String, Value> {
    let mut value = serde_json::to_value(definition).expect("a definition is JSON");
    let plural = definition.spec.names.plural.clone();
    let mut version = value["spec"]["versions"][0].take();
    let schema = version["schema"]["openAPIV3Schema"].take();
    value["spec"]["names"]["listKind"] = Value::Null;
    let mut facts = BTreeMap::new();
    flatten(&format!("{plural}/spec"), &value["spec"], &mut facts);
    flatten(&format!("{plural}/version"), &version, &mut facts);
    schema_facts(&plural, &schema, &mut facts);
    facts
}

fn flatten(path: &str, value: &Value, facts: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| flatten(&format!("{path}/{name}"), value, facts));
        }
        Value::Null => {}
        _ => {
            facts.insert(path.to_owned(), value.clone());
        }
    }
}

fn schema_facts(path: &str, schema: &Value, facts: &mut BTreeMap<String, Value>) {
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            // Prose: a title repeats the kind.
            ("description" | "title", _) => {}
            // A server adds these three to every object; declaring them makes no difference.
            ("properties", Value::Object(children)) => {
                let envelope = |child: &str| !path.contains('.') && matches!(child, "apiVersion" | "kind" | "metadata");
                for (child, schema) in children.iter().filter(|(child, _)| !envelope(child)) {
                    schema_facts(&format!("{path}.{child}"), schema, facts);
                }
            }
            ("items" | "additionalProperties", Value::Object(_)) => {
                schema_facts(&format!("{path}.{name}"), value, facts);
            }
            ("required", Value::Array(names)) => {
                let names: BTreeSet<String> = names.iter().map(Value::to_string).collect();
                facts.insert(format!("{path}.required"), names.into_iter().collect());
            }
            _ => {
                facts.insert(format!("{path}.{name}"), value.clone());
            }
        }
    }
}

// covers: 1.backend.definition, 1.claim.definition
#[test]
fn the_definitions_agree_with_the_reference_in_structure() {
    let mut departed = BTreeSet::new();
    let mut differences = Vec::new();
    for (ours, theirs) in stowage_operator::api::crds().iter().zip(&reference()) {
        let (ours, theirs) = (facts(ours), facts(theirs));
        let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for path in paths.into_iter().filter(|path| ours.get(*path) != theirs.get(*path)) {
            match DEPARTURES.iter().find(|(start, _)| path.starts_with(start)) {
                Some((start, _)) => drop(departed.insert(*start)),
                None => differences.push(format!("{path}: {:?}, not {:?}", ours.get(path), theirs.get(path))),
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let listed: BTreeSet<&str> = DEPARTURES.iter().map(|(start, _)| *start).collect();
    assert_eq!(departed, listed, "strike what is no departure any more");
}
