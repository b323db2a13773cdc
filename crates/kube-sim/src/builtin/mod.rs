//! Built-in kinds, and their rules that a schema cannot express.
//!
//! These are Secrets, ConfigMaps, ServiceAccounts, Pods, Services, Deployments, Namespaces, Events
//! (`events.k8s.io/v1`), Leases, and CustomResourceDefinitions (read-only). Rules and messages
//! follow the API server's validation of each kind
//! (`k8s.io/kubernetes/pkg/apis/{core,apps,events,coordination}`).

mod config_map;
mod definition;
mod deployment;
mod event;
mod extra;
mod form;
mod lease;
mod namespace;
mod pod;
mod schemas;
mod secret;
mod service;

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::kind::{Family, Kind, Names, Scope, SelectableField, SharedKind};
use super::meta;
use super::schema::Schema;
use super::status::FieldError;

pub use extra::kinds as inert_kinds;
pub(crate) use form::{fill_in_structs, has_own_form, omit_empty};
pub(crate) use schemas::object_meta_schema;

/// Returns every built-in kind. They are built once per process.
pub fn kinds() -> &'static [SharedKind] {
    static KINDS: LazyLock<Vec<SharedKind>> = LazyLock::new(|| [config(), workloads(), control()].concat());
    &KINDS
}

/// Returns the kinds for configuration and identity.
fn config() -> Vec<SharedKind> {
    let secret = kind(Family::Secret, "", "secrets", "Secret", schemas::secret());
    let config_map = kind(Family::ConfigMap, "", "configmaps", "ConfigMap", schemas::workload("ConfigMap"));
    let account = schemas::workload("ServiceAccount");
    let account = kind(Family::ServiceAccount, "", "serviceaccounts", "ServiceAccount", account);
    shared([
        Kind { selectable: selectable(&["type"]), ..secret },
        config_map.called(&["cm"], &[]),
        account.called(&["sa"], &[]),
    ])
}

/// Returns the kinds for workloads and the access to them.
fn workloads() -> Vec<SharedKind> {
    let pod = kind(Family::Pod, "", "pods", "Pod", schemas::workload("Pod"));
    let service = kind(Family::Service, "", "services", "Service", schemas::workload("Service"));
    let deployment = schemas::workload("Deployment");
    let deployment = kind(Family::Deployment, "apps", "deployments", "Deployment", deployment);
    let of_pods = [
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ];
    shared([
        Kind { status_subresource: true, selectable: selectable(&of_pods), ..pod.called(&["po"], ALL) },
        Kind {
            status_subresource: true,
            selectable: selectable(&["spec.clusterIP", "spec.type"]),
            ..service.called(&["svc"], ALL)
        },
        Kind { status_subresource: true, ..deployment.called(&["deploy"], ALL) },
    ])
}

/// Returns the kinds for the cluster itself.
fn control() -> Vec<SharedKind> {
    let namespace = kind(Family::Namespace, "", "namespaces", "Namespace", schemas::namespace());
    let event = kind(Family::Event, "events.k8s.io", "events", "Event", schemas::event());
    let lease = kind(Family::Lease, "coordination.k8s.io", "leases", "Lease", schemas::lease());
    let group = "apiextensions.k8s.io";
    let plural = "customresourcedefinitions";
    let definition = kind(Family::Definition, group, plural, "CustomResourceDefinition", schemas::definition());
    let of_events = ["reason", "type", "regarding.kind", "regarding.name", "regarding.namespace", "regarding.uid"];
    let of_namespaces = selectable(&["status.phase"]);
    shared([
        Kind {
            scope: Scope::Cluster,
            status_subresource: true,
            selectable: of_namespaces,
            ..namespace.called(&["ns"], &[])
        },
        Kind { selectable: selectable(&of_events), ..event.called(&["ev"], &[]) },
        lease,
        Kind {
            scope: Scope::Cluster,
            status_subresource: true,
            ..definition.called(&["crd", "crds"], &["api-extensions"])
        },
    ])
}

/// Returns the kind of Events in the core group, for clients of the older API. Its selectable
/// fields have the names of `k8s.io/kubernetes/pkg/registry/core/event/strategy.go`.
pub fn core_event() -> Kind {
    let stored = |label: &str| {
        let path = match label {
            "reportingComponent" => "reportingController".to_owned(),
            "source" => "deprecatedSource.component".to_owned(),
            _ => label.replace("involvedObject", "regarding"),
        };
        SelectableField { label: label.to_owned(), path: path.split('.').map(str::to_owned).collect() }
    };
    let labels = [
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ];
    let event = kind(Family::CoreEvent, "", "events", "Event", schemas::event());
    Kind { selectable: labels.map(stored).into(), ..event.called(&["ev"], &[]) }
}

/// Category of `kubectl get all`.
const ALL: &[&str] = &["all"];

fn shared<const N: usize>(kinds: [Kind; N]) -> Vec<SharedKind> {
    kinds.map(Arc::new).to_vec()
}

/// Returns a namespaced kind of version `v1`.
fn kind(family: Family, group: &str, plural: &str, name: &str, schema: impl Into<Arc<Schema>>) -> Kind {
    Kind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        kind: name.to_owned(),
        names: Names { singular: name.to_lowercase(), list: format!("{name}List"), ..Names::default() },
        scope: Scope::Namespaced,
        family,
        status_subresource: false,
        selectable: Vec::new(),
        schema: schema.into(),
    }
}

fn selectable(labels: &[&str]) -> Vec<SelectableField> {
    let path = |label: &str| label.split('.').map(str::to_owned).collect();
    labels.iter().map(|label| SelectableField { label: (*label).to_owned(), path: path(label) }).collect()
}

/// Applies the defaults and conversions of the kind to a decoded object.
pub(crate) fn normalize(kind: &Kind, object: &mut Value) {
    fill_in_structs(kind, object);
    match kind.family {
        Family::Secret => secret::normalize(object),
        // A generated name is not set yet; `prepare` handles that case.
        Family::Namespace if !meta::name(object).is_empty() => namespace::label(object),
        // An empty string counts as absent.
        Family::Event | Family::CoreEvent => {
            if let Some(fields) = object.as_object_mut() {
                fields.retain(|_, field| field != "");
            }
        }
        Family::Pod => pod::normalize(object),
        Family::Service => service::normalize(object),
        Family::Deployment => deployment::normalize(object),
        Family::Definition => definition::normalize(object),
        _ => {}
    }
}

/// Sets the fields that only the server sets, for a create (`old` is `None`) or an update.
pub(crate) fn prepare(kind: &Kind, object: &mut Value, old: Option<&Value>) {
    match (kind.family, old) {
        (Family::Namespace, _) => namespace::prepare(object, old),
        (Family::Pod, None) => object["status"] = pod::first_status(object),
        // The other fields of this status are defaults of the schema.
        (Family::Service, None) => object["status"] = json!({"loadBalancer": {}}),
        (Family::Deployment, None) => object["status"] = json!({}),
        (Family::Inert, None) if kind.status_subresource => {
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
        }
        _ => {}
    }
}

/// Checks the rules of the kind that a schema cannot express.
pub(crate) fn check(kind: &Kind, object: &Value, old: Option<&Value>, out: &mut Vec<FieldError>) {
    match kind.family {
        Family::Secret => secret::check(object, old, out),
        Family::ConfigMap => config_map::check(object, old, out),
        Family::Pod => pod::check(kind, object, old, out),
        Family::Service => service::check(object, out),
        Family::Deployment => deployment::check(object, old, out),
        Family::Event => event::check(object, old, out),
        Family::CoreEvent => event::check_core(object, out),
        Family::Lease => lease::check(object, out),
        Family::Custom | Family::ServiceAccount | Family::Namespace | Family::Definition | Family::Inert => {}
    }
}
