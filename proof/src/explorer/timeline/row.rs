//! A row of a timeline.

use serde::Serialize;

/// Something that happened: in the columns of those who had a part in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Virtual milliseconds since the start of the run.
    pub at_ms: i64,
    /// How much it tells.
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
    /// What users do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the operator asks for, and what it hears if that isn't what was answered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// What the Kubernetes API answers, and what changes there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
    /// What the store answers, and what changes there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub store: String,
    /// What the gateway answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    /// What tenants do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tenant: String,
}

/// How much a row tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// Lists, watches and Events: folded unless all is asked for.
    Routine,
    /// A tenant's use of a key: folded with the same use before.
    Use,
    /// Something that is always shown.
    #[default]
    Told,
    /// A new part of the run begins.
    Part,
}

impl Row {
    /// The columns in the order in which they are shown.
    pub const COLUMNS: [&'static str; 6] = ["user", "operator", "Kubernetes", "store", "gateway", "tenant"];

    /// What stands in each column.
    pub fn cells(&self) -> [&str; 6] {
        [&self.user, &self.operator, &self.kubernetes, &self.store, &self.gateway, &self.tenant]
    }

    /// Whether it may be left out where people look at what matters.
    pub fn is_routine(&self) -> bool {
        self.weight == Weight::Routine && self.fault.is_none()
    }

    /// Whether it is the same use of a key as another.
    pub fn repeats(&self, other: &Self) -> bool {
        self.weight == Weight::Use
            && other.weight == Weight::Use
            && (&self.tenant, &self.gateway) == (&other.tenant, &other.gateway)
    }
}
