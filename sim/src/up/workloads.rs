//! Marks workloads as ready, though nothing runs, so that clients that wait for them continue, such
//! as `helm --wait` and `kubectl rollout status`.
//!
//! The statuses are those that the controllers and kubelets of a cluster would finally report. A
//! Deployment also gets a ReplicaSet, because Helm looks for one. No pods are created.

use jiff::Timestamp;
use kube::core::GroupVersionResource;
use kube_sim::Cluster;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Returns the status of a ready object, or `None` if it has it already.
type Ready = fn(&Value, &str) -> Option<Value>;

/// Runs one step for all objects. Returns the number of objects that were created or changed.
pub(super) fn make_ready(cluster: &Cluster, now: Timestamp) -> usize {
    let kinds: [(&str, &str, Ready); 6] = [
        ("apps", "deployments", deployment),
        ("apps", "replicasets", replica_set),
        ("apps", "statefulsets", stateful_set),
        ("apps", "daemonsets", daemon_set),
        ("batch", "jobs", job),
        ("", "persistentvolumeclaims", volume_claim),
    ];
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let mut changed = replica_sets(cluster) + services(cluster);
    for (group, plural, ready) in kinds {
        let resource = GroupVersionResource::gvr(group, "v1", plural);
        for object in cluster.list(&resource, "").unwrap_or_default() {
            let deleting = object["metadata"]["deletionTimestamp"].is_string();
            let Some(status) = (!deleting).then(|| ready(&object, &now)).flatten() else { continue };
            let mut new = Value::clone(&object);
            new["status"] = status;
            changed += usize::from(put(cluster, &resource, &new));
        }
    }
    changed
}

fn put(cluster: &Cluster, resource: &GroupVersionResource, object: &Value) -> bool {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let before = cluster.resource_version();
    if let Err(refusal) = cluster.put(resource, text("namespace"), text("name"), object.clone()) {
        tracing::debug!(name = text("name"), why = refusal.message, "it can't be made ready");
    }
    cluster.resource_version() != before
}

/// Returns a number of the spec, which the status of a ready workload repeats.
fn number(object: &Value, field: &str) -> i64 {
    object["spec"][field].as_i64().unwrap_or(1)
}

fn generation(object: &Value) -> Value {
    object["metadata"]["generation"].clone()
}

/// Returns the wanted status, or `None` if the object has it already. Other fields are kept, and
/// conditions keep their times.
fn status(object: &Value, wanted: Value) -> Option<Value> {
    let mut status = object["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    for (field, value) in wanted.as_object().into_iter().flatten() {
        status[field] = value.clone();
    }
    (status != object["status"]).then_some(status)
}

/// Returns the conditions, all true; an existing one is kept.
fn conditions(object: &Value, wanted: &[(&str, &str)], now: &str, updated: bool) -> Value {
    let known = object["status"]["conditions"].as_array();
    let condition = |(name, reason): &(&str, &str)| {
        let stays = known.into_iter().flatten().find(|it| it["type"] == *name && it["status"] == "True");
        stays.cloned().unwrap_or_else(|| {
            let mut new = json!({"type": name, "status": "True", "lastTransitionTime": now});
            if !reason.is_empty() {
                new["reason"] = (*reason).into();
            }
            let seen = if updated { "lastUpdateTime" } else { "lastProbeTime" };
            new[seen] = now.into();
            new
        })
    };
    wanted.iter().map(condition).collect()
}

fn deployment(object: &Value, now: &str) -> Option<Value> {
    let replicas = number(object, "replicas");
    let reasons = [("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable")];
    let wanted = json!({
        "observedGeneration": generation(object), "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas, "conditions": conditions(object, &reasons, now, true),
    });
    status(object, wanted)
}

fn replica_set(object: &Value, _: &str) -> Option<Value> {
    let replicas = number(object, "replicas");
    let wanted = json!({
        "observedGeneration": generation(object), "replicas": replicas, "fullyLabeledReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    });
    status(object, wanted)
}

fn stateful_set(object: &Value, _: &str) -> Option<Value> {
    let replicas = number(object, "replicas");
    let revision = format!("{}-{}", object["metadata"]["name"].as_str()?, hash(&object["spec"]["template"]));
    let wanted = json!({
        "observedGeneration": generation(object), "replicas": replicas, "currentReplicas": replicas,
        "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
        "currentRevision": revision, "updateRevision": revision,
    });
    status(object, wanted)
}

/// Returns the status of a DaemonSet in a cluster without nodes.
fn daemon_set(object: &Value, _: &str) -> Option<Value> {
    let wanted = json!({
        "observedGeneration": generation(object), "currentNumberScheduled": 0, "desiredNumberScheduled": 0,
        "numberMisscheduled": 0, "numberReady": 0, "updatedNumberScheduled": 0,
    });
    status(object, wanted)
}

fn job(object: &Value, now: &str) -> Option<Value> {
    if object["spec"]["suspend"] == true {
        return None;
    }
    let time = |field: &str| object["status"][field].as_str().unwrap_or(now).to_owned();
    let reasons = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")];
    let wanted = json!({
        "startTime": time("startTime"), "completionTime": time("completionTime"),
        "succeeded": number(object, "completions"), "conditions": conditions(object, &reasons, now, false),
    });
    status(object, wanted)
}

fn volume_claim(object: &Value, _: &str) -> Option<Value> {
    status(object, json!({"phase": "Bound"}))
}

/// Gives each Service an address, at which nothing listens.
fn services(cluster: &Cluster) -> usize {
    let resource = GroupVersionResource::gvr("", "v1", "services");
    let mut changed = 0;
    for service in cluster.list(&resource, "").unwrap_or_default() {
        let spec = &service["spec"];
        let has_none = spec["clusterIP"].as_str().is_none_or(str::is_empty);
        if !has_none || spec["type"] == "ExternalName" || service["metadata"]["deletionTimestamp"].is_string() {
            continue;
        }
        let digest = Sha256::digest(service["metadata"]["uid"].to_string());
        let address = format!("10.96.{}.{}", digest[0], digest[1]);
        let mut new = Value::clone(&service);
        new["spec"]["clusterIP"] = address.clone().into();
        new["spec"]["clusterIPs"] = json!([address]);
        changed += usize::from(put(cluster, &resource, &new));
    }
    changed
}

/// Returns a short hash of a template.
fn hash(template: &Value) -> String {
    hex::encode(&Sha256::digest(template.to_string())[..5])
}

/// Creates the ReplicaSet of each Deployment.
fn replica_sets(cluster: &Cluster) -> usize {
    let of = |plural| GroupVersionResource::gvr("apps", "v1", plural);
    let sets = of("replicasets");
    let mut made = 0;
    for deployment in cluster.list(&of("deployments"), "").unwrap_or_default() {
        let metadata = &deployment["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let hash = hash(&deployment["spec"]["template"]);
        let name = format!("{}-{hash}", text("name"));
        let is_there = cluster.get(&sets, text("namespace"), &name).is_ok();
        if is_there || metadata["deletionTimestamp"].is_string() {
            continue;
        }
        let (mut selector, mut template) =
            (deployment["spec"]["selector"].clone(), deployment["spec"]["template"].clone());
        selector["matchLabels"]["pod-template-hash"] = hash.clone().into();
        template["metadata"]["labels"]["pod-template-hash"] = hash.into();
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "namespace": text("namespace"), "labels": template["metadata"]["labels"],
                "annotations": {"deployment.kubernetes.io/revision": "1"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": text("name"), "uid": text("uid"),
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {"replicas": number(&deployment, "replicas"), "selector": selector, "template": template},
        });
        made += usize::from(put(cluster, &sets, &set));
    }
    made
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube_front::{Front, FrontOptions};

    use super::*;

    #[test]
    fn whatever_is_waited_for_is_ready_and_then_nothing_changes() {
        let now = Timestamp::from_second(1_800_000_000).expect("a time");
        let cluster = Cluster::new(Arc::new(move || now), 1);
        let _front = Front::new(&cluster, FrontOptions::open(Arc::new(|| [0; 32])));
        let template = json!({
            "metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]},
        });
        let spec = json!({"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template});
        let of = |group, plural| GroupVersionResource::gvr(group, "v1", plural);
        let put = |group, plural, spec: &Value| {
            cluster.put(&of(group, plural), "default", "it", json!({"spec": spec})).expect("it is good");
        };
        put("apps", "deployments", &spec);
        put("apps", "statefulsets", &spec);
        put("batch", "jobs", &json!({"template": template}));
        while make_ready(&cluster, now) > 0 {}
        let get = |group, plural| cluster.get(&of(group, plural), "default", "it").expect("it is there");
        let deployment = get("apps", "deployments");
        assert_eq!(deployment["status"]["availableReplicas"], 2, "{deployment:#}");
        assert_eq!(deployment["status"]["observedGeneration"], deployment["metadata"]["generation"]);
        let sets = cluster.list(&of("apps", "replicasets"), "default").expect("they are served");
        assert_eq!((sets.len(), &sets[0]["status"]["readyReplicas"]), (1, &json!(2)), "{sets:#?}");
        assert_eq!(sets[0]["metadata"]["ownerReferences"][0]["uid"], deployment["metadata"]["uid"]);
        let set = get("apps", "statefulsets");
        assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
        assert_eq!(get("batch", "jobs")["status"]["succeeded"], 1);
    }
}
