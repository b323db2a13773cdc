//! The `/scale` subresource: the number of replicas of an object, in the field where its kind has
//! it.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kube_sim::json::json_text;
use kube_sim::meta;
use kube_sim::output::{self, ApiBody};
use kube_sim::status::{self, Failure, FieldError, bad_request};
use kube_sim::store::Place;
use kube_sim::{Cluster, Way};
use serde_json::{Value, json};

use super::body;
use super::face::Face;
use super::media::media_type;
use super::resource::{Backing, Resource, ScalePaths};

/// Answers a request for the scale of an object.
///
/// # Errors
/// Returns 404 if the object doesn't exist, 409 for another resource version, 422 for a negative
/// number, and the errors of a patch of the object.
pub(super) fn answer(
    cluster: &Cluster,
    resource: &Resource,
    namespace: &str,
    name: &str,
    head: &Parts,
    sent: &Bytes,
) -> Result<Response<ApiBody>, Failure> {
    let (Backing::Stored(kind, Face::Same | Face::Version(_)), Some(paths)) = (&resource.backing, &resource.scale)
    else {
        return Err(status::no_such_resource());
    };
    let read = || {
        let state = cluster.read();
        let found = state.get(kind, &Place::new(namespace, name)).cloned();
        found.ok_or_else(|| status::not_found(kind, name))
    };
    let object = read()?;
    let scale = scale_of(paths, &object);
    let wanted = match head.method {
        Method::GET => return Ok(output::answer(StatusCode::OK, &scale, &[])),
        Method::PUT => body::object(head, sent)?,
        Method::PATCH => patched(head, sent, &scale)?,
        _ => return Err(status::method_not_allowed()),
    };
    let stated = meta::version(&wanted);
    if stated.is_some_and(|stated| stated != meta::text(&scale, "resourceVersion")) {
        return Err(status::stale(kind, name));
    }
    let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let error = FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(status::invalid("autoscaling", "Scale", name, &[error]));
    }
    let patch = patch_of(paths, replicas, meta::text(&scale, "resourceVersion"));
    let mut inner = head.clone();
    inner.method = Method::PATCH;
    let path = head.uri.path().trim_end_matches('/').trim_end_matches("/scale").to_owned();
    let path = match &resource.backing {
        Backing::Stored(kind, Face::Version(version)) => {
            path.replacen(&format!("/{version}/"), &format!("/{}/", kind.version), 1)
        }
        _ => path,
    };
    let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    inner.uri = format!("{path}{query}").parse().map_err(|_| bad_request("the path can't be read"))?;
    inner.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
    inner.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    cluster.answer(&inner, &json_text(&patch), Way::Front)?;
    let object = read()?;
    Ok(output::answer(StatusCode::OK, &scale_of(paths, &object), &[]))
}

/// Applies a JSON patch or a merge patch to a scale.
fn patched(head: &Parts, sent: &Bytes, scale: &Value) -> Result<Value, Failure> {
    let unreadable = |error: serde_json::Error| bad_request(format!("error decoding patch: {error}"));
    let mut wanted = scale.clone();
    if media_type(head) == "application/json-patch+json" {
        let patch: json_patch::Patch = serde_json::from_slice(sent).map_err(unreadable)?;
        json_patch::patch(&mut wanted, &patch).map_err(|error| bad_request(error.to_string()))?;
    } else {
        json_patch::merge(&mut wanted, &serde_json::from_slice(sent).map_err(unreadable)?);
    }
    Ok(wanted)
}

/// Returns the merge patch that sets the number of replicas, at this resource version of the
/// object.
fn patch_of(paths: &ScalePaths, replicas: i64, version: &str) -> Value {
    let names: Vec<&str> = paths.spec.split('.').filter(|name| !name.is_empty()).collect();
    let mut patch = names.iter().rev().fold(json!(replicas), |inner, name| json!({*name: inner}));
    patch["metadata"] = json!({"resourceVersion": version});
    patch
}

fn scale_of(paths: &ScalePaths, object: &Value) -> Value {
    let at = |path: &str| {
        let names = path.split('.').filter(|name| !name.is_empty());
        names.fold(object, |at, name| at.get(name).unwrap_or(&Value::Null)).clone()
    };
    let number = |path: &str| at(path).as_i64().unwrap_or_default();
    let mut metadata = json!({});
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let value = &object["metadata"][name];
        if !value.is_null() {
            metadata[name] = value.clone();
        }
    }
    let mut status = json!({"replicas": number(&paths.status)});
    if !paths.selector.is_empty()
        && let Some(selector) = at(&paths.selector).as_str()
    {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": number(&paths.spec)}, "status": status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> ScalePaths {
        ScalePaths { spec: ".spec.size".into(), status: ".status.size".into(), selector: ".status.labels".into() }
    }

    #[test]
    fn a_scale_is_read_where_its_kind_says() {
        let object = json!({
            "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"size": 3},
            "status": {"size": 2, "labels": "app=a"},
        });
        let scale = scale_of(&paths(), &object);
        assert_eq!(scale["spec"], json!({"replicas": 3}));
        assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=a"}));
        assert_eq!(scale["metadata"], json!({"name": "a"}));
    }

    #[test]
    fn a_new_number_goes_where_its_kind_says() {
        let patch = patch_of(&paths(), 4, "7");
        assert_eq!(patch, json!({"spec": {"size": 4}, "metadata": {"resourceVersion": "7"}}));
    }
}
