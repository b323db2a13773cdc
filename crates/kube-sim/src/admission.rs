//! Admission: who has a say in a write besides the rules of this crate, in the place of an API
//! server's admission plugins.
//!
//! A write is done in one step of the store, and nobody is waited for meanwhile. An [`Admission`]
//! that has to ask somebody *suspends* the request: it refuses it, and says by
//! [`Admission::is_suspended`] that this refusal doesn't count. Whoever sent the request sends it
//! again once the answer is there; what was drawn for it stays the same ([`Admission::kept`]).

use std::fmt;
use std::sync::Arc;

use http::request::Parts;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::kind::{Family, Kind};
use crate::meta;
use crate::status::{self, Failure};
use crate::store::Tables;

/// Judges what is written.
///
/// Of a request it is the one that the request brings along ([`AdmittedBy`]); without that, nobody
/// judges it. [`Admission::check`] is asked of the one of the cluster
/// ([`crate::Cluster::admit_with`]), whoever writes.
pub trait Admission: Send + Sync {
    /// Adds what is wrong with an object of a built-in kind that is to be stored, by its content.
    fn check(&self, kind: &Kind, object: &Value, out: &mut Vec<FieldError>);

    /// Whether [`Admission::mutate`] may change an object of this kind.
    fn may_mutate(&self, stored: &Tables, kind: &Kind) -> bool;

    /// Changes an object that is to be written. The request has the one that it replaces.
    ///
    /// # Errors
    /// The refusal; and whatever ends the request where it is suspended.
    fn mutate(&self, stored: &Tables, request: &AdmissionRequest<'_>, object: Value) -> Result<Value, Failure>;

    /// Judges a write as it is to be stored, or a deletion. Gives warnings.
    ///
    /// # Errors
    /// As of [`Admission::mutate`].
    fn validate(&self, stored: &Tables, request: &AdmissionRequest<'_>) -> Result<Vec<String>, Failure>;

    /// The value that this had when the request was sent for the first time; it is made then.
    fn kept(&self, what: &'static str, make: &mut dyn FnMut() -> String) -> String;

    /// Whether the request is sent for the first time.
    fn is_first_try(&self) -> bool;

    /// Whether it may suspend the request.
    fn may_suspend(&self) -> bool;

    /// Whether it has suspended the request.
    fn is_suspended(&self) -> bool;
}

/// The admission of a request, among its extensions.
#[derive(Clone)]
pub struct AdmittedBy(pub Arc<dyn Admission>);

impl fmt::Debug for AdmittedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedBy").finish_non_exhaustive()
    }
}

/// An operation on an object, as admission names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A POST, or a PUT or PATCH that makes the object.
    Create,
    /// A PUT or PATCH.
    Update,
    /// A DELETE, of one object or of one in a collection.
    Delete,
}

/// A write that is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// The object's kind.
    pub kind: &'a Kind,
    /// Of the object; empty for all of it.
    pub subresource: &'a str,
    /// What is done to it.
    pub operation: Operation,
    /// The request names the object: not where it deletes a collection.
    pub is_named: bool,
    /// As it is to be; absent where it is to go.
    pub object: Option<&'a Value>,
    /// As it was; absent where it is new.
    pub old: Option<&'a Value>,
    /// Whether the request is to change nothing.
    pub dry_run: bool,
    /// The request's options, without their type.
    pub options: &'a Value,
}

impl<'a> AdmissionRequest<'a> {
    /// The object that it is about.
    pub fn about(&self) -> &'a Value {
        self.object.or(self.old).unwrap_or(&Value::Null)
    }

    /// The name in the request; empty where it names none.
    pub fn name(&self) -> &'a str {
        if self.is_named { meta::name(self.about()) } else { "" }
    }

    /// Of the object; of a namespace its own name.
    pub fn namespace(&self) -> &'a str {
        if self.kind.family == Family::Namespace {
            return meta::name(self.about());
        }
        meta::namespace(self.about())
    }
}

/// The admission of a request, with what of the request is the same for all of its objects.
#[derive(Clone)]
pub(crate) struct AdmissionContext {
    pub(crate) admission: Arc<dyn Admission>,
    pub(crate) dry_run: bool,
    /// As of [`AdmissionRequest::options`].
    pub(crate) options: Value,
}

impl fmt::Debug for AdmissionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionContext").field("dry_run", &self.dry_run).finish_non_exhaustive()
    }
}

impl AdmissionContext {
    /// Of a request with these options; `None` for one that isn't judged.
    pub(crate) fn of(head: &Parts, dry_run: bool, options: impl FnOnce() -> Value) -> Option<Self> {
        let AdmittedBy(admission) = head.extensions.get()?;
        Some(Self { admission: admission.clone(), dry_run, options: options() })
    }

    /// As of [`Admission::kept`]; without an admission every value is made now.
    pub(crate) fn kept(context: Option<&Self>, what: &'static str, make: impl FnOnce() -> String) -> String {
        let Some(context) = context else { return make() };
        let mut make = Some(make);
        context.admission.kept(what, &mut || make.take().map(|make| make()).unwrap_or_default())
    }

    /// Ends a request that was suspended, though what it met was passed over.
    ///
    /// # Errors
    /// What nobody is told.
    pub(crate) fn require_answered(context: Option<&Self>) -> Result<(), Failure> {
        let is_suspended = context.is_some_and(|context| context.admission.is_suspended());
        if is_suspended { Err(suspended()) } else { Ok(()) }
    }
}

/// Whether a request is sent for the first time.
pub(crate) fn is_first_try(head: &Parts) -> bool {
    head.extensions.get::<AdmittedBy>().is_none_or(|AdmittedBy(admission)| admission.is_first_try())
}

/// The refusal of a request that is suspended. It is sent again before anybody is told.
pub fn suspended() -> Failure {
    status::unclassified("the request waits for its admission")
}
