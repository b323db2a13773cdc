//! The attributes of a request, and the authorization of its caller.

use http::Method;
use http::request::Parts;
use kube::core::Status;
use kube::core::response::reason;
use kube_sim::Cluster;
use kube_sim::route::{Query, Route};
use kube_sim::status::{Failure, no_details};
use serde_json::Value;

use super::identity::Identity;
use super::options::Authorization;
use super::rbac::{self, Attributes};

/// The reason for allowing a request when there is no RBAC, as reviews return it.
pub(super) const REASON: &str = "everything is allowed: this server has no authorization";

/// Authorizes callers.
pub(super) struct Authorizer<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) authorization: Authorization,
}

impl Authorizer<'_> {
    /// Authorizes a caller. Returns the reason, or `None` if the request is not allowed.
    pub(super) fn allowed(&self, caller: &Identity, wanted: &Attributes) -> Option<String> {
        match self.authorization {
            Authorization::AllowAll => Some(REASON.to_owned()),
            Authorization::Rbac => rbac::allowed(&self.cluster.read(), caller, wanted),
        }
    }

    /// Returns the rules that a caller has in a namespace.
    pub(super) fn rules(&self, caller: &Identity, namespace: &str) -> Vec<Value> {
        match self.authorization {
            Authorization::AllowAll => rbac::everything(),
            Authorization::Rbac => rbac::rules(&self.cluster.read(), caller, namespace),
        }
    }

    /// Requires that a caller is allowed to do something.
    ///
    /// # Errors
    /// Returns 403 with the API server's message.
    pub(super) fn require(&self, caller: &Identity, wanted: &Attributes) -> Result<(), Failure> {
        if self.allowed(caller, wanted).is_some() {
            return Ok(());
        }
        let what = match (wanted.group.is_empty(), wanted.path.is_empty()) {
            (_, false) => String::new(),
            (true, true) => wanted.resource.clone(),
            (false, true) => format!("{}.{}", wanted.resource, wanted.group),
        };
        let name = if wanted.name.is_empty() { String::new() } else { format!(" {:?}", wanted.name) };
        let text = format!("{what}{name} is forbidden: {}", wanted.refusal(caller));
        Err(Status::failure(text.trim_start(), reason::FORBIDDEN).with_code(403).with_details(no_details()).boxed())
    }

    /// Requires that a caller is allowed to impersonate another user and each of their groups.
    ///
    /// # Errors
    /// See [`Authorizer::require`].
    pub(super) fn require_impersonation(&self, caller: &Identity, other: &Identity) -> Result<(), Failure> {
        let account = other.user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let of = |resource: &str, namespace: &str, name: &str| Attributes {
            verb: "impersonate".to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        match account {
            Some((namespace, name)) => self.require(caller, &of("serviceaccounts", namespace, name))?,
            None => self.require(caller, &of("users", "", &other.user))?,
        }
        // Groups that the impersonated user has automatically need no permission.
        let given = other.groups.iter().filter(|group| account.is_none() && *group != "system:authenticated");
        given.into_iter().try_for_each(|group| self.require(caller, &of("groups", "", group)))
    }
}

/// Returns the attributes of a resource request (`k8s.io/apiserver/pkg/endpoints/request`).
pub(super) fn wanted(head: &Parts, route: &Route, query: &Query) -> Attributes {
    let named = route.name.is_some();
    let verb = match head.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ if named => "get",
        _ if query.flag("watch") => "watch",
        _ => "list",
    };
    let name = route.name.clone().unwrap_or_default();
    let own = route.group.is_empty() && route.plural == "namespaces";
    Attributes {
        verb: verb.to_owned(),
        group: route.group.clone(),
        resource: route.plural.clone(),
        subresource: route.subresource.clone().unwrap_or_default(),
        namespace: if own { name.clone() } else { route.namespace.clone() },
        name,
        path: String::new(),
    }
}

/// Returns the attributes of a non-resource request.
pub(super) fn wanted_of_path(head: &Parts) -> Attributes {
    let verb = head.method.as_str().to_lowercase();
    Attributes { verb, path: head.uri.path().to_owned(), ..Attributes::default() }
}

/// Returns the attributes that a review is about (`resourceAttributes` or `nonResourceAttributes`).
pub(super) fn asked(spec: &Value) -> Attributes {
    let (resource, other) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
    if other.is_object() {
        let text = |name: &str| other[name].as_str().unwrap_or_default().to_owned();
        return Attributes { verb: text("verb"), path: text("path"), ..Attributes::default() };
    }
    Attributes {
        verb: text("verb"),
        group: text("group"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: String::new(),
    }
}
