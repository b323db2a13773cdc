//! Form uploads: `POST` on a bucket with `multipart/form-data`, as browsers send it.
//!
//! [`read`] takes the fields before the file. [`claim`] and [`Claim::verify`] authorise them by the
//! signed policy. The file is streamed: [`File::measured`] makes it the body of a PUT, whose
//! headers are [`Form::headers`].
//!
//! Source: "Browser-based uploads using POST" in Amazon S3's API reference, RFC 7578, RFC 2046.

mod fields;
mod file;
mod parts;
mod policy;
mod refusals;
mod splitter;
mod success;
mod verify;

use http_body_util::BodyExt as _;

use crate::body::Body;
use crate::refusal::Refusal;
use refusals::incomplete;

pub use fields::{Field, Form};
pub use file::{File, Measured, Upload};
pub use parts::{Boundary, MAX_FIELDS, MAX_PREFIX};
pub use policy::{Condition, MAX_POLICY, Policy};
pub use success::Success;
pub use verify::{Claim, claim};

/// Reads the fields of a form up to its file. Takes at most [`MAX_PREFIX`] bytes, and the piece of
/// the body in which the file begins.
///
/// # Errors
/// `MalformedPOSTRequest` and `InvalidArgument` if it is not a form with a file, `EntityTooLarge`
/// if its fields are too many or too long, `IncompleteBody` if it ends before its file.
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

/// Maximum memory of [`read`] in bytes: the fields, and twice their length for the input buffer,
/// which grows by doubling.
pub const MOST_HELD: usize = 3 * MAX_PREFIX;

#[cfg(test)]
mod tests;
