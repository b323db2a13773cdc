//! Whose operator it is, and what it was told.

use std::collections::BTreeSet;

use crate::api::{Gateway, Publishing, ServedBy};

use super::super::reach::Reach;

/// What is the same for every claim of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the internal Secrets are.
    pub operator_namespace: String,
    /// The namespaces that are served.
    pub reach: Reach,
    /// Namespaces besides the operator's that may hold admin and CA Secrets.
    pub trusted_namespaces: BTreeSet<String>,
    /// The gateway, as tenants reach it.
    pub gateway: Gateway,
    /// What may stand in consumer Secrets.
    pub publishing: Publishing,
    /// What tells our buckets from those of another cluster on the same store.
    pub installation: String,
    /// Most objects that one pass deletes from a bucket.
    pub purge_slice: u32,
}

impl Setting {
    /// Which operator this is.
    pub fn operator(&self) -> ServedBy {
        ServedBy::operator(&self.operator_namespace, &self.installation)
    }

    /// Whether a note says that another operator serves.
    pub fn is_anothers(&self, served_by: Option<&ServedBy>) -> bool {
        served_by.is_some_and(|by| *by != self.operator())
    }

    /// Whether a namespace may hold admin and CA Secrets (spec §1).
    pub fn trusts(&self, namespace: &str) -> bool {
        namespace == self.operator_namespace || self.trusted_namespaces.contains(namespace)
    }
}
