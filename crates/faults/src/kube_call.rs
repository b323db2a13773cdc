//! Parsing of Kubernetes requests: method and URI to verb, resource and name.
//!
//! Follows the API server's own parser (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`),
//! which audit logs and RBAC use.

use std::fmt;

use http::{Method, Uri};

/// The verb of a Kubernetes request, as RBAC and audit logs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KubeVerb {
    /// GET of one object.
    Get,
    /// GET of a collection.
    List,
    /// GET of a collection as a stream of changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH of any type, including server-side apply.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl KubeVerb {
    /// All verbs, reads first.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
    ];

    /// Returns the verb's name in Kubernetes and in a plan.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Returns true if the verb changes something.
    pub fn is_write(self) -> bool {
        match self {
            Self::Get | Self::List | Self::Watch => false,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection => true,
        }
    }

    /// Returns true if the verb can create an object: POST, and PATCH as server-side apply.
    pub fn may_create(self) -> bool {
        matches!(self, Self::Create | Self::Patch)
    }
}

impl fmt::Display for KubeVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A request to the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeCall {
    /// Verb of the request.
    pub verb: KubeVerb,
    /// API group, empty for the core group and for paths outside any group.
    pub group: String,
    /// Plural of the resource; the whole path if it is not a resource (`/version`).
    pub resource: String,
    /// Subresource, such as `status`.
    pub subresource: Option<String>,
    /// Namespace, if the path has one.
    pub namespace: Option<String>,
    /// Name of the object; `None` for collections, and for `create`, which has the name in its
    /// body.
    pub name: Option<String>,
}

impl KubeCall {
    /// Parses a request.
    pub fn read(method: &Method, uri: &Uri) -> Self {
        let segments: Vec<&str> = uri.path().split('/').filter(|s| !s.is_empty()).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _version, rest @ ..] if !rest.is_empty() => ("", rest),
            ["apis", group, _version, rest @ ..] if !rest.is_empty() => (*group, rest),
            _ => return Self::outside_resources(method, uri),
        };
        let (namespace, rest) = split_namespace(rest);
        let name = rest.get(1).map(ToString::to_string);
        Self {
            verb: verb_of(method, name.is_some(), is_watch(uri)),
            group: group.to_owned(),
            resource: rest.first().copied().unwrap_or_default().to_owned(),
            subresource: rest.get(2).map(ToString::to_string),
            namespace,
            name,
        }
    }

    /// Parses the text form without its prefix `kube:`.
    pub(super) fn told(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (verb, resource) = (parts.next()?, parts.next()?);
        let verb = KubeVerb::ALL.into_iter().find(|it| it.name() == verb)?;
        let (resource, subresource) = match resource.split_once('/') {
            Some(("", _)) | None => (resource, None),
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        };
        let (namespace, name) = match parts.next().map(|target| target.split_once('/').ok_or(target)) {
            Some(Ok((namespace, name))) => (Some(namespace.to_owned()), name),
            Some(Err(name)) => (None, name),
            None => (None, ""),
        };
        let name = (!name.is_empty()).then(|| name.to_owned());
        Some(Self { verb, group: String::new(), resource: resource.to_owned(), subresource, namespace, name })
    }

    fn outside_resources(method: &Method, uri: &Uri) -> Self {
        Self {
            verb: verb_of(method, true, false),
            group: String::new(),
            resource: uri.path().to_owned(),
            subresource: None,
            namespace: None,
            name: None,
        }
    }

    /// Returns `secrets` or `bucketclaims.broker.stowage.io`, as in error messages.
    pub fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }

    /// Returns true if this is about an Event. Events are counted separately, and clients derive
    /// their names from the wall clock.
    pub fn is_event(&self) -> bool {
        self.resource == "events" && matches!(self.group.as_str(), "" | "events.k8s.io")
    }

    /// Returns the part of a trace line after the verb's resource: `team-a/photos`, `team-a/`,
    /// `photos`, or nothing.
    fn target(&self) -> String {
        let name = match &self.name {
            Some(_) if self.is_event() => "*",
            Some(name) => name.as_str(),
            None => "",
        };
        match &self.namespace {
            Some(namespace) => format!(" {namespace}/{name}"),
            None if name.is_empty() => String::new(),
            None => format!(" {name}"),
        }
    }
}

impl fmt::Display for KubeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kube:{} {}", self.verb, self.resource)?;
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        f.write_str(&self.target())
    }
}

/// Splits off a leading `namespaces/{ns}`, unless the namespace itself is the object.
fn split_namespace<'a, 'b>(rest: &'a [&'b str]) -> (Option<String>, &'a [&'b str]) {
    match rest {
        ["namespaces", _name, "status" | "finalize", ..] => (None, rest),
        ["namespaces", namespace, inner @ ..] if !inner.is_empty() => (Some((*namespace).to_owned()), inner),
        _ => (None, rest),
    }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

fn verb_of(method: &Method, named: bool, watch: bool) -> KubeVerb {
    match *method {
        Method::POST => KubeVerb::Create,
        Method::PUT => KubeVerb::Update,
        Method::PATCH => KubeVerb::Patch,
        Method::DELETE if named => KubeVerb::Delete,
        Method::DELETE => KubeVerb::DeleteCollection,
        _ if named => KubeVerb::Get,
        _ if watch => KubeVerb::Watch,
        _ => KubeVerb::List,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("GET", "/apis/broker.stowage.io/v1alpha1/bucketclaims?&limit=500", "kube:list bucketclaims")]
    #[case(
        "GET",
        "/apis/broker.stowage.io/v1alpha1/bucketclaims?&watch=true&resourceVersion=3",
        "kube:watch bucketclaims"
    )]
    #[case("GET", "/api/v1/namespaces/team-a/secrets?&labelSelector=a%3Db", "kube:list secrets team-a/")]
    #[case("GET", "/api/v1/namespaces/team-a/secrets/photos", "kube:get secrets team-a/photos")]
    #[case("POST", "/api/v1/namespaces/team-a/secrets?&fieldManager=x", "kube:create secrets team-a/")]
    #[case("PUT", "/apis/coordination.k8s.io/v1/namespaces/s/leases/l", "kube:update leases s/l")]
    #[case(
        "PATCH",
        "/apis/broker.stowage.io/v1alpha1/namespaces/team-a/bucketclaims/photos/status?",
        "kube:patch bucketclaims/status team-a/photos"
    )]
    #[case("PATCH", "/apis/broker.stowage.io/v1alpha1/s3backends/main/status", "kube:patch s3backends/status main")]
    #[case("DELETE", "/api/v1/namespaces/team-a/secrets/photos", "kube:delete secrets team-a/photos")]
    #[case("DELETE", "/api/v1/namespaces/team-a/secrets", "kube:deletecollection secrets team-a/")]
    #[case("GET", "/api/v1/namespaces/kube-system", "kube:get namespaces kube-system")]
    #[case("PUT", "/api/v1/namespaces/team-a/finalize", "kube:update namespaces/finalize team-a")]
    #[case("GET", "/api/v1/namespaces", "kube:list namespaces")]
    #[case("PATCH", "/apis/events.k8s.io/v1/namespaces/team-a/events/photos.17d2b", "kube:patch events team-a/*")]
    #[case("GET", "/version", "kube:get /version")]
    #[case("GET", "/api/v1", "kube:get /api/v1")]
    fn reads_requests_as_the_api_server_does(#[case] method: &str, #[case] uri: &str, #[case] expected: &str) {
        let call = KubeCall::read(&method.parse().unwrap(), &uri.parse().unwrap());
        assert_eq!(call.to_string(), expected);
    }

    #[test]
    fn keeps_the_group_for_messages() {
        let uri = "/apis/broker.stowage.io/v1alpha1/namespaces/a/bucketclaims/b";
        let call = KubeCall::read(&Method::GET, &uri.parse().unwrap());
        assert_eq!(call.qualified_resource(), "bucketclaims.broker.stowage.io");
    }
}
