//! From bytes to an object in the form that the rules are checked on: type and namespace agree with
//! the request, unknown fields handled as `fieldValidation` says, defaults filled in.

use serde_json::{Map, Value};

use super::defaulting;
use super::kind::Kind;
use super::meta;
use super::status::{Failure, FieldError, bad_request, internal, invalid};
use super::validate::{Findings, validate_part};

/// What happens to fields that the schema doesn't know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Dropped in silence.
    Ignore,
    /// Dropped, with a warning in the response. The server's default.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

/// Where an object came from; unknown fields are refused in different words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is the request's body.
    Body,
    /// It is a stored object with the request's patch applied.
    Patch,
}

/// Parses a JSON body into an object.
///
/// # Errors
/// 400 when it isn't a JSON object.
pub(crate) fn json_object(body: &[u8]) -> Result<Value, Failure> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        let shown = value.to_string();
        Err(bad_request(format!(
            "couldn't get version/kind; json parse error: cannot unmarshal {shown} into an object"
        )))
    }
}

/// Checks that the object is of the kind and the namespace that the path names, and fills in what it
/// leaves out.
///
/// # Errors
/// 400 where they differ.
pub(crate) fn settle_envelope(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Failure> {
    let api_version = kind.api_version();
    let stated = object["apiVersion"].as_str().unwrap_or_default();
    if !stated.is_empty() && stated != api_version {
        return Err(bad_request(format!(
            "the API version in the data ({stated}) does not match the expected API version ({api_version})"
        )));
    }
    let stated = object["kind"].as_str().unwrap_or_default();
    if stated.is_empty() && kind.is_custom() {
        return Err(bad_request("Object 'Kind' is missing in the request body"));
    }
    if !stated.is_empty() && stated != kind.kind {
        let expected = &kind.kind;
        return Err(bad_request(format!(
            "{stated} in version {api_version:?} cannot be handled as a {expected}: kinds differ"
        )));
    }
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.kind.clone().into();
    let stated = meta::namespace(object);
    if kind.is_namespaced() && !stated.is_empty() && stated != namespace {
        return Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if kind.is_namespaced() {
        meta::set(object, "namespace", namespace.into());
    }
    Ok(())
}

/// Checks that the object's name, if stated, is the one in the path, and fills it in.
///
/// # Errors
/// 400 where they differ.
pub(crate) fn settle_name(name: &str, object: &mut Value) -> Result<(), Failure> {
    let stated = meta::name(object);
    if !stated.is_empty() && stated != name {
        return Err(bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({name})"
        )));
    }
    meta::set(object, "name", name.into());
    Ok(())
}

/// Prunes, applies defaults and checks the types that a decoder would trip over.
/// Returns the warnings.
///
/// # Errors
/// For unknown fields under `Strict`, and for types that don't fit (of built-in kinds and of
/// metadata): 400 for a body, 422 for the result of a patch.
pub(crate) fn shape(
    kind: &Kind,
    object: &mut Value,
    mode: FieldValidation,
    origin: Origin,
) -> Result<Vec<String>, Failure> {
    let unknown = defaulting::prune(&kind.schema, object);
    let mut warnings = Vec::new();
    let complaints: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    match mode {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let text = format!("strict decoding error: {}", complaints.join(", "));
            return Err(undecodable(kind, object, origin, &text));
        }
    }
    defaulting::apply_defaults(&kind.schema, object);
    let mut found = Findings::default();
    if let Some(schema) = kind.schema.properties.get("metadata") {
        validate_part(schema, &object["metadata"], None, "metadata", &mut found);
    }
    if !kind.is_custom() {
        for (name, field) in object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata") {
            if let Some(schema) = kind.schema.properties.get(name) {
                validate_part(schema, field, None, name, &mut found);
            }
        }
    }
    if let Some(error) = found.errors.first() {
        return Err(undecodable(kind, object, origin, &error.to_string()));
    }
    meta::tidy(object);
    Ok(warnings)
}

fn undecodable(kind: &Kind, object: &Value, origin: Origin, why: &str) -> Failure {
    match origin {
        Origin::Body => {
            let Kind { kind, version, .. } = kind;
            bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
        }
        Origin::Patch => {
            let error = FieldError::invalid("patch", object.to_string(), why);
            invalid("", "", "", &[error])
        }
    }
}

/// Parses and checks the body of an apply.
///
/// # Errors
/// 400 when it isn't an object or is of another type, 500 (as on a server) for unknown fields.
pub(crate) fn apply_config(kind: &Kind, namespace: &str, name: &str, body: &[u8]) -> Result<Value, Failure> {
    let parsed: Option<Value> = serde_json::from_slice(body).ok().or_else(|| {
        let text = std::str::from_utf8(body).ok()?;
        serde_saphyr::from_str(text).ok()
    });
    let Some(config) = parsed.filter(Value::is_object) else {
        return Err(bad_request("error decoding YAML: the body is not an object"));
    };
    let mut config = super::apply::without_nulls(config);
    let stated = config["apiVersion"].as_str().unwrap_or_default();
    if stated != kind.api_version() {
        let expected = kind.api_version();
        return Err(bad_request(format!("invalid object type: apiVersion {stated:?}, expected {expected:?}")));
    }
    settle_envelope(kind, namespace, &mut config)?;
    settle_name(name, &mut config)?;
    if !config["metadata"]["managedFields"].is_null() {
        return Err(bad_request("metadata.managedFields must be nil"));
    }
    let unknown = defaulting::unknown_fields(&kind.schema, &config);
    if let Some(path) = unknown.first() {
        return Err(internal(&format!(
            "failed to create typed patch object ({namespace}/{name}; {}, Kind={}): .{path}: field not declared in schema",
            kind.api_version(),
            kind.kind,
        )));
    }
    Ok(config)
}

/// An empty object, for kinds of patch that start from nothing.
pub(crate) fn empty() -> Value {
    Value::Object(Map::new())
}
