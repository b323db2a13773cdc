//! Cells of workload kinds and related ones, without name and age
//! (`k8s.io/kubernetes/pkg/printers/internalversion/printers.go`).

use jiff::Timestamp;
use kube_sim::meta;
use serde_json::Value;

use super::age;
use super::values::{pairs, size, text};

pub(super) fn service(object: &Value) -> Vec<Value> {
    let spec = &object["spec"];
    let or_none = |value: &str| if value.is_empty() { "<none>".into() } else { Value::from(value) };
    let port = |port: &Value| {
        let node = port["nodePort"].as_i64().filter(|node| *node > 0).map(|node| format!(":{node}"));
        format!("{}{}/{}", port["port"], node.unwrap_or_default(), text(&port["protocol"]))
    };
    let ports: Vec<String> = spec["ports"].as_array().into_iter().flatten().map(port).collect();
    let external: Vec<&str> = spec["externalIPs"].as_array().into_iter().flatten().map(text).collect();
    let external =
        if spec["type"] == "ExternalName" { text(&spec["externalName"]).to_owned() } else { external.join(",") };
    vec![spec["type"].clone(), or_none(text(&spec["clusterIP"])), or_none(&external), or_none(&ports.join(","))]
}

pub(super) fn pod(object: &Value) -> Vec<Value> {
    let statuses = object["status"]["containerStatuses"].as_array().map_or(&[][..], Vec::as_slice);
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let restarts: i64 = statuses.iter().filter_map(|status| status["restartCount"].as_i64()).sum();
    let phase = text(&object["status"]["phase"]);
    let status = if meta::is_deleting(object) { "Terminating" } else { phase };
    vec![format!("{ready}/{}", size(&object["spec"]["containers"])).into(), status.into(), restarts.to_string().into()]
}

pub(super) fn storage_class(object: &Value) -> Vec<Value> {
    let or = |field: &str, default: &str| Value::from(object[field].as_str().unwrap_or(default));
    vec![
        object["provisioner"].clone(),
        or("reclaimPolicy", "Delete"),
        or("volumeBindingMode", "Immediate"),
        object["allowVolumeExpansion"].as_bool().unwrap_or_default().to_string().into(),
    ]
}

fn number(value: &Value) -> Value {
    value.as_i64().unwrap_or_default().into()
}

pub(super) fn or_text(value: &Value, other: &str) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(other).into()
}

/// Joins a name from each item of a list with commas.
fn joined(items: &Value, name: impl Fn(&Value) -> String) -> Value {
    items
        .as_array()
        .into_iter()
        .flatten()
        .map(name)
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .join(",")
        .into()
}

pub(super) fn daemon_set(object: &Value) -> Vec<Value> {
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let mut cells = fields.map(|name| number(&object["status"][name])).to_vec();
    cells.push(pairs(&object["spec"]["template"]["spec"]["nodeSelector"]));
    cells
}

pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let status = &object["status"];
    let is = |name: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|condition| condition["type"] == name && condition["status"] == "True")
    };
    let known =
        ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"].into_iter().find(|name| is(name));
    let known = known.unwrap_or(if meta::is_deleting(object) { "Terminating" } else { "Running" });
    let done = status["succeeded"].as_i64().unwrap_or_default();
    let wanted = object["spec"]["completions"].as_i64().unwrap_or(1);
    let ended = status["completionTime"].as_str().and_then(|time| time.parse().ok());
    let lasted = if status["startTime"].is_null() {
        String::new()
    } else {
        age::of_time(&status["startTime"], ended.unwrap_or(now))
    };
    vec![known.into(), format!("{done}/{wanted}").into(), lasted.into()]
}

pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let last = &status["lastScheduleTime"];
    let last = if last.is_null() { "<none>".to_owned() } else { age::of_time(last, now) };
    let suspended = if spec["suspend"] == true { "True" } else { "False" };
    vec![
        text(&spec["schedule"]).into(),
        or_text(&spec["timeZone"], "<none>"),
        suspended.into(),
        size(&status["active"]).into(),
        last.into(),
    ]
}

pub(super) fn ingress(object: &Value) -> Vec<Value> {
    let spec = &object["spec"];
    let hosts = joined(&spec["rules"], |rule| text(&rule["host"]).to_owned());
    let addresses = joined(&object["status"]["loadBalancer"]["ingress"], |one| {
        let ip = text(&one["ip"]);
        if ip.is_empty() { text(&one["hostname"]).to_owned() } else { ip.to_owned() }
    });
    let ports = if size(&spec["tls"]) > 0 { "80, 443" } else { "80" };
    vec![or_text(&spec["ingressClassName"], "<none>"), or_text(&hosts, "*"), addresses, ports.into()]
}

pub(super) fn volume_claim(object: &Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let bound = !text(&spec["volumeName"]).is_empty();
    let short = |mode: &Value| match text(mode) {
        "ReadWriteOnce" => "RWO",
        "ReadOnlyMany" => "ROX",
        "ReadWriteMany" => "RWX",
        "ReadWriteOncePod" => "RWOP",
        _ => "",
    };
    let modes = if bound { joined(&status["accessModes"], |mode| short(mode).to_owned()) } else { "".into() };
    let capacity = if bound { text(&status["capacity"]["storage"]) } else { "" };
    vec![
        text(&status["phase"]).into(),
        text(&spec["volumeName"]).into(),
        capacity.into(),
        modes,
        text(&spec["storageClassName"]).into(),
        or_text(&spec["volumeAttributesClassName"], "<unset>"),
    ]
}

/// Returns the users, groups and ServiceAccounts of a binding.
pub(super) fn subjects(object: &Value) -> Vec<Value> {
    let of = |kind: &str| {
        let name = |subject: &Value| match (subject["kind"] == kind, kind) {
            (false, _) => String::new(),
            (true, "ServiceAccount") => format!("{}/{}", text(&subject["namespace"]), text(&subject["name"])),
            (true, _) => text(&subject["name"]).to_owned(),
        };
        match joined(&object["subjects"], name) {
            Value::String(names) => names.replace(',', ", ").into(),
            other => other,
        }
    };
    vec![of("User"), of("Group"), of("ServiceAccount")]
}
