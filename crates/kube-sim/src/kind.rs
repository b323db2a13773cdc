//! What the server knows of a resource: names, scope, schema, and which of the rules apply.

use std::sync::Arc;

use super::schema::Schema;

/// Whether objects live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A field that may stand in a field selector: its label (`spec.backendRef.name`) and its path.
#[derive(Clone, Debug)]
pub(crate) struct SelectableField {
    pub(crate) label: String,
    pub(crate) path: Vec<String>,
}

/// Which family of rules a resource follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Defined by a CustomResourceDefinition.
    Custom,
    Secret,
    ConfigMap,
    ServiceAccount,
    Pod,
    Service,
    Deployment,
    Namespace,
    /// `events.k8s.io/v1`.
    Event,
    /// The same objects by the rules of the core group's `v1`. They are stored as the others are.
    CoreEvent,
    Lease,
    /// The definitions themselves: readable, and made by `Cluster::install_crd` or at the front.
    Definition,
    /// Stored with hardly a rule, and acted on by nobody. Served where a front is.
    Inert,
}

/// How clients call a resource besides its plural.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) singular: String,
    /// The kind of its lists.
    pub(crate) list: String,
    pub(crate) short: Vec<String>,
    /// Groups of resources that are asked for together, such as `all`.
    pub(crate) categories: Vec<String>,
}

/// One served resource type.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) names: Names,
    pub(crate) scope: Scope,
    pub(crate) family: Family,
    /// Whether `/status` exists and `status` is protected on the main resource.
    pub(crate) status_subresource: bool,
    pub(crate) selectable: Vec<SelectableField>,
    /// Some kinds have one and the same.
    pub(crate) schema: Arc<Schema>,
}

/// Kinds are shared between the store, running watches and requests.
pub(crate) type SharedKind = Arc<Kind>;

impl Kind {
    /// Group and plural: what a resource type is known by in the store. Versions share one, as on a
    /// server.
    pub(crate) fn key(&self) -> (&str, &str) {
        if self.family == Family::CoreEvent { ("events.k8s.io", "events") } else { (&self.group, &self.plural) }
    }

    /// `v1` or `broker.stowage.io/v1alpha1`, as stored objects have it.
    pub(crate) fn api_version(&self) -> String {
        if self.family == Family::CoreEvent {
            return "events.k8s.io/v1".to_owned();
        }
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `secrets` or `bucketclaims.broker.stowage.io`.
    pub(crate) fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.family == Family::Custom
    }

    pub(crate) fn is_namespaced(&self) -> bool {
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
    pub(crate) fn deletes_collections(&self) -> bool {
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
}
