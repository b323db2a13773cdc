//! Extension point for admission, in place of an API server's admission plugins.
//!
//! A write is executed in one step of the store, without waiting. An [`Admission`] that has to wait
//! for an answer, for instance from a webhook, *suspends* the request: it returns an error, and
//! reports by [`Admission::is_suspended`] that the error is not final. The sender repeats the
//! request once the answer has arrived. Random values drawn for the request stay the same
//! ([`Admission::kept`]).

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::kind::{Family, Kind};
use crate::meta;
use crate::status::{self, Failure};
use crate::store::Tables;

/// Admission control for writes.
///
/// A request is reviewed by the admission that it carries ([`AdmittedBy`]), and not reviewed
/// without one. [`Admission::check`] is called on the cluster's admission
/// ([`crate::Cluster::admit_with`]) for all writes.
pub trait Admission: Send + Sync {
    /// Adds the validation errors in the content of a built-in object to `out`.
    fn check(&self, kind: &Kind, object: &Value, out: &mut Vec<FieldError>);

    /// Returns true if [`Admission::mutate`] may change an object of this kind.
    fn may_mutate(&self, stored: &Tables, kind: &Kind) -> bool;

    /// Changes an object before it is written. The object that it replaces is in the request.
    ///
    /// # Errors
    /// Returns the rejection, or any error if the request is suspended.
    fn mutate(&self, stored: &Tables, request: &AdmissionRequest<'_>, object: Value) -> Result<Value, Failure>;

    /// Reviews the final object of a write, or a deletion. Returns warnings.
    ///
    /// # Errors
    /// Like [`Admission::mutate`].
    fn validate(&self, stored: &Tables, request: &AdmissionRequest<'_>) -> Result<Vec<String>, Failure>;

    /// Returns the value that `make` produced when the request was first sent, calling `make` if it
    /// is sent for the first time.
    fn kept(&self, what: &'static str, make: &mut dyn FnMut() -> String) -> String;

    /// Returns true if the request is sent for the first time.
    fn is_first_try(&self) -> bool;

    /// Returns true if the admission may suspend the request.
    fn may_suspend(&self) -> bool;

    /// Returns true if the admission has suspended the request.
    fn is_suspended(&self) -> bool;
}

/// A request extension that contains the request's admission.
#[derive(Clone)]
pub struct AdmittedBy(pub Arc<dyn Admission>);

impl fmt::Debug for AdmittedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedBy").finish_non_exhaustive()
    }
}

/// An operation on an object, as defined by admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A POST, or a PUT or PATCH that creates the object.
    Create,
    /// A PUT or PATCH.
    Update,
    /// A DELETE of an object or of a collection.
    Delete,
}

/// A write or deletion to review.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// Kind of the object.
    pub kind: &'a Kind,
    /// Subresource; empty for the object itself.
    pub subresource: &'a str,
    /// Operation on the object.
    pub operation: Operation,
    /// True if the request names the object. False for the deletion of a collection.
    pub is_named: bool,
    /// New object; `None` for a deletion.
    pub object: Option<&'a Value>,
    /// Existing object; `None` for a creation.
    pub old: Option<&'a Value>,
    /// True if the request must not change anything.
    pub dry_run: bool,
    /// Options of the request, without their type.
    pub options: &'a Value,
}

impl<'a> AdmissionRequest<'a> {
    /// Returns the new object, or the existing one for a deletion.
    pub fn about(&self) -> &'a Value {
        self.object.or(self.old).unwrap_or(&Value::Null)
    }

    /// Returns the name in the request; empty if it names no object.
    pub fn name(&self) -> &'a str {
        if self.is_named { meta::name(self.about()) } else { "" }
    }

    /// Returns the namespace of the object. For a Namespace that is its own name.
    pub fn namespace(&self) -> &'a str {
        if self.kind.family == Family::Namespace {
            return meta::name(self.about());
        }
        meta::namespace(self.about())
    }
}

/// Admission of a request, with the properties that are common to all of its objects.
#[derive(Clone)]
pub(crate) struct AdmissionContext {
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) dry_run: bool,
    /// Options of the request, as in [`AdmissionRequest::options`].
    pub(crate) options: Value,
}

impl fmt::Debug for AdmissionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionContext").field("dry_run", &self.dry_run).finish_non_exhaustive()
    }
}

impl AdmissionContext {
    /// Returns the context of a request with these options; `None` if the request has no admission.
    pub(crate) fn of(head: &Parts, dry_run: bool, options: impl FnOnce() -> Value) -> Option<Self> {
        let AdmittedBy(admission) = head.extensions.get()?;
        Some(Self { admission: admission.clone(), dry_run, options: options() })
    }

    /// Returns the value of [`Admission::kept`]; without admission, calls `make`.
    pub(crate) fn kept(context: Option<&Self>, what: &'static str, make: impl FnOnce() -> String) -> String {
        let Some(context) = context else { return make() };
        let mut make = Some(make);
        context.admission.kept(what, &mut || make.take().map(|make| make()).unwrap_or_default())
    }

    /// Fails if the request is suspended, for callers that ignored an earlier error.
    ///
    /// # Errors
    /// Returns an error that is not sent to the client.
    pub(crate) fn require_answered(context: Option<&Self>) -> Result<(), Failure> {
        let is_suspended = context.is_some_and(|context| context.admission.is_suspended());
        if is_suspended { Err(suspended()) } else { Ok(()) }
    }
}

/// Returns true if a request is sent for the first time.
pub(crate) fn is_first_try(head: &Parts) -> bool {
    head.extensions.get::<AdmittedBy>().is_none_or(|AdmittedBy(admission)| admission.is_first_try())
}

/// Returns the error of a suspended request. It is not sent to the client, because the request is
/// repeated first.
pub fn suspended() -> Failure {
    status::unclassified("the request waits for its admission")
}
