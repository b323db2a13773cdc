//! Structural schemas: the tree that validation, defaulting, pruning, server-side apply and CEL
//! walk.
//!
//! Read from a CustomResourceDefinition's `openAPIV3Schema`; built-in kinds are written in the same
//! notation, so that one set of walkers serves all. What a server refuses in a schema is refused
//! here too, as far as it can be told without CEL's type checker and cost estimate.

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

    /// As schemas name it.
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

/// What type of value a node takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// Anything (`x-kubernetes-preserve-unknown-fields` without a type; branches of `anyOf`).
    Any,
    /// This type.
    Only(JsonType),
    /// A whole number or a text (`x-kubernetes-int-or-string`).
    IntOrString,
}

/// How the items of a list are told apart, for merging and for the duplicate check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Not at all: the list is one value.
    Atomic,
    /// By their values.
    Set,
    /// By these fields.
    Map(Vec<String>),
}

/// A pattern and its source text.
#[derive(Debug)]
pub struct Pattern {
    /// The source.
    pub text: String,
    /// The pattern.
    pub regex: Regex,
}

/// What an object may hold beyond its named properties.
#[derive(Debug)]
pub enum Additional {
    /// Nothing.
    None,
    /// Anything.
    Any,
    /// Values of this schema.
    Schema(Box<Schema>),
}

/// Bounds on numbers, lengths and counts.
#[derive(Debug, Default)]
pub struct Bounds {
    /// Least number.
    pub minimum: Option<f64>,
    /// Whether that is out already.
    pub exclusive_minimum: bool,
    /// Greatest number.
    pub maximum: Option<f64>,
    /// Whether that is out already.
    pub exclusive_maximum: bool,
    /// What numbers are whole multiples of.
    pub multiple_of: Option<f64>,
    /// In characters.
    pub min_length: Option<i64>,
    /// In characters.
    pub max_length: Option<i64>,
    /// Fewest items.
    pub min_items: Option<i64>,
    /// Most items.
    pub max_items: Option<i64>,
    /// Fewest fields.
    pub min_properties: Option<i64>,
    /// Most fields.
    pub max_properties: Option<i64>,
}

/// Nested value checks that add no structure.
#[derive(Debug, Default)]
pub struct Junctors {
    /// All of these hold.
    pub all_of: Vec<Schema>,
    /// One of these holds at least.
    pub any_of: Vec<Schema>,
    /// Exactly one of these holds.
    pub one_of: Vec<Schema>,
    /// This one doesn't hold.
    pub not: Option<Box<Schema>>,
}

/// One node of a schema.
#[derive(Debug)]
pub struct Schema {
    /// The type of the value.
    pub type_rule: TypeRule,
    /// Whether null is a value.
    pub nullable: bool,
    /// The format of a text or number.
    pub format: Option<String>,
    /// The named fields. Behind pointers: a map keeps room for several of what it holds, and nodes
    /// are large.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// What it may hold beyond its named properties.
    pub additional: Additional,
    /// The items of a list.
    pub items: Option<Box<Schema>>,
    /// The fields that have to be there.
    pub required: Vec<String>,
    /// The only values, if there are any.
    pub allowed: Vec<Value>,
    /// The pattern of a text.
    pub pattern: Option<Pattern>,
    /// Bounds on the value.
    pub bounds: Bounds,
    /// Nested checks.
    pub junctors: Junctors,
    /// The value where none is given.
    pub default: Option<Value>,
    /// Whether unknown fields are kept.
    pub preserve_unknown: bool,
    /// Whether the value is a whole object with `apiVersion`, `kind` and `metadata`.
    pub embedded: bool,
    /// How the items of a list are told apart.
    pub list_type: ListType,
    /// Whether the map or struct changes hands as one field.
    pub atomic_map: bool,
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

    pub(super) fn found_to_hold(&self) -> Holds {
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
