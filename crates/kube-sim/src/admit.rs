//! Admission as part of a write: mutation of the proposed object, and validation of the final one.

use serde_json::Value;

use super::admission::{AdmissionContext, AdmissionRequest, Operation};
use super::json;
use super::kind::Kind;
use super::managed;
use super::meta;
use super::options::{Ownership, Part, WriteOptions};
use super::status::Failure;
use super::store::Store;

/// Runs mutation on a new object.
///
/// Admission sees the object without the fields set by the server, except for the field owners.
/// Fields that it adds have no owner.
///
/// # Errors
/// Like [`super::admission::Admission::mutate`].
pub(crate) fn mutate_new(
    store: &Store,
    kind: &Kind,
    mut object: Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<(Value, Ownership), Failure> {
    if !options.admission.as_ref().is_some_and(|context| context.admission.may_mutate(store, kind)) {
        return Ok((object, ownership));
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta::set(&mut object, field, Value::Null);
    }
    if ownership == Ownership::Creator {
        let now = options.now(store);
        managed::record_update(kind, &json::empty(), &mut object, &options.manager, "", &now);
    }
    Ok((mutate(store, kind, (object, None), Part::Main, options)?, Ownership::Applied))
}

/// Runs mutation on a proposed object.
///
/// # Errors
/// Like [`super::admission::Admission::mutate`].
pub(crate) fn mutate(
    store: &Store,
    kind: &Kind,
    (object, old): (Value, Option<&Value>),
    part: Part,
    options: &WriteOptions,
) -> Result<Value, Failure> {
    let Some(context) = &options.admission else { return Ok(object) };
    context.admission.mutate(store, &of_write(kind, (None, old), part, context), object)
}

/// Runs validation on a write. Returns warnings.
///
/// # Errors
/// Like [`super::admission::Admission::validate`].
pub(crate) fn validate(
    store: &Store,
    kind: &Kind,
    objects: (Option<&Value>, Option<&Value>),
    part: Part,
    options: &WriteOptions,
) -> Result<Vec<String>, Failure> {
    let Some(context) = &options.admission else { return Ok(Vec::new()) };
    context.admission.validate(store, &of_write(kind, objects, part, context))
}

/// Runs validation on the deletion of a single object or of one in a collection.
///
/// # Errors
/// Like [`super::admission::Admission::validate`].
pub(crate) fn validate_deletion(
    store: &Store,
    kind: &Kind,
    existing: &Value,
    is_named: bool,
    context: Option<&AdmissionContext>,
) -> Result<(), Failure> {
    let Some(AdmissionContext { admission, dry_run, options }) = context else { return Ok(()) };
    let (operation, dry_run) = (Operation::Delete, *dry_run);
    let (object, old) = (None, Some(existing));
    let request = AdmissionRequest { kind, subresource: "", operation, is_named, object, old, dry_run, options };
    admission.validate(store, &request).map(drop)
}

fn of_write<'a>(
    kind: &'a Kind,
    (object, old): (Option<&'a Value>, Option<&'a Value>),
    part: Part,
    context: &'a AdmissionContext,
) -> AdmissionRequest<'a> {
    let operation = if old.is_some() { Operation::Update } else { Operation::Create };
    let AdmissionContext { dry_run, options, .. } = context;
    let (subresource, dry_run) = (part.subresource(), *dry_run);
    AdmissionRequest { kind, subresource, operation, is_named: true, object, old, dry_run, options }
}
