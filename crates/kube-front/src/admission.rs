//! Admission of a request: policies and webhooks review its writes.

use std::sync::Arc;

use http::Extensions;
use kube_sim::admission::{Admission, AdmissionRequest, AdmittedBy, Operation};
use kube_sim::kind::Kind;
use kube_sim::status::{Failure, FieldError};
use kube_sim::store::Tables;
use serde_json::Value;

use super::asked::Asked;
use super::policies;
use super::webhooks::{self, Hearing};

/// The user of a request, and the answers of webhooks so far.
#[derive(Clone, Debug)]
pub(crate) struct RequestAdmission {
    /// The user as reviews contain it (`authentication.k8s.io/v1` `UserInfo`).
    user: Value,
    /// The version in the request's path, if it isn't the storage version.
    version: Option<String>,
    /// The answers of webhooks; `None` if no webhook can be called.
    hearing: Option<Arc<Hearing>>,
}

impl RequestAdmission {
    /// Creates the admission for a request of this user.
    pub(crate) fn new(user: Value, hearing: Option<Arc<Hearing>>) -> Self {
        Self { user, version: None, hearing }
    }

    /// Creates the admission outside of any request, for checks that apply to every writer.
    pub(crate) fn of_nobody() -> Self {
        Self::new(Value::Null, None)
    }

    /// Returns the admission for a request at this version, which is rewritten to the storage
    /// version.
    pub(crate) fn at_version(&self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self.clone() }
    }

    /// Adds the admission to a request's extensions, where the cluster looks for it.
    pub(crate) fn attach(self, extensions: &mut Extensions) {
        extensions.insert(AdmittedBy(Arc::new(self.clone())));
        extensions.insert(self);
    }

    fn asked<'a>(&'a self, request: &AdmissionRequest<'a>) -> Asked<'a> {
        let version = self.version.as_deref().unwrap_or(&request.kind.version);
        Asked { write: *request, user: &self.user, version }
    }
}

impl Admission for RequestAdmission {
    fn check(&self, kind: &Kind, object: &Value, out: &mut Vec<FieldError>) {
        policies::check(kind, object, out);
        webhooks::check(kind, object, out);
    }

    fn may_mutate(&self, stored: &Tables, kind: &Kind) -> bool {
        self.hearing.is_some() && webhooks::may_mutate(stored, kind)
    }

    fn mutate(&self, stored: &Tables, request: &AdmissionRequest<'_>, object: Value) -> Result<Value, Failure> {
        match &self.hearing {
            Some(hearing) => webhooks::mutate(stored, &self.asked(request), hearing, object),
            None => Ok(object),
        }
    }

    fn validate(&self, stored: &Tables, request: &AdmissionRequest<'_>) -> Result<Vec<String>, Failure> {
        let asked = self.asked(request);
        if let Some(hearing) = self.hearing.as_ref().filter(|_| request.operation == Operation::Delete) {
            webhooks::before_deletion(stored, &asked, hearing)?;
        }
        let warnings = policies::admit(stored, &asked)?;
        if let Some(hearing) = &self.hearing {
            webhooks::validate(stored, &asked, hearing)?;
        }
        Ok(warnings)
    }

    fn kept(&self, what: &'static str, make: &mut dyn FnMut() -> String) -> String {
        match &self.hearing {
            Some(hearing) => hearing.kept(what, make),
            None => make(),
        }
    }

    fn is_first_try(&self) -> bool {
        self.hearing.as_ref().is_none_or(|hearing| hearing.is_first_try())
    }

    fn may_suspend(&self) -> bool {
        self.hearing.is_some()
    }

    fn is_suspended(&self) -> bool {
        self.hearing.as_ref().is_some_and(|hearing| hearing.is_open())
    }
}
