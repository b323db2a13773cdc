//! Description of a resource: names, scope, schema, and the rules that apply.

use std::sync::Arc;

use super::schema::Schema;

/// Scope of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Objects are in namespaces.
    Namespaced,
    /// Objects are not in namespaces.
    Cluster,
}

/// A field that field selectors may use: its label (`spec.backendRef.name`) and its path.
#[derive(Clone, Debug)]
pub struct SelectableField {
    /// Label of the field.
    pub label: String,
    /// Path of the field, step by step.
    pub path: Vec<String>,
}

/// Family of rules that a resource follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Custom resources, defined by a CustomResourceDefinition.
    Custom,
    /// Secrets (`v1`).
    Secret,
    /// ConfigMaps (`v1`).
    ConfigMap,
    /// ServiceAccounts (`v1`).
    ServiceAccount,
    /// Pods (`v1`).
    Pod,
    /// Services (`v1`).
    Service,
    /// Deployments (`apps/v1`).
    Deployment,
    /// Namespaces (`v1`).
    Namespace,
    /// Events (`events.k8s.io/v1`).
    Event,
    /// Events in the core group's `v1`: the same stored objects as [`Family::Event`], under other
    /// rules.
    CoreEvent,
    /// Leases (`coordination.k8s.io/v1`).
    Lease,
    /// CustomResourceDefinitions: readable, and written by `Cluster::install_crd` or by requests of
    /// [`crate::Way::Front`].
    Definition,
    /// Kinds with hardly any rules and without a controller. Served after
    /// [`crate::Cluster::serve_inert_kinds`].
    Inert,
}

/// Names of a resource besides its plural.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Singular, such as `secret`.
    pub singular: String,
    /// Kind of its lists.
    pub list: String,
    /// Short names, such as `cm`.
    pub short: Vec<String>,
    /// Groups of resources that clients request together, such as `all`.
    pub categories: Vec<String>,
}

/// A served resource type.
#[derive(Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version at which objects are stored.
    pub version: String,
    /// Resource name, such as `secrets`.
    pub plural: String,
    /// Kind, such as `Secret`.
    pub kind: String,
    /// Other names of the resource.
    pub names: Names,
    /// Scope of its objects.
    pub scope: Scope,
    /// Rules that the resource follows.
    pub family: Family,
    /// True if `/status` exists, and requests for the object cannot change `status`.
    pub status_subresource: bool,
    /// Selectable fields besides name and namespace.
    pub selectable: Vec<SelectableField>,
    /// Schema of its objects. Some kinds share one.
    pub schema: Arc<Schema>,
}

/// A kind, shared by the store, running watches and requests.
pub type SharedKind = Arc<Kind>;

impl Kind {
    /// Returns group and plural, the key of a resource type in the store. Its versions share one
    /// key, as in a server.
    pub fn key(&self) -> (&str, &str) {
        if self.family == Family::CoreEvent { ("events.k8s.io", "events") } else { (&self.group, &self.plural) }
    }

    /// Returns the `apiVersion` of stored objects: `v1` or `broker.stowage.io/v1alpha1`.
    pub fn api_version(&self) -> String {
        if self.family == Family::CoreEvent {
            return "events.k8s.io/v1".to_owned();
        }
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the qualified resource name: `secrets` or `bucketclaims.broker.stowage.io`.
    pub(crate) fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns true if the resource is defined by a CustomResourceDefinition.
    pub fn is_custom(&self) -> bool {
        self.family == Family::Custom
    }

    /// Returns true if its objects are in namespaces.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Returns true if a PUT may omit the resourceVersion (`AllowUnconditionalUpdate` of the
    /// resource's strategy).
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        match self.family {
            Family::Secret | Family::ConfigMap | Family::Pod | Family::Service | Family::Deployment => true,
            Family::Namespace | Family::Event | Family::CoreEvent | Family::Inert => true,
            Family::Custom | Family::ServiceAccount | Family::Lease | Family::Definition => false,
        }
    }

    /// Returns true if a PUT on a missing name creates the object (`AllowCreateOnUpdate`).
    pub(crate) fn allows_create_on_update(&self) -> bool {
        matches!(self.family, Family::Lease | Family::Event | Family::CoreEvent | Family::Service)
    }

    /// Returns true if a collection can be deleted by one request.
    pub fn deletes_collections(&self) -> bool {
        self.family != Family::Namespace
    }

    /// Returns true if `metadata.generation` is maintained.
    pub(crate) fn keeps_generation(&self) -> bool {
        match self.family {
            Family::Custom | Family::Definition | Family::Pod | Family::Deployment => true,
            // Those that have a controller in a real cluster.
            Family::Inert => !self.group.is_empty() && self.status_subresource,
            _ => false,
        }
    }

    /// Returns true if a change of annotations increases the generation too.
    pub(crate) fn counts_annotations(&self) -> bool {
        self.family == Family::Deployment
    }

    /// Returns the kind with short names and categories.
    pub(crate) fn called(mut self, short: &[&str], categories: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (self.names.short, self.names.categories) = (owned(short), owned(categories));
        self
    }
}
