//! Consent to accesses: validated prefixes and sharing rules (spec §8).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};

use super::names::InvalidName;
use super::sharing::{AccessMode, SharedRequirement, SharedSelector, SharingRule};

/// A prefix of object keys: one or more segments that each end with a slash, at most 512 bytes. No
/// segment is empty, `.` or `..`, and there are no ASCII control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// Maximum length of a prefix, in bytes.
    pub const LONGEST: usize = 512;

    /// Parses a prefix.
    ///
    /// # Errors
    /// Returns an error if `text` violates one of the rules.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let invalid = |why| Err(InvalidName { what: "prefix", text: text.to_owned(), why });
        let Some(path) = text.strip_suffix('/') else { return invalid("it must end with a slash") };
        if text.len() > Self::LONGEST {
            invalid("it must have 512 bytes at most")
        } else if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
            invalid("none of its segments may be empty, . or ..")
        } else if text.bytes().any(|byte| byte.is_ascii_control()) {
            invalid("it must have no control character of ASCII")
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// Returns the prefix as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the decoded `key` of a request starts with this prefix. The comparison is by
    /// bytes, so that names that only look alike do not match.
    pub fn covers(&self, key: &[u8]) -> bool {
        key.starts_with(self.0.as_bytes())
    }
}

impl TryFrom<String> for Prefix {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Consent to accesses: the widest mode allowed, and the objects that it covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consent {
    /// Widest mode allowed.
    pub max_mode: AccessMode,
    /// Prefixes of the object keys covered. If empty, all objects are covered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Prefix>,
}

impl Consent {
    /// Returns consent to everything, which the claim's own namespace has.
    pub const fn full() -> Self {
        Self { max_mode: AccessMode::ReadWrite, prefixes: Vec::new() }
    }

    /// Returns true if the consent covers every object below `prefix`, or all objects if `prefix`
    /// is `None`.
    pub fn admits(&self, prefix: Option<&Prefix>) -> bool {
        self.prefixes.is_empty()
            || prefix.is_some_and(|prefix| self.prefixes.iter().any(|it| it.covers(prefix.as_str().as_bytes())))
    }

    /// Returns true if `other` allows everything that this consent allows.
    pub fn is_within(&self, other: &Self) -> bool {
        let objects = match self.prefixes.as_slice() {
            [] => other.admits(None),
            prefixes => prefixes.iter().all(|prefix| other.admits(Some(prefix))),
        };
        self.max_mode.and(other.max_mode) == Some(self.max_mode) && objects
    }
}

/// Consent of a claim's owner to accesses from other namespaces. A rule that cannot be parsed
/// admits no namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing(Vec<Rule>);

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    names: Vec<String>,
    selector: Option<Selector>,
    consent: Consent,
}

impl Sharing {
    /// Parses the sharing rules of a claim.
    pub fn parse(rules: Option<&Vec<SharingRule>>) -> Self {
        Self(rules.into_iter().flatten().filter_map(Rule::parse).collect())
    }

    /// Returns the consent for the namespace `name` with `labels`, or `None` if it has none.
    ///
    /// The first rule that matches applies. If the labels are unknown, selectors do not match.
    pub fn consent(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> Option<&Consent> {
        let matches = |rule: &&Rule| {
            rule.names.iter().any(|named| named == name)
                || rule.selector.as_ref().zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
        };
        self.0.iter().find(matches).map(|rule| &rule.consent)
    }

    /// Returns every consent that may apply to a namespace whose labels are unknown.
    ///
    /// These are the consents of all rules that may be the first to match. If the name is unknown
    /// too, any rule may match.
    pub fn possible(&self, name: Option<&str>) -> Vec<&Consent> {
        let named = |rule: &Rule| name.is_some_and(|name| rule.names.iter().any(|named| named == name));
        let mut possible = Vec::new();
        for rule in &self.0 {
            let any = name.is_none() && !rule.names.is_empty();
            if any || named(rule) || rule.selector.is_some() {
                possible.push(&rule.consent);
            }
            if named(rule) {
                break;
            }
        }
        possible
    }
}

impl Rule {
    fn parse(raw: &SharingRule) -> Option<Self> {
        Some(Self {
            names: raw.namespaces.names.clone().unwrap_or_default(),
            selector: raw.namespaces.selector.as_ref().and_then(selector),
            consent: consent(raw.max_mode.known(), raw.prefixes.as_ref())?,
        })
    }
}

/// Parses a consent; `None` if its mode or one of its prefixes cannot be parsed.
pub fn consent(mode: Option<AccessMode>, prefixes: Option<&Vec<String>>) -> Option<Consent> {
    let parsed = prefixes.map(|all| all.iter().map(|text| Prefix::parse(text)).collect::<Result<Vec<_>, _>>());
    let prefixes = match parsed.transpose().ok()? {
        // An empty list does not mean consent to all objects.
        Some(none) if none.is_empty() => return None,
        prefixes => prefixes.unwrap_or_default(),
    };
    Some(Consent { max_mode: mode?, prefixes })
}

/// Parses a selector; `None` if it is invalid, so that it matches nothing instead of everything.
fn selector(raw: &SharedSelector) -> Option<Selector> {
    let requirement = |of: &SharedRequirement| LabelSelectorRequirement {
        key: of.key.clone(),
        operator: of.operator.clone(),
        values: of.values.clone(),
    };
    let expressions = raw.match_expressions.as_ref().map(|all| all.iter().map(requirement).collect());
    LabelSelector { match_labels: raw.match_labels.clone(), match_expressions: expressions }.try_into().ok()
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod tests;
