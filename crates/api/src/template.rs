//! The bucket name template of a backend (spec §1, `spec.bucketNameTemplate`).

use sha2::{Digest, Sha256};

use super::names::{BucketName, InvalidName};

/// A parsed template: literal text and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Namespace,
    Name,
    Hash,
}

/// Error for an invalid template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    /// The template is empty.
    #[error("the template is empty")]
    Empty,
    /// A character other than `a-z 0-9 . -` is outside of `{{ }}`.
    #[error("character {0:?} at {1} may not stand in a bucket name; a-z 0-9 . - may")]
    Literal(char, usize),
    /// `{{` without `}}`.
    #[error("{{{{ at {0} is not closed")]
    Unclosed(usize),
    /// The text inside of `{{ }}` is not one of the three fields.
    #[error("{0:?} at {1} is not one of .Namespace, .Name, .Hash")]
    Field(String, usize),
}

impl NameTemplate {
    /// Parses a template. Positions in errors count bytes from 0.
    ///
    /// # Errors
    /// Returns an error if `text` contains anything except literal `a-z 0-9 . -` and the fields
    /// `{{ .Namespace }}`, `{{ .Name }}`, `{{ .Hash }}`. Trim markers, pipelines and the rest of
    /// Go's template language are rejected (spec §1).
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let mut parts = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let part_len = if let Some(inner) = rest.strip_prefix("{{") {
                let end = inner.find("}}").ok_or(InvalidTemplate::Unclosed(at))?;
                parts.push(Part::Field(Field::parse(&inner[..end], at)?));
                end + 4
            } else {
                let end = rest.find("{{").unwrap_or(rest.len());
                parts.push(Part::Literal(literal(&rest[..end], at)?));
                end
            };
            at += part_len;
        }
        if parts.is_empty() { Err(InvalidTemplate::Empty) } else { Ok(Self(parts)) }
    }

    /// Returns the bucket name for the claim `namespace/name`.
    ///
    /// # Errors
    /// Returns an error if the result is not a valid bucket name, for instance because it is too
    /// long.
    pub fn render(&self, namespace: &str, name: &str) -> Result<BucketName, InvalidName> {
        let text: String = self
            .0
            .iter()
            .map(|part| match part {
                Part::Literal(text) => text.clone(),
                Part::Field(Field::Namespace) => namespace.to_owned(),
                Part::Field(Field::Name) => name.to_owned(),
                Part::Field(Field::Hash) => short_hash(namespace, name),
            })
            .collect();
        BucketName::parse(&text)
    }
}

impl Field {
    fn parse(inner: &str, at: usize) -> Result<Self, InvalidTemplate> {
        match inner.trim_matches(' ') {
            ".Namespace" => Ok(Self::Namespace),
            ".Name" => Ok(Self::Name),
            ".Hash" => Ok(Self::Hash),
            _ => Err(InvalidTemplate::Field(inner.to_owned(), at)),
        }
    }
}

fn literal(text: &str, at: usize) -> Result<String, InvalidTemplate> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
    match text.char_indices().find(|(_, c)| !allowed(*c)) {
        Some((offset, c)) => Err(InvalidTemplate::Literal(c, at + offset)),
        None => Ok(text.to_owned()),
    }
}

/// Returns the first 8 hex digits of the SHA-256 of `namespace/name` (spec §1).
fn short_hash(namespace: &str, name: &str) -> String {
    hex::encode(Sha256::digest(format!("{namespace}/{name}")))[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // covers: 1.backend.template
    #[rstest]
    #[case("{{ .Namespace }}-{{ .Name }}", "team-a-photos")]
    #[case("{{.Name}}", "photos")]
    #[case("x.{{   .Hash }}", "x.06175a4c")]
    fn renders(#[case] template: &str, #[case] bucket: &str) {
        let name = NameTemplate::parse(template).unwrap().render("team-a", "photos").unwrap();
        assert_eq!(name.as_str(), bucket);
    }

    // covers: 1.backend.template.hash
    #[test]
    fn the_hash_is_that_of_the_contract() {
        // printf team-a/photos | sha256sum
        assert_eq!(short_hash("team-a", "photos"), "06175a4c");
    }

    // covers: 1.backend.template
    #[rstest]
    #[case("", InvalidTemplate::Empty)]
    #[case("a{{ .Name", InvalidTemplate::Unclosed(1))]
    #[case("{{- .Name }}", InvalidTemplate::Field("- .Name ".into(), 0))]
    #[case("{{ .Name | lower }}", InvalidTemplate::Field(" .Name | lower ".into(), 0))]
    #[case("{{ .Labels }}", InvalidTemplate::Field(" .Labels ".into(), 0))]
    #[case("{{\t.Name }}", InvalidTemplate::Field("\t.Name ".into(), 0))]
    #[case("ab_{{ .Name }}", InvalidTemplate::Literal('_', 2))]
    #[case("a}}b", InvalidTemplate::Literal('}', 1))]
    fn refuses(#[case] template: &str, #[case] error: InvalidTemplate) {
        assert_eq!(NameTemplate::parse(template), Err(error));
    }

    // covers: 1.claim.bucketName.rendered
    #[test]
    fn a_rendered_name_obeys_the_rules_of_bucket_names() {
        let template = NameTemplate::parse("{{ .Namespace }}-{{ .Name }}").unwrap();
        assert!(template.render("team-a", &"x".repeat(60)).is_err());
        assert!(template.render("a", "b..c").is_err());
    }
}
