//! Conversion of a CustomResourceDefinition into a served kind.

use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::Status;
use serde_json::Value;

use super::builtin;
use super::kind::{Family, Kind, Names, Scope, SelectableField, SharedKind};
use super::schema::loader;
use super::status::{self, Failure, FieldError, FieldErrorKind};

/// A valid definition that was read once, for any number of clusters. Reading takes much longer
/// than serving. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReadDefinition {
    pub(super) kind: SharedKind,
    /// The definition as an object.
    pub(super) object: Arc<Value>,
}

impl ReadDefinition {
    /// Reads a definition.
    ///
    /// # Errors
    /// Returns the `422 Invalid` of an API server for the schema, with paths.
    pub fn new(definition: &CustomResourceDefinition) -> Result<Self, Box<Status>> {
        let object = serde_json::to_value(definition).expect("a definition is JSON");
        Ok(Self { kind: read(definition)?, object: Arc::new(object) })
    }
}

/// Reads a stored definition.
///
/// # Errors
/// 422 with all errors in it.
pub(super) fn read_stored(object: &Value) -> Result<SharedKind, Failure> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let definition = serde_json::from_value(object.clone()).map_err(|error| {
        let error = FieldError::invalid("spec", "", error.to_string());
        status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, &[error])
    })?;
    read(&definition)
}

/// Reads the storage version of a definition. Other versions are ignored, because there is no
/// conversion.
///
/// # Errors
/// 422 with all errors in it.
fn read(definition: &CustomResourceDefinition) -> Result<SharedKind, Failure> {
    let name = definition.metadata.name.clone().unwrap_or_default();
    let refuse =
        |errors: &[FieldError]| status::invalid("apiextensions.k8s.io", "CustomResourceDefinition", &name, errors);
    let spec = &definition.spec;
    let expected = format!("{}.{}", spec.names.plural, spec.group);
    if name != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        return Err(refuse(&[FieldError::invalid("metadata.name", name.as_str(), detail)]));
    }
    let scope = match spec.scope.as_str() {
        "Namespaced" => Scope::Namespaced,
        "Cluster" => Scope::Cluster,
        other => {
            let detail = "supported values: \"Cluster\", \"Namespaced\"";
            return Err(refuse(&[FieldError::new(FieldErrorKind::NotSupported, "spec.scope", other.into(), detail)]));
        }
    };
    let found = spec.versions.iter().enumerate().find(|(_, version)| version.storage);
    let Some((index, version)) = found else {
        let detail = "must have exactly one version marked as storage version";
        return Err(refuse(&[FieldError::invalid("spec.versions", "", detail)]));
    };
    let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
    let Some(props) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
        return Err(refuse(&[FieldError::required(&path, "schemas are required")]));
    };
    if props.type_.as_deref() != Some("object") {
        let detail = "must be object at the root";
        let shown = props.type_.clone().unwrap_or_default();
        return Err(refuse(&[FieldError::invalid(&format!("{path}.type"), shown, detail)]));
    }
    let schema = loader::of_object(props, builtin::object_meta_schema(), &path).map_err(|errors| refuse(&errors))?;
    let selectable = version.selectable_fields.iter().flatten().map(|field| {
        let label = field.json_path.trim_start_matches('.').to_owned();
        SelectableField { path: label.split('.').map(str::to_owned).collect(), label }
    });
    let lowered = || spec.names.kind.to_lowercase();
    let names = Names {
        singular: spec.names.singular.clone().filter(|name| !name.is_empty()).unwrap_or_else(lowered),
        list: spec.names.list_kind.clone().unwrap_or_else(|| format!("{}List", spec.names.kind)),
        short: spec.names.short_names.clone().unwrap_or_default(),
        categories: spec.names.categories.clone().unwrap_or_default(),
    };
    Ok(Arc::new(Kind {
        group: spec.group.clone(),
        names,
        version: version.name.clone(),
        plural: spec.names.plural.clone(),
        kind: spec.names.kind.clone(),
        scope,
        family: Family::Custom,
        status_subresource: version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()),
        selectable: selectable.collect(),
        schema: schema.into(),
    }))
}
