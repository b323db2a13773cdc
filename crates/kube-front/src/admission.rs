//! The admission of a request: policies and webhooks judge what it writes.

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

/// Who asks, and what webhooks said of the request so far.
#[derive(Clone, Debug)]
pub(crate) struct RequestAdmission {
    /// As reviews tell it (`authentication.k8s.io/v1` `UserInfo`).
    user: Value,
    /// The version that the path names, where it isn't the stored one.
    version: Option<String>,
    /// What webhooks said; `None` where nobody can be asked.
    hearing: Option<Arc<Hearing>>,
}

impl RequestAdmission {
    /// Of a request of this user.
    pub(crate) fn new(user: Value, hearing: Option<Arc<Hearing>>) -> Self {
        Self { user, version: None, hearing }
    }

    /// Of no request: for what is checked whoever writes it.
    pub(crate) fn of_nobody() -> Self {
        Self::new(Value::Null, None)
    }

    /// The same of a request for this version, which is put to the stored one.
    pub(crate) fn at_version(&self, version: &str) -> Self {
        Self { version: Some(version.to_owned()), ..self.clone() }
    }

    /// Has the cluster ask it about a request with these extensions.
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
