//! What the server knows of a resource: names, scope, schema, and which of the rules apply.

use std::sync::Arc;

use super::schema::Schema;

/// Whether objects live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They don't.
    Cluster,
}

/// A field that may stand in a field selector: its label (`spec.backendRef.name`) and its path.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// Its label.
    pub label: String,
    /// Its path, step by step.
    pub path: Vec<String>,
}

/// Which family of rules a resource follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Defined by a CustomResourceDefinition.
    Custom,
    /// `v1`.
    Secret,
    /// `v1`.
    ConfigMap,
    /// `v1`.
    ServiceAccount,
    /// `v1`.
    Pod,
    /// `v1`.
    Service,
    /// `apps/v1`.
    Deployment,
    /// `v1`.
    Namespace,
    /// `events.k8s.io/v1`.
    Event,
    /// The same objects by the rules of the core group's `v1`. They are stored as the others are.
    CoreEvent,
    /// `coordination.k8s.io/v1`.
    Lease,
    /// The definitions themselves: readable, and made by `Cluster::install_crd` or by requests of
    /// [`crate::Way::Front`].
    Definition,
    /// Stored with hardly a rule, and acted on by nobody. Served from
    /// [`crate::Cluster::serve_inert_kinds`] on.
    Inert,
}

/// How clients call a resource besides its plural.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// One of them, such as `secret`.
    pub singular: String,
    /// The kind of its lists.
    pub list: String,
    /// Such as `cm`.
    pub short: Vec<String>,
    /// Groups of resources that are asked for together, such as `all`.
    pub categories: Vec<String>,
}

/// One served resource type.
#[derive(Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// The version that objects are stored at.
    pub version: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Such as `Secret`.
    pub kind: String,
    /// What clients call it besides.
    pub names: Names,
    /// Where its objects live.
    pub scope: Scope,
    /// Which rules it follows.
    pub family: Family,
    /// Whether `/status` exists and `status` is protected on the main resource.
    pub status_subresource: bool,
    /// The fields that its objects can be selected by, besides name and namespace.
    pub selectable: Vec<SelectableField>,
    /// Some kinds have one and the same.
    pub schema: Arc<Schema>,
}

/// Kinds are shared between the store, running watches and requests.
pub type SharedKind = Arc<Kind>;

impl Kind {
    /// Group and plural: what a resource type is known by in the store. Versions share one, as on a
    /// server.
    pub fn key(&self) -> (&str, &str) {
        if self.family == Family::CoreEvent { ("events.k8s.io", "events") } else { (&self.group, &self.plural) }
    }

    /// `v1` or `broker.stowage.io/v1alpha1`, as stored objects have it.
    pub fn api_version(&self) -> String {
        if self.family == Family::CoreEvent {
            return "events.k8s.io/v1".to_owned();
        }
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `secrets` or `bucketclaims.broker.stowage.io`.
    pub(crate) fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Whether a CustomResourceDefinition made it.
    pub fn is_custom(&self) -> bool {
        self.family == Family::Custom
    }

    /// Whether its objects live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Whether a PUT may leave the resourceVersion out
    /// (`AllowUnconditionalUpdate` of the resource's strategy).
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        match self.family {
            Family::Secret | Family::ConfigMap | Family::Pod | Family::Service | Family::Deployment => true,
            Family::Namespace | Family::Event | Family::CoreEvent | Family::Inert => true,
            Family::Custom | Family::ServiceAccount | Family::Lease | Family::Definition => false,
        }
    }

    /// Whether a PUT on a missing name makes the object (`AllowCreateOnUpdate`).
    pub(crate) fn allows_create_on_update(&self) -> bool {
        matches!(self.family, Family::Lease | Family::Event | Family::CoreEvent | Family::Service)
    }

    /// Whether a collection can be deleted in one request.
    pub fn deletes_collections(&self) -> bool {
        self.family != Family::Namespace
    }

    /// Whether `metadata.generation` is kept.
    pub(crate) fn keeps_generation(&self) -> bool {
        match self.family {
            Family::Custom | Family::Definition | Family::Pod | Family::Deployment => true,
            // Those that somebody would act on.
            Family::Inert => !self.group.is_empty() && self.status_subresource,
            _ => false,
        }
    }

    /// Whether a change of annotations counts as a new generation, too.
    pub(crate) fn counts_annotations(&self) -> bool {
        self.family == Family::Deployment
    }

    /// The same with short names and categories.
    pub(crate) fn called(mut self, short: &[&str], categories: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (self.names.short, self.names.categories) = (owned(short), owned(categories));
        self
    }
}
