//! What is kept of a scenario that failed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use kube::api::{Api, ListParams, ObjectList};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, S3Backend};

use crate::cluster::{World, explain};
use crate::rig::Rig;

/// Writes a folder of this name: operator's log, objects and events as YAML, and where the cluster is the harness' own
/// the operator's calls by number, what replays them, the audit log and those of its processes and of the store. Returns
/// the folder's path.
pub(crate) async fn keep(world: &World, directory: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = directory.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("can't make {}: {error}", folder.display()))?;
    write(&folder, "operator.log", &lines(&world.log.lines()))?;
    if let Some(rig) = &world.rig {
        keep_logs(rig, &folder).await?;
    }
    let (mut objects, mut events) = (Vec::new(), Vec::new());
    objects.extend(documents(&mine(world, Api::<S3Backend>::all(world.client.clone())).await?)?);
    for namespace in mine(world, Api::<Namespace>::all(world.client.clone())).await? {
        let name = namespace.name_any();
        objects.extend(documents(&[namespace])?);
        objects.extend(documents(&all::<BucketClaim>(world, &name).await?)?);
        objects.extend(documents(&all::<Secret>(world, &name).await?)?);
        events.extend(documents(&all::<Event>(world, &name).await?)?);
    }
    write(&folder, "objects.yaml", &yaml(objects)?)?;
    write(&folder, "events.yaml", &yaml(events)?)?;
    Ok(folder)
}

async fn keep_logs(rig: &Rig, folder: &Path) -> Result<(), String> {
    let effects: Vec<String> = rig.way.calls().await?.all().iter().map(ToString::to_string).collect();
    write(folder, "effects.log", &lines(&effects))?;
    write(folder, "replay.txt", &lines(&[rig.way.replay()]))?;
    write(folder, "audit.log", &rig.audit_text().await?)?;
    let requests = rig.store_requests().await?;
    let requests = requests.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    write(folder, "store.log", &lines(&requests.map_err(|error| error.to_string())?))?;
    rig.logs().await?.iter().try_for_each(|(name, text)| write(folder, name, text))
}

async fn mine<K>(world: &World, api: Api<K>) -> Result<Vec<K>, String>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource,
{
    let listed: ObjectList<K> = explain("can't list for the artefacts", api.list(&ListParams::default()).await)?;
    Ok(listed.items.into_iter().filter(|object| object.name_any().starts_with(&world.prefix)).collect())
}

async fn all<K>(world: &World, namespace: &str) -> Result<Vec<K>, String>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    K::DynamicType: Default,
{
    let api: Api<K> = Api::namespaced(world.client.clone(), namespace);
    Ok(explain("can't list for the artefacts", api.list(&ListParams::default()).await)?.items)
}

/// Objects as they are shown: with their kind, without bookkeeping, and without what Secrets keep.
fn documents<K>(objects: &[K]) -> Result<Vec<Value>, String>
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let document = |object: &K| {
        let mut document = serde_json::to_value(object).map_err(|error| error.to_string())?;
        // Objects out of a list come without these.
        document["apiVersion"] = json!(K::api_version(&()));
        document["kind"] = json!(K::kind(&()));
        if let Some(metadata) = document["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        if K::kind(&()) == "Secret" {
            redact(&mut document);
        }
        Ok(document)
    };
    objects.iter().map(document).collect()
}

/// Puts lengths in place of a Secret's values.
fn redact(secret: &mut Value) {
    for values in ["data", "stringData"] {
        for value in secret.get_mut(values).and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut())
        {
            *value = json!(format!("[REDACTED], {} characters", value.as_str().unwrap_or_default().len()));
        }
    }
}

fn yaml(documents: Vec<Value>) -> Result<String, String> {
    documents.into_iter().try_fold(String::new(), |mut text, document| {
        let document = serde_saphyr::to_string(&document).map_err(|error| error.to_string())?;
        // Writing to a string can't fail.
        let _ = writeln!(text, "---\n{}", document.trim_end());
        Ok(text)
    })
}

fn lines(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        text.push_str(line);
        text.push('\n');
        text
    })
}

fn write(folder: &Path, name: &str, content: &str) -> Result<(), String> {
    let path = folder.join(name);
    std::fs::write(&path, content).map_err(|error| format!("can't write {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::from_json;

    #[test]
    fn a_secret_is_shown_without_its_values() {
        let secret: Secret = from_json(json!({
            "metadata": {"name": "photos-s3", "managedFields": [{"manager": "m"}]},
            "data": {"AWS_SECRET_ACCESS_KEY": "c2VjcmV0"},
        }));
        let shown = yaml(documents(&[secret]).unwrap()).unwrap();
        assert!(
            shown.contains("kind: Secret") && shown.contains("photos-s3") && shown.contains("AWS_SECRET_ACCESS_KEY")
        );
        assert!(shown.contains("[REDACTED], 8 characters"), "{shown}");
        assert!(!shown.contains("c2VjcmV0") && !shown.contains("managedFields"), "{shown}");
    }
}
