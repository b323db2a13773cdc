//! Which requests a webhook is about (`ShouldCallHook`), and at which version it sees the object.

use serde_json::Value;

use super::hook::{Hook, Versions};
use crate::kind::Kind;
use crate::policies::{self, Admission};
use crate::store::{Place, State};

/// The version that a webhook is asked about, where it is about the request: the one of the
/// request, or under `Equivalent` another one that is served.
pub(super) fn version(
    state: &State,
    hook: &Hook,
    asked: &Admission<'_>,
    requested: &str,
    namespace: Option<&Value>,
) -> Option<String> {
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

/// The other versions that a resource is served at.
fn others(state: &State, kind: &Kind, requested: &str) -> Vec<String> {
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
