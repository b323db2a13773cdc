//! Services (`ValidateService`).
//!
//! Not modelled: allocation and validation of cluster IPs, IP families and node ports.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::pod::{PROTOCOLS, check_port_number, items, one_of};
use crate::names;
use crate::status::FieldError;

/// Sets defaults that depend on other fields.
pub(super) fn normalize(service: &mut Value) {
    let spec = &mut service["spec"];
    let text = |spec: &Value, field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let (service_type, affinity) = (text(spec, "type"), text(spec, "sessionAffinity"));
    if affinity == "ClientIP" && spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() {
        spec["sessionAffinityConfig"] = json!({"clientIP": {"timeoutSeconds": 10_800}});
    }
    let mut fill = |field: &str, value: Value| {
        if spec[field].is_null() {
            spec[field] = value;
        }
    };
    if matches!(service_type.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        fill("internalTrafficPolicy", "Cluster".into());
    }
    if matches!(service_type.as_str(), "NodePort" | "LoadBalancer") {
        fill("externalTrafficPolicy", "Cluster".into());
    }
    if service_type == "LoadBalancer" {
        fill("allocateLoadBalancerNodePorts", true.into());
    }
    for port in items(spec, "ports") {
        let target = &port["targetPort"];
        if target.is_null() || *target == 0 || *target == "" {
            port["targetPort"] = port["port"].clone();
        }
    }
}

/// Checks the rules that a schema cannot express.
pub(super) fn check(service: &Value, out: &mut Vec<FieldError>) {
    let spec = &service["spec"];
    let is_external = spec["type"] == "ExternalName";
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && spec["clusterIP"] != "None" && !is_external {
        out.push(FieldError::required("spec.ports", ""));
    }
    if is_external {
        let name = spec["externalName"].as_str().unwrap_or_default();
        if name.is_empty() {
            out.push(FieldError::required("spec.externalName", ""));
        } else {
            let errors = names::dns_subdomain(name.trim_end_matches('.'));
            out.extend(errors.into_iter().map(|error| FieldError::invalid("spec.externalName", name, error)));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        check_port(port, &format!("spec.ports[{index}]"), ports.len() > 1, &mut seen, out);
    }
    check_ports_differ(ports, out);
    for (key, value) in spec["selector"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let path = "spec.selector";
        out.extend(names::qualified_name(key).into_iter().map(|error| FieldError::invalid(path, key.as_str(), error)));
        out.extend(names::label_value(value).into_iter().map(|error| FieldError::invalid(path, value, error)));
    }
    one_of(&spec["sessionAffinity"], &["ClientIP", "None"], "spec.sessionAffinity", out);
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    one_of(&spec["type"], &types, "spec.type", out);
}

fn check_port<'a>(
    port: &'a Value,
    path: &str,
    needs_name: bool,
    seen: &mut BTreeSet<&'a str>,
    out: &mut Vec<FieldError>,
) {
    let name = port["name"].as_str().unwrap_or_default();
    let at = format!("{path}.name");
    if name.is_empty() {
        if needs_name {
            out.push(FieldError::required(&at, ""));
        }
    } else {
        out.extend(names::dns_label(name).into_iter().map(|error| FieldError::invalid(&at, name, error)));
        if !seen.insert(name) {
            out.push(FieldError::duplicate(&at, name.into()));
        }
    }
    check_port_number(port["port"].as_i64().unwrap_or_default(), &format!("{path}.port"), out);
    one_of(&port["protocol"], &PROTOCOLS, &format!("{path}.protocol"), out);
}

/// Checks that no two ports have the same number and protocol.
fn check_ports_differ(ports: &[Value], out: &mut Vec<FieldError>) {
    let key = |port: &Value| json!({"port": port["port"], "protocol": port["protocol"]});
    for (index, port) in ports.iter().enumerate() {
        if ports[..index].iter().any(|other| key(other) == key(port)) {
            out.push(FieldError::duplicate(&format!("spec.ports[{index}]"), key(port)));
        }
    }
}
