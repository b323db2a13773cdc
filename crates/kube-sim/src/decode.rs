//! Decoding of request bodies into validated form: type and namespace match the request, unknown
//! fields are handled according to `fieldValidation`, and defaults are set.

use serde_json::Value;

use super::builtin;
use super::defaulting;
use super::fields;
use super::json::whole_numbers;
use super::kind::Kind;
use super::meta;
use super::schema::{Additional, Schema, TypeRule};
use super::status::{Failure, FieldError, FieldErrorKind, bad_request, internal_error, invalid, unclassified};
use super::structure::{duplicates, is_untypable};
use super::validate::{Findings, validate, validate_part};

/// Handling of fields that the schema does not define.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them with a warning in the response. The server's default.
    #[default]
    Warn,
    /// Reject the request.
    Strict,
}

/// Source of an object. It determines the message for unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The body of the request.
    Body,
    /// A stored object to which the request's patch was applied.
    Patch,
}

/// Parses a JSON body into an object.
///
/// # Errors
/// 400 if it is not a JSON object.
pub(crate) fn json_object(kind: &Kind, body: &[u8]) -> Result<Value, Failure> {
    let why = match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.is_object() => return Ok(value),
        Ok(_) => "it is not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(unrecognized(kind, body, &format!("couldn't get version/kind; json parse error: {why}")))
}

fn unrecognized(kind: &Kind, body: &[u8], why: &str) -> Failure {
    let shown = String::from_utf8_lossy(body);
    bad_request(format!("the object provided is unrecognized (must be of type {}): {why} ({shown})", kind.kind))
}

/// Checks that the object has the kind and namespace of the path, and sets them if they are
/// missing.
///
/// # Errors
/// 400 if they differ.
pub(crate) fn settle_envelope(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Failure> {
    let api_version = kind.api_version();
    let stated = object["apiVersion"].as_str().unwrap_or_default();
    if !stated.is_empty() && stated != api_version {
        let (name, version) = (&kind.kind, &kind.version);
        if !kind.is_custom() {
            let given = object["kind"].as_str().unwrap_or_default();
            let why = format!("no kind {given:?} is registered for version {stated:?}");
            return Err(bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {why}")));
        }
        return Err(bad_request(format!(
            "the API version in the data ({stated}) does not match the expected API version ({api_version})"
        )));
    }
    let stated = object["kind"].as_str().unwrap_or_default();
    if stated.is_empty() && kind.is_custom() {
        let body = object.to_string();
        return Err(unrecognized(kind, body.as_bytes(), &format!("Object 'Kind' is missing in '{body}'")));
    }
    if !stated.is_empty() && stated != kind.kind {
        return Err(other_kind(kind, object));
    }
    if !object["metadata"].is_null() && !object["metadata"].is_object() {
        return Err(bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: metadata is not an object",
            kind.kind, kind.version, kind.kind
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
    // A namespace in a cluster-scoped object is dropped.
    let namespace = if kind.is_namespaced() { namespace.into() } else { Value::Null };
    meta::set(object, "namespace", namespace);
    Ok(())
}

fn other_kind(kind: &Kind, object: &Value) -> Failure {
    let stated = object["kind"].as_str().unwrap_or_default();
    if kind.is_custom() {
        let error = FieldError::invalid("kind", stated, format!("must be {}", kind.kind));
        return invalid(&kind.group, stated, meta::name(object), &[error]);
    }
    let (version, expected) = (&kind.version, &kind.kind);
    bad_request(format!("{stated} in version {version:?} cannot be handled as a {expected}: the object is a {stated}"))
}

/// Checks that the object has the name that is in the path.
///
/// # Errors
/// Returns 400 if it has none or another one.
pub(crate) fn check_name(name: &str, object: &Value) -> Result<(), Failure> {
    let stated = meta::name(object);
    if stated.is_empty() {
        return Err(bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if stated != name {
        return Err(bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Prunes, sets defaults, and checks the types that decoding requires. Returns the warnings.
///
/// # Errors
/// Returns an error for unknown fields with `Strict`, and for wrong types in built-in kinds and in
/// metadata: 400 for a body, 422 for the result of a patch.
pub(crate) fn shape(
    kind: &Kind,
    object: &mut Value,
    mode: FieldValidation,
    origin: Origin,
) -> Result<Vec<String>, Failure> {
    // The error for a patch shows the object with its unknown fields.
    let whole = (mode == FieldValidation::Strict && origin == Origin::Patch).then(|| object.clone());
    let unknown = defaulting::prune(&kind.schema, object);
    let mut warnings = Vec::new();
    let complaints: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
    match mode {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(complaints),
        FieldValidation::Strict if complaints.is_empty() => {}
        FieldValidation::Strict => {
            let text = format!("strict decoding error: {}", complaints.join(", "));
            return Err(undecodable(kind, whole.as_ref().unwrap_or(object), origin, &text));
        }
    }
    whole_numbers(object);
    defaulting::apply_defaults(&kind.schema, object);
    let mut found = Findings::default();
    if let Some(schema) = kind.schema.properties.get("metadata") {
        validate_part(schema, &object["metadata"], None, "metadata", &mut found);
        if let Some(why) = found.errors.first().and_then(|error| untypable(schema, error)) {
            return Err(undecodable(kind, object, origin, &why));
        }
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
    builtin::normalize(kind, object);
    Ok(warnings)
}

/// Decodes an object again after admission has changed it.
///
/// # Errors
/// 400 if it now has another kind or namespace, 500 if it cannot be decoded.
pub fn after_admission(kind: &Kind, namespace: &str, object: &mut Value) -> Result<(), Failure> {
    settle_envelope(kind, namespace, object)?;
    let shaped = shape(kind, object, FieldValidation::Ignore, Origin::Body);
    shaped.map(drop).map_err(|failure| internal_error(&failure.message))
}

/// Returns the message of Go's decoder for a wrong type in metadata, which is decoded into a struct
/// before validation.
fn untypable(metadata: &Schema, error: &FieldError) -> Option<String> {
    let FieldError { kind: FieldErrorKind::TypeInvalid, path, value, .. } = error else { return None };
    let field = path.strip_prefix("metadata.")?.split(['.', '[']).next()?;
    let schema = metadata.field(field)?;
    let wanted = match (&schema.additional, &schema.items) {
        (Additional::Schema(inner), _) => inner,
        (_, Some(inner)) => inner,
        _ => schema,
    };
    let TypeRule::Only(wanted) = wanted.type_rule else { return None };
    let found = match value.as_str()? {
        "boolean" => "bool",
        "integer" => "number",
        other => other,
    };
    let wanted = wanted.name();
    Some(format!("json: cannot unmarshal {found} into Go struct field ObjectMeta.{field} of type {wanted}"))
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
/// 400 if it is not an object, has another type, or lacks the name of an object to create. 500, as
/// in an API server, for unknown fields and values of the wrong type.
pub(crate) fn apply_config(
    kind: &Kind,
    namespace: &str,
    name: &str,
    exists: bool,
    body: &[u8],
) -> Result<Value, Failure> {
    let parsed: Option<Value> = serde_json::from_slice(body).ok().or_else(|| {
        let text = std::str::from_utf8(body).ok()?;
        serde_saphyr::from_str(text).ok()
    });
    let Some(config) = parsed.filter(Value::is_object) else {
        return Err(bad_request("error decoding YAML: the body is not an object"));
    };
    let mut config = super::apply::without_nulls(config);
    let stated = |field: &str| config[field].as_str().unwrap_or_default();
    let (api_version, stated_kind) = (stated("apiVersion"), stated("kind"));
    if api_version != kind.api_version() || stated_kind != kind.kind {
        return Err(bad_request(format!("invalid object type: {api_version}, Kind={stated_kind}")));
    }
    if !config["metadata"]["managedFields"].is_null() {
        return Err(bad_request("metadata.managedFields must be nil"));
    }
    check_types(kind, &config)?;
    settle_envelope(kind, namespace, &mut config)?;
    // The name of an existing object is set if it is missing. A different name in the config is
    // rejected later.
    if exists && meta::name(&config).is_empty() {
        meta::set(&mut config, "name", name.into());
    }
    Ok(config)
}

/// Checks an applied config against the structure of the schema, before anything else.
fn check_types(kind: &Kind, config: &Value) -> Result<(), Failure> {
    let mut found = Findings::default();
    validate(&kind.schema, config, None, "", &mut found);
    if let (Some(schema), Some(metadata)) = (kind.schema.properties.get("metadata"), config.get("metadata")) {
        validate_part(schema, metadata, None, "metadata", &mut found);
    }
    let wrong = found.errors.iter().find(|error| is_untypable(error));
    let why = match (defaulting::unknown_fields(&kind.schema, config).first(), wrong) {
        (Some(path), _) => format!(".{path}: field not declared in schema"),
        (None, Some(error)) => format!(".{}: {}", error.path, error.detail),
        (None, None) => match repeated(kind, config) {
            Some(why) => why,
            None => return Ok(()),
        },
    };
    Err(unclassified(&format!(
        "failed to create typed patch object ({}/{}; {}/{}, Kind={}): {why}",
        meta::namespace(config),
        meta::name(config),
        kind.group,
        kind.version,
        kind.kind,
    )))
}

/// Returns the message of an apply for duplicate items in a set or a keyed list.
fn repeated(kind: &Kind, config: &Value) -> Option<String> {
    let found = duplicates(&kind.schema, config);
    let first = found.first()?;
    let (list, _) = first.path.rsplit_once('[')?;
    let step = if first.value.is_object() { format!("k:{}", first.value) } else { format!("v:{}", first.value) };
    Some(format!(".{list}: duplicate entries for key {}", fields::display(&vec![step])))
}
