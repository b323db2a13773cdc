//! Label and field selectors, parsed from the query and matched against objects.
//!
//! The grammar is the server's (`k8s.io/apimachinery/pkg/{labels,fields}`): requirements separated
//! by commas, all of which must match.

use serde_json::Value;

use super::kind::{Family, Kind};
use super::names;
use super::status::{Failure, bad_request};
use super::store::{Place, Shared};

/// Filter of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Namespace, empty for all.
    pub(crate) namespace: String,
    /// Name of the only object requested, if namespace and name are given.
    single: Option<String>,
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelTest {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also matches if the key is absent.
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl Filter {
    /// Parses the selectors in a query.
    ///
    /// # Errors
    /// 400 for a selector that is invalid or uses a field that is not selectable.
    pub(crate) fn parse(kind: &Kind, namespace: &str, labels: &str, fields: &str) -> Result<Self, Failure> {
        let labels = parse_labels(labels).map_err(|why| bad_request(format!("unable to parse requirement: {why}")))?;
        let fields = parse_fields(kind, fields)?;
        let whole = !namespace.is_empty() || !kind.is_namespaced();
        let named = fields.iter().find(|field| whole && field.equal && field.path == ["metadata", "name"]);
        let single = named.map(|field| field.value.clone());
        Ok(Self { namespace: namespace.to_owned(), single, labels, fields })
    }

    /// Returns true if there is a selector, besides the namespace.
    pub fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Returns true if a server reads this place to answer the request. It reads all objects of the
    /// namespace, or of all namespaces, but only one object if its name is known.
    pub(crate) fn reaches(&self, place: &Place) -> bool {
        (self.namespace.is_empty() || self.namespace == place.namespace)
            && self.single.as_ref().is_none_or(|name| *name == place.name)
    }

    /// Returns true if the filter matches an object at this place.
    pub(crate) fn matches(&self, place: &Place, object: &Shared) -> bool {
        (self.namespace.is_empty() || self.namespace == place.namespace)
            && self.labels.iter().all(|requirement| requirement.holds(object.label(&requirement.key)))
            && (self.fields.is_empty() || self.has_fields(place, object))
    }

    fn has_fields(&self, place: &Place, object: &Shared) -> bool {
        // The name is compared first, to avoid reading the content of all other objects.
        if self.single.as_ref().is_some_and(|name| *name != place.name) {
            return false;
        }
        let tree = object.tree();
        self.fields.iter().all(|requirement| requirement.holds(&tree))
    }
}

/// Returns true if a selector object (`matchLabels`, `matchExpressions`) matches these labels.
///
/// # Errors
/// Returns index and text of the first unknown operator.
pub fn selects(selector: &Value, labels: &Value) -> Result<bool, (usize, String)> {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let mut all = equal.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    for (index, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let values = || expression["values"].as_array().into_iter().flatten().map(text).collect();
        let test = match expression["operator"].as_str().unwrap_or_default() {
            "In" => LabelTest::In(values()),
            "NotIn" => LabelTest::NotIn(values()),
            "Exists" => LabelTest::Exists,
            "DoesNotExist" => LabelTest::Absent,
            other => return Err((index, other.to_owned())),
        };
        let key = text(&expression["key"]);
        let value = labels.get(&key).and_then(Value::as_str);
        all &= LabelRequirement { key, test }.holds(value);
    }
    Ok(all)
}

impl LabelRequirement {
    /// Returns true if an object whose label of this key has this value matches.
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            LabelTest::Exists => value.is_some(),
            LabelTest::Absent => value.is_none(),
            LabelTest::In(allowed) => value.is_some_and(|text| allowed.iter().any(|one| one == text)),
            LabelTest::NotIn(banned) => value.is_none_or(|text| banned.iter().all(|one| one != text)),
            LabelTest::Greater(limit) => number().is_some_and(|number| number > *limit),
            LabelTest::Less(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

impl FieldRequirement {
    fn holds(&self, object: &Value) -> bool {
        let mut at = object;
        for step in &self.path {
            at = at.get(step).unwrap_or(&Value::Null);
        }
        let text = match at {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        (text == self.value) == self.equal
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    split(text).into_iter().map(parse_label).collect()
}

fn parse_label(text: &str) -> Result<LabelRequirement, String> {
    let text = text.trim();
    let (key, test) = if let Some(key) = text.strip_prefix('!') {
        (key.trim(), LabelTest::Absent)
    } else if let Some((key, value)) = text.split_once("!=") {
        (key.trim(), LabelTest::NotIn(vec![checked_value(value)?]))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key.trim(), LabelTest::In(vec![checked_value(value)?]))
    } else if let Some((key, limit)) = text.split_once('>') {
        (key.trim(), LabelTest::Greater(number(limit)?))
    } else if let Some((key, limit)) = text.split_once('<') {
        (key.trim(), LabelTest::Less(number(limit)?))
    } else if let Some((head, list)) = text.split_once('(') {
        let list = list.trim_end().strip_suffix(')').ok_or_else(|| format!("found '{list}', expected: ')'"))?;
        let values = list.split(',').map(checked_value).collect::<Result<Vec<_>, _>>()?;
        let mut words = head.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => (key, LabelTest::In(values)),
            (Some(key), Some("notin"), None) => (key, LabelTest::NotIn(values)),
            _ => return Err(format!("found '{}', expected: in, notin", head.trim())),
        }
    } else {
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (_, Some("in" | "notin"), third) => {
                return Err(format!("found '{}' expected: '('", third.unwrap_or_default()));
            }
            (_, Some(second), _) => {
                return Err(format!("found '{second}', expected: in, notin, =, ==, !=, gt, lt"));
            }
            _ => (text, LabelTest::Exists),
        }
    };
    match names::qualified_name(key).first() {
        None => Ok(LabelRequirement { key: key.to_owned(), test }),
        Some(error) => Err(format!("<nil>: Invalid value: {key:?}: {error}")),
    }
}

fn checked_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    match names::label_value(text).first() {
        None => Ok(text.to_owned()),
        Some(error) => Err(format!("values[0]: Invalid value: {text:?}: {error}")),
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| {
        format!("values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn parse_fields(kind: &Kind, text: &str) -> Result<Vec<FieldRequirement>, Failure> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| parse_field(kind, part)).collect()
}

/// Returns the error for a field that is not selectable. Kinds without selectable fields have their
/// own message.
fn unknown_field(kind: &Kind, label: &str) -> Failure {
    bad_request(match kind.family {
        Family::Lease => {
            format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
        _ => format!("field label not supported: {label}"),
    })
}

fn parse_field(kind: &Kind, text: &str) -> Result<FieldRequirement, Failure> {
    let (label, value, equal) = if let Some((label, value)) = text.split_once("!=") {
        (label, value, false)
    } else if let Some((label, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (label, value, true)
    } else {
        let why = format!("invalid selector: '{text}'; can't understand '{text}'");
        return Err(bad_request(why));
    };
    let always = label == "metadata.name" || (label == "metadata.namespace" && kind.is_namespaced());
    let path = if always {
        label.split('.').map(str::to_owned).collect()
    } else {
        let found = kind.selectable.iter().find(|field| field.label == label);
        found.ok_or_else(|| unknown_field(kind, label))?.path.clone()
    };
    Ok(FieldRequirement { path, value: value.to_owned(), equal })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels_match(selector: &str, labels: &Value) -> bool {
        let parsed = parse_labels(selector).expect(selector);
        let value = |key: &str| labels.get(key).and_then(Value::as_str);
        parsed.iter().all(|requirement| requirement.holds(value(&requirement.key)))
    }

    #[test]
    fn label_selectors() {
        let labels = || json!({"app": "web", "k8s.io/tier": "3", "empty": ""});
        for selector in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=db",
            "other!=x",
            "!other",
            "app in (db, web)",
            "app notin (db)",
            "other notin (x)",
            "k8s.io/tier>2",
            "k8s.io/tier<4",
            "app=web,empty=",
            "empty",
        ] {
            assert!(labels_match(selector, &labels()), "{selector}");
        }
        for selector in
            ["other", "app=db", "app!=web", "!app", "app in (db)", "app notin (web,db)", "app>1", "k8s.io/tier<3"]
        {
            assert!(!labels_match(selector, &labels()), "{selector}");
        }
    }

    #[test]
    fn bad_label_selectors_are_refused() {
        for selector in ["a b", "app in web", "app within (web)", "app in (web", "=x", "app=a b", "app>x", "a,,b"] {
            assert!(parse_labels(selector).is_err(), "{selector}");
        }
    }
}
