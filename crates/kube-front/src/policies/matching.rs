//! Matching of requests by a policy or a binding (`MatchResources`).

use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube_sim::selector;
use serde_json::Value;

use crate::asked::{Asked, name_of};

/// Returns true if a request matches. Without constraints every request does.
pub(super) fn matches(resources: Option<&MatchResources>, asked: &Asked<'_>, namespace: Option<&Value>) -> bool {
    let Some(resources) = resources else { return true };
    let any = |rules: &Option<Vec<NamedRuleWithOperations>>| {
        rules.iter().flatten().any(|rule| names(rule, asked, &asked.kind.version))
    };
    let has_rules = resources.resource_rules.as_ref().is_some_and(|rules| !rules.is_empty());
    in_selected(resources.namespace_selector.as_ref(), namespace)
        && (selects(resources.object_selector.as_ref(), asked.object)
            || selects(resources.object_selector.as_ref(), asked.old))
        && !any(&resources.exclude_resource_rules)
        && (!has_rules || any(&resources.resource_rules))
}

/// Returns true if a namespace is selected. Selectors don't exclude cluster-scoped objects.
pub(crate) fn in_selected(selector: Option<&LabelSelector>, namespace: Option<&Value>) -> bool {
    namespace.is_none() || selects(selector, namespace)
}

/// Returns true if an object is selected by its labels. An absent object is selected only by an
/// empty selector.
pub(crate) fn selects(selector: Option<&LabelSelector>, object: Option<&Value>) -> bool {
    let Some(selector) = selector else { return true };
    let selector = serde_json::to_value(selector).unwrap_or_default();
    let labels = object.map(|object| &object["metadata"]["labels"]);
    let is_empty = selector.as_object().is_none_or(serde_json::Map::is_empty);
    is_empty || labels.is_some_and(|labels| selector::selects(&selector, labels).unwrap_or(false))
}

/// Returns true if a rule matches a request, taken as one at this version.
pub(crate) fn names(rule: &NamedRuleWithOperations, asked: &Asked<'_>, version: &str) -> bool {
    let kind = asked.kind;
    let scope = match rule.scope.as_deref() {
        Some("Namespaced") => kind.is_namespaced(),
        Some("Cluster") => !kind.is_namespaced(),
        _ => true,
    };
    let has = |list: &Option<Vec<String>>, value: &str| list.iter().flatten().any(|one| one == "*" || one == value);
    let name = asked.name();
    let named = rule.resource_names.as_ref().is_none_or(|list| list.is_empty() || list.iter().any(|one| one == name));
    scope
        && named
        && has(&rule.operations, name_of(asked.operation))
        && has(&rule.api_groups, &kind.group)
        && has(&rule.api_versions, version)
        && rule.resources.iter().flatten().any(|resource| is_resource(resource, asked))
}

/// Returns true if a rule's resource matches: `pods`, `pods/status`, `pods/*`, `*/status`, `*` for
/// all resources without subresources, `*/*` for everything.
fn is_resource(rule: &str, asked: &Asked<'_>) -> bool {
    let (resource, part) = rule.split_once('/').unwrap_or((rule, ""));
    let is_part = part == "*" || part == asked.subresource;
    is_part && (resource == "*" || resource == asked.kind.plural)
}
