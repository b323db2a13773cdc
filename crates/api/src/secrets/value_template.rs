//! Templates for values in a consumer Secret: literal text with fields (spec §10).

use super::super::names::BucketName;
use super::shape::{SecretShape, SecretValues, quoted};

/// A template: literal text and fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueTemplate(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Field(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    AccessKeyId,
    SecretAccessKey,
    Bucket,
    Buckets,
    Endpoint,
    Host,
    Port,
    Region,
    AddressingStyle,
    CaBundle,
}

/// Value of each field, indexed by its position in [`Field::ALL`].
pub(super) type Texts = [String; Field::ALL.len()];

impl Field {
    const ALL: [(&'static str, Self); 10] = [
        (".AccessKeyId", Self::AccessKeyId),
        (".SecretAccessKey", Self::SecretAccessKey),
        (".Bucket", Self::Bucket),
        (".Buckets", Self::Buckets),
        (".Endpoint", Self::Endpoint),
        (".Host", Self::Host),
        (".Port", Self::Port),
        (".Region", Self::Region),
        (".AddressingStyle", Self::AddressingStyle),
        (".CABundle", Self::CaBundle),
    ];

    /// Parses the text between `{{` and `}}`.
    fn parse(inner: &str) -> Result<Self, String> {
        let name = inner.trim_matches(' ');
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, field)| *field).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            format!("{:?} is none of {}", quoted(inner), all.join(" "))
        })
    }
}

impl SecretValues<'_> {
    /// Returns the value of each field.
    pub(super) fn texts(&self) -> Texts {
        let Self { id, secret, buckets, gateway } = *self;
        let names: Vec<&str> = buckets.iter().map(BucketName::as_str).collect();
        let (host, port) = gateway.endpoint.host_and_port();
        Field::ALL.map(|(_, field)| match field {
            Field::AccessKeyId => id.as_str().to_owned(),
            Field::SecretAccessKey => secret.expose().to_owned(),
            // Like BUCKET_NAME: empty unless there is exactly one bucket.
            Field::Bucket => {
                if let [only] = names.as_slice() {
                    (*only).to_owned()
                } else {
                    String::new()
                }
            }
            Field::Buckets => names.join(","),
            Field::Endpoint => gateway.endpoint.to_string(),
            Field::Host => host.clone(),
            Field::Port => port.to_string(),
            Field::Region => gateway.region.clone(),
            Field::AddressingStyle => gateway.addressing_style.as_str().to_owned(),
            Field::CaBundle => gateway.ca.as_deref().unwrap_or_default().to_owned(),
        })
    }
}

impl ValueTemplate {
    /// Parses a template. Positions in errors count bytes from 0.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > SecretShape::LONGEST_TEMPLATE {
            return Err(format!("{} bytes; {} are the most", text.len(), SecretShape::LONGEST_TEMPLATE));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((literal, opened)) = rest.split_once("{{") {
            let at = text.len() - opened.len() - 2;
            let (inner, after) = opened.split_once("}}").ok_or_else(|| format!("{{{{ at {at} is not closed"))?;
            parts.push(Part::Literal(literal.to_owned()));
            parts.push(Part::Field(Field::parse(inner).map_err(|why| format!("at {at}: {why}"))?));
            rest = after;
        }
        parts.push(Part::Literal(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Returns the pieces of the rendered value.
    pub(super) fn texts<'a>(&'a self, values: &'a Texts) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|part| match part {
            Part::Literal(text) => text.as_str(),
            Part::Field(field) => values[*field as usize].as_str(),
        })
    }
}
