//! A Secret as it should be.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::ObjectMeta;

/// A Secret as it should be: what is compared with the one that is there, and written where they
/// differ.
#[derive(Clone, PartialEq)]
pub struct SecretContent {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// Our labels.
    pub labels: BTreeMap<String, String>,
    /// Our annotations.
    pub annotations: BTreeMap<String, String>,
    /// Our data keys.
    pub data: BTreeMap<&'static str, Vec<u8>>,
    /// The controller, on a Secret that goes with its claim.
    pub owner: Option<OwnerReference>,
}

impl SecretContent {
    /// The object to POST.
    pub fn to_secret(&self) -> Secret {
        Secret {
            metadata: ObjectMeta {
                namespace: Some(self.namespace.clone()),
                name: Some(self.name.clone()),
                labels: Some(self.labels.clone()),
                annotations: (!self.annotations.is_empty()).then(|| self.annotations.clone()),
                owner_references: self.owner.clone().map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            data: Some(self.data.iter().map(|(k, v)| ((*k).to_owned(), ByteString(v.clone()))).collect()),
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
