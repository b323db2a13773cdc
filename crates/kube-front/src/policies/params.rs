//! Parameters of a policy: the objects that a binding names or selects.

use k8s_openapi::api::admissionregistration::v1::{ParamKind, ParamRef};
use serde_json::Value;

use kube_sim::selector;
use kube_sim::store::{Place, Tables};

/// Returns the parameters to evaluate a policy with, once for each; a single `None` if it has no
/// parameters.
///
/// # Errors
/// Returns a message if the kind isn't served, or if no object is found and the binding denies
/// that.
pub(super) fn of(
    state: &Tables,
    kind: Option<&ParamKind>,
    wanted: Option<&ParamRef>,
    namespace: &str,
) -> Result<Vec<Option<Value>>, String> {
    let (Some(kind), Some(wanted)) = (kind, wanted) else { return Ok(vec![None]) };
    let (version, name) = (kind.api_version.as_deref().unwrap_or_default(), kind.kind.as_deref().unwrap_or_default());
    let served = state.kind_named(version, name);
    let served =
        served.ok_or_else(|| format!("failed to find resource referenced by paramKind: '{version}, Kind={name}'"))?;
    let namespace = match (served.is_namespaced(), wanted.namespace.as_deref()) {
        (true, Some(own)) => own,
        (true, None) if namespace.is_empty() => {
            return Err("can't use namespaced paramRef to match cluster-scoped resources that don't have a namespace"
                .to_owned());
        }
        (true, None) => namespace,
        (false, _) => "",
    };
    let found: Vec<Option<Value>> = match (&wanted.name, &wanted.selector) {
        (Some(name), _) => {
            let found = state.get(&served, &Place::new(namespace, name));
            found.map(|found| Some(found.tree().as_ref().clone())).into_iter().collect()
        }
        (None, Some(selector)) => {
            let selector = serde_json::to_value(selector).map_err(|error| error.to_string())?;
            let selected =
                |object: &Value| selector::selects(&selector, &object["metadata"]["labels"]).unwrap_or(false);
            let objects = state.objects(&served).filter(|(place, _)| place.namespace == namespace);
            objects
                .map(|(_, object)| object.tree())
                .filter(|object| selected(object))
                .map(|object| Some(object.as_ref().clone()))
                .collect()
        }
        (None, None) => return Err("a paramRef has to have a name or a selector".to_owned()),
    };
    if found.is_empty() && wanted.parameter_not_found_action.as_deref() != Some("Allow") {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found)
}
