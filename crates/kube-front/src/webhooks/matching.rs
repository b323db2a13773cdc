//! Matching of requests by webhooks (`ShouldCallHook`), and the version of the object that they
//! see.

use kube_sim::kind::Kind;
use kube_sim::store::{Place, Tables};
use serde_json::Value;

use super::hook::{Hook, Versions};
use crate::asked::Asked;
use crate::policies;

/// Returns the version to send to a webhook if it matches the request: that of the request or,
/// under `Equivalent`, another served one.
pub(super) fn version(state: &Tables, hook: &Hook, asked: &Asked<'_>, namespace: Option<&Value>) -> Option<String> {
    let requested = asked.version;
    let selected = policies::in_selected(hook.namespace_selector.as_ref(), namespace)
        && (policies::selects(hook.object_selector.as_ref(), asked.object)
            || policies::selects(hook.object_selector.as_ref(), asked.old));
    if !selected {
        return None;
    }
    if hook.rules.iter().any(|rule| policies::names(rule, asked, requested)) {
        return Some(requested.to_owned());
    }
    if hook.versions == Versions::Exact {
        return None;
    }
    let others = others(state, asked.kind, requested);
    let named = |rule| others.iter().find(|version| policies::names(rule, asked, version));
    hook.rules.iter().find_map(named).cloned()
}

/// Returns the other served versions of a resource.
fn others(state: &Tables, kind: &Kind, requested: &str) -> Vec<String> {
    if !kind.is_custom() {
        return Vec::new();
    }
    let definitions = state.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let place = Place::new("", &format!("{}.{}", kind.plural, kind.group));
    let definition = definitions.and_then(|definitions| state.get(&definitions, &place).cloned());
    let Some(definition) = definition else { return Vec::new() };
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true).filter_map(|version| version["name"].as_str());
    served.filter(|version| *version != requested).map(str::to_owned).collect()
}
