//! Structural schemas: the tree that validation, defaulting, pruning, server-side apply and CEL
//! walk.
//!
//! Read from a CustomResourceDefinition's `openAPIV3Schema`; built-in kinds are written in the same
//! notation, so that one set of walkers serves all. What a server refuses in a schema is refused
//! here too, as far as it can be told without CEL's type checker and cost estimate.

mod loader;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
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
    /// Behind pointers: a map keeps room for several of what it holds, and nodes are large.
    pub(crate) properties: BTreeMap<String, Arc<Schema>>,
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

    /// Reads the schema of a whole object: `apiVersion`, `kind` and `metadata` are the server's
    /// own.
    ///
    /// # Errors
    /// Everything that a server refuses in a schema, with paths below `path`.
    pub(crate) fn of_object(props: &JSONSchemaProps, path: &str) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut schema = loader::Loader { errors: &mut errors }.node(props, path, loader::Place::Structure);
        if !errors.is_empty() {
            return Err(errors);
        }
        for name in ["apiVersion", "kind"] {
            let text = Self { type_rule: TypeRule::Only(JsonType::String), ..Self::anything() };
            schema.properties.insert(name.to_owned(), Arc::new(text));
        }
        schema.properties.insert("metadata".to_owned(), super::builtin::object_meta_schema());
        schema.holds = schema.found_to_hold();
        Ok(schema)
    }

    /// Reads a schema that stands in this crate's own source.
    pub(crate) fn own(json: Value) -> Self {
        let props: JSONSchemaProps = serde_json::from_value(json).expect("a schema written in this crate parses");
        let mut errors = Vec::new();
        let schema = loader::Loader { errors: &mut errors }.node(&props, "own", loader::Place::Structure);
        assert!(errors.is_empty(), "a schema written in this crate is sound: {errors:?}");
        schema
    }

    /// The schema of a named field of an object, whether declared or additional.
    pub(crate) fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).map(Arc::as_ref).or(match &self.additional {
            Additional::Schema(schema) => Some(schema.as_ref()),
            Additional::None | Additional::Any => None,
        })
    }

    /// The schemas of all that such a value may hold.
    fn children(&self) -> impl Iterator<Item = &Schema> {
        let additional = match &self.additional {
            Additional::Schema(schema) => Some(schema.as_ref()),
            Additional::None | Additional::Any => None,
        };
        self.properties.values().map(Arc::as_ref).chain(additional).chain(self.items.as_deref())
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
