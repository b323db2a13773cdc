//! Role-based access control by the stored roles and bindings
//! (`k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac`).
//!
//! The evaluation is a pure function of the rules of a caller; `bound` collects those from the
//! store. Members of `system:masters` may do everything, as on an API server.

use kube_sim::meta;
use kube_sim::selector;
use kube_sim::store::{Place, Tables};
use serde_json::{Value, json};

use super::identity::Identity;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The group whose members may do everything, regardless of stored roles.
const MASTERS: &str = "system:masters";

/// The attributes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) verb: String,
    /// Empty for the core group.
    pub(super) group: String,
    pub(super) resource: String,
    /// Empty for the object itself.
    pub(super) subresource: String,
    /// Empty at the cluster scope.
    pub(super) namespace: String,
    /// Empty for a collection.
    pub(super) name: String,
    /// The path of a non-resource request, such as `/healthz`; empty for resources.
    pub(super) path: String,
}

impl Attributes {
    /// Returns the resource with its subresource, as in rules.
    fn qualified(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.clone()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }

    /// Returns the API server's message for a refused request.
    pub(super) fn refusal(&self, caller: &Identity) -> String {
        if !self.path.is_empty() {
            return format!("User {:?} cannot {} path {:?}", caller.user, self.verb, self.path);
        }
        let scope = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let (user, verb, resource, group) = (&caller.user, &self.verb, self.qualified(), &self.group);
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
    }
}

/// Authorizes a caller. Returns the reason, or `None` if the request is not allowed.
pub(super) fn allowed(state: &Tables, caller: &Identity, wanted: &Attributes) -> Option<String> {
    if caller.groups.iter().any(|group| group == MASTERS) {
        return Some(String::new());
    }
    let own = everybody(caller).iter().any(|rule| covers(rule, wanted)).then(String::new);
    let by_binding = || {
        let rules = bound(state, caller, &wanted.namespace);
        rules.into_iter().find(|(_, rule)| covers(rule, wanted)).map(|(reason, _)| reason)
    };
    own.or_else(by_binding)
}

/// Returns the rules that a caller has in a namespace, for a review.
pub(super) fn rules(state: &Tables, caller: &Identity, namespace: &str) -> Vec<Value> {
    let mut rules = everybody(caller);
    if caller.groups.iter().any(|group| group == MASTERS) {
        rules.extend(everything());
    }
    rules.extend(bound(state, caller, namespace).into_iter().map(|(_, rule)| rule));
    rules
}

/// Returns the rules that allow everything.
pub(super) fn everything() -> Vec<Value> {
    vec![
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ]
}

/// Returns the rules of every caller. Authenticated ones also get discovery and reviews about
/// themselves (`system:discovery`, `system:basic-user`, `system:public-info-viewer`).
fn everybody(caller: &Identity) -> Vec<Value> {
    let mut rules =
        vec![json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]})];
    if caller.groups.iter().any(|group| group == "system:authenticated") {
        let paths = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
        rules.push(json!({"verbs": ["get"], "nonResourceURLs": paths}));
        let asks = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
        rules.push(json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": asks}));
        let asks = ["selfsubjectreviews"];
        rules.push(json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": asks}));
    }
    rules
}

/// Returns true if a rule covers the request.
fn covers(rule: &Value, wanted: &Attributes) -> bool {
    let has = |field: &str, matches: &dyn Fn(&str) -> bool| {
        let texts = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.into_iter().any(matches)
    };
    if !has("verbs", &|one: &str| one == "*" || one == wanted.verb) {
        return false;
    }
    if !wanted.path.is_empty() {
        return has("nonResourceURLs", &|one: &str| {
            one == "*"
                || one == wanted.path
                || one.strip_suffix('*').is_some_and(|start| wanted.path.starts_with(start))
        });
    }
    let qualified = wanted.qualified();
    let of_all = (!wanted.subresource.is_empty()).then(|| format!("*/{}", wanted.subresource));
    let resource = |one: &str| one == "*" || one == qualified || of_all.as_deref() == Some(one);
    let unnamed = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    has("apiGroups", &|one: &str| one == "*" || one == wanted.group)
        && has("resources", &resource)
        && (unnamed || (!wanted.name.is_empty() && has("resourceNames", &|one: &str| one == wanted.name)))
}

/// Returns the rules of all roles that are bound to a caller, cluster-wide and in a namespace, each
/// with the API server's reason.
fn bound(state: &Tables, caller: &Identity, namespace: &str) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for plural in ["clusterrolebindings", "rolebindings"] {
        let wide = plural == "clusterrolebindings";
        if !wide && namespace.is_empty() {
            continue;
        }
        let Some(kind) = state.kind(GROUP, "v1", plural) else { continue };
        for (place, binding) in state.objects(&kind).filter(|(place, _)| wide || place.namespace == namespace) {
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            let Some(subject) = subjects.into_iter().find(|subject| is_caller(subject, caller, &place.namespace))
            else {
                continue;
            };
            let role = &binding["roleRef"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = if wide { place.name.clone() } else { format!("{}/{}", place.name, place.namespace) };
            let reason = format!(
                "RBAC: allowed by {} {name:?} of {} {:?} to {} {:?}",
                kind.kind,
                text(&role["kind"]),
                text(&role["name"]),
                text(&subject["kind"]),
                text(&subject["name"]),
            );
            let rules = rules_of(state, role, &place.namespace);
            found.extend(rules.into_iter().map(|rule| (reason.clone(), rule)));
        }
    }
    found
}

/// Returns true if a subject of a binding is the caller.
fn is_caller(subject: &Value, caller: &Identity, namespace: &str) -> bool {
    let text = |name: &str| subject[name].as_str().unwrap_or_default();
    match text("kind") {
        "User" => text("name") == caller.user,
        "Group" => caller.groups.iter().any(|group| group == text("name")),
        "ServiceAccount" => {
            let home = Some(text("namespace")).filter(|home| !home.is_empty()).unwrap_or(namespace);
            caller.user == format!("system:serviceaccount:{home}:{}", text("name"))
        }
        _ => false,
    }
}

/// Returns the rules of the role of a binding, including those of the roles that an aggregated role
/// selects.
fn rules_of(state: &Tables, role: &Value, namespace: &str) -> Vec<Value> {
    let wide = role["kind"] == "ClusterRole";
    let Some(kind) = state.kind(GROUP, "v1", if wide { "clusterroles" } else { "roles" }) else { return Vec::new() };
    let name = role["name"].as_str().unwrap_or_default();
    let place = Place::new(if wide { "" } else { namespace }, name);
    let Some(found) = state.get(&kind, &place) else { return Vec::new() };
    let listed = |role: &Value| role["rules"].as_array().cloned().unwrap_or_default();
    let mut rules = listed(found);
    let selectors = found["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten();
    for selector in selectors {
        let selected = state.objects(&kind).filter(|(_, other)| {
            meta::name(other) != name && selector::selects(selector, &other["metadata"]["labels"]).unwrap_or(false)
        });
        rules.extend(selected.flat_map(|(_, other)| listed(other)));
    }
    rules
}

/// Returns the initial roles of a cluster: `cluster-admin`, and for namespaces `admin`, `edit` and
/// `view`, which other roles can extend by their labels.
pub(super) fn first_roles() -> Vec<Value> {
    let core =
        json!(["configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "serviceaccounts", "services"]);
    let others = json!(["apps", "autoscaling", "batch", "networking.k8s.io", "policy", "discovery.k8s.io"]);
    let (read, change) = (json!(["get", "list", "watch"]), json!(["*"]));
    let rule = |verbs: &Value, groups: Value, resources: Value| json!({"verbs": verbs, "apiGroups": groups, "resources": resources});
    let view = vec![rule(&read, json!([""]), core.clone()), rule(&read, others.clone(), json!(["*"]))];
    let edit = vec![
        rule(&change, json!([""]), core),
        rule(&change, json!([""]), json!(["secrets"])),
        rule(&change, others, json!(["*"])),
    ];
    let roles = json!(["roles", "rolebindings"]);
    let admin = vec![
        rule(&change, json!([GROUP]), roles),
        rule(&json!(["create"]), json!(["authorization.k8s.io"]), json!(["localsubjectaccessreviews"])),
    ];
    let role = |name: &str, rules: Vec<Value>, above: &[&str]| {
        let selector = |label: &str| json!({"matchLabels": {format!("{GROUP}/aggregate-to-{label}"): "true"}});
        let selectors: Vec<Value> = above.iter().map(|label| selector(label)).collect();
        let mut role = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "rules": rules,
            "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        });
        if !selectors.is_empty() {
            role["aggregationRule"] = json!({"clusterRoleSelectors": selectors});
        }
        role
    };
    vec![
        role("cluster-admin", everything(), &[]),
        role("admin", [edit.clone(), admin].concat(), &["admin", "edit", "view"]),
        role("edit", edit, &["edit", "view"]),
        role("view", view, &["view"]),
    ]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn wanted(verb: &str, resource: &str, subresource: &str, name: &str) -> Attributes {
        Attributes {
            verb: verb.to_owned(),
            group: "g.io".to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        }
    }

    #[rstest]
    #[case::named(json!({"verbs": ["get"], "apiGroups": ["g.io"], "resources": ["things"]}), true)]
    #[case::everything(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), true)]
    #[case::this_name(json!({"verbs": ["get"], "apiGroups": ["g.io"], "resources": ["things"], "resourceNames": ["a"]}), true)]
    #[case::another_name(json!({"verbs": ["get"], "apiGroups": ["g.io"], "resources": ["things"], "resourceNames": ["b"]}), false)]
    #[case::another_verb(json!({"verbs": ["list"], "apiGroups": ["g.io"], "resources": ["things"]}), false)]
    #[case::another_group(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["things"]}), false)]
    #[case::a_part_alone(json!({"verbs": ["get"], "apiGroups": ["g.io"], "resources": ["things/status"]}), false)]
    #[case::nothing(json!({}), false)]
    fn a_rule_covers_what_it_names(#[case] rule: Value, #[case] expected: bool) {
        assert_eq!(covers(&rule, &wanted("get", "things", "", "a")), expected);
    }

    #[test]
    fn a_part_is_not_covered_by_the_whole() {
        let rule = |resource: &str| json!({"verbs": ["get"], "apiGroups": ["g.io"], "resources": [resource]});
        let status = wanted("get", "things", "status", "a");
        assert!(!covers(&rule("things"), &status));
        assert!(covers(&rule("things/status"), &status) && covers(&rule("*/status"), &status));
    }

    #[test]
    fn names_don_t_cover_a_collection() {
        let rule = json!({"verbs": ["list"], "apiGroups": ["g.io"], "resources": ["things"], "resourceNames": ["a"]});
        assert!(!covers(&rule, &wanted("list", "things", "", "")));
    }

    #[test]
    fn a_path_is_covered_by_its_start() {
        let rule = json!({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]});
        let path = |path: &str| Attributes { verb: "get".to_owned(), path: path.to_owned(), ..Attributes::default() };
        assert!(covers(&rule, &path("/apis/apps")) && !covers(&rule, &path("/api")));
    }
}
