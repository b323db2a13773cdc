//! Pods, and the pod templates of other kinds (`ValidatePodSpec`).
//!
//! Not modelled: the fields set by admission (service accounts, tolerations, priorities), the
//! canonical form of quantities, and validation of probes, security contexts, affinities and volume
//! sources. A deletion does not wait for a kubelet, because no pod runs: a pod without finalizers
//! is removed immediately.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::form::omit_empty;
use crate::kind::Kind;
use crate::names;
use crate::status::FieldError;

/// Lists of containers, in the order of validation.
const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Sets defaults that pods have in addition to those of templates.
pub(super) fn normalize(pod: &mut Value) {
    let spec = &mut pod["spec"];
    normalize_spec(spec);
    let Some(fields) = spec.as_object_mut() else { return };
    fields.entry("enableServiceLinks").or_insert(Value::Bool(true));
    each_container(spec, &LISTS[..2], |container| request_what_is_limited(&mut container["resources"]));
}

/// Sets requests to the limits for resources that have no request.
fn request_what_is_limited(resources: &mut Value) {
    let Some(limits) = resources["limits"].as_object().filter(|limits| !limits.is_empty()).cloned() else { return };
    let requests = &mut resources["requests"];
    if requests.is_null() {
        *requests = json!({});
    }
    for (name, limit) in limits {
        if requests[&name].is_null() {
            requests[&name] = limit;
        }
    }
}

/// Sets defaults that depend on other fields.
pub(super) fn normalize_spec(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    // `serviceAccount` is the old name of `serviceAccountName`.
    let account = ["serviceAccountName", "serviceAccount"].iter().find_map(|name| {
        fields.get(*name).filter(|account| account.as_str().is_some_and(|text| !text.is_empty())).cloned()
    });
    if let Some(account) = account {
        fields.insert("serviceAccountName".to_owned(), account.clone());
        fields.insert("serviceAccount".to_owned(), account);
    }
    for volume in items(spec, "volumes") {
        if let Some(fields) = volume.as_object_mut()
            && fields.keys().all(|name| name == "name")
        {
            fields.insert("emptyDir".to_owned(), json!({}));
        }
    }
    let on_host = spec["hostNetwork"] == Value::Bool(true);
    each_container(spec, &LISTS, |container| {
        if container["imagePullPolicy"].as_str().is_none_or(str::is_empty) {
            container["imagePullPolicy"] = pull_policy(container["image"].as_str().unwrap_or_default()).into();
        }
        for port in items(container, "ports").filter(|port| on_host && port["hostPort"].is_null()) {
            port["hostPort"] = port["containerPort"].clone();
        }
    });
}

/// Iterates over a list, which may be absent.
pub(super) fn items<'a>(holder: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    holder.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Calls `work` on each container in these lists.
fn each_container(spec: &mut Value, lists: &[&str], mut work: impl FnMut(&mut Value)) {
    for list in lists {
        items(spec, list).for_each(&mut work);
    }
}

/// Returns the default pull policy: `Always` for images whose name may change its meaning.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    match (tag, digest) {
        (Some("latest"), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

/// Returns the status of a new pod.
pub(super) fn first_status(pod: &Value) -> Value {
    json!({"phase": "Pending", "qosClass": quality_of_service(&pod["spec"])})
}

/// Computes the QoS class (`ComputePodQOS`). Quantities are compared as strings.
fn quality_of_service(spec: &Value) -> &'static str {
    let (mut guaranteed, mut best_effort) = (true, true);
    for container in LISTS[..2].iter().flat_map(|list| spec[*list].as_array().into_iter().flatten()) {
        for name in ["cpu", "memory"] {
            let of = |part: &str| Some(&container["resources"][part][name]).filter(|quantity| !quantity.is_null());
            let (limit, request) = (of("limits"), of("requests"));
            best_effort &= limit.or(request).is_none();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (best_effort, guaranteed) {
        (true, _) => "BestEffort",
        (_, true) => "Guaranteed",
        _ => "Burstable",
    }
}

/// Checks the rules that a schema cannot express.
pub(super) fn check(kind: &Kind, pod: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    check_spec(&pod["spec"], "spec", out);
    if let Some(old) = old {
        check_update(kind, pod, old, out);
    }
}

/// Validates a pod's spec at any path.
pub(super) fn check_spec(spec: &Value, path: &str, out: &mut Vec<FieldError>) {
    let volumes = check_volumes(spec, &format!("{path}.volumes"), out);
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        out.push(FieldError::required(&format!("{path}.containers"), ""));
    }
    let mut seen = BTreeSet::new();
    for list in LISTS {
        for (index, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            check_name(container, &path, &mut seen, out);
            check_container(container, &path, &volumes, out);
        }
    }
    one_of(&spec["restartPolicy"], &["Always", "Never", "OnFailure"], &format!("{path}.restartPolicy"), out);
    let policies = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    one_of(&spec["dnsPolicy"], &policies, &format!("{path}.dnsPolicy"), out);
    if let Some(seconds) = spec["terminationGracePeriodSeconds"].as_i64().filter(|seconds| *seconds < 0) {
        let path = format!("{path}.terminationGracePeriodSeconds");
        out.push(FieldError::invalid(&path, seconds, "must be greater than or equal to 0"));
    }
}

/// Validates volumes and returns their names.
fn check_volumes<'a>(spec: &'a Value, path: &str, out: &mut Vec<FieldError>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}[{index}]");
        check_name(volume, &path, &mut seen, out);
        let sources = volume.as_object().into_iter().flatten().filter(|(name, _)| *name != "name");
        for (source, _) in sources.skip(1) {
            out.push(FieldError::forbidden(&format!("{path}.{source}"), "may not specify more than 1 volume type"));
        }
    }
    seen
}

/// Checks that the name of a volume or container is a DNS label and unique.
fn check_name<'a>(item: &'a Value, path: &str, seen: &mut BTreeSet<&'a str>, out: &mut Vec<FieldError>) {
    let name = item["name"].as_str().unwrap_or_default();
    let path = format!("{path}.name");
    if name.is_empty() {
        out.push(FieldError::required(&path, ""));
        return;
    }
    out.extend(names::dns_label(name).into_iter().map(|error| FieldError::invalid(&path, name, error)));
    if !seen.insert(name) {
        out.push(FieldError::duplicate(&path, name.into()));
    }
}

fn check_container(container: &Value, path: &str, volumes: &BTreeSet<&str>, out: &mut Vec<FieldError>) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        out.push(FieldError::required(&format!("{path}.image"), ""));
    } else if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        out.push(FieldError::invalid(&format!("{path}.image"), image, detail));
    }
    for (index, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.ports[{index}]");
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => out.push(FieldError::required(&format!("{path}.containerPort"), "")),
            number => check_port_number(number, &format!("{path}.containerPort"), out),
        }
        one_of(&port["protocol"], &PROTOCOLS, &format!("{path}.protocol"), out);
    }
    for (index, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.env[{index}]");
        if variable["name"].as_str().is_none_or(str::is_empty) {
            out.push(FieldError::required(&format!("{path}.name"), ""));
        }
        let stated = variable["value"].as_str().is_some_and(|value| !value.is_empty());
        if stated && variable.get("valueFrom").is_some() {
            let detail = "may not be specified when `value` is not empty";
            out.push(FieldError::invalid(&format!("{path}.valueFrom"), "", detail));
        }
    }
    check_mounts(container, &format!("{path}.volumeMounts"), volumes, out);
    one_of(
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
        &format!("{path}.imagePullPolicy"),
        out,
    );
}

fn check_mounts(container: &Value, path: &str, volumes: &BTreeSet<&str>, out: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let text = |field: &str| mount[field].as_str().unwrap_or_default();
        let (name, at) = (text("name"), text("mountPath"));
        let path = format!("{path}[{index}]");
        if name.is_empty() {
            out.push(FieldError::required(&format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            out.push(FieldError::not_found(&format!("{path}.name"), name));
        }
        if at.is_empty() {
            out.push(FieldError::required(&format!("{path}.mountPath"), ""));
        } else if !seen.insert(at) {
            out.push(FieldError::invalid(&format!("{path}.mountPath"), at, "must be unique"));
        }
    }
}

/// Protocols allowed for ports.
pub(super) const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

pub(super) fn check_port_number(number: i64, path: &str, out: &mut Vec<FieldError>) {
    if !(1..=65535).contains(&number) {
        out.push(FieldError::invalid(path, number, "must be between 1 and 65535, inclusive"));
    }
}

/// Checks that a string is one of the supported values.
pub(super) fn one_of(value: &Value, supported: &[&str], path: &str, out: &mut Vec<FieldError>) {
    let text = value.as_str().unwrap_or_default();
    if text.is_empty() {
        out.push(FieldError::required(path, ""));
    } else if !supported.contains(&text) {
        out.push(FieldError::not_supported(path, text, supported));
    }
}

/// Checks that only mutable fields of a pod's spec change (`ValidatePodUpdate`). An API server also
/// prints the difference.
fn check_update(kind: &Kind, pod: &Value, old: &Value, out: &mut Vec<FieldError>) {
    for list in &LISTS[..2] {
        let count = |pod: &Value| pod["spec"][*list].as_array().map_or(0, Vec::len);
        if count(pod) != count(old) {
            out.push(FieldError::forbidden(&format!("spec.{list}"), "pod updates may not add or remove containers"));
            return;
        }
    }
    let fixed = |pod: &Value| {
        let mut pod = pod.clone();
        omit_empty(kind, &mut pod);
        let spec = &mut pod["spec"];
        each_container(spec, &LISTS[..2], |container| container["image"] = Value::Null);
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"] {
            spec[field] = Value::Null;
        }
        spec.take()
    };
    let kept = |pod: &Value| pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    let only_added = kept(old).iter().all(|toleration| kept(pod).contains(toleration));
    if fixed(pod) != fixed(old) || !only_added {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        out.push(FieldError::forbidden("spec", detail));
    }
}
