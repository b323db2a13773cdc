//! The data of internal Secrets, as it is written and read.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;

/// A Secret of ours that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Secret {name}: field {field} is missing or damaged")]
pub struct DamagedSecret {
    /// Name of the Secret.
    pub name: String,
    /// The field that can't be read.
    pub field: &'static str,
}

/// Data that is to be written.
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

/// Data that is read.
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
