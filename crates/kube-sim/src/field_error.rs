//! Fields that break a rule: `field.Error` of `k8s.io/apimachinery/pkg/util/validation/field`.

use serde_json::Value;

/// The class of a [`FieldError`]; decides its reason and how its text starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// It is missing.
    Required,
    /// It breaks a rule of its field.
    Invalid,
    /// It is of another type.
    TypeInvalid,
    /// It is none of a few known values.
    NotSupported,
    /// What it names is not there.
    NotFound,
    /// It stands there twice.
    Duplicate,
    /// It may not be set.
    Forbidden,
    /// It has too many characters or bytes.
    TooLong,
    /// It has too many items.
    TooMany,
}

impl FieldErrorKind {
    /// The machine-readable reason that a status cause carries.
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

    /// The words a person reads first.
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

    /// While one of these stands, a server doesn't run the CEL rules (`hasBlockingErr`).
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(self, Self::Required | Self::TypeInvalid | Self::NotSupported | Self::TooLong | Self::TooMany)
    }
}

/// One field that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// Its class.
    pub kind: FieldErrorKind,
    /// Path as the server prints it: `spec.names[0]`, `<nil>` for none.
    pub path: String,
    /// The offending value; not shown for the kinds that hide it.
    pub value: Value,
    /// What is wrong with it, in words; empty where the class says all.
    pub detail: String,
}

impl FieldError {
    /// An error of this class.
    pub fn new(kind: FieldErrorKind, path: &str, value: Value, detail: impl Into<String>) -> Self {
        let path = if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() };
        Self { kind, path, value, detail: detail.into() }
    }

    /// A field that is missing.
    pub fn required(path: &str, detail: &str) -> Self {
        Self::new(FieldErrorKind::Required, path, Value::Null, detail)
    }

    /// A value that breaks a rule.
    pub fn invalid(path: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, path, value.into(), detail)
    }

    pub(crate) fn forbidden(path: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, path, Value::Null, detail)
    }

    /// A value that stands there twice.
    pub fn duplicate(path: &str, value: Value) -> Self {
        Self::new(FieldErrorKind::Duplicate, path, value, "")
    }

    pub(crate) fn not_found(path: &str, name: &str) -> Self {
        Self::new(FieldErrorKind::NotFound, path, name.into(), "")
    }

    /// A text that is none of those that are `supported`.
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

    /// The text without the path.
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
