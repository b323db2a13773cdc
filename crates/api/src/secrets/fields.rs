//! Writing and reading the data of internal Secrets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

/// Error for an internal Secret that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {name}: field {field} is missing or damaged")]
pub struct DamagedSecret {
    /// Name of the Secret.
    pub name: String,
    /// Field that is missing or invalid.
    pub field: &'static str,
}

/// Data to write.
#[derive(Default)]
pub(super) struct Data(pub(super) BTreeMap<&'static str, Vec<u8>>);

impl Data {
    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        self.0.insert(key, value.as_bytes().to_vec());
    }

    pub(super) fn flag(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }
}

/// Data to read.
pub(super) struct Fields<'a>(pub(super) &'a Secret);

impl<'a> Fields<'a> {
    pub(super) fn optional(&self, field: &str) -> Option<&'a str> {
        let bytes = self.0.data.as_ref()?.get(field)?;
        std::str::from_utf8(&bytes.0).ok()
    }

    pub(super) fn text(&self, field: &'static str) -> Result<&'a str, DamagedSecret> {
        self.optional(field).filter(|text| !text.is_empty()).ok_or_else(|| self.damaged(field))
    }

    pub(super) fn parse<T>(&self, field: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DamagedSecret> {
        parse(self.text(field)?).ok_or_else(|| self.damaged(field))
    }

    pub(super) fn damaged(&self, field: &'static str) -> DamagedSecret {
        DamagedSecret { name: self.0.metadata.name.clone().unwrap_or_default(), field }
    }
}
