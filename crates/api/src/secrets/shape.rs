//! `spec.secretTemplate` of a claim or an access: additions to its consumer Secret, and omissions
//! (spec §10).
//!
//! Templates are literal text with fields, not Go's template language. Rendering therefore cannot
//! loop or fail, and its size is known in advance.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::connection::{BINDING_KEYS, CA_KEY, CONNECTION_KEYS, Gateway};
use super::key::SecretKey;
use super::value_template::ValueTemplate;
use crate::condition::shortened;
use crate::invalid::InvalidSpec;
use crate::kept;
use crate::names::{AccessKeyId, BucketName};
use crate::packed::Packed;
use crate::secret_template::SecretTemplate;
use crate::wire;

/// A parsed `spec.secretTemplate`. The default is an empty template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretShape {
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    data: BTreeMap<String, ValueTemplate>,
    /// True if the default keys of consumer Secrets are left out.
    pub omits_defaults: bool,
}

/// Additional labels, annotations and data of a Secret. `Debug` prints no values.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// Additional labels.
    pub labels: BTreeMap<String, String>,
    /// Additional annotations.
    pub annotations: BTreeMap<String, String>,
    /// Additional data.
    pub data: BTreeMap<String, Vec<u8>>,
}

/// Values for the fields of templates.
#[derive(Clone, Copy, Debug)]
pub struct SecretValues<'a> {
    /// Access key id.
    pub id: &'a AccessKeyId,
    /// Secret key.
    pub secret: &'a SecretKey,
    /// Buckets in order: that of a claim, or those of an access, which may be none.
    pub buckets: &'a [BucketName],
    /// Gateway at which the buckets are available.
    pub gateway: &'a Gateway,
}

/// Error for templates that render to more than a Secret may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what spec.secretTemplate.data asks for has {size} bytes; {} are the most", SecretShape::MOST_RENDERED)]
pub struct TooLarge {
    /// Number of bytes that the data would have.
    pub size: usize,
}

impl SecretShape {
    /// The empty template.
    pub const EMPTY: Self =
        Self { labels: BTreeMap::new(), annotations: BTreeMap::new(), data: BTreeMap::new(), omits_defaults: false };

    /// Maximum number of keys in each of `data`, labels and annotations.
    pub const MOST_KEYS: usize = 32;

    /// Maximum length of a template, in bytes.
    pub const LONGEST_TEMPLATE: usize = 4 << 10;

    /// Maximum number of bytes in all keys.
    pub const LONGEST_NAMES: usize = SecretTemplate::LONGEST_NAMES;

    /// Maximum number of bytes of the rendered `data`.
    pub const MOST_RENDERED: usize = 256 << 10;

    /// Parses a template.
    ///
    /// # Errors
    /// Returns an error if a key is invalid, reserved or not allowed, if a limit is exceeded, or if
    /// `{{ }}` contains something other than a known field.
    pub fn parse(raw: Option<&SecretTemplate>) -> Result<Self, InvalidSpec> {
        let Some(raw) = raw else { return Ok(Self::default()) };
        let data = raw.data.iter().flatten().map(|(key, text)| {
            data_key(key).map_err(|why| InvalidSpec::of(DATA, &why))?;
            let template = ValueTemplate::parse(text).map_err(|why| InvalidSpec::of(DATA, &format!("{key}: {why}")))?;
            Ok((key.clone(), template))
        });
        let shape = Self {
            labels: metadata(LABELS, raw.labels.as_ref(), is_label_value)?,
            annotations: metadata(ANNOTATIONS, raw.annotations.as_ref(), |text| text.len() <= LONGEST_ANNOTATION)?,
            data: data.collect::<Result<_, InvalidSpec>>()?,
            omits_defaults: raw.omit_defaults,
        };
        if shape.omits_defaults && shape.data.is_empty() {
            return Err(InvalidSpec::of(ALL, &"with omitDefaults, data has to say what stands there"));
        }
        let names: [Vec<&String>; 3] =
            [shape.labels.keys().collect(), shape.annotations.keys().collect(), shape.data.keys().collect()];
        if names.iter().any(|keys| keys.len() > Self::MOST_KEYS) {
            return Err(InvalidSpec::of(ALL, &"it has more than 32 keys of a kind"));
        }
        if names.iter().flatten().map(|name| name.len()).sum::<usize>() > Self::LONGEST_NAMES {
            return Err(InvalidSpec::of(ALL, &"its keys have more than 4096 bytes together"));
        }
        Ok(shape)
    }

    /// Parses the template of an object; `None` if a cache kept only its digest.
    ///
    /// # Errors
    /// See [`SecretShape::parse`].
    pub(crate) fn of(raw: Option<&Packed<SecretTemplate>>) -> Result<Option<Self>, InvalidSpec> {
        match raw.map(Packed::get) {
            None => Self::parse(None).map(Some),
            Some(None) => Ok(None),
            Some(Some(raw)) => Self::parse(Some(&raw)).map(Some),
        }
    }

    /// Returns a label or annotation that has none of the allowed prefixes. The administrator who
    /// runs the operator sets these prefixes.
    #[must_use]
    pub fn forbidden(&self, allowed: &[String]) -> Option<&str> {
        let mut keys = self.labels.keys().chain(self.annotations.keys());
        keys.find(|key| !allowed.iter().any(|prefix| key.starts_with(prefix.as_str()))).map(String::as_str)
    }

    /// Renders the template. The size is checked before anything is allocated.
    ///
    /// # Errors
    /// Returns an error if the rendered data is too large.
    pub(super) fn render(&self, values: SecretValues<'_>) -> Result<Extra, TooLarge> {
        let values = values.texts();
        let size = self.data.values().map(|template| template.texts(&values).map(str::len).sum::<usize>()).sum();
        if size > Self::MOST_RENDERED {
            return Err(TooLarge { size });
        }
        let data = self
            .data
            .iter()
            .map(|(key, template)| (key.clone(), template.texts(&values).collect::<String>().into_bytes()));
        Ok(Extra { labels: self.labels.clone(), annotations: self.annotations.clone(), data: data.collect() })
    }
}

/// Names of the labels, annotations and data that templates have written into a Secret, from its
/// annotation.
///
/// Names that are no longer desired are removed. Trusting the annotation is safe, because anyone
/// who can write it can write the Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub annotations: BTreeSet<String>,
    /// Keys of the data.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub data: BTreeSet<String>,
}

impl Written {
    /// Bound on the length of the annotation, in bytes: the names in a template, JSON syntax for a
    /// hundred of them, and the operator's names.
    pub const LONGEST: usize = SecretShape::LONGEST_NAMES + 1024;

    /// Bound on the number of names of each kind: those of templates, of Service Binding and of the
    /// CA.
    pub const MOST: usize = SecretShape::MOST_KEYS + 16;

    /// Reads the annotation of a Secret. The result is empty if the operator cannot have written
    /// it.
    #[must_use]
    pub fn of(secret: &Secret) -> Self {
        let told = secret.metadata.annotations.as_ref().and_then(|all| all.get(wire::TEMPLATE));
        let read = told.filter(|text| text.len() <= Self::LONGEST).and_then(|text| serde_json::from_str(text).ok());
        let mut read: Self = read.unwrap_or_default();
        let is_ours = |name: &String| !name.starts_with(wire::PREFIX);
        if [&read.labels, &read.annotations, &read.data].iter().any(|names| names.len() > Self::MOST) {
            return Self::default();
        }
        read.labels.retain(is_ours);
        read.annotations.retain(is_ours);
        read.data.retain(|key| !CONNECTION_KEYS.contains(&key.as_str()));
        read
    }

    /// Returns the value of the annotation.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("names are plain data")
    }
}

impl fmt::Debug for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.names())
    }
}

impl Extra {
    /// Returns the names of all entries.
    #[must_use]
    pub fn names(&self) -> Written {
        Written {
            labels: self.labels.keys().cloned().collect(),
            annotations: self.annotations.keys().cloned().collect(),
            data: self.data.keys().cloned().collect(),
        }
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.data.is_empty()
    }
}

/// Returns the digest that caches keep of a value written by a template, so that its size does not
/// matter.
#[must_use]
pub fn digest(value: &[u8]) -> Vec<u8> {
    Sha256::digest(value).to_vec()
}

const ALL: &str = "spec.secretTemplate";
const DATA: &str = "spec.secretTemplate.data";
const LABELS: &str = "spec.secretTemplate.labels";
const ANNOTATIONS: &str = "spec.secretTemplate.annotations";

/// Maximum length of an annotation's value, in bytes. Caches keep no longer ones.
const LONGEST_ANNOTATION: usize = kept::LONGEST;

/// Shortens a string from a template for a message, because the status has a copy of it in every
/// condition.
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    shortened(text, SecretTemplate::LONGEST_NAME)
}

/// Checks that `key` is a valid data key of a Secret (Kubernetes API, `Secret.data`) and not
/// reserved.
fn data_key(key: &str) -> Result<(), String> {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty()
        || key.len() > SecretTemplate::LONGEST_KEY
        || !key.bytes().all(is_one)
        || matches!(key, "." | "..")
    {
        return Err(format!("{:?} is no key of a Secret: 1 to 253 of a-z A-Z 0-9 - _ . are", quoted(key)));
    }
    if CONNECTION_KEYS.contains(&key) || BINDING_KEYS.contains(&key) || key == CA_KEY {
        return Err(format!("{key} is written by the operator, and has no template"));
    }
    Ok(())
}

/// Checks that labels or annotations have valid names, and none reserved for the operator.
fn metadata(
    field: &'static str,
    raw: Option<&BTreeMap<String, String>>,
    is_value: fn(&str) -> bool,
) -> Result<BTreeMap<String, String>, InvalidSpec> {
    let entries = raw.into_iter().flatten().map(|(key, value)| {
        if key.starts_with(wire::PREFIX) {
            Err(InvalidSpec::of(field, &format!("{} is the operator's", quoted(key))))
        } else if !is_qualified_name(key) {
            Err(InvalidSpec::of(field, &format!("{:?} is no name of a label or annotation", quoted(key))))
        } else if !is_value(value) {
            Err(InvalidSpec::of(field, &format!("the value of {key} can't stand there")))
        } else {
            Ok((key.clone(), value.clone()))
        }
    });
    entries.collect()
}

/// Returns true for `[prefix/]name`: the prefix is a DNS subdomain; the name has 1 to 63 characters
/// of `a-z A-Z 0-9 - _ .` and begins and ends with a letter or digit (Kubernetes, "Labels and
/// Selectors").
fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_domain = |prefix: &str| {
        let part = |part: &str| {
            let is_one = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            !part.is_empty() && part.bytes().all(is_one) && !part.starts_with('-') && !part.ends_with('-')
        };
        prefix.len() <= 253 && prefix.split('.').all(part)
    };
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_domain)
}

fn is_label_value(value: &str) -> bool {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [value.bytes().next(), value.bytes().last()];
    value.len() <= 63 && value.bytes().all(is_one) && ends.iter().flatten().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
#[path = "shape_tests.rs"]
mod tests;
