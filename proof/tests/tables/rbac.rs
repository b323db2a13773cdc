//! Tests that the rights in `kind-config/operator` are exactly those that the operator uses; and
//! likewise those in `kind-config/namespaced`, for one that serves only some namespaces.
//!
//! The calls are observed in the simulator: all scenarios are played, some also with faults that
//! cause the calls of a retry. Every call of the operator needs a rule, and every rule needs a
//! call.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};
use serde::Deserialize;
use stowage_operator::plan::Reach;
use stowage_proof::explorer::{Scenario, Schedule, run, scenarios};
use stowage_world::effects::{Call, GatewayPlan, KubeCall, Plan};
use stowage_world::{OPERATOR_NAMESPACE, Options};

/// Schedules in which calls are retried, or an object is read live.
const DISTURBED: [&str; 4] = [
    "create 1 kube:create secrets@1 lost-answer; kube:patch secrets@1 conflict",
    "create 1 kube:create secrets@2 already-exists(own); kube:create events@1 lost-request",
    "rotate 1 kube:patch bucketclaims/status@1 lost-request; kube:patch secrets@2 lost-answer",
    "rotate 1 s3:CreateBucket@1 crash(after-effect); kube:create secrets@3 lost-answer",
];

/// Rights that are granted without such a call of the operator: verb, group, resource, and the
/// reason.
const WITHOUT_A_CALL: [(&str, &str, &str, &str); 3] = [
    ("update", "broker.stowage.io", "bucketclaims/finalizers", OWNS),
    ("update", "broker.stowage.io", "bucketaccesses/finalizers", OWNS),
    ("update", "objectbucket.io", "objectbucketclaims/finalizers", OWNS),
];

const OWNS: &str =
    "admission asks for it when an owner reference sets blockOwnerDeletion (OwnerReferencesPermissionEnforcement)";

const OF_ANOTHER: &str =
    "the one Event about a backend says that another installation serves it, and no scenario has two";

/// The manifest of rights in the namespace where gateways store bucket usage; in simulated worlds
/// that is the operator's own namespace.
const USAGE: &str = "../kind-config/usage/rbac.yaml";
const USAGE_NAMESPACE: &str = "stowage-system-usage";

/// A right that a rule grants or a call needs: scope, verb, group, resource with its subresource.
type Right = (Scope, String, String, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// The operator's own namespace.
    Own,
    /// A namespace that it is configured to serve.
    Served,
    /// The namespace of Events about cluster-scoped objects.
    Default,
    /// Any other namespace, or none.
    Cluster,
}

/// The installation mode of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The operator serves all namespaces.
    Cluster,
    /// The operator serves the configured namespaces.
    Namespaced,
}

impl Way {
    fn manifest(self) -> &'static str {
        match self {
            Self::Cluster => "../kind-config/operator/rbac.yaml",
            Self::Namespaced => "../kind-config/namespaced/rbac.yaml",
        }
    }

    /// Returns the scope of a Role's rules.
    fn scope_of(self, namespace: Option<&str>) -> Scope {
        match (self, namespace) {
            (Self::Cluster, _) | (Self::Namespaced, Some(OPERATOR_NAMESPACE | USAGE_NAMESPACE)) => Scope::Own,
            (Self::Namespaced, Some("default")) => Scope::Default,
            (Self::Namespaced, _) => Scope::Served,
        }
    }

    /// Returns a scenario for an operator in this mode; `None` if it can't play it.
    fn scenario(self, of: &'static Scenario) -> Option<&'static Scenario> {
        let Scenario { name, about, phase, world, script, goal, otherwise, ends_alike, check } = *of;
        match self {
            Self::Cluster => Some(of),
            Self::Namespaced if world().foreign.is_some() => None,
            Self::Namespaced => {
                *WORLD.lock().unwrap_or_else(PoisonError::into_inner) = world;
                let world = in_namespaces;
                let narrowed = Scenario { name, about, phase, world, script, goal, otherwise, ends_alike, check };
                Some(Box::leak(Box::new(narrowed)))
            }
        }
    }
}

/// The world of the current scenario, as a static because a scenario's function has no captures.
static WORLD: Mutex<fn() -> Options> = Mutex::new(Options::default);

/// Returns that world, with an operator that serves only the namespaces of all scenarios.
fn in_namespaces() -> Options {
    let world = *WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    let served = ["team-a", "team-b"].map(str::to_owned);
    Options { reaches: vec![Reach::Namespaces(served.into())], ..world() }
}

fn needs(way: Way, call: &KubeCall) -> Right {
    let resource = match &call.subresource {
        Some(subresource) => format!("{}/{subresource}", call.resource),
        None => call.resource.clone(),
    };
    let is_kept_there = ["secrets", "configmaps", "leases"].contains(&call.resource.as_str());
    let scope = match call.namespace.as_deref() {
        Some(OPERATOR_NAMESPACE) if is_kept_there => Scope::Own,
        Some(namespace) if way == Way::Namespaced => way.scope_of(Some(namespace)),
        Some(_) | None => Scope::Cluster,
    };
    (scope, call.verb.name().to_owned(), call.group.clone(), resource)
}

/// Returns the rights that the operator uses in all scenarios.
fn used(way: Way) -> BTreeSet<Right> {
    let mut used = BTreeSet::new();
    let undisturbed = scenarios::ALL.iter().map(|scenario| Schedule {
        scenario,
        seed: 1,
        plan: Plan::default(),
        gateway: GatewayPlan::default(),
    });
    let disturbed = DISTURBED.iter().map(|line| line.parse().unwrap_or_else(|error| panic!("{line}: {error}")));
    for schedule in undisturbed.chain(disturbed) {
        let Some(scenario) = way.scenario(schedule.scenario) else { continue };
        let outcome = run(&Schedule { scenario, ..schedule });
        used.extend(outcome.history.trace.lines().iter().filter_map(|line| match &line.call {
            Call::Kube(call) => Some(needs(way, call)),
            Call::S3(_) => None,
        }));
    }
    used
}

fn granted(way: Way) -> BTreeSet<Right> {
    let read = |manifest: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
        fs::read_to_string(file).expect("the manifest can be read")
    };
    let text = [read(way.manifest()), read(USAGE)].join("\n---\n");
    let mut granted = BTreeSet::new();
    for document in text.split("\n---\n") {
        #[derive(Deserialize)]
        struct Typed {
            kind: String,
        }
        let typed: Typed = serde_saphyr::from_str(document).expect("it is an object");
        let (scope, rules) = match typed.kind.as_str() {
            "ClusterRole" => (Scope::Cluster, serde_saphyr::from_str::<ClusterRole>(document).expect("a role").rules),
            "Role" => {
                let role = serde_saphyr::from_str::<Role>(document).expect("a role");
                if role.metadata.name.as_deref() == Some("stowage-gateway-usage") {
                    continue;
                }
                (way.scope_of(role.metadata.namespace.as_deref()), role.rules)
            }
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

fn assert_same(way: Way, without_a_call: &[(Scope, &str, &str, &str, &str)]) {
    let (used, mut granted) = (used(way), granted(way));
    assert!(!granted.iter().any(|(_, verb, group, resource)| [verb, group, resource].iter().any(|it| *it == "*")));
    let missing: Vec<&Right> = used.difference(&granted).collect();
    assert!(missing.is_empty(), "the operator does this and may not: {missing:#?}");
    for (scope, verb, group, resource, why) in without_a_call {
        let right = (*scope, (*verb).to_owned(), (*group).to_owned(), (*resource).to_owned());
        assert!(granted.remove(&right), "{resource} is listed with a reason ({why}) and isn't granted");
        assert!(!used.contains(&right), "{resource} needs no reason, it is used");
    }
    let unused: Vec<&Right> = granted.difference(&used).collect();
    assert!(unused.is_empty(), "the operator may do this and never does: {unused:#?}");
}

// covers: 3.8.verbs
#[test]
fn the_operator_is_granted_what_it_does_and_nothing_else() {
    assert_same(
        Way::Cluster,
        &WITHOUT_A_CALL.map(|(verb, group, resource, why)| (Scope::Cluster, verb, group, resource, why)),
    );
}

// covers: 3.9.rights
#[test]
fn one_that_serves_some_namespaces_is_granted_what_it_does_there_and_nothing_else() {
    // The last one is for ObjectBucketClaims, which need the whole cluster.
    let served =
        WITHOUT_A_CALL[..2].iter().map(|(verb, group, resource, why)| (Scope::Served, *verb, *group, *resource, *why));
    let of_backends = ["create", "patch"].map(|verb| (Scope::Default, verb, "events.k8s.io", "events", OF_ANOTHER));
    assert_same(Way::Namespaced, &served.chain(of_backends).collect::<Vec<_>>());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(Way::Namespaced.manifest());
    let text = fs::read_to_string(file).expect("the manifest can be read");
    let role = text.split("\n---\n").find(|it| it.contains("kind: ClusterRole\n")).expect("there is one");
    let role: ClusterRole = serde_saphyr::from_str(role).expect("a role");
    for rule in role.rules.unwrap_or_default() {
        let resources = rule.resources.unwrap_or_default();
        assert!(!resources.iter().any(|it| it == "secrets"), "in no namespace but those that are served");
        let by_name = rule.resource_names.is_some_and(|names| names == ["team-a"]);
        assert_eq!(resources == ["namespaces"], by_name, "{resources:?}");
    }
}
