//! Errors about single fields: `field.Error` of `k8s.io/apimachinery/pkg/util/validation/field`.

use serde_json::Value;

/// Class of a [`FieldError`], which determines its reason and the beginning of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// A required value is missing.
    Required,
    /// The value violates a rule of its field.
    Invalid,
    /// The value has the wrong type.
    TypeInvalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The object that the value names does not exist.
    NotFound,
    /// The value occurs twice.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// The value has too many characters or bytes.
    TooLong,
    /// The value has too many items.
    TooMany,
}

impl FieldErrorKind {
    /// Returns the machine-readable reason of a status cause.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::NotFound => "FieldValueNotFound",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// Returns the beginning of the message.
    fn title(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::NotFound => "Not found",
            Self::Duplicate => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    /// Returns true if a server does not run the CEL rules after such an error (`hasBlockingErr`).
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(self, Self::Required | Self::TypeInvalid | Self::NotSupported | Self::TooLong | Self::TooMany)
    }
}

/// A field that violates a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Class of the error.
    pub kind: FieldErrorKind,
    /// Path in the server's notation, such as `spec.names[0]`; `<nil>` if there is none.
    pub path: String,
    /// The invalid value. Some classes do not show it.
    pub value: Value,
    /// Description of the error; empty if the class is sufficient.
    pub detail: String,
}

impl FieldError {
    /// Creates an error of this class.
    pub fn new(kind: FieldErrorKind, path: &str, value: Value, detail: impl Into<String>) -> Self {
        let path = if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() };
        Self { kind, path, value, detail: detail.into() }
    }

    /// Creates an error for a missing field.
    pub fn required(path: &str, detail: &str) -> Self {
        Self::new(FieldErrorKind::Required, path, Value::Null, detail)
    }

    /// Creates an error for a value that violates a rule.
    pub fn invalid(path: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value.into(), detail)
    }

    pub(crate) fn forbidden(path: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, Value::Null, detail)
    }

    /// Creates an error for a value that occurs twice.
    pub fn duplicate(path: &str, value: Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value, "")
    }

    pub(crate) fn not_found(path: &str, name: &str) -> Self {
        Self::new(FieldErrorKind::NotFound, path, name.into(), "")
    }

    /// Creates an error for a string that is not one of the `supported` values.
    pub fn not_supported(path: &str, text: &str, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("supported values: {}", list.join(", "));
        Self::new(FieldErrorKind::NotSupported, path, text.into(), detail)
    }

    pub(crate) fn too_long(path: &str, limit: i64) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::new(FieldErrorKind::TooLong, path, Value::Null, format!("may not be more than {limit} {unit}"))
    }

    pub(crate) fn too_many(path: &str, actual: usize, limit: i64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        Self::new(FieldErrorKind::TooMany, path, actual.into(), format!("must have at most {limit} {unit}"))
    }

    pub(crate) fn immutable(path: &str, value: Value) -> Self {
        Self::invalid(path, value, "field is immutable")
    }

    /// Returns the message without the path.
    pub(crate) fn body(&self) -> String {
        use FieldErrorKind as K;
        let mut text = match self.kind {
            K::Required | K::Forbidden | K::TooLong => self.kind.title().to_owned(),
            _ => match &self.value {
                Value::String(text) => format!("{}: {text:?}", self.kind.title()),
                other => format!("{}: {other}", self.kind.title()),
            },
        };
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}
