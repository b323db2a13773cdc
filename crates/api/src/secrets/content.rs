//! Desired content of a Secret.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;

use super::super::wire;
use super::Extra;

/// Desired content of a Secret. The operator compares it with the existing Secret and writes the
/// differences.
#[derive(Clone, PartialEq)]
pub struct SecretContent {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// Labels set by the operator.
    pub labels: BTreeMap<String, String>,
    /// Annotations set by the operator.
    pub annotations: BTreeMap<String, String>,
    /// Data set by the operator.
    pub data: BTreeMap<&'static str, Vec<u8>>,
    /// Controller, on a Secret that is deleted together with its claim.
    pub owner: Option<OwnerReference>,
    /// Additional content from templates.
    pub extra: Extra,
}

impl SecretContent {
    /// Returns all desired labels.
    #[must_use]
    pub fn all_labels(&self) -> BTreeMap<String, String> {
        self.extra.labels.iter().chain(&self.labels).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns all desired annotations, including the one that lists what templates have written.
    #[must_use]
    pub fn all_annotations(&self) -> BTreeMap<String, String> {
        let all = self.extra.annotations.iter().chain(&self.annotations);
        let told = (!self.extra.is_empty()).then(|| (wire::TEMPLATE.to_owned(), self.extra.names().text()));
        all.map(|(key, value)| (key.clone(), value.clone())).chain(told).collect()
    }

    /// Returns the object to create.
    pub fn to_secret(&self) -> Secret {
        let annotations = self.all_annotations();
        let own = self.data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.clone())));
        let extra = self.extra.data.iter().map(|(key, value)| (key.clone(), ByteString(value.clone())));
        Secret {
            metadata: ObjectMeta {
                namespace: Some(self.namespace.clone()),
                name: Some(self.name.clone()),
                labels: Some(self.all_labels()),
                annotations: (!annotations.is_empty()).then_some(annotations),
                owner_references: self.owner.clone().map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some(own.chain(extra).collect()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        }
    }
}

impl fmt::Debug for SecretContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret {}/{} {:?}", self.namespace, self.name, self.data.keys().collect::<Vec<_>>())
    }
}
