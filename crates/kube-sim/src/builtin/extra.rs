//! Kinds that are stored and acted on by nobody: those of charts and of `kubectl get all`. They are
//! served where kubectl and its like are.
//!
//! Their content isn't checked here; that of policies and webhooks is admission's business. What
//! kubectl merges item by item, the templates of pods, webhooks, and the conditions and variables
//! of policies, has a schema; everything else is kept as it comes.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{ALL, kind, schemas};
use crate::kind::{Family, Kind, Scope, SharedKind};
use crate::schema::Schema;

/// One of them: group, version, plural, kind, short names, categories, and what sort it is.
type Row =
    (&'static str, &'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str], Sort);

/// Where the objects of a kind live, and what there is to them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// In a namespace, without a status.
    Plain,
    /// In a namespace, with a status.
    Status,
    /// In a namespace, with a status and `spec.template` of pods.
    Template,
    /// The same, with the template in `spec.jobTemplate`.
    Jobs,
    /// In no namespace, without a status.
    Wide,
    /// In no namespace, with a status.
    WideStatus,
    /// The same, with conditions and variables that are merged by name.
    Policies,
    /// In no namespace, with a list of webhooks that may only judge.
    Validating,
    /// The same, of webhooks that may change what is written.
    Mutating,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const EXTENSIONS: &[&str] = &["api-extensions"];

/// Names and categories are those of kube-apiserver 1.34.
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

/// All of them. Read once in a process.
pub fn kinds() -> &'static [SharedKind] {
    static KINDS: LazyLock<Vec<SharedKind>> = LazyLock::new(|| {
        // Templates of pods are large, and the same wherever they stand.
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

/// Everything is kept; templates of pods are known, so that their lists are merged by key.
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

/// What a server fills in of webhooks, besides `more`
/// (`k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go`).
fn webhooks(open: &impl Fn(Value) -> Value, more: Value) -> Value {
    let selector = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": {}});
    let mut properties = more;
    for (name, schema) in [
        // Keys have a value at any rate; an empty one is refused.
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
