//! The built-in kinds: which are served, and the rules that aren't in a schema.
//!
//! Served: Secrets, ConfigMaps, ServiceAccounts, Pods, Services, Deployments, Namespaces, Events
//! (`events.k8s.io/v1`), Leases, and CustomResourceDefinitions for reading. Each rule follows the
//! validation of the API server's own package for the kind
//! (`k8s.io/kubernetes/pkg/apis/{core,apps,events,coordination}`), with its words.

mod config_map;
mod definition;
mod deployment;
mod event;
mod extra;
mod lease;
mod namespace;
mod pod;
mod schemas;
mod secret;
mod service;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::kind::{Family, Kind, Names, Scope, SelectableField, SharedKind};
use super::meta;
use super::schema::{Additional, Schema};
use super::status::FieldError;

pub(crate) use extra::kinds as extra_kinds;
pub(crate) use schemas::object_meta_schema;

/// Every built-in kind. Read once in a process.
pub(crate) fn kinds() -> &'static [SharedKind] {
    static KINDS: LazyLock<Vec<SharedKind>> = LazyLock::new(|| [config(), workloads(), control()].concat());
    &KINDS
}

/// What others are told: Secrets, ConfigMaps and who they are.
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

/// What runs, and how it is reached.
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

/// What a cluster itself is made of.
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

/// Events by the rules of the core group, of which an older API writes. Selected by are the fields
/// of `k8s.io/kubernetes/pkg/registry/core/event/strategy.go`, under their names there.
pub(crate) fn core_event() -> Kind {
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

/// The category of `kubectl get all`.
const ALL: &[&str] = &["all"];

fn shared<const N: usize>(kinds: [Kind; N]) -> Vec<SharedKind> {
    kinds.map(Arc::new).to_vec()
}

/// A kind of version `v1` that lives in namespaces.
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

impl Kind {
    /// The same with short names and categories.
    fn called(mut self, short: &[&str], categories: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        (self.names.short, self.names.categories) = (owned(short), owned(categories));
        self
    }
}

fn selectable(labels: &[&str]) -> Vec<SelectableField> {
    let path = |label: &str| label.split('.').map(str::to_owned).collect();
    labels.iter().map(|label| SelectableField { label: (*label).to_owned(), path: path(label) }).collect()
}

/// Does to a decoded object what the kind's own defaults and conversions do.
pub(crate) fn normalize(kind: &Kind, object: &mut Value) {
    fill_in_structs(kind, object);
    match kind.family {
        Family::Secret => secret::normalize(object),
        // A name that is generated comes too late for this; `prepare` looks after that.
        Family::Namespace if !meta::name(object).is_empty() => namespace::label(object),
        // An empty text is none.
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

/// Whether [`fill_in_structs`] or [`omit_empty`] may change the object.
pub(crate) fn has_own_form(kind: &Kind, object: &Value) -> bool {
    match kind.family {
        Family::Lease | Family::Namespace | Family::Event | Family::CoreEvent => true,
        Family::Secret => object["data"].as_object().is_some_and(Map::is_empty),
        Family::ConfigMap | Family::ServiceAccount | Family::Pod | Family::Service | Family::Deployment => true,
        Family::Custom | Family::Definition | Family::Inert => false,
    }
}

/// Puts in the structs and times that objects of a built-in kind have even when they are empty: no
/// `omitempty` takes them away.
pub(crate) fn fill_in_structs(kind: &Kind, object: &mut Value) {
    let structs: &[&str] = match kind.family {
        Family::Lease => &["spec"],
        Family::Namespace | Family::Pod | Family::Service | Family::Deployment => &["spec", "status"],
        Family::Event | Family::CoreEvent => &["regarding", "deprecatedSource"],
        Family::Custom | Family::Secret | Family::ConfigMap => &[],
        Family::ServiceAccount | Family::Definition | Family::Inert => &[],
    };
    for name in structs.iter().filter(|name| object[**name].is_null()).collect::<Vec<_>>() {
        object[*name] = json!({});
    }
    if matches!(kind.family, Family::Event | Family::CoreEvent) {
        // Times that are not pointers are written even if they are none.
        for name in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
            let time = object[name].take();
            object[name] = time;
        }
    }
}

/// Takes away what a server leaves out of what it writes: lists and maps without anything in them.
/// The rules tell them from none.
pub(crate) fn omit_empty(kind: &Kind, object: &mut Value) {
    match kind.family {
        Family::Secret => {
            if object["data"] == json!({})
                && let Some(fields) = object.as_object_mut()
            {
                fields.remove("data");
            }
        }
        Family::ConfigMap | Family::ServiceAccount | Family::Pod | Family::Service | Family::Deployment => {
            omit_empty_fields(&kind.schema, object);
        }
        Family::Custom | Family::Namespace | Family::Event | Family::CoreEvent | Family::Lease => {}
        Family::Definition | Family::Inert => {}
    }
}

/// A struct without fields stays: `emptyDir: {}` says something.
fn omit_empty_fields(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(child) = schema.field(name) else { return true };
            omit_empty_fields(child, field);
            match field {
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty() || !matches!(child.additional, Additional::Schema(_)),
                _ => true,
            }
        }),
        Value::Array(items) => {
            if let Some(child) = &schema.items {
                items.iter_mut().for_each(|item| omit_empty_fields(child, item));
            }
        }
        _ => {}
    }
}

/// Sets what only the server sets, for a create (`old` absent) or an update.
pub(crate) fn prepare(kind: &Kind, object: &mut Value, old: Option<&Value>) {
    match (kind.family, old) {
        (Family::Namespace, _) => namespace::prepare(object, old),
        (Family::Pod, None) => object["status"] = pod::first_status(object),
        // What is there always in a status comes with the schema's defaults.
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

/// The rules of the kind that no schema can say.
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
