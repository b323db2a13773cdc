//! The fields of a form, and the headers that they stand for.

use crate::refusal::{Code, Refusal};

/// The placeholder for the file's name in a key.
const FILENAME: &str = "${filename}";
/// Fields of the signature, or about the form itself. None of them is a header of the object.
const NO_HEADERS: [&str; 10] = [
    "bucket",
    "key",
    "policy",
    "redirect",
    "success_action_redirect",
    "success_action_status",
    "x-amz-algorithm",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-signature",
];

/// The fields of a form before its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub(super) fields: Vec<Field>,
    pub(super) filename: String,
}

/// A field. It is untrusted until the policy has been verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the field in lower case, as names are case-insensitive.
    pub name: String,
    /// Value of the field as it was sent.
    pub value: String,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values may be signatures and encryption keys.
        f.debug_struct("Field").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Form {
    /// Returns the fields in order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the value of a field. `name` is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.name == name).map(|field| field.value.as_str())
    }

    /// Returns the object's key, with `${filename}` replaced by the file's name. The caller checks
    /// its length and its segments.
    ///
    /// # Errors
    /// Returns an error if the form has no key, or an empty one.
    pub fn key(&self) -> Result<String, Refusal> {
        let key = self.get("key").map(|key| key.replace(FILENAME, &self.filename));
        key.filter(|key| !key.is_empty())
            .ok_or_else(|| Refusal::new(Code::InvalidArgument, "Bucket POST must contain a field named 'key'."))
    }

    /// Returns the headers of an equivalent PUT: name and value. The caller checks them as for a
    /// PUT, and that they are valid in a header.
    ///
    /// `acl` becomes the header `x-amz-acl`. `tagging` is unchanged, as its value is XML, while the
    /// header `x-amz-tagging` has a query.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let meant = self.fields.iter().filter(|field| {
            let name = field.name.as_str();
            !NO_HEADERS.contains(&name) && !is_ignored(name)
        });
        meant.map(|field| {
            let name = if field.name == "acl" { "x-amz-acl" } else { field.name.as_str() };
            (name, field.value.as_str())
        })
    }
}

/// Returns true if a field has no meaning.
pub(super) fn is_ignored(name: &str) -> bool {
    name.starts_with("x-ignore-")
}
