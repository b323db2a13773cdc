//! Validation of webhook configurations
//! (`k8s.io/kubernetes/pkg/apis/admissionregistration/validation`).

use std::collections::BTreeSet;

use http::Uri;
use kube_sim::kind::Kind;
use kube_sim::meta;
use kube_sim::names;
use kube_sim::selector;
use kube_sim::status::FieldError;
use serde_json::Value;

use super::hook::{self, Hook, ReviewVersion, Sort};
use crate::asked::GROUP;
use crate::policies;

/// The allowed values of enumerated fields.
const CHOICES: [(&str, &[&str]); 4] = [
    ("failurePolicy", &["Fail", "Ignore"]),
    ("matchPolicy", &["Equivalent", "Exact"]),
    ("sideEffects", &["None", "NoneOnDryRun"]),
    ("reinvocationPolicy", &["IfNeeded", "Never"]),
];
const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];

/// Adds the errors of a configuration that is to be stored.
pub(crate) fn check(kind: &Kind, object: &Value, out: &mut Vec<FieldError>) {
    let Some(sort) = Sort::of(&kind.plural).filter(|_| kind.group == GROUP) else { return };
    let webhooks = &object["webhooks"];
    if !webhooks.is_null() && !webhooks.is_array() {
        out.push(FieldError::invalid("webhooks", webhooks.clone(), "must be a list"));
    }
    let mut names = BTreeSet::new();
    for (index, webhook) in webhooks.as_array().into_iter().flatten().enumerate() {
        let path = format!("webhooks[{index}]");
        match hook::read(sort, meta::name(object), webhook) {
            Ok(hook) => {
                check_hook(&path, &hook, webhook, out);
                if !hook.name.is_empty() && !names.insert(hook.name.clone()) {
                    out.push(FieldError::duplicate(&format!("{path}.name"), hook.name.into()));
                }
            }
            Err(error) => out.push(FieldError::invalid(&path, Value::Null, error.to_string())),
        }
    }
}

fn check_hook(path: &str, hook: &Hook, webhook: &Value, out: &mut Vec<FieldError>) {
    check_name(&format!("{path}.name"), &hook.name, out);
    for (index, rule) in webhook["rules"].as_array().into_iter().flatten().enumerate() {
        check_rule(&format!("{path}.rules[{index}]"), rule, out);
    }
    for (name, known) in CHOICES {
        match webhook[name].as_str() {
            Some(text) if text.is_empty() && name == "sideEffects" => {}
            Some(text) if !known.contains(&text) => {
                out.push(FieldError::not_supported(&format!("{path}.{name}"), text, known));
            }
            _ => {}
        }
    }
    if webhook["sideEffects"].as_str().is_none_or(str::is_empty) {
        out.push(FieldError::required(&format!("{path}.sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    if let Some(seconds) = webhook["timeoutSeconds"].as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        out.push(FieldError::invalid(&format!("{path}.timeoutSeconds"), seconds, why));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if let Err((index, operator)) = selector::selects(&webhook[name], &Value::Null) {
            let path = format!("{path}.{name}.matchExpressions[{index}].operator");
            out.push(FieldError::invalid(&path, operator, "not a valid selector operator"));
        }
    }
    check_client(&format!("{path}.clientConfig"), hook, out);
    for (index, condition) in hook.conditions.iter().enumerate() {
        let path = format!("{path}.matchConditions[{index}].expression");
        policies::check_expression(&path, &condition.expression, out);
    }
    check_versions(&format!("{path}.admissionReviewVersions"), hook.review_version, webhook, out);
}

/// `IsFullyQualifiedName`.
fn check_name(path: &str, name: &str, out: &mut Vec<FieldError>) {
    if name.is_empty() {
        return out.push(FieldError::required(path, ""));
    }
    let errors = names::dns_subdomain(name);
    if !errors.is_empty() {
        out.push(FieldError::invalid(path, name, errors.join(",")));
    } else if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        out.push(FieldError::invalid(path, name, why));
    }
}

fn check_rule(path: &str, rule: &Value, out: &mut Vec<FieldError>) {
    for (name, what) in [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
        ("resources", "resources without subresources"),
    ] {
        let path = format!("{path}.{name}");
        let list: Vec<&str> = rule[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if list.is_empty() {
            out.push(FieldError::required(&path, ""));
        }
        let others = list.iter().filter(|one| **one != "*" && (name != "resources" || !one.contains('/'))).count();
        if list.contains(&"*") && others > 0 {
            let why = format!("if '*' is present, must not specify other {what}");
            out.push(FieldError::invalid(&path, rule[name].clone(), why));
        }
        if name == "resources" && list.contains(&"*/*") && list.len() > 1 {
            let why = "if '*/*' is present, must not specify other resources";
            out.push(FieldError::invalid(&path, rule[name].clone(), why));
        }
        for (index, one) in list.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if name == "operations" && !OPERATIONS.contains(one) {
                out.push(FieldError::not_supported(&path, one, OPERATIONS));
            } else if one.is_empty() && name != "apiGroups" {
                out.push(FieldError::required(&path, ""));
            }
        }
    }
    if let Some(scope) = rule["scope"].as_str().filter(|scope| !SCOPES.contains(scope)) {
        out.push(FieldError::not_supported(&format!("{path}.scope"), scope, SCOPES));
    }
}

fn check_client(path: &str, hook: &Hook, out: &mut Vec<FieldError>) {
    match (&hook.client.url, &hook.client.service) {
        (Some(url), None) => check_url(&format!("{path}.url"), url, out),
        (None, Some(service)) => {
            for (name, text) in [("name", &service.name), ("namespace", &service.namespace)] {
                if text.is_empty() {
                    out.push(FieldError::required(&format!("{path}.service.{name}"), ""));
                }
            }
            if let Some(port) = service.port.filter(|port| !(1..=65_535).contains(port)) {
                let why = "port is not valid: must be between 1 and 65535, inclusive";
                out.push(FieldError::invalid(&format!("{path}.service.port"), port, why));
            }
            if let Some(text) = service.path.as_ref().filter(|text| !text.is_empty() && !text.starts_with('/')) {
                out.push(FieldError::invalid(&format!("{path}.service.path"), text.as_str(), "must start with a '/'"));
            }
        }
        _ => out.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

/// `ValidateWebhookURL`.
fn check_url(path: &str, url: &str, out: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let Ok(read) = url.parse::<Uri>() else {
        return out.push(FieldError::required(path, &format!("url must be a valid URL{FORM}")));
    };
    let scheme = read.scheme_str().unwrap_or_default();
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        out.push(FieldError::invalid(path, scheme, why));
    }
    if read.host().is_none_or(str::is_empty) {
        out.push(FieldError::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if read.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        out.push(FieldError::invalid(path, "", "user information is not permitted in the URL"));
    }
    if let Some((_, fragment)) = url.split_once('#') {
        out.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if let Some(query) = read.query().filter(|query| !query.is_empty()) {
        out.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

fn check_versions(path: &str, known: Option<ReviewVersion>, webhook: &Value, out: &mut Vec<FieldError>) {
    let versions = &webhook["admissionReviewVersions"];
    let all: Vec<&str> = versions.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if all.is_empty() {
        return out.push(FieldError::required(path, "must specify one of v1, v1beta1"));
    }
    for (index, version) in all.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if all[..index].contains(version) {
            out.push(FieldError::invalid(&path, *version, "duplicate version"));
        } else {
            let errors = names::dns_1035_label(version).into_iter();
            out.extend(errors.map(|error| FieldError::invalid(&path, *version, error)));
        }
    }
    if known.is_none() {
        out.push(FieldError::invalid(path, versions.clone(), "must include at least one of v1, v1beta1"));
    }
}
