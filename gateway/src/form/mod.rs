//! Uploads by a form: `POST` on a bucket with `multipart/form-data`, as browsers send it.
//!
//! [`read`] takes the fields before the file; they say who uploads what, and [`claim`] and
//! [`Claim::verify`] judge them by the policy that was signed. The file flows on:
//! [`File::measured`] makes it the body of a PUT, whose headers are [`Form::headers`].
//!
//! Source: "Browser-based uploads using POST" in Amazon S3's API reference, RFC 7578, RFC 2046.

mod file;
mod parts;
mod policy;
mod splitter;
mod success;
mod verify;

use http_body_util::BodyExt as _;

use crate::body::Body;
use crate::refusal::{Code, Refusal};

pub use file::{File, Measured, Upload};
pub use parts::{Boundary, MAX_FIELDS, MAX_PREFIX};
pub use policy::{Condition, MAX_POLICY, Policy};
pub use success::Success;
pub use verify::{Claim, claim};

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
    fields: Vec<Field>,
    filename: String,
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
fn is_ignored(name: &str) -> bool {
    name.starts_with("x-ignore-")
}

/// Reads the fields of a form up to its file. Takes at most [`MAX_PREFIX`] bytes and the piece of
/// the body in which the file begins.
///
/// # Errors
/// `MalformedPOSTRequest` and `InvalidArgument` where it is no form with a file, `EntityTooLarge`
/// where its fields are too many or too long, `IncompleteBody` where it ends before its file.
pub async fn read(mut body: Body, boundary: Boundary) -> Result<(Form, File), Refusal> {
    let mut reader = parts::Reader::new(&boundary);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| incomplete())?;
        let Ok(data) = frame.into_data() else { continue };
        if let Some(found) = reader.push(data)? {
            let parts::Found { form, prefix, rest } = found;
            return Ok((form, File::new(body, &boundary, prefix, rest)?));
        }
    }
    Err(incomplete())
}

/// Most bytes of memory that [`read`] takes: the fields, and twice their length for what they are
/// read from, which grows by doubling.
pub const MOST_HELD: usize = 3 * MAX_PREFIX;

fn incomplete() -> Refusal {
    Refusal::new(Code::IncompleteBody, "The form ended before its last delimiter.")
}

fn malformed(message: &'static str) -> Refusal {
    Refusal::new(Code::MalformedPOSTRequest, message)
}

#[cfg(test)]
mod tests;
