//! The rights of each token by the rendered roles, compared with the table "A stolen token" of
//! `docs/security.md`. No I/O.

use serde_json::Value;

use super::checks::{kind, name};

/// The page with the table.
#[cfg(test)]
const SECURITY: &str = include_str!("../../../docs/security.md");

/// A way to install the chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// Name of the chart's values.
    pub(super) values: &'static str,
    /// Namespace of records, keys and admin Secrets.
    state: &'static str,
    /// Namespace of the gateways' counters and Leases.
    usage: &'static str,
}

/// The columns of the table.
pub(super) const MODES: [Mode; 5] = [
    Mode { values: "least-values", state: RELEASE, usage: "stowage-system-usage" },
    Mode { values: "obc-values", state: RELEASE, usage: "stowage-system-usage" },
    Mode { values: "namespaced-values", state: RELEASE, usage: "stowage-system-usage" },
    Mode { values: "state-values", state: "stowage-state", usage: "stowage-counts" },
    Mode { values: "namespaced-state-values", state: "stowage-state", usage: "stowage-state-usage" },
];

const RELEASE: &str = super::helm::NAMESPACE;

/// A namespace, by its content.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Pods, Helm's Secrets, TLS keys, and the certificates for tenants.
    Release,
    /// Records, keys, admin Secrets, and the operators' Lease.
    State,
    /// Counters and Leases of gateways.
    Usage,
    /// Claims that the operator serves.
    Served,
    /// Any other namespace.
    Elsewhere,
}

impl Place {
    fn namespace(self, mode: &Mode) -> &'static str {
        match self {
            Self::Release => RELEASE,
            Self::State => mode.state,
            Self::Usage => mode.usage,
            Self::Served => "team-a",
            Self::Elsewhere => "kube-system",
        }
    }
}

/// A row of the table: a token, an action in words and as requests, and for each mode whether all
/// of these requests are allowed or all are denied.
struct Row {
    token: &'static str,
    act: &'static str,
    verbs: &'static [&'static str],
    resource: &'static str,
    name: &'static str,
    place: Place,
    allowed: [bool; 5],
}

const fn row(
    token: &'static str,
    act: &'static str,
    (verbs, resource, name): (&'static [&'static str], &'static str, &'static str),
    place: Place,
    allowed: [bool; 5],
) -> Row {
    Row { token, act, verbs, resource, name, place, allowed }
}

const ALL: [bool; 5] = [true; 5];
const NONE: [bool; 5] = [false; 5];
/// With `--obc` the operator writes ConfigMaps and claims in all namespaces.
const OBC: [bool; 5] = [false, true, false, false, false];
const MAKE: &[&str] = &["create", "patch"];
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
const LEASE: &str = "stowage-operator";
const CA: &str = "stowage-gateway-ca";

#[rustfmt::skip]
const ROWS: [Row; 19] = [
    row("gateway", "read keys, records and admin Secrets", (READ, "secrets", ""), Place::State, ALL),
    row("gateway", "read Helm's Secrets and TLS keys", (READ, "secrets", ""), Place::Release, [true, true, true, false, false]),
    row("gateway", "read Secrets of tenants", (READ, "secrets", ""), Place::Served, NONE),
    row("gateway", "write Secrets of the operator's namespace", (WRITE, "secrets", ""), Place::State, NONE),
    row("gateway", "change the certificates that tenants are given", (WRITE, "configmaps", CA), Place::Release, NONE),
    row("gateway", "take or delete the Lease of the operators", (WRITE, "leases", LEASE), Place::State, NONE),
    row("gateway", "write anything else in the release's namespace", (WRITE, "configmaps", ""), Place::Release, NONE),
    row("gateway", "forge what buckets hold", (&["create", "update", "delete"], "configmaps", ""), Place::Usage, ALL),
    row("gateway", "read claims", (READ, "bucketclaims", ""), Place::Served, NONE),
    row("gateway", "edit S3Backends", (WRITE, "s3backends", ""), Place::Elsewhere, NONE),
    row("operator", "read and write keys, records and admin Secrets", (&["get", "list", "create", "patch", "delete"], "secrets", ""), Place::State, ALL),
    row("operator", "read Helm's Secrets and TLS keys", (READ, "secrets", ""), Place::Release, [true, true, true, true, false]),
    row("operator", "read and write Secrets of namespaces that it serves", (&["get", "list", "create", "patch", "delete"], "secrets", ""), Place::Served, ALL),
    row("operator", "read and write Secrets of all other namespaces", (&["get", "list", "create", "patch", "delete"], "secrets", ""), Place::Elsewhere, [true, true, false, true, false]),
    row("operator", "change the certificates that tenants are given", (MAKE, "configmaps", CA), Place::Release, OBC),
    row("operator", "forge what buckets hold", (MAKE, "configmaps", ""), Place::Usage, OBC),
    row("operator", "take the Lease of the operators", (&["get", "create", "patch"], "leases", LEASE), Place::State, ALL),
    row("operator", "edit S3Backends", (&["patch"], "s3backends", ""), Place::Elsewhere, ALL),
    row("operator", "make or delete claims", (&["create", "delete"], "bucketclaims", ""), Place::Served, OBC),
];

impl Row {
    /// Returns the row as a line of the table.
    #[cfg(test)]
    fn line(&self) -> String {
        let words = self.allowed.map(|it| if it { "yes" } else { "no" });
        format!("| {} | {} | {} |", self.token, self.act, words.join(" | "))
    }

    /// Returns the requests that the roles decide differently from the row.
    fn contradictions(&self, objects: &[Value], mode: &Mode, allowed: bool) -> Vec<String> {
        let namespace = self.place.namespace(mode);
        let judged = self.verbs.iter().filter(|verb| self.may(objects, verb, namespace) != allowed);
        let told = |verb: &&str| {
            let may = if allowed { "may not" } else { "may" };
            format!("{}: the {} {may} {verb} {} {} in {namespace}", self.act, self.token, self.resource, self.name)
        };
        judged.map(told).collect()
    }

    fn may(&self, objects: &[Value], verb: &str, namespace: &str) -> bool {
        let account = format!("stowage-{}", self.token);
        let binds = |object: &&Value| {
            let here = kind(object) == "RoleBinding" && object["metadata"]["namespace"] == namespace;
            let subjects = object["subjects"].as_array().into_iter().flatten();
            (here || kind(object) == "ClusterRoleBinding")
                && subjects.into_iter().any(|it| it["name"] == *account && it["kind"] == "ServiceAccount")
        };
        let rules = objects.iter().filter(binds).flat_map(|binding| {
            let (of, role) = (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]);
            let is_it = move |object: &&Value| {
                *of == kind(object)
                    && *role == name(object)
                    && (*of == "ClusterRole" || object["metadata"]["namespace"] == namespace)
            };
            objects.iter().filter(is_it).flat_map(|role| role["rules"].as_array().into_iter().flatten())
        });
        rules.into_iter().any(|rule| self.is_allowed_by(rule, verb))
    }

    fn is_allowed_by(&self, rule: &Value, verb: &str) -> bool {
        let has = |list: &str, value: &str| {
            rule[list].as_array().is_some_and(|all| all.iter().any(|it| it == value || it == "*"))
        };
        let names = rule["resourceNames"].as_array();
        has("verbs", verb)
            && has("resources", self.resource)
            && names.is_none_or(|names| names.iter().any(|it| *it == *self.name))
    }
}

/// Returns the requests that the roles of these objects decide differently from the table.
pub(super) fn contradictions(mode: usize, objects: &[Value]) -> Vec<String> {
    let of = |row: &Row| row.contradictions(objects, &MODES[mode], row.allowed[mode]);
    ROWS.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    // covers: 3.8.gateway
    #[test]
    fn manifests_grant_each_token_what_the_table_says() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kind-config");
        for (mode, operator) in [(1, "operator"), (2, "namespaced")] {
            let objects = super::super::manifests(&directory, &[operator, "gateway", "usage"]).expect("they are there");
            assert_eq!(contradictions(mode, &objects), [] as [String; 0], "{operator}");
        }
    }

    #[test]
    fn the_table_stands_in_the_threat_model() {
        let (_, section) = SECURITY.split_once("\n## A stolen token\n").expect("there is such a section");
        let section = section.split("\n## ").next().unwrap_or_default();
        let of_tokens = |line: &&str| line.starts_with("| gateway |") || line.starts_with("| operator |");
        let lines: Vec<&str> = section.lines().filter(of_tokens).collect();
        assert_eq!(lines, ROWS.iter().map(Row::line).collect::<Vec<_>>());
    }

    #[test]
    fn a_right_too_many_and_one_too_few_are_told() {
        let granted = |verbs: Value, resource: &str| {
            vec![
                json!({"kind": "Role", "metadata": {"name": "stowage-gateway", "namespace": RELEASE},
                       "rules": [{"apiGroups": [""], "resources": [resource], "verbs": verbs}]}),
                json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": RELEASE},
                       "roleRef": {"kind": "Role", "name": "stowage-gateway"},
                       "subjects": [{"kind": "ServiceAccount", "name": "stowage-gateway"}]}),
            ]
        };
        let none = contradictions(0, &[]);
        let read = contradictions(0, &granted(json!(["get", "list", "watch"]), "secrets"));
        assert_eq!(none.len(), read.len() + 6, "its own namespace is that of the release: {read:#?}");
        let patch = contradictions(0, &granted(json!(["patch"]), "leases"));
        let told = "take or delete the Lease of the operators: the gateway may patch leases stowage-operator in \
                    stowage-system";
        assert!(patch.iter().any(|it| it == told) && !none.iter().any(|it| it == told), "{patch:#?}");
    }
}
