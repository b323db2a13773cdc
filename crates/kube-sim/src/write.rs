//! Create and update, in the order of steps of the API server's registry
//! (`k8s.io/apiserver/pkg/registry/{generic/registry,rest}`).

use serde_json::Value;

use super::admission::AdmissionContext;
use super::admit;
use super::builtin;
use super::cel;
use super::defaulting;
use super::json;
use super::kind::{Family, Kind};
use super::managed;
use super::meta;
use super::options::{Ownership, Part, WriteOptions, Written};
use super::status::{self, Failure, FieldError};
use super::store::{Place, Shared, Store};
use super::structure;
use super::validate::{self, Findings};

/// Stores a new object. `object` is decoded and has its namespace set.
///
/// # Errors
/// 404 if the namespace does not exist, 403 if it is terminating, 422 with every violated rule, 409
/// for a taken name.
pub(crate) fn create(
    state: &mut Store,
    kind: &Kind,
    object: Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let (mut object, ownership) = admit_new(state, kind, object, ownership, options)?;
    let is_generated = prepare_create(state, kind, &mut object, ownership, options)?;
    let mut warnings = check(state, kind, &object, None, Part::Main)?;
    warnings.extend(admit::validate(state, kind, (Some(&object), None), Part::Main, options)?);
    let object = store_new(state, kind, object, is_generated, options)?;
    Ok(Written { object, created: true, warnings })
}

/// Runs mutating admission on a new object. An object whose namespace does not exist skips it, and
/// is rejected later.
fn admit_new(
    state: &Store,
    kind: &Kind,
    object: Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<(Value, Ownership), Failure> {
    let is_judged =
        options.admission.is_some() && (!kind.is_namespaced() || require_namespace(state, kind, &object).is_ok());
    if is_judged { admit::mutate_new(state, kind, object, ownership, options) } else { Ok((object, ownership)) }
}

/// Sets the fields that only the server sets, and the field owners. Returns true if the name was
/// generated.
fn prepare_create(
    state: &mut Store,
    kind: &Kind,
    object: &mut Value,
    ownership: Ownership,
    options: &WriteOptions,
) -> Result<bool, Failure> {
    if meta::version(object).is_some() {
        return Err(status::unclassified("resourceVersion should not be set on objects to be created"));
    }
    let is_generated = generate_name(state, kind, object, options);
    if kind.is_namespaced() {
        require_namespace(state, kind, object)?;
    }
    let now = options.now(state);
    for field in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        meta::set(object, field, Value::Null);
    }
    let uid = AdmissionContext::kept(options.admission.as_ref(), "uid", || state.new_uid());
    meta::set(object, "uid", uid.into());
    meta::set(object, "creationTimestamp", now.clone().into());
    if kind.keeps_generation() {
        meta::set(object, "generation", 1.into());
    }
    builtin::prepare(kind, object, None);
    // Field owners are determined while the status is still present.
    if ownership == Ownership::Creator {
        managed::record_update(kind, &json::empty(), object, &options.manager, "", &now);
    }
    if kind.status_subresource
        && kind.is_custom()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    Ok(is_generated)
}

/// Stores an object under a name that must not be taken.
fn store_new(
    state: &mut Store,
    kind: &Kind,
    mut object: Value,
    is_generated: bool,
    options: &WriteOptions,
) -> Result<Shared, Failure> {
    builtin::omit_empty(kind, &mut object);
    let place = Place::of(&object);
    if let Some(existing) = state.get(kind, &place) {
        let mut failure = status::already_exists(kind, &place.name);
        if meta::is_deleting(existing) {
            failure.message.insert_str(0, "object is being deleted: ");
        }
        if is_generated {
            failure.message.push_str(", the server was not able to generate a unique name for the object");
        }
        return Err(failure);
    }
    let completed = defaulting::apply_defaults(&kind.schema, &mut object);
    if options.dry_run {
        return Ok(Shared::new(object));
    }
    let object = state.put(kind, object);
    if completed {
        state.complete_on_read(kind, place);
    }
    Ok(object)
}

/// Sets the name from `generateName`, with at most eight attempts like a server.
fn generate_name(state: &mut Store, kind: &Kind, object: &mut Value, options: &WriteOptions) -> bool {
    let prefix = meta::text(object, "generateName").to_owned();
    if prefix.is_empty() || !meta::name(object).is_empty() {
        return false;
    }
    // At most 63 characters, of which five are the suffix.
    let cut = (0..=58).rev().find(|at| prefix.is_char_boundary(*at)).unwrap_or(0).min(prefix.len());
    let mut place = Place::of(object);
    let name = AdmissionContext::kept(options.admission.as_ref(), "name", || {
        for _ in 0..8 {
            place.name = format!("{}{}", &prefix[..cut], state.new_suffix());
            if state.get(kind, &place).is_none() {
                break;
            }
        }
        place.name
    });
    meta::set(object, "name", name.into());
    true
}

fn require_namespace(state: &Store, kind: &Kind, object: &Value) -> Result<(), Failure> {
    let name = meta::namespace(object);
    let namespaces = state.kind("", "v1", "namespaces").expect("namespaces are always served");
    match state.get(&namespaces, &Place::new("", name)) {
        None => Err(status::not_found(&namespaces, name)),
        Some(namespace) if meta::is_deleting(namespace) => {
            Err(status::namespace_terminating(kind, meta::name(object), name))
        }
        Some(_) => Ok(()),
    }
}

/// Stores a new state of an existing object. `object` is decoded, with `managedFields` already
/// updated.
///
/// # Errors
/// 409 if resourceVersion is not the current one, 422 with every violated rule.
pub(crate) fn update(
    state: &mut Store,
    kind: &Kind,
    existing: &Shared,
    object: Value,
    part: Part,
    options: &WriteOptions,
) -> Result<Written, Failure> {
    let mut object = admit::mutate(state, kind, (object, Some(existing)), part, options)?;
    settle_version(kind, existing, &mut object)?;
    let object = prepare_update(kind, existing, object, part);
    let mut warnings = check(state, kind, &object, Some(existing), part)?;
    warnings.extend(admit::validate(state, kind, (Some(&object), Some(existing)), part, options)?);
    let object = store_changed(state, kind, existing, object, options);
    Ok(Written { object, created: false, warnings })
}

/// Stores a new state of an object, if it differs. If the object is being deleted and has no more
/// finalizers, it is removed.
fn store_changed(
    state: &mut Store,
    kind: &Kind,
    existing: &Shared,
    mut object: Value,
    options: &WriteOptions,
) -> Shared {
    builtin::omit_empty(kind, &mut object);
    defaulting::apply_defaults(&kind.schema, &mut object);
    forget_new_times(existing, &mut object);
    meta::tidy(&mut object);
    if object == **existing && !state.is_completed_on_read(kind, &Place::of(existing)) {
        return existing.clone();
    }
    if options.dry_run {
        return Shared::new(object);
    }
    let last = meta::is_deleting(&object) && meta::finalizers(&object).is_empty() && !holds_content(kind, &object);
    if last {
        // Watches see the removal of the stored state. The caller gets the state that it requested.
        state.remove(kind, &Place::of(&object));
        return Shared::new(object);
    }
    state.put(kind, object)
}

/// Returns true for a namespace that its controller has not emptied yet.
pub(crate) fn holds_content(kind: &Kind, object: &Value) -> bool {
    kind.family == Family::Namespace
        && object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn settle_version(kind: &Kind, existing: &Value, object: &mut Value) -> Result<(), Failure> {
    let current = meta::text(existing, "resourceVersion");
    match meta::version(object) {
        Some(version) if version == current => Ok(()),
        Some(_) => Err(status::stale(kind, meta::name(existing))),
        None if kind.allows_unconditional_update() => {
            meta::copy(existing, object, "resourceVersion");
            Ok(())
        }
        None => {
            let path = "metadata.resourceVersion";
            let error = FieldError::invalid(path, 0, "must be specified for an update");
            // Other `Invalid` messages of a server name the kind; this one names the resource.
            Err(status::invalid(&kind.group, &kind.plural, meta::name(existing), &[error]))
        }
    }
}

/// Restores the fields that this request cannot change, and increases the generation.
fn prepare_update(kind: &Kind, existing: &Value, mut object: Value, part: Part) -> Value {
    if part == Part::Status {
        let mut whole = existing.clone();
        whole["status"] = object["status"].take();
        if whole["status"].is_null()
            && let Some(fields) = whole.as_object_mut()
        {
            fields.remove("status");
        }
        meta::copy(&object, &mut whole, "managedFields");
        return whole;
    }
    if kind.status_subresource
        && let Some(fields) = object.as_object_mut()
    {
        match existing.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    if meta::uid(&object).is_empty() {
        meta::copy(existing, &mut object, "uid");
    }
    for field in ["creationTimestamp", "generation", "selfLink"] {
        meta::copy(existing, &mut object, field);
    }
    if meta::is_deleting(existing) {
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta::copy(existing, &mut object, field);
        }
    }
    builtin::prepare(kind, &mut object, Some(existing));
    if kind.keeps_generation() && is_another_generation(kind, existing, &object) {
        bump_generation(&mut object);
    }
    object
}

/// Returns true if the change increases the generation. Objects are compared in the form in which
/// they are stored.
fn is_another_generation(kind: &Kind, existing: &Value, object: &Value) -> bool {
    if kind.counts_annotations() && existing["metadata"]["annotations"] != object["metadata"]["annotations"] {
        return true;
    }
    let differs = |object: &Value| !content(existing).eq(content(object));
    if !builtin::has_own_form(kind, object) || !differs(object) {
        return differs(object);
    }
    let mut object = object.clone();
    builtin::omit_empty(kind, &mut object);
    differs(&object)
}

/// Iterates over all fields of an object except its metadata.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata")
}

/// Iterates over all fields of an object's metadata except `managedFields`.
fn metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let metadata = object["metadata"].as_object().into_iter().flatten();
    metadata.filter(|(name, _)| *name != "managedFields")
}

pub(crate) fn bump_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    meta::set(object, "generation", (generation + 1).into());
}

/// Restores the old `managedFields` if only their times differ, so that the write changes nothing.
///
/// If a new time changes the order of the entries, a server treats the list as different and stores
/// it (`IgnoreManagedFieldsTimestampsTransformer`).
fn forget_new_times(existing: &Value, object: &mut Value) {
    if content(existing).eq(content(object))
        && metadata(existing).eq(metadata(object))
        && managed::are_alike_but_for_times(existing, object)
    {
        meta::copy(existing, object, "managedFields");
    }
}

/// Validates metadata, the schema, the rules of the kind, and CEL rules. Returns warnings.
fn check(state: &Store, kind: &Kind, object: &Value, old: Option<&Value>, part: Part) -> Result<Vec<String>, Failure> {
    let mut found = Findings::default();
    match old {
        None => meta::check::new_object(kind, object, &mut found.errors),
        Some(old) => meta::check::update(object, old, &mut found.errors),
    }
    if kind.is_custom() {
        check_custom(kind, object, old, part, &mut found);
    } else {
        builtin::check(kind, object, old, &mut found.errors);
        if let Some(admission) = &state.admission {
            admission.check(kind, object, &mut found.errors);
        }
    }
    if found.errors.is_empty() {
        Ok(found.warnings)
    } else {
        Err(status::invalid_object(kind, meta::name(object), &found.errors))
    }
}

fn check_custom(kind: &Kind, object: &Value, old: Option<&Value>, part: Part, out: &mut Findings) {
    let schema = &kind.schema;
    match part {
        Part::Main => validate::validate(schema, object, old, "", out),
        Part::Status => {
            if let (Some(schema), Some(value)) = (schema.properties.get("status"), object.get("status")) {
                validate::validate_part(schema, value, old.and_then(|old| old.get("status")), "status", out);
            }
        }
    }
    // Metadata has separate rules, which allow duplicates in sets.
    let duplicates = |object: &Value| {
        let mut found = structure::duplicates(schema, object);
        found.retain(|error| !error.path.starts_with("metadata."));
        found
    };
    let found = duplicates(object);
    if !found.is_empty() && old.is_none_or(|old| duplicates(old).is_empty()) {
        out.errors.extend(found);
    }
    if out.errors.iter().any(|error| error.kind.blocks_rules()) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
        out.errors.push(FieldError::invalid("", Value::Null, detail));
    } else {
        cel::evaluate(schema, object, old, out);
    }
}
