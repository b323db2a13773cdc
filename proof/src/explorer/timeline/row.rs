//! A row of a timeline.

use serde::Serialize;

/// An event, with a column for each actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Virtual milliseconds since the start of the run.
    pub at_ms: i64,
    /// The importance of the row.
    pub weight: Weight,
    /// Number of the operator's call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<u64>,
    /// The life of the operator that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<u32>,
    /// The fault that the plan gave the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Actions of users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The operator's request, and the answer as received if that differs from the answer as sent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// The answer of the Kubernetes API, and its changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
    /// The answer of the store, and its changes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub store: String,
    /// The answer of the gateway.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    /// Actions of tenants.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
}

/// Importance of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Lists, watches and Events: folded unless all rows are requested.
    Routine,
    /// A tenant's use of a key: folded with the previous one if both are equal.
    Use,
    /// An event that is always shown.
    #[default]
    Told,
    /// The start of a new part of the run.
    Part,
}

impl Row {
    /// The names of the columns, in display order.
    pub const COLUMNS: [&'static str; 6] = ["user", "operator", "Kubernetes", "store", "gateway", "tenant"];

    /// Returns the text of each column.
    pub fn cells(&self) -> [&str; 6] {
        [&self.user, &self.operator, &self.kubernetes, &self.store, &self.gateway, &self.tenant]
    }

    /// Returns true if the row can be left out of a summary.
    pub fn is_routine(&self) -> bool {
        self.weight == Weight::Routine && self.fault.is_none()
    }

    /// Returns true if the row is the same use of a key as another row.
    pub fn repeats(&self, other: &Self) -> bool {
        self.weight == Weight::Use
            && other.weight == Weight::Use
            && (&self.tenant, &self.gateway) == (&other.tenant, &other.gateway)
    }
}
