//! Templates of bucket names: the first line of the input. The next two are the namespace and the
//! name of a claim.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use sha2::{Digest, Sha256};
use stowage_api::{BucketName, InvalidTemplate, NameTemplate};

use super::definitions::Rules;
use super::names::pattern;

static TEMPLATE: LazyLock<Rules> = LazyLock::new(|| Rules::of_backend("bucketNameTemplate"));
static FIELD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{\{ *\.(Namespace|Name|Hash) *\}\}"));

/// Reads a template as the definition does, and renders it.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut lines = text.split('\n');
    let template = lines.next().unwrap_or_default();
    let namespace = lines.next().unwrap_or("team-a");
    let name = lines.next().unwrap_or("photos");
    let parsed = NameTemplate::parse(template);
    assert_eq!(parsed.is_ok(), TEMPLATE.allow(template), "{template:?}: {parsed:?}");
    match parsed {
        Ok(parsed) => {
            let expected = rendered(template, namespace, name);
            match parsed.render(namespace, name) {
                Ok(bucket) => assert_eq!(bucket.as_str(), expected, "{template:?}"),
                Err(error) => {
                    assert_eq!(error.text, expected, "{template:?}");
                    assert!(BucketName::parse(&expected).is_err(), "{template:?} gives {expected:?}: {error}");
                }
            }
        }
        Err(error) => points_at_it(template, &error),
    }
}

/// The template with its fields filled in, as the contract words it.
fn rendered(template: &str, namespace: &str, name: &str) -> String {
    let field = |captures: &Captures<'_>| match &captures[1] {
        "Namespace" => namespace.to_owned(),
        "Name" => name.to_owned(),
        _ => hex::encode(Sha256::digest(format!("{namespace}/{name}")))[..8].to_owned(),
    };
    FIELD.replace_all(template, field).into_owned()
}

/// What an error speaks of stands where it says.
fn points_at_it(template: &str, error: &InvalidTemplate) {
    let stands = |at: usize, what: &str| template.get(at..).is_some_and(|rest| rest.starts_with(what));
    let is_there = match error {
        InvalidTemplate::Empty => template.is_empty(),
        InvalidTemplate::Literal(c, at) => stands(*at, &c.to_string()),
        InvalidTemplate::Unclosed(at) => stands(*at, "{{"),
        InvalidTemplate::Field(inner, at) => stands(*at, &format!("{{{{{inner}}}}}")),
    };
    assert!(is_there, "{template:?}: {error}");
}
