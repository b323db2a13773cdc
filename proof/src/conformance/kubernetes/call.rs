//! Operations as plain data. They do not depend on any server's answers: `$(uid secrets/a)` in a
//! text is replaced by the UID that the object last had on the side to which the operation is sent.

use std::fmt;

use serde_json::Value;
use stowage_operator::api::{GROUP, VERSION};

/// Kinds that the operator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Custom resource of the project, namespaced.
    BucketClaim,
    /// Custom resource of the project, cluster-scoped.
    S3Backend,
    /// Core `v1`, namespaced.
    Secret,
    /// `events.k8s.io/v1`.
    Event,
    /// `coordination.k8s.io/v1`.
    Lease,
    /// Core `v1`, cluster-scoped.
    Namespace,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::BucketClaim, Self::S3Backend, Self::Secret, Self::Event, Self::Lease, Self::Namespace];

    /// Returns the kind as in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BucketClaim => "BucketClaim",
            Self::S3Backend => "S3Backend",
            Self::Secret => "Secret",
            Self::Event => "Event",
            Self::Lease => "Lease",
            Self::Namespace => "Namespace",
        }
    }

    /// Returns the resource name in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::BucketClaim => "bucketclaims",
            Self::S3Backend => "s3backends",
            Self::Secret => "secrets",
            Self::Event => "events",
            Self::Lease => "leases",
            Self::Namespace => "namespaces",
        }
    }

    /// Returns group and version as in manifests.
    pub fn api_version(self) -> String {
        match self {
            Self::BucketClaim | Self::S3Backend => format!("{GROUP}/{VERSION}"),
            Self::Secret | Self::Namespace => "v1".to_owned(),
            Self::Event => "events.k8s.io/v1".to_owned(),
            Self::Lease => "coordination.k8s.io/v1".to_owned(),
        }
    }

    /// Returns true if its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::S3Backend | Self::Namespace)
    }

    /// Returns true if a CustomResourceDefinition defines it.
    pub fn is_custom(self) -> bool {
        matches!(self, Self::BucketClaim | Self::S3Backend)
    }

    fn root(self) -> String {
        let version = self.api_version();
        if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
    }
}

/// Scope of a request without an object name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One namespace. For cluster-scoped kinds, the cluster.
    Namespace(String),
    /// All namespaces.
    Everywhere,
}

impl Scope {
    /// Returns the namespace of the sequence.
    pub fn own() -> Self {
        Self::Namespace("$(namespace)".to_owned())
    }
}

/// HTTP method of a request, with the patch type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH with this content type.
    Patch(&'static str),
    /// DELETE.
    Delete,
}

impl Verb {
    /// Returns the HTTP method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch(_) => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns the content type of the body.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Patch(content_type) => content_type,
            _ => "application/json",
        }
    }
}

/// A merge patch.
pub(super) const MERGE: Verb = Verb::Patch("application/merge-patch+json");
/// A JSON patch.
pub(super) const JSON: Verb = Verb::Patch("application/json-patch+json");
/// A strategic merge patch.
pub(super) const STRATEGIC: Verb = Verb::Patch("application/strategic-merge-patch+json");
/// A server-side apply.
pub(super) const APPLY: Verb = Verb::Patch("application/apply-patch+yaml");

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Method of the request.
    pub verb: Verb,
    /// Kind of the object.
    pub kind: Kind,
    /// Namespace of the object, or all namespaces.
    pub scope: Scope,
    /// Name of the object; `None` for the collection.
    pub name: Option<String>,
    /// Subresource, mostly `status`.
    pub subresource: Option<&'static str>,
    /// Query parameters, not yet encoded.
    pub query: Vec<(&'static str, String)>,
    /// Body. `null` sends no body, and a string is sent as it is.
    pub body: Value,
}

impl Call {
    /// Creates a request without body and parameters, in the namespace of the sequence.
    pub fn new(verb: Verb, kind: Kind, name: Option<&str>) -> Self {
        let name = name.map(str::to_owned);
        Self { verb, kind, scope: Scope::own(), name, subresource: None, query: Vec::new(), body: Value::Null }
    }

    /// Sets the body.
    #[must_use]
    pub fn body(self, body: Value) -> Self {
        Self { body, ..self }
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a query parameter if it has a value.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Changes the request to the status subresource.
    #[must_use]
    pub fn status(self) -> Self {
        Self { subresource: Some("status"), ..self }
    }

    /// Returns the path with unresolved placeholders.
    pub fn path(&self) -> String {
        let mut path = self.kind.root();
        if let (Scope::Namespace(namespace), true) = (&self.scope, self.kind.is_namespaced()) {
            path += &format!("/namespaces/{namespace}");
        }
        path += &format!("/{}", self.kind.plural());
        for part in self.name.as_deref().into_iter().chain(self.subresource) {
            path += &format!("/{part}");
        }
        path
    }
}

/// A watch that starts at a version and ends at a marker object.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Kind to watch.
    pub kind: Kind,
    /// Version to start from: a placeholder, `0`, or `None`.
    pub from: Option<String>,
    /// Label selector. The marker has the labels [`Watch::LABELS`].
    pub labels: Option<&'static str>,
    /// Name of the marker object.
    pub marker: String,
    /// True if the watch begins with a list (`sendInitialEvents`).
    pub streaming: bool,
}

impl Watch {
    /// Labels of the marker. Every selector in this module's operations selects it.
    pub const LABELS: [(&str, &str); 2] = [("app", "a"), ("tier", "front")];
}

/// A paginated list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Request for the first page. All pages have its `limit`.
    pub first: Call,
    /// Maximum number of pages to request.
    pub pages: usize,
}

/// An operation for both sides.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A request.
    Call(Call),
    /// A watch.
    Watch(Watch),
    /// A paginated list.
    Pages(Page),
    /// Wait for the cluster's own controllers.
    Settle,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.method(), self.path())?;
        for (index, (name, value)) in self.query.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        if let Verb::Patch(content_type) = self.verb {
            write!(f, " as {content_type}")?;
        }
        if !self.body.is_null() {
            write!(f, " {}", self.body)?;
        }
        Ok(())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call) => call.fmt(f),
            Self::Watch(watch) => {
                let from = watch.from.as_deref().unwrap_or("now");
                write!(f, "watch {} from {from}", watch.kind.plural())?;
                if let Some(labels) = watch.labels {
                    write!(f, " where {labels}")?;
                }
                if watch.streaming { f.write_str(" with a list first") } else { Ok(()) }
            }
            Self::Pages(page) => write!(f, "{} pages of {}", page.pages, page.first),
            Self::Settle => f.write_str("wait for the controllers"),
        }
    }
}

impl From<Call> for Operation {
    fn from(call: Call) -> Self {
        Self::Call(call)
    }
}
