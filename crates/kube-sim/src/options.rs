//! Options and results of writes.

use serde_json::{Value, json};

use super::admission::AdmissionContext;
use super::decode::FieldValidation;
use super::route::Query;
use super::store::{Shared, Store};

/// The part of an object that a request concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

impl Part {
    /// Returns the name in `managedFields` and in paths.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
        }
    }
}

/// Options of a write.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// Field manager.
    pub(crate) manager: String,
    /// True if everything is checked and nothing changed.
    pub(crate) dry_run: bool,
    pub(crate) validation: FieldValidation,
    /// Admission of the write; `None` if it is not reviewed.
    pub(crate) admission: Option<AdmissionContext>,
}

impl WriteOptions {
    /// Returns options for a write by this manager without a request: unknown fields are ignored,
    /// and there is no admission.
    pub(crate) fn of(manager: &str) -> Self {
        Self { manager: manager.to_owned(), dry_run: false, validation: FieldValidation::Ignore, admission: None }
    }

    /// Returns the options of the server's own writes.
    pub(crate) fn own() -> Self {
        Self::of("kube-apiserver")
    }

    /// Returns the time of the write, to the second.
    pub(crate) fn now(&self, store: &Store) -> String {
        AdmissionContext::kept(self.admission.as_ref(), "time", || store.now())
    }
}

/// Ownership of the fields of an object to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The creator becomes the owner of all fields.
    Creator,
    /// `managedFields` is set already: by an apply, or for admission.
    Applied,
}

/// Result of a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Shared,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

impl Written {
    /// Inserts warnings from decoding before those of validation.
    pub(crate) fn warned(mut self, warnings: Vec<String>) -> Self {
        self.warnings.splice(0..0, warnings);
        self
    }
}

/// Returns the options in the query of a write, as an options object.
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

/// Returns the options of a deletion: its body, or the parameters in its query.
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
