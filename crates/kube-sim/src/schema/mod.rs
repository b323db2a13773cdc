//! Structural schemas: the tree used by validation, defaulting, pruning, server-side apply and CEL.
//!
//! They are loaded from the `openAPIV3Schema` of a CustomResourceDefinition. Those of built-in
//! kinds use the same notation, so that the same code handles all kinds. Schemas that a server
//! rejects are rejected here too, except for errors that need CEL's type checker or cost estimate.

pub(crate) mod loader;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub(crate) use rules::RuleSet;

/// JSON types that a schema node may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
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

    /// Returns the name used in schemas.
    pub fn name(self) -> &'static str {
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

/// Types allowed for the value of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// Any type (`x-kubernetes-preserve-unknown-fields` without a type; branches of `anyOf`).
    Any,
    /// Only this type.
    Only(JsonType),
    /// An integer or a string (`x-kubernetes-int-or-string`).
    IntOrString,
}

/// Identity of list items, for merging and for the check for duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Items have no identity: the list is a single value.
    Atomic,
    /// Items are identified by their value.
    Set,
    /// Items are identified by these fields.
    Map(Vec<String>),
}

/// A regular expression and its source.
#[derive(Debug)]
pub struct Pattern {
    /// Source of the expression.
    pub text: String,
    /// Compiled expression.
    pub regex: Regex,
}

/// Fields allowed in an object besides its named properties.
#[derive(Debug)]
pub enum Additional {
    /// No other fields.
    None,
    /// Any fields.
    Any,
    /// Fields with values of this schema.
    Schema(Box<Schema>),
}

/// Bounds on numbers, lengths and counts.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Minimum of a number.
    pub minimum: Option<f64>,
    /// True if the minimum itself is excluded.
    pub exclusive_minimum: bool,
    /// Maximum of a number.
    pub maximum: Option<f64>,
    /// True if the maximum itself is excluded.
    pub exclusive_maximum: bool,
    /// Number of which the value must be a multiple.
    pub multiple_of: Option<f64>,
    /// Minimum length in characters.
    pub min_length: Option<i64>,
    /// Maximum length in characters.
    pub max_length: Option<i64>,
    /// Minimum number of items.
    pub min_items: Option<i64>,
    /// Maximum number of items.
    pub max_items: Option<i64>,
    /// Minimum number of fields.
    pub min_properties: Option<i64>,
    /// Maximum number of fields.
    pub max_properties: Option<i64>,
}

/// Nested value checks that add no structure.
#[derive(Debug, Default)]
pub struct Junctors {
    /// All of these must match.
    pub all_of: Vec<Schema>,
    /// At least one of these must match.
    pub any_of: Vec<Schema>,
    /// Exactly one of these must match.
    pub one_of: Vec<Schema>,
    /// Schema that must not match.
    pub not: Option<Box<Schema>>,
}

/// A node of a schema.
#[derive(Debug)]
pub struct Schema {
    /// Type of the value.
    pub type_rule: TypeRule,
    /// True if null is allowed.
    pub nullable: bool,
    /// Format of a string or number.
    pub format: Option<String>,
    /// Named fields. They are behind pointers, because a map reserves space for several entries and
    /// nodes are large.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Fields allowed besides the named ones.
    pub additional: Additional,
    /// Items of a list.
    pub items: Option<Box<Schema>>,
    /// Required fields.
    pub required: Vec<String>,
    /// Allowed values; empty if all are allowed.
    pub allowed: Vec<Value>,
    /// Pattern of a string.
    pub pattern: Option<Pattern>,
    /// Bounds on the value.
    pub bounds: Bounds,
    /// Nested value checks.
    pub junctors: Junctors,
    /// Default value.
    pub default: Option<Value>,
    /// True if unknown fields are preserved.
    pub preserve_unknown: bool,
    /// True if the value is an object with `apiVersion`, `kind` and `metadata`.
    pub embedded: bool,
    /// Identity of list items.
    pub list_type: ListType,
    /// True if the map or struct has one owner as a whole.
    pub atomic_map: bool,
    pub(crate) rules: RuleSet,
    pub(crate) holds: Holds,
}

/// Features of a node and of all nodes below it. Walks skip nodes without the feature they need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holds {
    /// CEL rules.
    pub(crate) rules: bool,
    /// Defaults of nested values. The default of the node itself belongs to its parent.
    pub(crate) defaults: bool,
    /// Lists without duplicates.
    pub(crate) unique_items: bool,
}

impl Schema {
    /// Returns a node that accepts and preserves any value.
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

    /// Returns the schema of a field, whether named or additional.
    pub(crate) fn field(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).map(Arc::as_ref).or(match &self.additional {
            Additional::Schema(schema) => Some(schema.as_ref()),
            Additional::None | Additional::Any => None,
        })
    }

    /// Returns the schemas of all nested values.
    fn children(&self) -> impl Iterator<Item = &Schema> {
        let additional = match &self.additional {
            Additional::Schema(schema) => Some(schema.as_ref()),
            Additional::None | Additional::Any => None,
        };
        self.properties.values().map(Arc::as_ref).chain(additional).chain(self.items.as_deref())
    }

    pub(super) fn found_to_hold(&self) -> Holds {
        Holds {
            rules: !self.rules.is_empty() || self.children().any(|child| child.holds.rules),
            defaults: self.children().any(|child| child.default.is_some() || child.holds.defaults),
            unique_items: self.list_type != ListType::Atomic || self.children().any(|child| child.holds.unique_items),
        }
    }

    /// Returns the item of `list` with the same key fields as `item`, if this is a keyed list.
    pub(crate) fn matching_item<'a>(&self, item: &Value, list: Option<&'a Value>) -> Option<&'a Value> {
        let ListType::Map(keys) = &self.list_type else { return None };
        let key = self.item_key(keys, item);
        list?.as_array()?.iter().find(|other| self.item_key(keys, other) == key)
    }

    /// Returns the values of the key fields of a list item, including defaults.
    pub(crate) fn item_key(&self, keys: &[String], item: &Value) -> Vec<Option<Value>> {
        let of = |key: &String| {
            let default = || self.items.as_ref()?.properties.get(key)?.default.clone();
            item.get(key).cloned().or_else(default)
        };
        keys.iter().map(of).collect()
    }
}
