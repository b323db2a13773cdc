//! Manifests, and server-side apply like `kubectl apply --server-side`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::Scope;
use parking_lot::Mutex;
use stowage_operator::api::{ServedBy, wire};

/// Field manager of applies by users.
const MANAGER: &str = "kubectl";

/// One document of a manifest file.
#[derive(Clone, Debug)]
pub struct Document {
    /// Name of the file.
    pub file: String,
    /// Number of the document in the file, counted from 1.
    pub number: usize,
    /// The object.
    pub object: DynamicObject,
}

/// A manifest that cannot be parsed, or is refused. Includes the location.
#[derive(Clone, Debug, thiserror::Error)]
pub struct ManifestError {
    file: String,
    number: usize,
    message: String,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}: {}", self.file, self.number, self.message)
    }
}

/// Parses the documents of a file. Empty documents are skipped, but counted.
///
/// # Errors
/// Returns an error if a document is not YAML or not a Kubernetes object.
pub fn parse(file: &str, yaml: &str) -> Result<Vec<Document>, ManifestError> {
    let mut documents = Vec::new();
    for (index, text) in split(yaml).into_iter().enumerate() {
        let number = index + 1;
        let invalid = |message: String| ManifestError { file: file.to_owned(), number, message };
        if text.lines().all(is_comment) {
            continue;
        }
        let value: serde_json::Value = serde_saphyr::from_str(&text)
            // Without the snippet, which may be from a Secret.
            .map_err(|error| invalid(error.without_snippet().to_string()))?;
        let object: DynamicObject = serde_json::from_value(value).map_err(|error| invalid(error.to_string()))?;
        if object.types.is_none() || object.metadata.name.is_none() {
            return Err(invalid("a Kubernetes object needs apiVersion, kind and metadata.name".to_owned()));
        }
        documents.push(Document { file: file.to_owned(), number, object });
    }
    Ok(documents)
}

/// Result of parsing a manifest.
type Read = Arc<Result<Vec<Document>, ManifestError>>;

/// Parses a manifest once per process, because thousands of schedules have the same one. Runs on
/// its own thread: random draws during parsing must not come from the seed of the first schedule.
///
/// # Panics
/// Panics if a thread cannot be created.
pub fn read_once(yaml: &str) -> Read {
    static READ: Mutex<BTreeMap<String, Read>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock();
    if let Some(documents) = read.get(yaml) {
        return documents.clone();
    }
    let parsed = std::thread::scope(|scope| scope.spawn(|| parse("manifests", yaml)).join());
    let documents = Arc::new(parsed.expect("reading doesn't panic"));
    read.insert(yaml.to_owned(), documents.clone());
    documents
}

/// Returns copies of the documents of a manifest that a world is built from.
///
/// # Panics
/// Panics if the manifest is invalid.
fn known_good(yaml: &str) -> Vec<Document> {
    read_once(yaml).as_ref().clone().expect("the manifest is YAML")
}

/// Applies the documents of a manifest that a world is built from.
///
/// # Panics
/// Panics if the manifest is invalid or is refused.
pub(super) async fn apply_known_good(client: &Client, yaml: &str) {
    for document in known_good(yaml) {
        apply(client, &document).await.expect("the manifest is good");
    }
}

/// Like [`apply_known_good`], for a manifest whose backends were served before by this operator.
///
/// # Panics
/// Panics if the manifest is invalid or is refused.
pub(super) async fn apply_served(client: &Client, yaml: &str, operator: &ServedBy) {
    for mut document in known_good(yaml) {
        if document.object.types.as_ref().is_some_and(|types| types.kind == "S3Backend") {
            let annotations = document.object.metadata.annotations.get_or_insert_default();
            annotations.entry(wire::SERVED_BY.to_owned()).or_insert_with(|| operator.to_string());
        }
        apply(client, &document).await.expect("the manifest is good");
    }
}

/// Splits a YAML stream into documents. A `---` at the start of a line begins a new one, except a
/// first `---` that only comments precede. Blank lines replace everything before a document, so
/// that error locations are those in the stream.
fn split(yaml: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for (index, line) in yaml.lines().enumerate() {
        let begins = line == "---" || line.starts_with("--- ");
        let first = documents.len() == 1 && documents[0].lines().all(is_comment);
        if begins && !first {
            documents.push("\n".repeat(index + 1));
        } else if let Some(last) = documents.last_mut() {
            last.push_str(if begins { "" } else { line });
            last.push('\n');
        }
    }
    documents
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Returns true if objects of a kind are cluster-scoped. The simulated server has no discovery API.
fn is_cluster_scoped(kind: &str) -> bool {
    matches!(kind, "Namespace" | "CustomResourceDefinition" | "S3Backend" | "StorageClass" | "ObjectBucket")
}

impl Document {
    /// Returns the kind of the object.
    ///
    /// # Errors
    /// Returns an error if it has no kind.
    pub fn kind(&self) -> Result<GroupVersionKind, ManifestError> {
        let types = self.object.types.as_ref().ok_or_else(|| self.failed("it has no kind".to_owned()))?;
        GroupVersionKind::try_from(types).map_err(|error| self.failed(error.to_string()))
    }

    /// Creates an error with the location of this document.
    pub fn failed(&self, message: String) -> ManifestError {
        ManifestError { file: self.file.clone(), number: self.number, message }
    }
}

/// Applies one document with strict field validation. Without a namespace, it uses the client's.
///
/// # Errors
/// Returns the API server's message if it refuses the document.
pub async fn apply(client: &Client, document: &Document) -> Result<DynamicObject, ManifestError> {
    let kind = document.kind()?;
    let scope = if is_cluster_scoped(&kind.kind) { Scope::Cluster } else { Scope::Namespaced };
    apply_as(client, document, &ApiResource::from_gvk(&kind), scope).await
}

/// Like [`apply`], for a known resource and scope.
///
/// # Errors
/// Returns the API server's message if it refuses the document.
pub async fn apply_as(
    client: &Client,
    document: &Document,
    resource: &ApiResource,
    scope: Scope,
) -> Result<DynamicObject, ManifestError> {
    let name = document.object.metadata.name.clone().unwrap_or_default();
    let api: Api<DynamicObject> = match (scope, &document.object.metadata.namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), resource),
    };
    let mut params = PatchParams::apply(MANAGER).force();
    params.field_validation = Some(ValidationDirective::Strict);
    api.patch(&name, &params, &Patch::Apply(&document.object)).await.map_err(|error| match error {
        kube::Error::Api(status) => document.failed(status.message.clone()),
        error => document.failed(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_counted_as_they_stand() {
        let yaml = "# a comment\n---\nkind: A\napiVersion: v1\nmetadata: {name: a}\n---\n# nothing\n---\nkind: B\napiVersion: v1\nmetadata: {name: b}\n";
        let documents = parse("f.yaml", yaml).unwrap();
        let seen: Vec<_> = documents
            .iter()
            .map(|document| (document.number, document.object.metadata.name.clone().unwrap()))
            .collect();
        assert_eq!(seen, [(1, "a".to_owned()), (3, "b".to_owned())]);
    }

    #[test]
    fn bad_yaml_is_told_in_one_line_with_its_line_in_the_file_and_without_its_text() {
        let error = parse("f.yaml", "---\nkind: A\napiVersion: v1\nmetadata: {name: a}\n---\npassword: [tiger\n");
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("f.yaml, document 2: ") && text.contains("line 6"), "{text}");
        assert!(text.lines().count() == 1 && !text.contains("tiger"), "{text}");
    }

    #[test]
    fn a_document_that_is_no_object_is_refused_with_its_place() {
        let error = parse("f.yaml", "kind: A\napiVersion: v1\nmetadata: {name: a}\n---\nkind: B\n").unwrap_err();
        assert!(error.to_string().starts_with("f.yaml, document 2: "), "{error}");
    }
}
