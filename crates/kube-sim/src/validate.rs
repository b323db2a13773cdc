//! Checks a value against a structural schema.
//!
//! Words and order of checks follow `k8s.io/kube-openapi` (`pkg/validation`) as the API server turns
//! them into field errors. Object fields are visited in alphabetical order, so that errors come in
//! the same order every time (a server's order is random).

use serde_json::{Number, Value};

use super::path::FieldPath;
use super::schema::{Additional, JsonType, ListType, Schema, TypeRule};
use super::status::{FieldError, FieldErrorKind};

/// What a check found: errors that refuse the write, and warnings for what was bad before and is
/// unchanged (ratcheting).
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<FieldError>,
    pub(crate) warnings: Vec<String>,
}

impl Findings {
    /// Turns every error into a warning: the value that has them was stored like this already.
    fn forgive(self, into: &mut Findings) {
        into.warnings.extend(self.warnings);
        into.warnings.extend(self.errors.iter().map(ToString::to_string));
    }
}

/// Checks `value`. With `old`, errors inside parts that equal their old value become warnings.
/// `path` is the value's path (empty at the root).
pub(crate) fn validate(schema: &Schema, value: &Value, old: Option<&Value>, path: &str, out: &mut Findings) {
    Check { prefix: "" }.node(schema, value, old, &FieldPath::Start(path), out);
}

/// As [`validate`], for a value that is checked by itself although it stands at `prefix` in its
/// object: a server's messages then leave the prefix out, its paths don't.
pub(crate) fn validate_part(schema: &Schema, value: &Value, old: Option<&Value>, prefix: &str, out: &mut Findings) {
    Check { prefix }.node(schema, value, old, &FieldPath::ROOT, out);
}

/// The name of a JSON value's type, as the server says it.
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

/// Whether a server takes the number for an integer: one of 64 bits, or a float without a fraction that is exact
/// (`swag.IsFloat64AJSONInteger`). Whole numbers that need more than 64 bits reach it as floats.
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

    /// Of a text's errors only the first is told.
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
            // The metadata of a whole object has rules of its own.
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

/// The string formats that a server checks and that occur here; others pass.
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

/// Whether a wrong type is one for the typed form of objects, too, which server-side apply works on: numbers are of one
/// sort there, what may be a number or a text may be any scalar, and null stands for anything.
pub(crate) fn is_untypable(error: &FieldError) -> bool {
    let wanted = error.detail.split_once("must be of type ").and_then(|(_, rest)| rest.split_once(':'));
    let wanted = wanted.map_or("", |(wanted, _)| wanted);
    error.kind == FieldErrorKind::TypeInvalid
        && match error.value.as_str().unwrap_or_default() {
            "integer" | "number" => !matches!(wanted, "integer" | "number" | "integer,string"),
            "string" | "boolean" => wanted != "integer,string",
            "array" | "object" => true,
            // Null; or no type at all but a text that isn't of its format.
            _ => false,
        }
}

/// Whether an object has the structure of its schema, its metadata aside: nothing in it [`is_untypable`]. A server's typed
/// form of objects knows numbers of one sort, and takes null for anything.
pub(crate) fn has_structure(schema: &Schema, object: &Value) -> bool {
    let fields = object.as_object().into_iter().flatten().filter(|(name, _)| *name != "metadata");
    let mut children = fields.filter_map(|(name, field)| Some((schema.field(name)?, field)));
    is_typable(schema, object)
        && children.all(|(child, field)| is_structured(child, field))
        && schema.junctors.all_of.iter().all(|branch| has_structure(branch, object))
}

/// The same of a value within an object.
fn is_structured(schema: &Schema, value: &Value) -> bool {
    let below = match (value, &schema.items) {
        (Value::Array(items), Some(child)) => items.iter().all(|item| is_structured(child, item)),
        (Value::Object(fields), _) => {
            let mut children = fields.iter().filter_map(|(name, field)| Some((schema.field(name)?, field)));
            children.all(|(child, field)| is_structured(child, field))
        }
        _ => true,
    };
    is_typable(schema, value) && below && schema.junctors.all_of.iter().all(|branch| is_structured(branch, value))
}

/// Whether a value itself, not what it holds, is of a type that the typed form of objects takes for the schema's.
fn is_typable(schema: &Schema, value: &Value) -> bool {
    match (schema.type_rule, value) {
        (TypeRule::Any, _) | (_, Value::Null) => true,
        (TypeRule::IntOrString, _) => !matches!(value, Value::Array(_) | Value::Object(_)),
        (TypeRule::Only(JsonType::Integer | JsonType::Number), _) => value.is_number(),
        (TypeRule::Only(JsonType::String), _) => value.is_string(),
        (TypeRule::Only(JsonType::Boolean), _) => value.is_boolean(),
        (TypeRule::Only(JsonType::Array), _) => value.is_array(),
        (TypeRule::Only(JsonType::Object), _) => value.is_object(),
    }
}

/// Checks that keyed lists and sets hold each item once (`x-kubernetes-list-type`).
pub(crate) fn duplicates(schema: &Schema, value: &Value) -> Vec<FieldError> {
    let mut found = Vec::new();
    find_duplicates(schema, value, &FieldPath::ROOT, &mut found);
    found
}

fn find_duplicates(schema: &Schema, value: &Value, path: &FieldPath<'_>, out: &mut Vec<FieldError>) {
    if !schema.holds.unique_items {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(child) = schema.properties.get(name) {
                    find_duplicates(child, field, &FieldPath::Field(path, name), out);
                } else if let Additional::Schema(child) = &schema.additional {
                    find_duplicates(child, field, &FieldPath::Entry(path, name), out);
                }
            }
        }
        Value::Array(items) => {
            duplicate_items(schema, items, path, out);
            if let Some(child) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    find_duplicates(child, item, &FieldPath::Item(path, index), out);
                }
            }
        }
        _ => {}
    }
}

fn duplicate_items(schema: &Schema, items: &[Value], path: &FieldPath<'_>, out: &mut Vec<FieldError>) {
    let mut seen: Vec<(Value, usize)> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let identity = match &schema.list_type {
            ListType::Atomic => return,
            ListType::Set => item.clone(),
            ListType::Map(keys) => {
                let held = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                Value::Object(held.collect())
            }
        };
        match seen.iter_mut().find(|(other, _)| *other == identity) {
            Some((_, times)) => {
                *times += 1;
                // Only the first repetition is told, as on a server.
                if *times == 2 {
                    out.push(FieldError::duplicate(&format!("{path}[{index}]"), identity));
                }
            }
            None => seen.push((identity, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whichever type a schema names, and whatever stands in its place: by itself, in a list and in an object.
    #[test]
    fn an_object_has_the_structure_of_its_schema_unless_a_full_check_finds_it_untypable() {
        let types = ["object", "array", "string", "integer", "number", "boolean"];
        let mut schemas: Vec<Value> = types
            .iter()
            .map(|name| match *name {
                "array" => json!({"type": "array", "items": {"type": "string"}}),
                name => json!({"type": name}),
            })
            .collect();
        schemas.push(json!({"x-kubernetes-int-or-string": true}));
        schemas.push(json!({"x-kubernetes-preserve-unknown-fields": true}));
        schemas.push(json!({"type": "string", "format": "date-time", "maxLength": 1}));
        schemas.push(json!({"type": "integer", "allOf": [{"maximum": 0}]}));
        let values =
            [json!(null), json!(true), json!(1), json!(1.5), json!("a"), json!(["a"]), json!([1]), json!({"a": 1})];
        for schema in &schemas {
            let schema = Schema::own(json!({"type": "object", "properties": {
                "itself": schema, "list": {"type": "array", "items": schema},
                "map": {"type": "object", "additionalProperties": schema}, "metadata": {"type": "object"},
            }}));
            for value in &values {
                for object in [
                    json!({"itself": value, "metadata": 1}),
                    json!({"list": [value]}),
                    json!({"list": value}),
                    json!({"map": {"a": value}}),
                    value.clone(),
                ] {
                    let mut found = Findings::default();
                    validate(&schema, &object, None, "", &mut found);
                    let untypable = found.errors.iter().any(is_untypable);
                    assert_eq!(has_structure(&schema, &object), !untypable, "{object}: {:?}", found.errors);
                }
            }
        }
    }
}
