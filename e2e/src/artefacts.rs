//! Artefacts of failed scenarios.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Event, Namespace, Secret};
use kube::Resource;
use kube::api::ListParams;
use kube::core::Request;
use serde_json::{Value, json};
use stowage_operator::api::{BucketClaim, S3Backend};
use stowage_testbed::environment::Environment;
use stowage_testbed::environment::own_cluster::OwnCluster;

use crate::replay;

/// Writes a folder of this name: the operator's log, and objects and events as YAML. For the
/// harness' own cluster also the operator's calls by number, the command that replays them, the
/// audit log, and the logs of processes and store. Returns the folder's path.
pub(crate) async fn keep(environment: &Environment, directory: &Path, name: &str) -> Result<PathBuf> {
    let folder = directory.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    write(&folder, "operator.log", &lines(&environment.log.lines()))?;
    if let Some(own_cluster) = &environment.own_cluster {
        keep_logs(own_cluster, &folder).await?;
    }
    let (mut objects, mut events) = (mine::<S3Backend>(environment).await?, Vec::new());
    for namespace in mine::<Namespace>(environment).await? {
        let name = name_of(&namespace).to_owned();
        objects.push(namespace);
        objects.extend(all::<BucketClaim>(environment, Some(&name)).await?);
        objects.extend(all::<Secret>(environment, Some(&name)).await?);
        events.extend(all::<Event>(environment, Some(&name)).await?);
    }
    write(&folder, "objects.yaml", &yaml(&objects)?)?;
    write(&folder, "events.yaml", &yaml(&events)?)?;
    Ok(folder)
}

async fn keep_logs(own_cluster: &OwnCluster, folder: &Path) -> Result<()> {
    let effects: Vec<String> = own_cluster.fault_proxy.calls().await?.all().iter().map(ToString::to_string).collect();
    write(folder, "effects.log", &lines(&effects))?;
    write(folder, "replay.txt", &lines(&[replay::command(&own_cluster.fault_proxy.play())]))?;
    write(folder, "audit.log", &own_cluster.audit_text().await?)?;
    let requests = own_cluster.store_requests().await?;
    let requests = requests.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
    write(folder, "store.log", &lines(&requests?))?;
    own_cluster.logs().await?.iter().try_for_each(|(name, text)| write(folder, name, text))
}

async fn mine<K: Resource<DynamicType = ()>>(environment: &Environment) -> Result<Vec<Value>> {
    let objects = all::<K>(environment, None).await?;
    Ok(objects.into_iter().filter(|object| name_of(object).starts_with(&environment.prefix)).collect())
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns all objects of a kind, for display. They stay JSON: some scenarios create objects that
/// the Rust type of the kind can't represent.
async fn all<K: Resource<DynamicType = ()>>(environment: &Environment, namespace: Option<&str>) -> Result<Vec<Value>> {
    let what = format!("can't list {} for the artefacts", K::plural(&()));
    let request = Request::new(K::url_path(&(), namespace)).list(&ListParams::default());
    let request = request.with_context(|| what.clone())?;
    let mut list: Value = environment.client.request(request).await.with_context(|| what.clone())?;
    let objects = list["items"].as_array_mut().with_context(|| format!("{what}: the answer is no list"))?;
    Ok(objects.iter_mut().map(|object| document::<K>(object.take())).collect())
}

/// Returns an object for display: with its kind, without `managedFields`, and without a Secret's
/// values.
fn document<K: Resource<DynamicType = ()>>(mut object: Value) -> Value {
    // Objects of a list lack these fields.
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if K::kind(&()) == "Secret" {
        redact(&mut object);
    }
    object
}

/// Replaces a Secret's values by their lengths.
fn redact(secret: &mut Value) {
    for values in ["data", "stringData"] {
        for value in secret.get_mut(values).and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut())
        {
            *value = json!(format!("[REDACTED], {} characters", value.as_str().unwrap_or_default().len()));
        }
    }
}

fn yaml(documents: &[Value]) -> Result<String> {
    documents.iter().try_fold(String::new(), |mut text, document| {
        let document = serde_saphyr::to_string(document)?;
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

fn write(folder: &Path, name: &str, content: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, content).with_context(|| format!("can't write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_without_its_values() {
        let secret = json!({
            "metadata": {"name": "photos-s3", "managedFields": [{"manager": "m"}]},
            "data": {"AWS_SECRET_ACCESS_KEY": "c2VjcmV0"},
        });
        let shown = yaml(&[document::<Secret>(secret)]).unwrap();
        assert!(
            shown.contains("kind: Secret") && shown.contains("photos-s3") && shown.contains("AWS_SECRET_ACCESS_KEY")
        );
        assert!(shown.contains("[REDACTED], 8 characters"), "{shown}");
        assert!(!shown.contains("c2VjcmV0") && !shown.contains("managedFields"), "{shown}");
    }
}
