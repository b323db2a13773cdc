//! Kinds that are stored but have no controller: those of charts and of `kubectl get all`. They are
//! served only for kubectl and similar clients.
//!
//! Their content is not validated here; that of policies and webhooks is validated by admission.
//! The lists that kubectl merges by item have schemas: pod templates, webhooks, and the conditions
//! and variables of policies. All other fields are stored unchanged.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{ALL, kind, schemas};
use crate::kind::{Family, Kind, Scope, SharedKind};
use crate::schema::Schema;

/// Group, version, plural, kind, short names, categories and sort of a kind.
type Row =
    (&'static str, &'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str], Sort);

/// Scope of a kind, and the structure of its objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// Namespaced, without status.
    Plain,
    /// Namespaced, with status.
    Status,
    /// Namespaced, with status and a pod template in `spec.template`.
    Template,
    /// Namespaced, with status and a pod template in `spec.jobTemplate`.
    Jobs,
    /// Cluster-scoped, without status.
    Wide,
    /// Cluster-scoped, with status.
    WideStatus,
    /// Cluster-scoped, with status, and with conditions and variables that are merged by name.
    Policies,
    /// Cluster-scoped, with a list of validating webhooks.
    Validating,
    /// Cluster-scoped, with a list of mutating webhooks.
    Mutating,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &[&str] = &["api-extensions"];

/// Names and categories as in kube-apiserver 1.34.
#[rustfmt::skip]
const ROWS: [Row; 30] = [
    ("", "v1", "endpoints", "Endpoints", &["ep"], &[], Sort::Plain),
    ("", "v1", "limitranges", "LimitRange", &["limits"], &[], Sort::Plain),
    ("", "v1", "nodes", "Node", &["no"], &[], Sort::WideStatus),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", &["pvc"], &[], Sort::Status),
    ("", "v1", "persistentvolumes", "PersistentVolume", &["pv"], &[], Sort::WideStatus),
    ("", "v1", "replicationcontrollers", "ReplicationController", &["rc"], ALL, Sort::Template),
    ("", "v1", "resourcequotas", "ResourceQuota", &["quota"], &[], Sort::Status),
    (ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", &[], EXTENSIONS, Sort::Mutating),
    (ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", &[], EXTENSIONS, Sort::Policies),
    (ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", &[], EXTENSIONS, Sort::Wide),
    (ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", &[], EXTENSIONS, Sort::Validating),
    ("apps", "v1", "daemonsets", "DaemonSet", &["ds"], ALL, Sort::Template),
    ("apps", "v1", "replicasets", "ReplicaSet", &["rs"], ALL, Sort::Template),
    ("apps", "v1", "statefulsets", "StatefulSet", &["sts"], ALL, Sort::Template),
    ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", &["hpa"], ALL, Sort::Status),
    ("batch", "v1", "cronjobs", "CronJob", &["cj"], ALL, Sort::Jobs),
    ("batch", "v1", "jobs", "Job", &[], ALL, Sort::Template),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", &[], &[], Sort::Plain),
    ("networking.k8s.io", "v1", "ingressclasses", "IngressClass", &[], &[], Sort::Wide),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", &["ing"], &[], Sort::Status),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", &["netpol"], &[], Sort::Plain),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", &["pdb"], &[], Sort::Status),
    (RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", &[], &[], Sort::Wide),
    (RBAC, "v1", "clusterroles", "ClusterRole", &[], &[], Sort::Wide),
    (RBAC, "v1", "rolebindings", "RoleBinding", &[], &[], Sort::Plain),
    (RBAC, "v1", "roles", "Role", &[], &[], Sort::Plain),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", &["pc"], &[], Sort::Wide),
    ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", &[], &[], Sort::Wide),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", &["sc"], &[], Sort::Wide),
    ("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", &[], &[], Sort::WideStatus),
];

/// Returns every such kind. They are built once per process.
pub fn kinds() -> &'static [SharedKind] {
    static KINDS: LazyLock<Vec<SharedKind>> = LazyLock::new(|| {
        // Schemas of pod templates are large, and equal for all kinds that have one.
        let mut schemas: BTreeMap<Sort, Arc<Schema>> = BTreeMap::new();
        let mut of_sort = |sort| schemas.entry(sort).or_insert_with(|| schema(sort).into()).clone();
        ROWS.iter().map(|row| Arc::new(of(row, of_sort(row.6)))).collect()
    });
    &KINDS
}

fn of((group, version, plural, name, short, categories, sort): &Row, schema: Arc<Schema>) -> Kind {
    let wide = matches!(sort, Sort::Wide | Sort::WideStatus | Sort::Policies | Sort::Validating | Sort::Mutating);
    Kind {
        version: (*version).to_owned(),
        scope: if wide { Scope::Cluster } else { Scope::Namespaced },
        status_subresource: matches!(
            sort,
            Sort::Status | Sort::Template | Sort::Jobs | Sort::WideStatus | Sort::Policies
        ),
        ..kind(Family::Inert, group, plural, name, schema).called(short, categories)
    }
}

/// Returns a schema that preserves all fields. Pod templates are defined in it, because their lists
/// are merged by key.
fn schema(sort: Sort) -> Schema {
    let template = schemas::resolved(&json!({"$ref": "PodTemplateSpec"}));
    let open = |properties: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties});
    let spec = match sort {
        Sort::Template => json!({"spec": open(json!({"template": template}))}),
        Sort::Jobs => {
            json!({"spec": open(json!({"jobTemplate": open(json!({"spec": open(json!({"template": template}))}))}))})
        }
        Sort::Plain | Sort::Status | Sort::Wide | Sort::WideStatus => json!({}),
        Sort::Policies => {
            let named = json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": open(json!({"name": {"type": "string", "default": ""}})),
            });
            json!({"spec": open(json!({"matchConditions": named, "variables": named}))})
        }
        Sort::Validating => webhooks(&open, json!({})),
        Sort::Mutating => webhooks(&open, json!({"reinvocationPolicy": {"type": "string", "default": "Never"}})),
    };
    schemas::open_schema(&spec)
}

/// Returns the schema of webhooks with the server's defaults and the fields in `more`
/// (`k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go`).
fn webhooks(open: &impl Fn(Value) -> Value, more: Value) -> Value {
    let selector = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {}});
    let mut properties = more;
    for (name, schema) in [
        // Keys of a list must have a value. An empty one is rejected by validation.
        ("name", json!({"type": "string", "default": ""})),
        ("failurePolicy", json!({"type": "string", "default": "Fail"})),
        ("matchPolicy", json!({"type": "string", "default": "Equivalent"})),
        ("namespaceSelector", selector()),
        ("objectSelector", selector()),
        ("timeoutSeconds", json!({"type": "integer", "default": 10})),
        ("rules", json!({"type": "array", "items": open(json!({"scope": {"type": "string", "default": "*"}}))})),
        ("clientConfig", open(json!({"service": open(json!({"port": {"type": "integer", "default": 443}}))}))),
    ] {
        properties[name] = schema;
    }
    json!({"webhooks": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": open(properties),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let mut keys: Vec<_> = kinds().iter().map(|kind| kind.key()).collect();
        keys.extend(crate::builtin::kinds().iter().map(|kind| kind.key()));
        let all = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }

    #[test]
    fn what_isn_t_known_is_kept() {
        assert!(kinds().iter().all(|kind| kind.schema.preserve_unknown));
    }
}
