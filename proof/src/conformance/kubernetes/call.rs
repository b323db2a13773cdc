//! Operations as plain data. Nothing in them depends on what a server answered: `$(uid secrets/a)`
//! in a text stands for the UID that an object was last seen with, on the side that the operation
//! is sent to.

use std::fmt;

use serde_json::Value;
use stowage_operator::api::{GROUP, VERSION};

/// The kinds that the operator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The project's own, in a namespace.
    BucketClaim,
    /// The project's own, cluster-wide.
    S3Backend,
    /// In a namespace.
    Secret,
    /// `events.k8s.io/v1`.
    Event,
    /// `coordination.k8s.io/v1`.
    Lease,
    /// Cluster-wide.
    Namespace,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::BucketClaim, Self::S3Backend, Self::Secret, Self::Event, Self::Lease, Self::Namespace];

    /// The name of the kind in manifests.
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

    /// The name of the resource in paths.
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

    /// Group and version, as in manifests.
    pub fn api_version(self) -> String {
        match self {
            Self::BucketClaim | Self::S3Backend => format!("{GROUP}/{VERSION}"),
            Self::Secret | Self::Namespace => "v1".to_owned(),
            Self::Event => "events.k8s.io/v1".to_owned(),
            Self::Lease => "coordination.k8s.io/v1".to_owned(),
        }
    }

    /// Whether its objects live in namespaces.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::S3Backend | Self::Namespace)
    }

    /// Whether a CustomResourceDefinition defines it.
    pub fn is_custom(self) -> bool {
        matches!(self, Self::BucketClaim | Self::S3Backend)
    }

    fn root(self) -> String {
        let version = self.api_version();
        if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
    }
}

/// Which objects a request without a name is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of a namespace; for kinds without one, of the cluster.
    Namespace(String),
    /// Those of all namespaces.
    Everywhere,
}

impl Scope {
    /// The namespace of the sequence.
    pub fn own() -> Self {
        Self::Namespace("$(namespace)".to_owned())
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// GET.
    Get,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH, in this content type.
    Patch(&'static str),
    /// DELETE.
    Delete,
}

impl Verb {
    /// The method of HTTP.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch(_) => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The content type of the body.
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
    /// What it does.
    pub verb: Verb,
    /// To which kind.
    pub kind: Kind,
    /// Where.
    pub scope: Scope,
    /// To which object; to the collection without it.
    pub name: Option<String>,
    /// `status`, mostly.
    pub subresource: Option<&'static str>,
    /// Parameters, as yet not encoded.
    pub query: Vec<(&'static str, String)>,
    /// The body; none with `null`, and a text is sent as it stands.
    pub body: Value,
}

impl Call {
    /// A request without body and parameters, in the namespace of the sequence.
    pub fn new(verb: Verb, kind: Kind, name: Option<&str>) -> Self {
        let name = name.map(str::to_owned);
        Self { verb, kind, scope: Scope::own(), name, subresource: None, query: Vec::new(), body: Value::Null }
    }

    /// With this body.
    #[must_use]
    pub fn body(self, body: Value) -> Self {
        Self { body, ..self }
    }

    /// With this parameter.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// With this parameter, if there is one.
    #[must_use]
    pub fn maybe(self, name: &'static str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Of the object's status.
    #[must_use]
    pub fn status(self) -> Self {
        Self { subresource: Some("status"), ..self }
    }

    /// The path, with places to fill in.
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

/// A watch from a version on, to a moment that an object made for it marks.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Of which kind.
    pub kind: Kind,
    /// From which version; a text with a place to fill in, or `0`, or none.
    pub from: Option<String>,
    /// Which objects; the one that marks the end has the labels of [`Watch::LABELS`].
    pub labels: Option<&'static str>,
    /// Name of the object that marks the end.
    pub marker: String,
    /// Whether the watch begins with a list (`sendInitialEvents`).
    pub streaming: bool,
}

impl Watch {
    /// What the marker is labelled with, so that every selector of this module's operations selects
    /// it.
    pub const LABELS: [(&str, &str); 2] = [("app", "a"), ("tier", "front")];
}

/// A list in pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The first page; its `limit` is that of all.
    pub first: Call,
    /// How many pages to ask for.
    pub pages: usize,
}

/// Something to do on both sides.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// A request.
    Call(Call),
    /// A watch.
    Watch(Watch),
    /// A list in pages.
    Pages(Page),
    /// Waits for the cluster's own controllers.
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
