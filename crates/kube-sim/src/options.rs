//! How a write is asked for, and what comes of it.

use serde_json::{Value, json};

use super::admission::AdmissionContext;
use super::decode::FieldValidation;
use super::route::Query;
use super::store::{Shared, Store};

/// Which part of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl Part {
    /// As `managedFields` and paths name it.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// How a write was asked for.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// The field manager.
    pub(crate) manager: String,
    /// Whether to check all and change nothing.
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    /// Who judges the write; `None` for one that isn't judged.
    pub(crate) admission: Option<AdmissionContext>,
}

impl WriteOptions {
    /// Of this manager, by hand: unknown fields are passed over, and nobody judges it.
    pub(crate) fn of(manager: &str) -> Self {
        Self { manager: manager.to_owned(), dry_run: false, validation: FieldValidation::Ignore, admission: None }
    }

    /// How the server writes what it makes itself.
    pub(crate) fn own() -> Self {
        Self::of("kube-apiserver")
    }

    /// The time of the write, to the second.
    pub(crate) fn now(&self, store: &Store) -> String {
        AdmissionContext::kept(self.admission.as_ref(), "time", || store.now())
    }
}

/// Whether the object to be created knows its owners already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The creator owns all of it.
    Creator,
    /// `managedFields` was made before: by an apply, or for admission.
    Applied,
}

/// What came of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Shared,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Written {
    /// Puts warnings from decoding before those of the checks.
    pub(crate) fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings.splice(0..0, warnings);
        self
    }
}

/// The options of a write that stand in its query, as objects have them.
pub(crate) fn of_query(query: &Query) -> Value {
    let mut options = json!({});
    if let Some(dry_run) = query.get("dryRun") {
        options["dryRun"] = json!([dry_run]);
    }
    for name in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(name) {
            options[name] = value.into();
        }
    }
    options
}

/// The options of a deletion: its body, or what stands in its query.
pub(crate) fn of_deletion(body: &[u8], query: &Query) -> Value {
    if let Ok(options @ Value::Object(_)) = serde_json::from_slice(body) {
        return options;
    }
    let mut options = json!({});
    if let Some(dry_run) = query.get("dryRun") {
        options["dryRun"] = json!([dry_run]);
    }
    if let Some(policy) = query.get("propagationPolicy") {
        options["propagationPolicy"] = policy.into();
    }
    options
}
