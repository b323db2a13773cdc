//! Checks of rendered objects, without I/O.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Longest name that every kind accepts.
const LONGEST: usize = 63;
/// Cluster-scoped kinds.
const OF_CLUSTER: [&str; 6] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Returns the kind of an object.
pub(super) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// Returns the name of an object.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// True if its kind is cluster-scoped.
pub(super) fn is_of_cluster(object: &Value) -> bool {
    OF_CLUSTER.contains(&kind(object))
}

/// Returns the errors in the objects of one installation.
pub(super) fn complaints(objects: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for object in objects {
        let mut say = |what: &str| wrong.push(format!("{} {} {what}", kind(object), name(object)));
        if name(object).is_empty() || name(object).len() > LONGEST && kind(object) != "CustomResourceDefinition" {
            say("has no name, or a long one");
        }
        if is_of_cluster(object) != object["metadata"]["namespace"].is_null() {
            say("is in no namespace, or should be in none");
        }
        if object["metadata"]["labels"]["app.kubernetes.io/part-of"] != "stowage" {
            say("doesn't say whose part it is");
        }
        if object["metadata"]["annotations"].get("helm.sh/hook").is_some() {
            say("is a hook, which what deploys charts by other means doesn't know");
        }
        if kind(object) == "Deployment" {
            pod(object).into_iter().for_each(|what| say(&what));
        }
        if kind(object) == "CustomResourceDefinition"
            && object["metadata"]["annotations"]["helm.sh/resource-policy"] != "keep"
        {
            say("goes with the release, and all claims with it");
        }
        if kind(object) == "Service" && !selects(object, "/spec/selector", objects) {
            say("selects no pod");
        }
        if ["PodDisruptionBudget", "ServiceMonitor"].contains(&kind(object))
            && !selects(object, "/spec/selector/matchLabels", objects)
        {
            say("selects nothing");
        }
        if kind(object) == "NetworkPolicy" && !selects(object, "/spec/podSelector/matchLabels", objects) {
            say("selects no pod");
        }
    }
    wrong
}

/// True if all labels of the selector at this place are on a pod template, or on a Service for a
/// ServiceMonitor.
fn selects(object: &Value, place: &str, objects: &[Value]) -> bool {
    let wanted = object.pointer(place).and_then(Value::as_object);
    let (of, labels) = match kind(object) {
        "ServiceMonitor" => ("Service", "/metadata/labels"),
        _ => ("Deployment", "/spec/template/metadata/labels"),
    };
    let fits = |candidate: &Value| {
        let has = candidate.pointer(labels).and_then(Value::as_object);
        wanted.zip(has).is_some_and(|(wanted, has)| {
            !wanted.is_empty() && wanted.iter().all(|(label, value)| has.get(label) == Some(value))
        })
    };
    objects.iter().filter(|candidate| kind(candidate) == of).any(fits)
}

/// Returns violations of the Pod Security Standard `restricted`, and of further rules for the
/// project's pods.
fn pod(deployment: &Value) -> Vec<String> {
    let spec = &deployment["spec"]["template"]["spec"];
    let mut wrong = Vec::new();
    let mut must = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    must(spec["securityContext"]["runAsNonRoot"] == true, "may run as root");
    must(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "has no seccomp profile");
    must(spec["enableServiceLinks"] == false, "is given every Service of its namespace");
    let selector = deployment["spec"]["selector"]["matchLabels"].as_object();
    let labels = spec_labels(deployment);
    must(selector.is_some_and(|it| it.iter().all(|(label, value)| labels[label] == *value)), "doesn't select its pods");
    let containers = spec["containers"].as_array();
    must(containers.is_some_and(|all| !all.is_empty()), "has no container");
    for container in containers.into_iter().flatten() {
        let security = &container["securityContext"];
        must(security["allowPrivilegeEscalation"] == false, "may get more privileges");
        must(security["readOnlyRootFilesystem"] == true, "may write to its image");
        must(security["capabilities"]["drop"] == json!(["ALL"]), "keeps capabilities");
        must(!container["resources"]["limits"]["memory"].is_null(), "has no limit of memory");
        must(!container["livenessProbe"].is_null() && !container["readinessProbe"].is_null(), "has no probes");
    }
    wrong
}

fn spec_labels(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["metadata"]["labels"]
}

/// Returns the rights of operator and gateway that only one of two installations grants.
pub(super) fn same_rights(one: &[Value], other: &[Value]) -> Vec<String> {
    let (one, other) = (rights(one), rights(other));
    if one.is_empty() || other.is_empty() {
        return vec!["there are no roles".to_owned()];
    }
    one.symmetric_difference(&other).cloned().collect()
}

fn rights(objects: &[Value]) -> BTreeSet<String> {
    let ours = |object: &&Value| ["stowage-operator", "stowage-gateway"].iter().any(|it| name(object).starts_with(it));
    let roles = objects.iter().filter(|object| ["Role", "ClusterRole"].contains(&kind(object))).filter(ours);
    let mut rights = BTreeSet::new();
    for role in roles {
        for rule in role["rules"].as_array().into_iter().flatten() {
            rights.insert(format!("{} {} {rule}", kind(role), name(role)));
        }
    }
    rights
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn deployment() -> Value {
        json!({
            "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "n", "labels": {"app.kubernetes.io/part-of": "stowage"}},
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a", "tier": "b"}},
                    "spec": {
                        "enableServiceLinks": false,
                        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                        "containers": [{
                            "securityContext": {
                                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                                "capabilities": {"drop": ["ALL"]},
                            },
                            "resources": {"limits": {"memory": "1Gi"}},
                            "livenessProbe": {}, "readinessProbe": {},
                        }],
                    },
                },
            },
        })
    }

    #[test]
    fn what_is_well_has_no_complaint() {
        assert_eq!(complaints(&[deployment()]), [] as [String; 0]);
    }

    #[rstest]
    #[case("/metadata/name", json!("x".repeat(64)))]
    #[case("/metadata/namespace", Value::Null)]
    #[case("/metadata/labels", json!({}))]
    #[case("/metadata/annotations", json!({"helm.sh/hook": "post-install"}))]
    #[case("/spec/selector/matchLabels", json!({"app": "b"}))]
    #[case("/spec/template/spec/enableServiceLinks", json!(true))]
    #[case("/spec/template/spec/securityContext/runAsNonRoot", json!(false))]
    #[case("/spec/template/spec/securityContext/seccompProfile", json!({}))]
    #[case("/spec/template/spec/containers", json!([]))]
    #[case("/spec/template/spec/containers/0/securityContext/capabilities/drop", json!([]))]
    #[case("/spec/template/spec/containers/0/resources", json!({}))]
    #[case("/spec/template/spec/containers/0/readinessProbe", Value::Null)]
    fn what_is_wrong_is_told(#[case] place: &str, #[case] value: Value) {
        let mut object = deployment();
        if object.pointer(place).is_none() {
            object["metadata"]["annotations"] = json!({});
        }
        *object.pointer_mut(place).expect("the place is there") = value;
        assert_eq!(complaints(&[object]).len(), 1);
    }

    #[test]
    fn a_service_that_selects_nothing_is_told() {
        let service = |selector: Value| {
            json!({"kind": "Service", "spec": {"selector": selector},
                   "metadata": {"name": "s", "namespace": "n", "labels": {"app.kubernetes.io/part-of": "stowage"}}})
        };
        assert_eq!(complaints(&[deployment(), service(json!({"tier": "b"}))]), [] as [String; 0]);
        assert_eq!(complaints(&[deployment(), service(json!({"tier": "c"}))]).len(), 1);
    }

    #[test]
    fn a_right_that_one_has_and_the_other_has_not_is_told() {
        let role = |verbs: Value| json!({"kind": "Role", "metadata": {"name": "stowage-operator"}, "rules": [{"verbs": verbs}]});
        assert_eq!(same_rights(&[role(json!(["get"]))], &[role(json!(["get"]))]), [] as [String; 0]);
        assert_eq!(same_rights(&[role(json!(["get"]))], &[role(json!(["list"]))]).len(), 2);
        assert_eq!(same_rights(&[], &[]), ["there are no roles"]);
    }
}
