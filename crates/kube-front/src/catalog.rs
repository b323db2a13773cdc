//! The catalog of served resources, as clients see them: built-in kinds as the store defines them,
//! custom ones by their definitions. Discovery, OpenAPI and tables are all built from it.

use kube_sim::kind::{Family, Kind, SharedKind};
use kube_sim::store::{Place, Tables};
use serde_json::{Value, json};

use super::face::Face;
use super::resource::{Backing, Column, Content, Resource, ScalePaths, Subresource};
use super::reviews;

/// The verbs of a resource, as discovery lists them.
pub(super) const ALL_VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const OF_NAMESPACES: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// An API server lists the verbs of custom resources in this order.
const OF_CUSTOM: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const OF_PARTS: &[&str] = &["get", "patch", "update"];

/// All served resources, sorted by group, version (the preferred one first) and plural.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    pub(super) resources: Vec<Resource>,
}

impl Catalog {
    /// Builds the catalog of the resources that are served now.
    pub(super) fn read(state: &Tables) -> Self {
        let mut resources = reviews::resources();
        for kind in state.kinds() {
            match kind.family {
                Family::Custom => custom(state, &kind, &mut resources),
                Family::Event => {
                    resources.push(core_events(&kind));
                    resources.push(built_in(&kind));
                }
                _ => resources.push(built_in(&kind)),
            }
        }
        resources.sort_by_cached_key(|resource| {
            (resource.group.clone(), version_order(&resource.version), resource.plural.clone())
        });
        Self { resources }
    }

    /// Finds a resource by group, version and plural.
    pub(super) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        let is =
            |resource: &&Resource| resource.plural == plural && resource.version == version && resource.group == group;
        self.resources.iter().find(is)
    }

    /// Returns the groups in order, each with its versions, the preferred version first.
    pub(super) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for resource in &self.resources {
            match groups.last_mut() {
                Some((group, versions)) if *group == resource.group => {
                    if versions.last() != Some(&resource.version.as_str()) {
                        versions.push(&resource.version);
                    }
                }
                _ => groups.push((&resource.group, vec![&resource.version])),
            }
        }
        groups
    }

    /// Iterates over the resources of a group version.
    pub(super) fn of<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Resource> {
        self.resources.iter().filter(move |resource| resource.group == group && resource.version == version)
    }
}

/// Returns the sort key of versions: stable before beta before alpha, higher before lower, and
/// other names last (`k8s.io/apimachinery/pkg/version`).
fn version_order(version: &str) -> (u8, std::cmp::Reverse<(u64, u64)>, String) {
    let read = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..end].parse().ok()?;
        let (stage, minor) = match &rest[end..] {
            "" => (0, "0"),
            tail => tail
                .strip_prefix("beta")
                .map(|minor| (1, minor))
                .or(tail.strip_prefix("alpha").map(|minor| (2, minor)))?,
        };
        Some((stage, std::cmp::Reverse((major, minor.parse().ok()?)), String::new()))
    };
    read().unwrap_or((3, std::cmp::Reverse((0, 0)), version.to_owned()))
}

fn built_in(kind: &SharedKind) -> Resource {
    let scale = has_scale(kind).then(|| ScalePaths {
        spec: ".spec.replicas".to_owned(),
        status: ".status.replicas".to_owned(),
        selector: String::new(),
    });
    let mut resource = Resource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        plural: kind.plural.clone(),
        kind: kind.kind.clone(),
        names: kind.names.clone(),
        namespaced: kind.is_namespaced(),
        verbs: if kind.deletes_collections() { ALL_VERBS } else { OF_NAMESPACES },
        subresources: parts(&kind.group, &kind.version, &kind.kind, kind.status_subresource, scale.is_some()),
        columns: None,
        scale,
        content: Content::Kind(kind.clone()),
        backing: Backing::Stored(kind.clone(), Face::Same),
    };
    if kind.family == Family::ServiceAccount {
        let request = ("authentication.k8s.io".to_owned(), "v1".to_owned(), "TokenRequest".to_owned());
        resource.subresources.push(Subresource { name: "token", kind: request, verbs: &["create"] });
    }
    resource
}

fn has_scale(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.plural.as_str()),
        ("apps", "deployments" | "replicasets" | "statefulsets") | ("", "replicationcontrollers")
    )
}

/// Returns the Events of the core group: a second view of the Events of `events.k8s.io`.
fn core_events(kind: &SharedKind) -> Resource {
    Resource {
        group: String::new(),
        content: Content::CoreEvent,
        backing: Backing::Stored(kind.clone(), Face::CoreEvent),
        ..built_in(kind)
    }
}

fn parts(group: &str, version: &str, kind: &str, status: bool, scale: bool) -> Vec<Subresource> {
    let own = || (group.to_owned(), version.to_owned(), kind.to_owned());
    let scaled = || ("autoscaling".to_owned(), "v1".to_owned(), "Scale".to_owned());
    let scale = scale.then(|| Subresource { name: "scale", kind: scaled(), verbs: OF_PARTS });
    let status = status.then(|| Subresource { name: "status", kind: own(), verbs: OF_PARTS });
    scale.into_iter().chain(status).collect()
}

/// Adds a custom resource at each of its served versions.
fn custom(state: &Tables, kind: &SharedKind, out: &mut Vec<Resource>) {
    let definitions = state.kind("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let place = Place::new("", &format!("{}.{}", kind.plural, kind.group));
    let Some(definition) = definitions.and_then(|definitions| state.get(&definitions, &place).cloned()) else {
        return;
    };
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten().enumerate();
    for (number, version) in versions.filter(|(_, version)| version["served"] == true) {
        let name = version["name"].as_str().unwrap_or_default();
        let status = version["subresources"]["status"].is_object();
        let scale = scale_paths(&version["subresources"]["scale"]);
        let face = if name == kind.version { Face::Same } else { Face::Version(name.to_owned()) };
        out.push(Resource {
            group: kind.group.clone(),
            version: name.to_owned(),
            plural: kind.plural.clone(),
            kind: kind.kind.clone(),
            names: kind.names.clone(),
            namespaced: kind.is_namespaced(),
            verbs: OF_CUSTOM,
            subresources: parts(&kind.group, name, &kind.kind, status, scale.is_some()),
            columns: Some(columns(&version["additionalPrinterColumns"])),
            scale,
            content: Content::Definition(definition.tree(), number),
            backing: Backing::Stored(kind.clone(), face),
        });
    }
}

fn scale_paths(scale: &Value) -> Option<ScalePaths> {
    let text = |name: &str| scale[name].as_str().unwrap_or_default().to_owned();
    scale.is_object().then(|| ScalePaths {
        spec: text("specReplicasPath"),
        status: text("statusReplicasPath"),
        selector: text("labelSelectorPath"),
    })
}

/// Returns the printer columns of a version. Without any, an API server shows the age.
fn columns(asked: &Value) -> Vec<Column> {
    let of = |column: &Value| {
        let text = |name: &str| column[name].as_str().unwrap_or_default().to_owned();
        Column {
            name: text("name"),
            column_type: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().unwrap_or_default(),
            json_path: text("jsonPath"),
        }
    };
    let columns: Vec<Column> = asked.as_array().into_iter().flatten().map(of).collect();
    if columns.is_empty() {
        let age = json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
        return vec![of(&age)];
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_stand_in_the_order_of_their_priority() {
        let mut versions = ["v1alpha1", "v2", "foo", "v1", "v1beta2", "v10", "v1beta1", "v2alpha1"];
        versions.sort_by_key(|version| version_order(version));
        assert_eq!(versions, ["v10", "v2", "v1", "v1beta2", "v1beta1", "v2alpha1", "v1alpha1", "foo"]);
    }

    #[test]
    fn a_definition_without_columns_shows_the_age() {
        let columns = columns(&Value::Null);
        assert_eq!((columns.len(), columns[0].json_path.as_str()), (1, ".metadata.creationTimestamp"));
    }
}
