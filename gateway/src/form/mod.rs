//! Uploads by a form: `POST` on a bucket with `multipart/form-data`, as browsers send it.
//!
//! [`read`] takes the fields before the file; they say who uploads what, and [`claim`] and
//! [`Claim::verify`] judge them by the policy that was signed. The file flows on:
//! [`File::measured`] makes it the body of a PUT, whose headers are [`Form::headers`].
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

#[cfg(test)]
mod tests;
