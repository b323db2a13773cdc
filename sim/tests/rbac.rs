//! What the operator is allowed in `kind-config/operator` is what it does, no less and no more.
//!
//! Which calls it makes is seen in the simulator: all scenarios are played, some also with faults
//! that lead to the calls of a second try. Every call of the operator needs a rule, and every rule
//! needs a call.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::Deserialize;
use stowage_sim::effects::{Call, GatewayPlan, KubeCall, Plan};
use stowage_sim::explorer::{Schedule, run, scenarios};
use stowage_sim::world::OPERATOR_NAMESPACE;

/// Schedules in which calls are made anew, or something is looked at live.
const DISTURBED: [&str; 4] = [
    "create 1 kube:create secrets@1 lost-answer; kube:patch secrets@1 conflict",
    "create 1 kube:create secrets@2 already-exists(own); kube:create events@1 lost-request",
    "rotate 1 kube:patch bucketclaims/status@1 lost-request; kube:patch secrets@2 lost-answer",
    "rotate 1 s3:CreateBucket@1 crash(after-effect); kube:create secrets@3 lost-answer",
];

/// Granted, though the operator makes no such call: verb, group, resource, and why.
const WITHOUT_A_CALL: [(&str, &str, &str, &str); 2] = [
    ("update", "broker.stowage.io", "bucketclaims/finalizers", BLOCKS),
    ("update", "broker.stowage.io", "bucketaccesses/finalizers", BLOCKS),
];

const BLOCKS: &str =
    "admission asks for it when an owner reference sets blockOwnerDeletion (OwnerReferencesPermissionEnforcement)";

/// What a rule grants or a call needs: where, verb, group, resource with its subresource.
type Right = (Scope, String, String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// In the operator's own namespace.
    Own,
    /// Anywhere else.
    Cluster,
}

fn needs(call: &KubeCall) -> Right {
    let resource = match &call.subresource {
        Some(subresource) => format!("{}/{subresource}", call.resource),
        None => call.resource.clone(),
    };
    let is_kept_there = ["secrets", "configmaps", "leases"].contains(&call.resource.as_str());
    let own = call.namespace.as_deref() == Some(OPERATOR_NAMESPACE) && is_kept_there;
    let scope = if own { Scope::Own } else { Scope::Cluster };
    (scope, call.verb.name().to_owned(), call.group.clone(), resource)
}

/// The rights that the operator makes use of in all scenarios.
fn used() -> BTreeSet<Right> {
    let mut used = BTreeSet::new();
    let undisturbed = scenarios::ALL.iter().map(|scenario| Schedule {
        scenario,
        seed: 1,
        plan: Plan::default(),
        gateway: GatewayPlan::default(),
    });
    let disturbed = DISTURBED.iter().map(|line| line.parse().unwrap_or_else(|error| panic!("{line}: {error}")));
    for schedule in undisturbed.chain(disturbed) {
        let outcome = run(&schedule);
        used.extend(outcome.history.trace.lines().iter().filter_map(|line| match &line.call {
            Call::Kube(call) => Some(needs(call)),
            Call::S3(_) => None,
        }));
    }
    used
}

fn granted() -> BTreeSet<Right> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kind-config/operator/rbac.yaml");
    let text = fs::read_to_string(&file).expect("the manifest can be read");
    let mut granted = BTreeSet::new();
    for document in text.split("\n---\n") {
        #[derive(Deserialize)]
        struct Typed {
            kind: String,
        }
        let typed: Typed = serde_saphyr::from_str(document).expect("it is an object");
        let (scope, rules) = match typed.kind.as_str() {
            "ClusterRole" => (Scope::Cluster, serde_saphyr::from_str::<ClusterRole>(document).expect("a role").rules),
            "Role" => (Scope::Own, serde_saphyr::from_str::<Role>(document).expect("a role").rules),
            _ => continue,
        };
        granted.extend(rules.unwrap_or_default().iter().flat_map(|rule| rights(scope, rule)));
    }
    granted
}

fn rights(scope: Scope, rule: &PolicyRule) -> Vec<Right> {
    let groups = rule.api_groups.clone().unwrap_or_default();
    let resources = rule.resources.clone().unwrap_or_default();
    let mut rights = Vec::new();
    for verb in &rule.verbs {
        for group in &groups {
            rights.extend(resources.iter().map(|it| (scope, verb.clone(), group.clone(), it.clone())));
        }
    }
    rights
}

// covers: 3.8.verbs
#[test]
fn the_operator_is_granted_what_it_does_and_nothing_else() {
    let (used, mut granted) = (used(), granted());
    assert!(!granted.iter().any(|(_, verb, group, resource)| [verb, group, resource].iter().any(|it| *it == "*")));
    let missing: Vec<&Right> = used.difference(&granted).collect();
    assert!(missing.is_empty(), "the operator does this and may not: {missing:#?}");
    for (verb, group, resource, why) in WITHOUT_A_CALL {
        let right = (Scope::Cluster, verb.to_owned(), group.to_owned(), resource.to_owned());
        assert!(granted.remove(&right), "{resource} is listed with a reason ({why}) and isn't granted");
        assert!(!used.contains(&right), "{resource} needs no reason, it is used");
    }
    let unused: Vec<&Right> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "the operator may do this and never does: {unused:#?}");
}
