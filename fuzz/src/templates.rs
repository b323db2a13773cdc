//! Templates of bucket names: the first line of an input, with the namespace and the name of a
//! claim in the next two lines. The whole input is also played as a template of a Secret's value.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use sha2::{Digest, Sha256};
use stowage_api::{
    AccessKeyId, AddressingStyle, BucketName, Endpoint, Gateway, InvalidTemplate, NameTemplate, Publishing, SecretKey,
    SecretShape, SecretTemplate, SecretValues, Shaped,
};

use super::definitions::Rules;
use super::names::pattern;

static TEMPLATE: LazyLock<Rules> = LazyLock::new(|| Rules::of_backend("bucketNameTemplate"));
static VALUE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)\{\{(.*?)\}\}"));
static FIELD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{\{ *\.(Namespace|Name|Hash) *\}\}"));

/// Compares a parsed template with the definition's rules, and renders it.
pub(crate) fn play(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    value(text);
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

/// Checks that a template of a Secret's value is accepted exactly if all its braces enclose fields,
/// and that it is rendered as specified (spec §10).
fn value(text: &str) {
    let template = SecretTemplate {
        data: Some(BTreeMap::from([("key".to_owned(), text.to_owned())])),
        ..SecretTemplate::default()
    };
    let fields = [
        (".AccessKeyId", "AKIAQ"),
        (".SecretAccessKey", "s3cr3t"),
        (".Bucket", "photos"),
        (".Buckets", "photos"),
        (".Endpoint", "https://s3.example"),
        (".Host", "s3.example"),
        (".Port", "443"),
        (".Region", "eu"),
        (".AddressingStyle", "path"),
        (".CABundle", "PEM"),
    ];
    let stands_for = |inner: &str| fields.iter().find(|(name, _)| *name == inner.trim_matches(' ')).map(|(_, it)| *it);
    let is_known = VALUE.captures_iter(text).all(|field| stands_for(&field[1]).is_some());
    let is_closed = !VALUE.replace_all(text, "").contains("{{");
    let shape = SecretShape::parse(Some(&template));
    assert_eq!(shape.is_ok(), is_known && is_closed && text.len() <= SecretShape::LONGEST_TEMPLATE, "{shape:?}");
    let Ok(shape) = shape else { return };
    let gateway = Gateway {
        endpoint: Endpoint::parse("https://s3.example").expect("a URL"),
        region: "eu".to_owned(),
        addressing_style: AddressingStyle::Path,
        ca: Some("PEM".into()),
    };
    let (id, secret) = (AccessKeyId::of(&stowage_api::ClaimUid::new("u"), 1), SecretKey::new("s3cr3t".to_owned()));
    let buckets = [BucketName::parse("photos").expect("a name")];
    let values = SecretValues { id: &id, secret: &secret, buckets: &buckets, gateway: &gateway };
    let shaped = Shaped { publishing: &Publishing::default(), shape: &shape };
    let extra = shaped.extra(values).expect("it is small");
    let expected = VALUE.replace_all(text, |field: &Captures<'_>| match stands_for(&field[1]) {
        Some("AKIAQ") => id.to_string(),
        other => other.unwrap_or_default().to_owned(),
    });
    assert_eq!(String::from_utf8_lossy(&extra.data["key"]), expected);
}

/// Renders a template as the contract specifies.
fn rendered(template: &str, namespace: &str, name: &str) -> String {
    let field = |captures: &Captures<'_>| match &captures[1] {
        "Namespace" => namespace.to_owned(),
        "Name" => name.to_owned(),
        _ => hex::encode(Sha256::digest(format!("{namespace}/{name}")))[..8].to_owned(),
    };
    FIELD.replace_all(template, field).into_owned()
}

/// Checks that an error's position is that of the text it is about.
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
