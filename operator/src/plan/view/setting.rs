//! Identity and configuration of the operator.

use std::collections::BTreeSet;

use crate::api::{Gateway, Publishing, ServedBy};

use super::super::reach::Reach;

/// Settings that all claims of an operator share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Namespace of the internal Secrets.
    pub operator_namespace: String,
    /// Namespaces that the operator serves.
    pub reach: Reach,
    /// Namespaces besides the operator's that may contain admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// Limits on the contents of consumer Secrets.
    pub publishing: Publishing,
    /// Name of the installation, which distinguishes our buckets from those of another cluster on
    /// the same store.
    pub installation: String,
    /// Maximum number of objects that one pass deletes from a bucket.
    pub purge_slice: u32,
}

impl Setting {
    /// Returns the identity of this operator.
    pub fn operator(&self) -> ServedBy {
        ServedBy::operator(&self.operator_namespace, &self.installation)
    }

    /// Returns true if the annotation names another operator.
    pub fn is_anothers(&self, served_by: Option<&ServedBy>) -> bool {
        served_by.is_some_and(|by| *by != self.operator())
    }

    /// Returns true if a namespace may contain admin and CA Secrets (spec §1).
    pub fn trusts(&self, namespace: &str) -> bool {
        namespace == self.operator_namespace || self.trusted_namespaces.contains(namespace)
    }
}
