//! A form with a signed policy.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Value as Json, json};
use stowage_testbed::sigv4::Signer;

/// Lifetime of a policy.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(5);

/// A form. Its policy allows its fields, unless it has a quirk.
#[derive(Clone)]
pub(in super::super) struct Form {
    pub(super) boundary: String,
    pub(super) parts: Vec<Part>,
    pub(super) quirk: Quirk,
    /// Prefix of the keys that its policy allows.
    pub(in super::super) starts: String,
}

#[derive(Clone)]
pub(super) struct Part {
    /// Headers of the part, without the empty line.
    pub(super) head: String,
    /// Name of the field in a policy; empty for a file.
    pub(super) name: String,
    pub(super) value: Value,
}

#[derive(Clone)]
pub(super) enum Value {
    Bytes(Vec<u8>),
    Credential,
    Date,
    Policy,
    Signature,
}

/// A fault or oddity of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quirk {
    Nothing,
    /// Data before the first boundary.
    Preamble,
    /// Lines end with a line feed only.
    LineFeeds,
    /// The last boundary is not marked as such.
    NoEnd,
    /// Data after the last boundary.
    Epilogue,
    /// The policy omits one of the fields.
    Unsigned,
    /// Blanks after a boundary.
    Padding,
}

impl Form {
    /// Returns the body, signed for this bucket.
    pub(in super::super) fn body(&self, signer: &Signer<'_>, bucket: &str) -> Vec<u8> {
        let (policy, signature) = signer.policy(&self.policy(signer, bucket));
        let line: &[u8] = if self.quirk == Quirk::LineFeeds { b"\n" } else { b"\r\n" };
        let padding = if self.quirk == Quirk::Padding { " " } else { "" };
        let mut body = if self.quirk == Quirk::Preamble { b"a\r\n".to_vec() } else { Vec::new() };
        for part in &self.parts {
            let value = match &part.value {
                Value::Bytes(bytes) => bytes.clone(),
                Value::Credential => signer.credential().into_bytes(),
                Value::Date => signer.stamp().into_bytes(),
                Value::Policy => policy.clone().into_bytes(),
                Value::Signature => signature.clone().into_bytes(),
            };
            let delimiter = format!("--{}{padding}", self.boundary).into_bytes();
            body.extend([delimiter.as_slice(), line, part.head.as_bytes(), line, line, &value, line].concat());
        }
        let end = if self.quirk == Quirk::NoEnd { "" } else { "--" };
        body.extend([format!("--{}{end}", self.boundary).as_bytes(), line].concat());
        if self.quirk == Quirk::Epilogue {
            body.extend(b"a\r\n--x\r\n");
        }
        body
    }

    /// Returns a policy that allows any value of each field, and keys with the allowed prefix.
    fn policy(&self, signer: &Signer<'_>, bucket: &str) -> Vec<u8> {
        let expiration = (signer.now + GOOD_FOR).strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string();
        let mut conditions: Vec<Json> = vec![json!({"bucket": bucket}), json!(["starts-with", "$key", self.starts])];
        let names: BTreeSet<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        let exempt = ["", "key", "bucket", "policy", "x-amz-signature"];
        let named = names.into_iter().filter(|name| !exempt.contains(name) && !name.starts_with("x-ignore-"));
        conditions.extend(named.map(|name| json!(["starts-with", format!("${name}"), ""])));
        if self.quirk == Quirk::Unsigned {
            conditions.pop();
        }
        json!({"expiration": expiration, "conditions": conditions}).to_string().into_bytes()
    }
}
