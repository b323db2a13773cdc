//! DELETE: immediate removal, or marking for finalizers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::DeleteOptions;
use serde_json::{Value, json};

use super::admission::AdmissionContext;
use super::admit;
use super::kind::{Family, Kind};
use super::meta::{self, FOREGROUND, ORPHAN};
use super::status::{self, Failure, FieldError, FieldErrorKind, bad_request};
use super::store::{Place, Shared, Store};
use super::write;

/// Handling of the dependants of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// The garbage collector removes dependants after the object.
    Background,
    /// The dependants are removed first.
    Foreground,
    /// The dependants are kept, without the reference to their owner.
    Orphan,
}

/// A parsed delete request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletion {
    pub(crate) uid: Option<String>,
    pub(crate) version: Option<String>,
    /// `None`: according to the object's finalizers, otherwise in the background.
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
    /// True if one request deletes a collection, and so names no object.
    pub(crate) of_collection: bool,
    /// Admission of the deletion; `None` if it is not reviewed.
    pub(crate) admission: Option<AdmissionContext>,
}

impl Deletion {
    /// Parses the body, which may be empty, and the query.
    ///
    /// # Errors
    /// 400 if the body is not `DeleteOptions`.
    pub(crate) fn parse(body: &[u8], policy: Option<&str>, dry_run: bool) -> Result<Self, Failure> {
        let options: DeleteOptions = if body.is_empty() {
            DeleteOptions::default()
        } else {
            serde_json::from_slice(body)
                .map_err(|error| bad_request(format!("unable to decode DeleteOptions: {error}")))?
        };
        // If there is a body, the query is ignored.
        let (policy, dry_run) = if body.is_empty() { (policy, dry_run) } else { (None, false) };
        let policy = options.propagation_policy.as_deref().or(policy);
        let propagation = match (policy, options.orphan_dependents) {
            (Some("Background"), _) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
            (Some(other), _) => return Err(unknown_policy(other)),
        };
        let preconditions = options.preconditions.unwrap_or_default();
        Ok(Self {
            uid: preconditions.uid,
            version: preconditions.resource_version,
            propagation,
            dry_run: dry_run || options.dry_run.is_some_and(|list| !list.is_empty()),
            of_collection: false,
            admission: None,
        })
    }
}

fn unknown_policy(policy: &str) -> Failure {
    let detail = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
    let error = FieldError::new(FieldErrorKind::NotSupported, "propagationPolicy", policy.into(), detail);
    status::invalid("meta.k8s.io", "DeleteOptions", "", &[error])
}

/// Result of a delete.
#[derive(Debug)]
pub(crate) enum Deleted {
    /// Removed. A server answers with a `Status`.
    Gone(Value),
    /// Marked, and waiting for finalizers. A server answers with the object.
    Marked(Shared),
}

/// Deletes an object.
///
/// # Errors
/// 404 for a missing object, 409 for a failed precondition, 403 for a system namespace, and the
/// errors of admission.
pub(crate) fn delete(state: &mut Store, kind: &Kind, place: &Place, deletion: &Deletion) -> Result<Deleted, Failure> {
    let existing = state.get(kind, place).cloned().ok_or_else(|| status::not_found(kind, &place.name))?;
    check_preconditions(kind, &existing, deletion)?;
    let system = ["default", "kube-system", "kube-public"].contains(&place.name.as_str());
    if kind.family == Family::Namespace && system {
        return Err(status::forbidden(kind, &place.name, "this namespace may not be deleted"));
    }
    admit::validate_deletion(state, kind, &existing, !deletion.of_collection, deletion.admission.as_ref())?;
    let mut object = (*existing).clone();
    set_propagation(&mut object, deletion.propagation);
    let waits = !meta::finalizers(&object).is_empty() || write::holds_content(kind, &object);
    if !waits {
        let last = if deletion.dry_run { None } else { state.remove(kind, place) };
        return Ok(Deleted::Gone((*last.unwrap_or(existing)).clone()));
    }
    if !meta::is_deleting(&object) {
        meta::set(&mut object, "deletionTimestamp", state.now().into());
        if kind.family == Family::Namespace {
            object["status"]["phase"] = "Terminating".into();
        } else {
            meta::set(&mut object, "deletionGracePeriodSeconds", 0.into());
        }
        if kind.keeps_generation() {
            write::bump_generation(&mut object);
        }
    }
    if kind.family == Family::Namespace && meta::is_deleting(&existing) && !write::holds_content(kind, &existing) {
        // The registry of namespaces marks them itself. An empty one is left to the generic code.
        meta::set(&mut object, "deletionGracePeriodSeconds", 0.into());
    }
    meta::tidy(&mut object);
    if object == *existing || deletion.dry_run {
        return Ok(Deleted::Marked(Shared::new(object)));
    }
    Ok(Deleted::Marked(state.put(kind, object)))
}

fn check_preconditions(kind: &Kind, existing: &Value, deletion: &Deletion) -> Result<(), Failure> {
    let name = meta::name(existing);
    let uid = meta::uid(existing);
    if let Some(expected) = deletion.uid.as_deref().filter(|expected| *expected != uid) {
        let why = format!(
            "the UID in the precondition ({expected}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(status::precondition_failed(kind, name, &why));
    }
    let version = meta::text(existing, "resourceVersion");
    if let Some(expected) = deletion.version.as_deref().filter(|expected| *expected != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record ({version}). The object might have been modified"
        );
        return Err(status::precondition_failed(kind, name, &why));
    }
    Ok(())
}

/// Sets the garbage collector's finalizers according to the policy. Without a policy they are
/// unchanged.
fn set_propagation(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let own = meta::finalizers(object).into_iter().filter(|name| *name != FOREGROUND && *name != ORPHAN);
    let mut names: Vec<String> = own.map(str::to_owned).collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => names.push(FOREGROUND.to_owned()),
        Propagation::Orphan => names.push(ORPHAN.to_owned()),
    }
    meta::set(object, "finalizers", json!(names));
}
