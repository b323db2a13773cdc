//! A write together with its user, for review by policies and webhooks.

use std::ops::Deref;

use kube_sim::admission::{AdmissionRequest, Operation};
use serde_json::{Value, json};

/// The API group of policies and webhook configurations.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";
/// The storage version of policies and webhook configurations.
pub(crate) const VERSION: &str = "v1";

/// A write to be reviewed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) write: AdmissionRequest<'a>,
    /// The user as reviews contain it (`authentication.k8s.io/v1` `UserInfo`).
    pub(crate) user: &'a Value,
    /// The version in the request's path.
    pub(crate) version: &'a str,
}

impl<'a> Deref for Asked<'a> {
    type Target = AdmissionRequest<'a>;

    fn deref(&self) -> &AdmissionRequest<'a> {
        &self.write
    }
}

impl Asked<'_> {
    /// Returns the CEL variable `request`, for a request at version `requested` that is reviewed at
    /// `version`.
    pub(crate) fn request(&self, version: &str, requested: &str) -> Value {
        let kind = self.kind;
        let of_kind = |version: &str| json!({"group": kind.group, "version": version, "kind": kind.kind});
        let resource = |version: &str| json!({"group": kind.group, "version": version, "resource": kind.plural});
        json!({
            "kind": of_kind(version), "requestKind": of_kind(requested),
            "resource": resource(version), "requestResource": resource(requested),
            "subResource": self.subresource, "requestSubResource": self.subresource,
            "name": self.name(), "namespace": self.namespace(),
            "operation": name_of(self.operation), "userInfo": self.user, "dryRun": self.dry_run,
        })
    }
}

/// Returns the name of an operation in rules and reviews.
pub(crate) fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

/// Returns the kind of an operation's options.
pub(crate) fn options_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    }
}
