//! Structural schemas: the tree that validation, defaulting, pruning, server-side apply and CEL walk.
//!
//! Read from a CustomResourceDefinition's `openAPIV3Schema`; built-in kinds are written in the same
//! notation, so that one set of walkers serves all. What a server refuses in a schema is refused
//! here too, as far as it can be told without CEL's type checker and cost estimate.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use super::cel::RuleSet;
use super::status::FieldError;

/// JSON types that a schema node may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl JsonType {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// What type of value a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeRule {
    /// Anything (`x-kubernetes-preserve-unknown-fields` without a type; branches of `anyOf`).
    Any,
    Only(JsonType),
    IntOrString,
}

/// How the items of a list are told apart, for merging and for the duplicate check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A pattern and its source text.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) text: String,
    pub(crate) regex: Regex,
}

/// What an object may hold beyond its named properties.
#[derive(Debug)]
pub(crate) enum Additional {
    None,
    Any,
    Schema(Box<Schema>),
}

/// Bounds on numbers, lengths and counts.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    /// In characters.
    pub(crate) min_length: Option<i64>,
    /// In characters.
    pub(crate) max_length: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) max_properties: Option<i64>,
}

/// Nested value checks that add no structure.
#[derive(Debug, Default)]
pub(crate) struct Junctors {
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// One node of a schema.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) type_rule: TypeRule,
    pub(crate) nullable: bool,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Schema>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) bounds: Bounds,
    pub(crate) junctors: Junctors,
    pub(crate) default: Option<Value>,
    pub(crate) preserve_unknown: bool,
    /// Whether the value is a whole object with `apiVersion`, `kind` and `metadata`.
    pub(crate) embedded: bool,
    pub(crate) list_type: ListType,
    /// Whether the map or struct changes hands as one field.
    pub(crate) atomic_map: bool,
    pub(crate) rules: RuleSet,
    pub(crate) holds: Holds,
}

/// What there is in a node or anywhere below it: walks leave out what holds nothing for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holds {
    /// CEL rules.
    pub(crate) rules: bool,
    /// Defaults of what it may hold; its own is its holder's.
    pub(crate) defaults: bool,
    /// Lists that hold each item once.
    pub(crate) unique_items: bool,
}

impl Schema {
    /// A node that takes anything and keeps it.
    pub(crate) fn anything() -> Self {
        Self {
            type_rule: TypeRule::Any,
            nullable: true,
            format: None,
            properties: BTreeMap::new(),
            additional: Additional::Any,
            items: None,
            required: Vec::new(),
            allowed: Vec::new(),
            pattern: None,
            bounds: Bounds::default(),
            junctors: Junctors::default(),
            default: None,
            preserve_unknown: true,
            embedded: false,
            list_type: ListType::Atomic,
            atomic_map: false,
            rules: RuleSet::default(),
            holds: Holds::default(),
        }
    }

    /// Reads the schema of a whole object: `apiVersion`, `kind` and `metadata` are the server's own.
    ///
    /// # Errors
    /// Everything that a server refuses in a schema, with paths below `path`.
    pub(crate) fn of_object(props: &JSONSchemaProps, path: &str) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut schema = Loader { errors: &mut errors }.node(props, path, Place::Structure);
        if !errors.is_empty() {
            return Err(errors);
        }
        for name in ["apiVersion", "kind"] {
            let text = Self { type_rule: TypeRule::Only(JsonType::String), ..Self::anything() };
            schema.properties.insert(name.to_owned(), text);
        }
        schema.properties.insert("metadata".to_owned(), super::builtin::object_meta_schema());
        schema.holds = schema.found_to_hold();
        Ok(schema)
    }

    /// Reads a schema that stands in this crate's own source.
    pub(crate) fn own(json: Value) -> Self {
        let props: JSONSchemaProps = serde_json::from_value(json).expect("a schema written in this crate parses");
        let mut errors = Vec::new();
        let schema = Loader { errors: &mut errors }.node(&props, "own", Place::Structure);
        assert!(errors.is_empty(), "a schema written in this crate is sound: {errors:?}");
        schema
    }

    /// The schema of a named field of an object, whether declared or additional.
    pub(crate) fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(schema) => Some(schema),
            Additional::None | Additional::Any => None,
        })
    }

    /// The schemas of all that such a value may hold.
    fn children(&self) -> impl Iterator<Item = &Schema> {
        let additional = match &self.additional {
            Additional::Schema(schema) => Some(schema.as_ref()),
            Additional::None | Additional::Any => None,
        };
        self.properties.values().chain(additional).chain(self.items.as_deref())
    }

    fn found_to_hold(&self) -> Holds {
        Holds {
            rules: !self.rules.is_empty() || self.children().any(|child| child.holds.rules),
            defaults: self.children().any(|child| child.default.is_some() || child.holds.defaults),
            unique_items: self.list_type != ListType::Atomic || self.children().any(|child| child.holds.unique_items),
        }
    }

    /// The item of `list` that has the same key fields as `item`, if this is a keyed list.
    pub(crate) fn matching_item<'a>(&self, item: &Value, list: Option<&'a Value>) -> Option<&'a Value> {
        let ListType::Map(keys) = &self.list_type else { return None };
        let key = self.item_key(keys, item);
        list?.as_array()?.iter().find(|other| self.item_key(keys, other) == key)
    }

    /// The values of the key fields of a list item, defaults filled in.
    pub(crate) fn item_key(&self, keys: &[String], item: &Value) -> Vec<Option<Value>> {
        let of = |key: &String| {
            let default = || self.items.as_ref()?.properties.get(key)?.default.clone();
            item.get(key).cloned().or_else(default)
        };
        keys.iter().map(of).collect()
    }
}

/// Where a node stands: structure must be complete, value checks inside `anyOf` and its like
/// repeat no types.
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
                    let kind = super::status::FieldErrorKind::NotSupported;
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

    fn properties(&mut self, props: &JSONSchemaProps, path: &str, place: Place) -> BTreeMap<String, Schema> {
        let named = props.properties.iter().flatten();
        named
            .map(|(name, child)| (name.clone(), self.node(child, &format!("{path}.properties[{name}]"), place)))
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
                let kind = super::status::FieldErrorKind::NotSupported;
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

    /// Checks across the parts of one node, and its default against itself.
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
            let mut found = super::validate::Findings::default();
            super::validate::validate(schema, default, None, &format!("{path}.default"), &mut found);
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
