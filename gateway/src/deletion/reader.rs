//! The reader of DeleteObjects documents (Amazon S3, "Delete" and "ObjectIdentifier"). It accepts
//! nothing else.

use super::objects::{Answer, Doomed, MOST_OBJECTS};
use crate::head::{Key, is_id};
use crate::refusal::{Code, Refusal};
use crate::xml::{Reader, malformed, once};

/// The objects, each once; the keys of those listed again; and the form of the answer.
type Read = (Vec<Doomed>, Vec<Key>, Answer);

/// Reads a document.
pub(super) fn read(document: &[u8]) -> Result<Read, Refusal> {
    let mut reader = Reader::open(document, b"Delete")?;
    let deletion = deletion(&mut reader)?;
    reader.end()?;
    Ok(deletion)
}

fn deletion(reader: &mut Reader<'_>) -> Result<Read, Refusal> {
    let (mut objects, mut answer) = (Vec::new(), None);
    while let Some(element) = reader.element()? {
        match element.name().as_ref() {
            b"Object" if objects.len() < MOST_OBJECTS => objects.push(object(reader)?),
            b"Quiet" => once(&mut answer, quiet(&reader.text(malformed)?)?)?,
            _ => return Err(malformed()),
        }
    }
    if objects.is_empty() {
        return Err(malformed());
    }
    let (objects, repeated) = merged(objects)?;
    Ok((objects, repeated, answer.unwrap_or_default()))
}

/// Separates repeated objects, because a store that is asked twice deletes twice. In Amazon S3 the
/// second deletion acts on what the first has left. Returns each object once, and the keys of
/// repetitions.
fn merged(mut objects: Vec<Doomed>) -> Result<(Vec<Doomed>, Vec<Key>), Refusal> {
    let name = |at: &usize| objects.get(*at).map(|object| (object.key.as_str(), object.version.as_deref()));
    let mut order: Vec<usize> = (0..objects.len()).collect();
    // Equal objects keep the document's order.
    order.sort_unstable_by(|one, other| name(one).cmp(&name(other)).then(one.cmp(other)));
    let mut is_again = vec![false; objects.len()];
    for (one, other) in order.iter().zip(order.iter().skip(1)).filter(|(one, other)| name(one) == name(other)) {
        if objects.get(*one) != objects.get(*other) {
            let message = "An object is named twice, with different conditions.";
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        is_again.iter_mut().skip(*other).take(1).for_each(|is| *is = true);
    }
    let (mut is_again, mut repeated) = (is_again.into_iter(), Vec::new());
    objects.retain(|object| {
        let is_again = is_again.next().unwrap_or_default();
        repeated.extend(Some(object.key.clone()).filter(|_| is_again));
        !is_again
    });
    Ok((objects, repeated))
}

fn object(reader: &mut Reader<'_>) -> Result<Doomed, Refusal> {
    let (mut key, mut version, mut etag, mut modified, mut size) = (None, None, None, None, None);
    while let Some(element) = reader.element()? {
        match element.name().as_ref() {
            b"Key" => once(&mut key, read_key(reader)?)?,
            b"VersionId" => once(&mut version, read_version(reader)?)?,
            b"ETag" => once(&mut etag, reader.text(malformed)?.into_boxed_str())?,
            b"LastModifiedTime" => once(&mut modified, reader.text(malformed)?.into_boxed_str())?,
            b"Size" => once(&mut size, number(&reader.text(malformed)?)?)?,
            _ => return Err(malformed()),
        }
    }
    Ok(Doomed { key: key.ok_or_else(malformed)?, version, etag, modified, size })
}

fn read_key(reader: &mut Reader<'_>) -> Result<Key, Refusal> {
    let too_long = || Refusal::new(Code::KeyTooLongError, "Your key is too long: it has more than 1024 bytes.");
    let text = reader.text(too_long)?;
    if text.is_empty() {
        return Err(malformed());
    }
    Key::parse(text.as_bytes())
}

fn read_version(reader: &mut Reader<'_>) -> Result<Box<str>, Refusal> {
    let id = reader.text(malformed)?;
    if !is_id(id.as_bytes()) {
        let refusal = Refusal::new(Code::InvalidArgument, "This is no id that a store has given.");
        return Err(refusal.with("ArgumentName", "VersionId"));
    }
    Ok(id.into_boxed_str())
}

fn quiet(text: &str) -> Result<Answer, Refusal> {
    let text = text.trim_ascii();
    if text.eq_ignore_ascii_case("true") {
        Ok(Answer::Errors)
    } else if text.eq_ignore_ascii_case("false") {
        Ok(Answer::Full)
    } else {
        Err(malformed())
    }
}

fn number(text: &str) -> Result<u64, Refusal> {
    let text = text.trim_ascii();
    // `parse` would accept a sign.
    let has_digits_alone = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| has_digits_alone).ok_or_else(malformed)
}
