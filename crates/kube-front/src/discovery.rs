//! Discovery: the served resources, in one document or in the older format of one document per
//! group version.

use serde_json::{Value, json};

use super::catalog::Catalog;
use super::face::group_version;
use super::resource::{Resource, Subresource};

/// Returns the aggregated document at `/api` (the core group) or `/apis` (all others), in a version
/// of `apidiscovery.k8s.io`.
pub(super) fn aggregated(catalog: &Catalog, core: bool, version: &str) -> Value {
    let groups = catalog.groups().into_iter().filter(|(group, _)| group.is_empty() == core);
    let items = groups.map(|(group, versions)| {
        let versions = versions.into_iter().map(|version| {
            let resources: Vec<Value> = catalog.of(group, version).map(resource).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        });
        let versions: Vec<Value> = versions.collect();
        json!({"metadata": if group.is_empty() { json!({}) } else { json!({"name": group}) }, "versions": versions})
    });
    let items: Vec<Value> = items.collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn resource(resource: &Resource) -> Value {
    let scope = if resource.namespaced { "Namespaced" } else { "Cluster" };
    let mut document = json!({
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": scope,
        "singularResource": resource.names.singular,
        "verbs": resource.verbs,
    });
    for (name, texts) in [("shortNames", &resource.names.short), ("categories", &resource.names.categories)] {
        if !texts.is_empty() {
            document[name] = json!(texts);
        }
    }
    if !resource.subresources.is_empty() {
        let part = |part: &Subresource| {
            let (group, version, kind) = &part.kind;
            json!({
                "subresource": part.name,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": part.verbs,
            })
        };
        document["subresources"] = resource.subresources.iter().map(part).collect();
    }
    document
}

/// Returns the versions of the core group: `/api`.
pub(super) fn core_versions(catalog: &Catalog) -> Value {
    let core = catalog.groups().into_iter().find(|(group, _)| group.is_empty());
    let versions = core.map(|(_, versions)| versions).unwrap_or_default();
    json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []})
}

/// Returns all groups but the core group: `/apis`.
pub(super) fn groups(catalog: &Catalog) -> Value {
    let groups = catalog.groups().into_iter().filter(|(group, _)| !group.is_empty());
    let groups: Vec<Value> = groups.map(|(group, versions)| describe(group, &versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns one group: `/apis/{group}`; `None` if no group has this name.
pub(super) fn group(catalog: &Catalog, name: &str) -> Option<Value> {
    let (group, versions) = catalog.groups().into_iter().find(|(group, _)| *group == name && !group.is_empty())?;
    let mut document = describe(group, &versions);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Some(document)
}

fn describe(group: &str, versions: &[&str]) -> Value {
    let of = |version: &str| json!({"groupVersion": group_version(group, version), "version": version});
    let all: Vec<Value> = versions.iter().map(|version| of(version)).collect();
    json!({"name": group, "preferredVersion": all.first().cloned(), "versions": all})
}

/// Returns the resources of a group version: `/api/v1` or `/apis/{group}/{version}`; `None` if it
/// isn't served.
pub(super) fn resources(catalog: &Catalog, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in catalog.of(group, version) {
        let mut own = json!({
            "name": resource.plural,
            "singularName": resource.names.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": resource.verbs,
        });
        for (name, texts) in [("shortNames", &resource.names.short), ("categories", &resource.names.categories)] {
            if !texts.is_empty() {
                own[name] = json!(texts);
            }
        }
        resources.push(own);
        resources.extend(resource.subresources.iter().map(|part| part_of(resource, part)));
    }
    let group_version = group_version(group, version);
    (!resources.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
    })
}

fn part_of(resource: &Resource, part: &Subresource) -> Value {
    let (group, version, kind) = &part.kind;
    let mut document = json!({
        "name": format!("{}/{}", resource.plural, part.name),
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": kind,
        "verbs": part.verbs,
    });
    if *group != resource.group || *version != resource.version {
        document["group"] = group.clone().into();
        document["version"] = version.clone().into();
    }
    document
}
