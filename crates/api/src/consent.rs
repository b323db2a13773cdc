//! Consent to accesses: prefixes and rules of sharing as values that can't be wrong (spec §8).

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::core::{Selector, SelectorExt};
use serde::{Deserialize, Serialize};

use super::names::InvalidName;
use super::sharing::{AccessMode, SharedRequirement, SharedSelector, SharingRule};

/// What keys of objects begin with: segments that each end with a slash, none of them empty, `.` or
/// `..`; no control characters of ASCII; 512 bytes at most.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(String);

impl Prefix {
    /// Longest prefix, in bytes.
    pub const LONGEST: usize = 512;

    /// Checks `text`.
    ///
    /// # Errors
    /// When it breaks one of the rules.
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

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether what a request names, decoded, is below it: byte by byte, so that nothing that looks
    /// alike is.
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

/// Consent to accesses: the most that they may do, and with which objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consent {
    /// The most that may be done.
    pub max_mode: AccessMode,
    /// What the keys of objects begin with; empty = all objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Prefix>,
}

impl Consent {
    /// Consent to everything, which a claim's own namespace has.
    pub const fn full() -> Self {
        Self { max_mode: AccessMode::ReadWrite, prefixes: Vec::new() }
    }

    /// Whether every object below the prefix is consented to; without one, all objects.
    pub fn admits(&self, prefix: Option<&Prefix>) -> bool {
        self.prefixes.is_empty()
            || prefix.is_some_and(|prefix| self.prefixes.iter().any(|it| it.covers(prefix.as_str().as_bytes())))
    }

    /// Whether nothing that this allows is denied by the other.
    pub fn is_within(&self, other: &Self) -> bool {
        let objects = match self.prefixes.as_slice() {
            [] => other.admits(None),
            prefixes => prefixes.iter().all(|prefix| other.admits(Some(prefix))),
        };
        self.max_mode.and(other.max_mode) == Some(self.max_mode) && objects
    }
}

/// A claim owner's word about accesses from other namespaces. What can't be read lets nobody in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing(Vec<Rule>);

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    names: Vec<String>,
    selector: Option<Selector>,
    consent: Consent,
}

impl Sharing {
    /// Parses the rules of a claim.
    pub fn parse(rules: Option<&Vec<SharingRule>>) -> Self {
        Self(rules.into_iter().flatten().filter_map(Rule::parse).collect())
    }

    /// What the namespace `name` with `labels` may do; `None` = nothing. Of several rules that
    /// match, the first counts. Where its labels aren't known, no selector lets it in.
    pub fn consent(&self, name: &str, labels: Option<&BTreeMap<String, String>>) -> Option<&Consent> {
        let matches = |rule: &&Rule| {
            rule.names.iter().any(|named| named == name)
                || rule.selector.as_ref().zip(labels).is_some_and(|(selector, labels)| selector.matches(labels))
        };
        self.0.iter().find(matches).map(|rule| &rule.consent)
    }

    /// All that a namespace may do of which the labels aren't known: what each rule allows that may
    /// be the first to match. Without a name any may.
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

/// Consent as it is spelled; `None` for what can't be read.
pub fn consent(mode: Option<AccessMode>, prefixes: Option<&Vec<String>>) -> Option<Consent> {
    let parsed = prefixes.map(|all| all.iter().map(|text| Prefix::parse(text)).collect::<Result<Vec<_>, _>>());
    let prefixes = match parsed.transpose().ok()? {
        // A list of none is no consent to all.
        Some(none) if none.is_empty() => return None,
        prefixes => prefixes.unwrap_or_default(),
    };
    Some(Consent { max_mode: mode?, prefixes })
}

/// `None` for a selector that can't be read: it matches nothing rather than everything.
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
