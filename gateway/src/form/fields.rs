//! The fields of a form: what they are, and which headers they stand for.

use crate::refusal::{Code, Refusal};

/// What stands in a key for the name of the file.
const FILENAME: &str = "${filename}";
/// Fields that sign, or are about the form alone; none of them is a header of the object.
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

/// The fields of a form that stand before its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Form {
    pub(super) fields: Vec<Field>,
    pub(super) filename: String,
}

/// A field. Nothing of it is believed before the policy has been looked at.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name in lower case: names count without regard to case.
    pub name: String,
    /// Its value as it came.
    pub value: String,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Among the values are signatures and keys of encryption.
        f.debug_struct("Field").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Form {
    /// The fields in their order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The value of a field. `name` is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.name == name).map(|field| field.value.as_str())
    }

    /// The object's key, with the file's name where the field says `${filename}`. The caller judges
    /// its length and its segments.
    ///
    /// # Errors
    /// A form without a key, or with an empty one.
    pub fn key(&self) -> Result<String, Refusal> {
        let key = self.get("key").map(|key| key.replace(FILENAME, &self.filename));
        key.filter(|key| !key.is_empty())
            .ok_or_else(|| Refusal::new(Code::InvalidArgument, "Bucket POST must contain a field named 'key'."))
    }

    /// What a client's PUT would have sent as headers: name and value. Whether they may be sent,
    /// and can stand in a header, is judged as for a PUT.
    ///
    /// `acl` is the header `x-amz-acl`. `tagging` stays as it is: its value is XML, where the
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

/// Whether a field means nothing, whatever it says.
pub(super) fn is_ignored(name: &str) -> bool {
    name.starts_with("x-ignore-")
}
