//! PUT and PATCH: computation of the proposed object from a request's body.

use json_patch::{AddOperation, PatchOperation, ReplaceOperation, jsonptr};
use kube::core::Status;
use kube::core::response::reason;
use serde_json::{Map, Value};

use super::apply::{self, Applier};
use super::decode::{self, Origin};
use super::kind::Kind;
use super::managed;
use super::meta;
use super::options::{Ownership, Part, WriteOptions, Written};
use super::status::{self, Failure, FieldError, bad_request};
use super::store::{Place, Shared, Store};
use super::strategic;
use super::write;

/// Format of a patch, by its content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchFormat {
    /// Parses the content type. Strategic merge exists for built-in kinds only.
    ///
    /// # Errors
    /// 415 for other types.
    pub(crate) fn parse(kind: &Kind, content_type: &str) -> Result<Self, Failure> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            "application/strategic-merge-patch+json" if !kind.is_custom() => Ok(Self::Strategic),
            _ if !kind.is_custom() => Err(status::unsupported_by_route()),
            _ => Err(status::unsupported_media_type(
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
        }
    }
}

/// Executes a PUT.
///
/// # Errors
/// 404 for a missing object, unless PUT creates objects of the kind; 409 for another UID; and the
/// errors of [`write::update`] and [`write::create`].
pub(crate) fn replace(
    state: &mut Store,
    kind: &Kind,
    place: &Place,
    part: Part,
    mut object: Value,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    decode::settle_envelope(kind, &place.namespace, &mut object)?;
    decode::check_name(&place.name, &object)?;
    let warnings = decode::shape(kind, &mut object, options.validation, Origin::Body)?;
    let uid = meta::uid(&object).to_owned();
    let Some(existing) = state.get(kind, place).cloned() else {
        if part == Part::Status || !kind.allows_create_on_update() {
            return Err(status::not_found(kind, &place.name));
        }
        if !uid.is_empty() {
            return Err(status::wrong_uid(kind, place, &uid, ""));
        }
        return Ok(create(state, kind, object, Ownership::Creator, options)?.warned(warnings));
    };
    if !uid.is_empty() && uid != meta::uid(&existing) {
        return Err(status::wrong_uid(kind, place, &uid, meta::uid(&existing)));
    }
    let now = options.now(state);
    managed::record_update(kind, &existing, &mut object, &options.manager, part.subresource(), &now);
    Ok(write::update(state, kind, &existing, object, part, options)?.warned(warnings))
}

/// Creates the missing object of a PUT or an apply, ignoring its resourceVersion.
fn create(
    state: &mut Store,
    kind: &Kind,
    mut object: Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let stated = object["metadata"]["resourceVersion"].clone();
    meta::set(&mut object, "resourceVersion", Value::Null);
    let mut written = write::create(state, kind, object, ownership, options)?;
    if options.dry_run {
        // In a dry run no new version is assigned, so the object keeps the given one.
        let mut object = Value::clone(&written.object);
        meta::set(&mut object, "resourceVersion", stated);
        written.object = Shared::new(object);
    }
    Ok(written)
}

/// Executes a PATCH in any format except apply.
///
/// # Errors
/// 404 for a missing object, 400 for an invalid patch, 422 for one that does not apply, and the
/// errors of [`write::update`].
pub(crate) fn patch(
    state: &mut Store,
    kind: &Kind,
    place: &Place,
    part: Part,
    format: PatchFormat,
    body: &[u8],
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let existing = state.get(kind, place).cloned().ok_or_else(|| status::not_found(kind, &place.name))?;
    let mut object = Value::clone(&existing);
    match (format, object.as_object_mut()) {
        (PatchFormat::Json, _) => apply_json_patch(&mut object, body)?,
        (PatchFormat::Strategic, Some(fields)) => strategic::merge(&kind.schema, fields, patch_of(body)?)?,
        _ => json_patch::merge(&mut object, &Value::Object(patch_of(body)?)),
    }
    if object["metadata"].is_null() {
        return decode::check_name(&place.name, &object).and(Err(does_not_apply()));
    }
    if !object["metadata"].is_object() {
        return Err(does_not_apply());
    }
    decode::settle_envelope(kind, &place.namespace, &mut object)?;
    decode::check_name(&place.name, &object)?;
    let warnings = decode::shape(kind, &mut object, options.validation, Origin::Patch)?;
    let now = options.now(state);
    managed::record_update(kind, &existing, &mut object, &options.manager, part.subresource(), &now);
    Ok(write::update(state, kind, &existing, object, part, options)?.warned(warnings))
}

/// Executes a server-side apply. Creates the object if it is missing.
///
/// # Errors
/// 409 for fields that other managers own, for another UID and for another resourceVersion; 422
/// without a manager; and the errors of [`write::create`] and [`write::update`].
pub(crate) fn server_side_apply(
    state: &mut Store,
    kind: &Kind,
    place: &Place,
    part: Part,
    body: &[u8],
    force: bool,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let exists = state.get(kind, place).is_some();
    if !exists && part == Part::Status {
        return Err(status::not_found(kind, &place.name));
    }
    let config = decode::apply_config(kind, &place.namespace, &place.name, exists, body)?;
    let now = options.now(state);
    let applier = Applier { manager: &options.manager, subresource: part.subresource(), force, now: &now };
    let Some(existing) = state.get(kind, place).cloned() else {
        decode::check_name(&place.name, &config)?;
        let uid = meta::uid(&config);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(status::conflict(kind, &place.name, &why));
        }
        let blank = apply::blank(kind, &place.namespace, &place.name);
        let mut object = apply::apply(kind, &blank, &config, &applier)?;
        let warnings = decode::shape(kind, &mut object, options.validation, Origin::Body)?;
        return Ok(create(state, kind, object, Ownership::Applied, options)?.warned(warnings));
    };
    let mut object = apply::apply(kind, &existing, &config, &applier)?;
    // If there are both a wrong name and a conflict, a server reports the conflict.
    decode::check_name(&place.name, &config)?;
    if meta::text(&config, "resourceVersion").is_empty() {
        meta::copy(&existing, &mut object, "resourceVersion");
    }
    let warnings = decode::shape(kind, &mut object, options.validation, Origin::Body)?;
    Ok(write::update(state, kind, &existing, object, part, options)?.warned(warnings))
}

/// Checks the options that only some formats allow.
///
/// # Errors
/// 422 with the server's message.
pub(crate) fn check_options(format: PatchFormat, manager_given: bool, force_given: bool) -> Result<(), Failure> {
    let error = match format {
        PatchFormat::Apply if !manager_given => FieldError::required("fieldManager", "is required for apply patch"),
        PatchFormat::Json | PatchFormat::Merge | PatchFormat::Strategic if force_given => {
            FieldError::forbidden("force", "may not be specified for non-apply patch")
        }
        _ => return Ok(()),
    };
    Err(status::invalid("meta.k8s.io", "PatchOptions", "", &[error]))
}

/// Parses a patch that is a JSON object.
fn patch_of(body: &[u8]) -> Result<Map<String, Value>, Failure> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(patch)) => Ok(patch),
        Ok(_) => Err(bad_request("error decoding patch: the patch is not an object")),
        Err(error) => Err(bad_request(format!("error decoding patch: {error}"))),
    }
}

fn apply_json_patch(object: &mut Value, body: &[u8]) -> Result<(), Failure> {
    let operations: Vec<PatchOperation> =
        serde_json::from_slice(body).map_err(|error| bad_request(format!("error decoding patch: {error}")))?;
    let applies = operations.iter().all(|operation| apply_operation(object, operation));
    if applies { Ok(()) } else { Err(does_not_apply()) }
}

/// Executes an operation of a JSON patch. Returns true if it applies; otherwise the object is
/// unchanged.
pub fn apply_operation(object: &mut Value, operation: &PatchOperation) -> bool {
    match as_the_server_reads_it(object, operation) {
        Some(operation) => json_patch::patch(object, &[operation]).is_ok(),
        None => true,
    }
}

/// Converts an operation for which the server's patch library differs from RFC 6902. `test` against
/// null succeeds if the key is missing, and `replace` of a missing key adds it. In both cases the
/// parent must exist.
fn as_the_server_reads_it(object: &Value, operation: &PatchOperation) -> Option<PatchOperation> {
    let missing_key = |path: &jsonptr::Pointer| {
        let parent = path.split_back().and_then(|(parent, _)| object.pointer(parent.as_str()));
        object.pointer(path.as_str()).is_none() && parent.is_some_and(Value::is_object)
    };
    match operation {
        PatchOperation::Test(test) if test.value.is_null() && missing_key(&test.path) => None,
        PatchOperation::Replace(replace) if missing_key(&replace.path) => {
            let ReplaceOperation { path, value } = replace.clone();
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        other => Some(other.clone()),
    }
}

/// Returns the error for a patch that does not apply. A server gives no details and no causes.
fn does_not_apply() -> Failure {
    let text = "the server rejected our request due to an error in our request";
    let details = status::no_details();
    Status::failure(text, reason::INVALID).with_code(422).with_details(details).boxed()
}
