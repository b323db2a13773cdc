//! Loading of schemas, with the validation of a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::{Additional, Bounds, Holds, JsonType, Junctors, ListType, Pattern, RuleSet, Schema, TypeRule};
use crate::field_error::{FieldError, FieldErrorKind};
use crate::validate;

/// Loads the schema of an object. `apiVersion`, `kind` and `metadata` are replaced by the server's
/// own schemas.
///
/// # Errors
/// Returns all errors that a server reports for a schema, with paths below `path`.
pub(crate) fn of_object(props: &JSONSchemaProps, metadata: Arc<Schema>, path: &str) -> Result<Schema, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut schema = Loader { errors: &mut errors }.node(props, path, Place::Structure);
    if !errors.is_empty() {
        return Err(errors);
    }
    for name in ["apiVersion", "kind"] {
        let text = Schema { type_rule: TypeRule::Only(JsonType::String), ..Schema::anything() };
        schema.properties.insert(name.to_owned(), Arc::new(text));
    }
    schema.properties.insert("metadata".to_owned(), metadata);
    schema.holds = schema.found_to_hold();
    Ok(schema)
}

/// Loads a schema from this crate's source.
pub(crate) fn own(json: Value) -> Schema {
    let props: JSONSchemaProps = serde_json::from_value(json).expect("a schema written in this crate parses");
    let mut errors = Vec::new();
    let schema = Loader { errors: &mut errors }.node(&props, "own", Place::Structure);
    assert!(errors.is_empty(), "a schema written in this crate is sound: {errors:?}");
    schema
}

/// Position of a node. In the structure types are required; value checks inside `anyOf` and similar
/// keywords have none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Structure,
    ValueCheck,
}

struct Loader<'a> {
    errors: &'a mut Vec<FieldError>,
}

impl Loader<'_> {
    fn node(&mut self, props: &JSONSchemaProps, path: &str, place: Place) -> Schema {
        let preserve_unknown = props.x_kubernetes_preserve_unknown_fields == Some(true);
        let list_type = self.list_type(props, path);
        let mut schema = Schema {
            type_rule: self.type_rule(props, path, place, preserve_unknown),
            nullable: props.nullable == Some(true),
            format: props.format.clone(),
            properties: self.properties(props, path, place),
            additional: self.additional(props, path, place),
            items: self.items(props, path, place),
            required: props.required.clone().unwrap_or_default(),
            allowed: props.enum_.iter().flatten().map(|value| value.0.clone()).collect(),
            pattern: self.pattern(props, path),
            bounds: bounds(props),
            junctors: self.junctors(props, path),
            default: props.default.as_ref().map(|value| value.0.clone()),
            preserve_unknown,
            embedded: props.x_kubernetes_embedded_resource == Some(true),
            list_type,
            atomic_map: props.x_kubernetes_map_type.as_deref() == Some("atomic"),
            rules: self.rules(props, path),
            holds: Holds::default(),
        };
        schema.holds = schema.found_to_hold();
        self.check(&schema, path);
        schema
    }

    fn type_rule(&mut self, props: &JSONSchemaProps, path: &str, place: Place, preserve: bool) -> TypeRule {
        if props.x_kubernetes_int_or_string == Some(true) {
            return TypeRule::IntOrString;
        }
        match props.type_.as_deref() {
            Some(name) => match JsonType::parse(name) {
                Some(json_type) => TypeRule::Only(json_type),
                None => {
                    let supported =
                        "supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"";
                    let kind = FieldErrorKind::NotSupported;
                    self.errors.push(FieldError::new(kind, &format!("{path}.type"), name.into(), supported));
                    TypeRule::Any
                }
            },
            None if place == Place::ValueCheck || preserve => TypeRule::Any,
            None => {
                let detail = "must not be empty for specified object fields";
                self.errors.push(FieldError::required(&format!("{path}.type"), detail));
                TypeRule::Any
            }
        }
    }

    fn properties(&mut self, props: &JSONSchemaProps, path: &str, place: Place) -> BTreeMap<String, Arc<Schema>> {
        let named = props.properties.iter().flatten();
        named
            .map(|(name, child)| (name.clone(), self.node(child, &format!("{path}.properties[{name}]"), place).into()))
            .collect()
    }

    fn additional(&mut self, props: &JSONSchemaProps, path: &str, place: Place) -> Additional {
        match &props.additional_properties {
            None | Some(JSONSchemaPropsOrBool::Bool(false)) => Additional::None,
            Some(JSONSchemaPropsOrBool::Bool(true)) => Additional::Any,
            Some(JSONSchemaPropsOrBool::Schema(child)) => {
                let child = self.node(child, &format!("{path}.additionalProperties"), place);
                Additional::Schema(Box::new(child))
            }
        }
    }

    fn items(&mut self, props: &JSONSchemaProps, path: &str, place: Place) -> Option<Box<Schema>> {
        match props.items.as_ref()? {
            JSONSchemaPropsOrArray::Schema(child) => Some(Box::new(self.node(child, &format!("{path}.items"), place))),
            JSONSchemaPropsOrArray::Schemas(_) => {
                self.errors.push(FieldError::forbidden(
                    &format!("{path}.items"),
                    "items must be a schema object and not an array",
                ));
                None
            }
        }
    }

    fn list_type(&mut self, props: &JSONSchemaProps, path: &str) -> ListType {
        match props.x_kubernetes_list_type.as_deref() {
            None | Some("atomic") => ListType::Atomic,
            Some("set") => ListType::Set,
            Some("map") => {
                let keys = props.x_kubernetes_list_map_keys.clone().unwrap_or_default();
                if keys.is_empty() {
                    let detail = "must not be empty if x-kubernetes-list-type is map";
                    self.errors.push(FieldError::required(&format!("{path}.x-kubernetes-list-map-keys"), detail));
                }
                ListType::Map(keys)
            }
            Some(other) => {
                let kind = FieldErrorKind::NotSupported;
                let detail = "supported values: \"atomic\", \"map\", \"set\"";
                let path = format!("{path}.x-kubernetes-list-type");
                self.errors.push(FieldError::new(kind, &path, other.into(), detail));
                ListType::Atomic
            }
        }
    }

    fn pattern(&mut self, props: &JSONSchemaProps, path: &str) -> Option<Pattern> {
        let text = props.pattern.clone()?;
        match Regex::new(&text) {
            Ok(regex) => Some(Pattern { text, regex }),
            Err(error) => {
                let detail = format!("must be a valid regular expression, but isn't: {error}");
                self.errors.push(FieldError::invalid(&format!("{path}.pattern"), text, detail));
                None
            }
        }
    }

    fn junctors(&mut self, props: &JSONSchemaProps, path: &str) -> Junctors {
        let mut all = |name: &str, list: &Option<Vec<JSONSchemaProps>>| {
            let each = list.iter().flatten().enumerate();
            each.map(|(i, child)| self.node(child, &format!("{path}.{name}[{i}]"), Place::ValueCheck)).collect()
        };
        Junctors {
            all_of: all("allOf", &props.all_of),
            any_of: all("anyOf", &props.any_of),
            one_of: all("oneOf", &props.one_of),
            not: props.not.as_ref().map(|child| Box::new(self.node(child, &format!("{path}.not"), Place::ValueCheck))),
        }
    }

    fn rules(&mut self, props: &JSONSchemaProps, path: &str) -> RuleSet {
        RuleSet::compile(props).unwrap_or_else(|error| {
            let (index, rule, why) = error;
            let path = format!("{path}.x-kubernetes-validations[{index}].rule");
            self.errors.push(FieldError::invalid(&path, rule, format!("compilation failed: {why}")));
            RuleSet::default()
        })
    }

    /// Checks the parts of a node against each other, and its default against the schema.
    fn check(&mut self, schema: &Schema, path: &str) {
        if schema.type_rule == TypeRule::Only(JsonType::Array) && schema.items.is_none() {
            self.errors.push(FieldError::required(&format!("{path}.items"), "must be specified"));
        }
        if let (ListType::Map(keys), Some(items)) = (&schema.list_type, &schema.items) {
            for key in keys {
                let held = items.required.contains(key)
                    || items.properties.get(key).is_some_and(|field| field.default.is_some());
                if !held {
                    let at = format!("{path}.items.properties[{key}].default");
                    let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    self.errors.push(FieldError::required(&at, detail));
                }
            }
        }
        if let Some(default) = &schema.default {
            let mut found = validate::Findings::default();
            validate::validate(schema, default, None, &format!("{path}.default"), &mut found);
            self.errors.extend(found.errors);
        }
    }
}

fn bounds(props: &JSONSchemaProps) -> Bounds {
    Bounds {
        minimum: props.minimum,
        exclusive_minimum: props.exclusive_minimum == Some(true),
        maximum: props.maximum,
        exclusive_maximum: props.exclusive_maximum == Some(true),
        multiple_of: props.multiple_of,
        min_length: props.min_length,
        max_length: props.max_length,
        min_items: props.min_items,
        max_items: props.max_items,
        min_properties: props.min_properties,
        max_properties: props.max_properties,
    }
}
