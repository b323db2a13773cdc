//! Validation of a value against a structural schema.
//!
//! Messages and the order of checks follow `k8s.io/kube-openapi` (`pkg/validation`), as converted
//! to field errors by the API server. Fields of objects are visited in alphabetical order, so that
//! the order of errors is fixed. In a server it is random.

use serde_json::{Number, Value};

use super::path::FieldPath;
use super::schema::{Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};

/// Result of a validation: errors that reject the write, and warnings for unchanged values that
/// were invalid before (ratcheting).
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<FieldError>,
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    /// Turns every error into a warning, because the value was already stored.
    fn forgive(self, into: &mut Findings) {
        into.warnings.extend(self.warnings);
        into.warnings.extend(self.errors.iter().map(ToString::to_string));
    }
}

/// Validates `value`, whose path is `path` (empty at the root). With `old`, errors in parts that
/// equal their old value become warnings.
pub(crate) fn validate(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, out: &mut Findings) {
    Check { prefix: "" }.node(schema, value, old, &FieldPath::Start(path), out);
}

/// Validates a value like [`validate`], although it is only the part of its object at `prefix`. As
/// in a server, messages omit the prefix and paths include it.
pub(crate) fn validate_part(schema: &Schema, value: &Value, old: Option<&Value>, prefix: &str, out: &mut Findings) {
    Check { prefix }.node(schema, value, old, &FieldPath::ROOT, out);
}

/// Returns the name of a JSON value's type, as in the server's messages.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if a server accepts the number as an integer: one of 64 bits, or an exact float
/// without a fraction (`swag.IsFloat64AJSONInteger`). It decodes whole numbers of more than 64 bits
/// as floats.
fn is_integer(number: &Number) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0; // 2^53 - 1
    number.is_i64() || number.as_f64().is_some_and(|float| float.fract() == 0.0 && float.abs() <= LARGEST)
}

struct Check<'a> {
    prefix: &'a str,
}

impl Check<'_> {
    fn full(&self, path: &FieldPath<'_>) -> String {
        match (self.prefix.is_empty(), path.is_root()) {
            (true, _) => path.to_string(),
            (false, true) => self.prefix.to_owned(),
            (false, false) => format!("{}.{path}", self.prefix),
        }
    }

    fn invalid(&self, path: &FieldPath<'_>, value: &Value, rule: &str) -> FieldError {
        FieldError::invalid(&self.full(path), value.clone(), format!("{path} in body {rule}"))
    }

    fn node(&self, schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
        if old == Some(value) {
            let mut inner = Findings::default();
            self.fresh(schema, value, None, path, &mut inner);
            inner.forgive(out);
        } else {
            self.fresh(schema, value, old, path, out);
        }
    }

    fn fresh(&self, schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
        if let Some(error) = self.wrong_type(schema, value, path) {
            out.errors.push(error);
        }
        match value {
            Value::String(text) => self.string(schema, text, path, out),
            Value::Number(number) => self.number(schema, value, number.as_f64().unwrap_or(f64::NAN), path, out),
            Value::Array(items) => self.array(schema, items, old, path, out),
            Value::Object(_) => self.object(schema, value, old, path, out),
            Value::Null if schema.nullable => return,
            Value::Null | Value::Bool(_) => {}
        }
        self.allowed(schema, value, path, out);
        self.junctors(schema, value, path, out);
    }

    fn wrong_type(&self, schema: &Schema, value: &Value, path: &FieldPath<'_>) -> Option<FieldError> {
        let actual = type_name(value);
        let wanted = match schema.type_rule {
            TypeRule::Any => return None,
            TypeRule::IntOrString => "integer,string",
            TypeRule::Only(json_type) => json_type.name(),
        };
        let fits = match value {
            Value::Null => schema.nullable,
            Value::Number(number) => wanted == "number" || (wanted.starts_with("integer") && is_integer(number)),
            Value::String(_) => wanted == "string" || wanted == "integer,string",
            _ => wanted == actual,
        };
        if fits {
            return None;
        }
        let detail = format!("{path} in body must be of type {wanted}: {actual:?}");
        Some(FieldError::new(FieldErrorKind::TypeInvalid, &self.full(path), actual.into(), detail))
    }

    /// Validates a string. Only the first error is reported.
    fn string(&self, schema: &Schema, text: &str, path: &FieldPath<'_>, out: &mut Findings) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let value = || Value::from(text);
        let error = if let Some(limit) = schema.bounds.max_length.filter(|limit| length > *limit) {
            FieldError::too_long(&self.full(path), limit)
        } else if let Some(limit) = schema.bounds.min_length.filter(|limit| length < *limit) {
            self.invalid(path, &value(), &format!("should be at least {limit} chars long"))
        } else if let Some(pattern) = schema.pattern.as_ref().filter(|it| !it.regex.is_match(text)) {
            self.invalid(path, &value(), &format!("should match '{}'", pattern.text))
        } else if let Some(format) = schema.format.as_deref().filter(|it| !format_holds(it, text)) {
            let detail = format!("{path} in body must be of type {format}: {text:?}");
            FieldError::new(FieldErrorKind::TypeInvalid, &self.full(path), value(), detail)
        } else {
            return;
        };
        out.errors.push(error);
    }

    fn number(&self, schema: &Schema, value: &Value, number: f64, path: &FieldPath<'_>, out: &mut Findings) {
        let bounds = &schema.bounds;
        if let Some(limit) = bounds.multiple_of.filter(|limit| (number / limit).fract() != 0.0) {
            out.errors.push(self.invalid(path, value, &format!("should be a multiple of {limit}")));
        }
        if let Some(limit) = bounds.maximum {
            let (broken, words) = match bounds.exclusive_maximum {
                true => (number >= limit, "less than"),
                false => (number > limit, "less than or equal to"),
            };
            if broken {
                out.errors.push(self.invalid(path, value, &format!("should be {words} {limit}")));
            }
        }
        if let Some(limit) = bounds.minimum {
            let (broken, words) = match bounds.exclusive_minimum {
                true => (number <= limit, "greater than"),
                false => (number < limit, "greater than or equal to"),
            };
            if broken {
                out.errors.push(self.invalid(path, value, &format!("should be {words} {limit}")));
            }
        }
    }

    fn array(&self, schema: &Schema, items: &[Value], old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(limit) = schema.bounds.min_items.filter(|limit| count < *limit) {
            let rule = format!("should have at least {limit} items");
            out.errors.push(self.invalid(path, &items.len().into(), &rule));
        }
        if let Some(limit) = schema.bounds.max_items.filter(|limit| count > *limit) {
            out.errors.push(FieldError::too_many(&self.full(path), items.len(), limit));
        }
        let Some(item_schema) = &schema.items else { return };
        for (index, item) in items.iter().enumerate() {
            let old_item = schema.matching_item(item, old);
            self.node(item_schema, item, old_item, &FieldPath::Item(path, index), out);
        }
    }

    fn object(&self, schema: &Schema, value: &Value, old: Option<&Value>, path: &FieldPath<'_>, out: &mut Findings) {
        let Value::Object(fields) = value else { return };
        let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(limit) = schema.bounds.max_properties.filter(|limit| count > *limit) {
            out.errors.push(FieldError::too_many(&self.full(path), fields.len(), limit));
        }
        if let Some(limit) = schema.bounds.min_properties.filter(|limit| count < *limit) {
            let rule = format!("should have at least {limit} properties");
            out.errors.push(self.invalid(path, &fields.len().into(), &rule));
        }
        for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
            out.errors.push(FieldError::required(&self.full(&FieldPath::Field(path, name)), ""));
        }
        for (name, field) in fields {
            // The metadata of a whole object is validated separately.
            if path.is_root() && self.prefix.is_empty() && name == "metadata" {
                continue;
            }
            if let Some(child) = schema.field(name) {
                self.node(child, field, old.and_then(|old| old.get(name)), &FieldPath::Field(path, name), out);
            }
        }
    }

    fn allowed(&self, schema: &Schema, value: &Value, path: &FieldPath<'_>, out: &mut Findings) {
        if schema.allowed.is_empty() || schema.allowed.contains(value) {
            return;
        }
        let quote = |value: &Value| match value {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", other.to_string()),
        };
        let list: Vec<String> = schema.allowed.iter().map(quote).collect();
        let detail = format!("supported values: {}", list.join(", "));
        out.errors.push(FieldError::new(FieldErrorKind::NotSupported, &self.full(path), value.clone(), detail));
    }

    fn junctors(&self, schema: &Schema, value: &Value, path: &FieldPath<'_>, out: &mut Findings) {
        let errors_of = |branch: &Schema| {
            let mut found = Findings::default();
            self.fresh(branch, value, None, path, &mut found);
            found.errors
        };
        for branch in &schema.junctors.all_of {
            out.errors.extend(errors_of(branch));
        }
        let any_of = &schema.junctors.any_of;
        if !any_of.is_empty() && any_of.iter().all(|branch| !errors_of(branch).is_empty()) {
            let rule = format!("{:?} must validate at least one schema (anyOf)", path.to_string());
            out.errors.push(FieldError::invalid(&self.full(path), "", rule));
        }
        let one_of = &schema.junctors.one_of;
        if !one_of.is_empty() {
            let matching = one_of.iter().filter(|branch| errors_of(branch).is_empty()).count();
            if matching != 1 {
                let rule = format!(
                    "{:?} must validate one and only one schema (oneOf). Found {matching} valid alternatives",
                    path.to_string()
                );
                out.errors.push(FieldError::invalid(&self.full(path), "", rule));
            }
        }
        if let Some(branch) = &schema.junctors.not
            && errors_of(branch).is_empty()
        {
            let rule = format!("{:?} must not validate the schema (not)", path.to_string());
            out.errors.push(FieldError::invalid(&self.full(path), "", rule));
        }
    }
}

/// Checks the string formats that a server validates and that are used here. All others pass.
fn format_holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "byte" => {
            use base64::Engine as _;
            base64::engine::general_purpose::STANDARD.decode(text).is_ok()
        }
        _ => true,
    }
}
