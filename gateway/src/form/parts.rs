//! A parser of the parts before a form's file, for input in pieces of any size.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem::Finder;

use super::fields::{Field, Form, is_ignored};
use super::refusals::{malformed, too_large, two_readings};
use crate::refusal::{Code, Refusal};

/// Maximum number of fields before the file.
pub const MAX_FIELDS: usize = 64;
/// Maximum number of bytes before the file. Amazon S3 allows 20 KB of fields ("POST Object"), and
/// the heads of parts come on top.
pub const MAX_PREFIX: usize = 24 << 10;
/// Maximum length of the head of a part, in bytes.
const MAX_PART_HEAD: usize = 4 << 10;
/// Maximum number of lines in the head of a part. Browsers send two.
const MAX_PART_LINES: usize = 16;
/// Maximum number of parameters of a header. Browsers send two.
const MAX_PARAMETERS: usize = 8;
const END_OF_LINE: &[u8] = b"\r\n";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// The boundary between the parts of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary(String);

impl Boundary {
    /// Parses the `content-type` header. Returns `None` if it is not a form's.
    ///
    /// # Errors
    /// Returns an error if the boundary is missing, repeated or not allowed by RFC 2046.
    pub fn of(content_type: &str) -> Result<Option<Self>, Refusal> {
        let (kind, behind) = content_type.split_once(';').unwrap_or((content_type, ""));
        if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
            return Ok(None);
        }
        let [value] = parameters(behind, ["boundary"])?;
        let value = value.ok_or_else(|| malformed("The form's content type names no boundary."))?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
        let is_valid = (1..=70).contains(&value.len()) && value.bytes().all(is_allowed) && !value.ends_with(' ');
        if is_valid { Ok(Some(Self(value))) } else { Err(malformed("The form's boundary can't be one.")) }
    }

    /// Returns the delimiter at the end of a part, without the characters that say if another part
    /// follows.
    pub(super) fn delimiter(&self) -> Vec<u8> {
        ["\r\n--", &self.0].concat().into_bytes()
    }
}

/// The result of parsing up to the file.
#[derive(Debug)]
pub(super) struct Found {
    /// The fields before the file.
    pub form: Form,
    /// The number of bytes before the file.
    pub prefix: u64,
    /// The first bytes of the file, and those after them.
    pub rest: [Bytes; 2],
}

/// A parser of fields up to the file.
///
/// A client chooses the number of pieces of a form before it is authenticated. So nothing is read
/// twice: a head is parsed once, and a byte is not searched again for each one that follows.
pub(super) struct Reader {
    delimiter: Finder<'static>,
    end_of_head: Finder<'static>,
    at: At,
    window: Window,
    fields: Vec<Field>,
}

/// The item at the beginning of the window.
enum At {
    /// A delimiter.
    Delimiter,
    /// The line end of the delimiter, followed by the head of a part.
    Head,
    /// The value of the field of this name.
    Value(String),
}

/// The result of a step.
enum Step {
    /// More input is needed.
    Wait,
    /// An item was read.
    On,
    /// The head of the file was read. The file has this name.
    File(String),
}

impl Reader {
    pub(super) fn new(boundary: &Boundary) -> Self {
        let delimiter = Finder::new(&boundary.delimiter()).into_owned();
        // The first delimiter has no line before it. With a line end, all delimiters are alike.
        let window = Window { bytes: BytesMut::from(END_OF_LINE), ..Window::default() };
        Self { delimiter, end_of_head: Finder::new(END_OF_HEAD), at: At::Delimiter, window, fields: Vec::new() }
    }

    /// Takes the next piece of the body.
    pub(super) fn push(&mut self, mut piece: Bytes) -> Result<Option<Found>, Refusal> {
        while !piece.is_empty() {
            let room = (MAX_PREFIX + END_OF_LINE.len()).saturating_sub(self.window.passed + self.window.bytes.len());
            if room == 0 {
                return Err(too_large("The fields of the form are longer than 24 KiB."));
            }
            let taken = piece.split_to(room.min(4 << 10).min(piece.len()));
            self.window.bytes.extend_from_slice(&taken);
            loop {
                match self.step()? {
                    Step::Wait => break,
                    Step::On => {}
                    Step::File(filename) => {
                        let form = Form { fields: std::mem::take(&mut self.fields), filename };
                        let prefix = self.window.passed.saturating_sub(END_OF_LINE.len());
                        let prefix = u64::try_from(prefix).unwrap_or_default();
                        return Ok(Some(Found { form, prefix, rest: [self.window.bytes.split().freeze(), piece] }));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Reads the item at the beginning of the window, if it is complete.
    fn step(&mut self) -> Result<Step, Refusal> {
        match std::mem::replace(&mut self.at, At::Delimiter) {
            At::Delimiter => self.delimiter(),
            At::Head => self.head(),
            At::Value(name) => self.value(name),
        }
    }

    fn delimiter(&mut self) -> Result<Step, Refusal> {
        let delimiter = self.delimiter.needle();
        let end = delimiter.len();
        let Some(mark) = self.window.bytes.get(end..end + END_OF_LINE.len()) else { return Ok(Step::Wait) };
        if !self.window.bytes.starts_with(delimiter) {
            return Err(malformed("The form does not begin with its boundary."));
        }
        match mark {
            END_OF_LINE => {}
            b"--" => {
                return Err(Refusal::new(Code::InvalidArgument, "POST requires exactly one file upload per request."));
            }
            _ => return Err(malformed("A boundary of the form is not alone on its line.")),
        }
        // The line end stays: it may also be the end of a head without lines.
        self.window.advance(end);
        self.at = At::Head;
        Ok(Step::On)
    }

    fn head(&mut self) -> Result<Step, Refusal> {
        let long = || malformed("The head of a part of the form is too long.");
        let Some(end) = self.window.find(&self.end_of_head) else {
            if self.window.bytes.len() >= END_OF_LINE.len() + MAX_PART_HEAD + END_OF_HEAD.len() {
                return Err(long());
            }
            self.at = At::Head;
            return Ok(Step::Wait);
        };
        let head = self.window.bytes.get(END_OF_LINE.len()..end).unwrap_or_default();
        if head.len() > MAX_PART_HEAD {
            return Err(long());
        }
        let Disposition { name, filename } = Disposition::read(head)?;
        self.window.looked_at(end);
        self.window.advance(end + END_OF_HEAD.len());
        if name == "file" {
            return Ok(Step::File(filename));
        }
        self.at = At::Value(name);
        Ok(Step::On)
    }

    fn value(&mut self, name: String) -> Result<Step, Refusal> {
        let Some(end) = self.window.find(&self.delimiter) else {
            self.at = At::Value(name);
            return Ok(Step::Wait);
        };
        let value = self.window.bytes.get(..end).unwrap_or_default();
        if value.starts_with(without_line(self.delimiter.needle())) {
            return Err(two_readings());
        }
        let value = str::from_utf8(value).map_err(|_| malformed("A field of the form is not UTF-8."))?.to_owned();
        self.window.looked_at(end);
        self.add(Field { name, value })?;
        self.window.advance(end);
        Ok(Step::On)
    }

    fn add(&mut self, field: Field) -> Result<(), Refusal> {
        if self.fields.len() >= MAX_FIELDS {
            return Err(too_large("The form has more than 64 fields."));
        }
        if !is_ignored(&field.name) && self.fields.iter().any(|other| other.name == field.name) {
            return Err(malformed("The form has a field twice."));
        }
        self.fields.push(field);
        Ok(())
    }
}

/// The unread part of a form.
#[derive(Default)]
struct Window {
    bytes: BytesMut,
    /// Number of bytes already searched. A match may still begin in the last ones.
    searched: usize,
    /// Number of bytes before the window.
    passed: usize,
    /// Number of bytes examined, each counted as often as it was.
    #[cfg(test)]
    looked: usize,
}

impl Window {
    /// Returns the first position of `what`. Until the next `advance`, only bytes not searched yet
    /// are searched.
    fn find(&mut self, what: &Finder<'_>) -> Option<usize> {
        let width = what.needle().len();
        let from = (self.searched + 1).saturating_sub(width);
        let unsearched = self.bytes.get(from..)?;
        let length = unsearched.len();
        let found = what.find(unsearched);
        self.looked_at(found.map_or(length, |at| at + width));
        self.searched = self.bytes.len();
        found.map(|at| from + at)
    }

    /// Moves past the bytes that have been read.
    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.passed += count;
        self.searched = 0;
    }

    #[cfg(test)]
    fn looked_at(&mut self, count: usize) {
        self.looked += count;
    }

    /// Counts in tests only.
    #[cfg(not(test))]
    fn looked_at(&self, _count: usize) {}
}

/// Returns a delimiter without the line end before it.
pub(super) fn without_line(delimiter: &[u8]) -> &[u8] {
    delimiter.strip_prefix(END_OF_LINE).unwrap_or(delimiter)
}

/// The `Content-Disposition` of a part.
struct Disposition {
    /// Name of the field, in lower case.
    name: String,
    /// Name of the file, without the directories that some browsers send.
    filename: String,
}

impl Disposition {
    fn read(head: &[u8]) -> Result<Self, Refusal> {
        let head = str::from_utf8(head).map_err(|_| malformed("The head of a part of the form is not UTF-8."))?;
        let mut disposition = None;
        for (number, line) in head.split("\r\n").enumerate() {
            if number >= MAX_PART_LINES {
                return Err(malformed("The head of a part of the form has too many lines."));
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| malformed("The head of a part of the form can't be read."))?;
            if name.eq_ignore_ascii_case("content-disposition") && disposition.replace(value.trim()).is_some() {
                return Err(malformed("A part of the form has two dispositions."));
            }
            let is_coded = name.eq_ignore_ascii_case("content-transfer-encoding")
                && !["binary", "8bit", "7bit"].iter().any(|plain| value.trim().eq_ignore_ascii_case(plain));
            if is_coded {
                // The file would be stored in its encoded form.
                return Err(malformed("Parts of the form may not be encoded for transfer."));
            }
        }
        let (kind, behind) = disposition.and_then(|text| text.split_once(';')).unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("form-data") {
            return Err(malformed("A part of the form is not form data."));
        }
        let [name, path] = parameters(behind, ["name", "filename"])?;
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| malformed("A part of the form has no name."))?.to_ascii_lowercase();
        let path = path.unwrap_or_default();
        let filename = path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        Ok(Self { name, filename })
    }
}

/// Returns the values of the parameters with these names after a header's value: `a=b; c="d"`. None
/// of them may be repeated.
fn parameters<const N: usize>(text: &str, names: [&str; N]) -> Result<[Option<String>; N], Refusal> {
    const FORM: &str = "The parameters of a header of the form can't be read.";
    let mut rest = text.trim();
    let mut values = [const { None }; N];
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        if count > MAX_PARAMETERS {
            return Err(malformed("A header of the form has too many parameters."));
        }
        let (key, after) = rest.split_once('=').ok_or_else(|| malformed(FORM))?;
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted).ok_or_else(|| malformed(FORM))?,
            None => {
                let end = after.find(';').unwrap_or(after.len());
                let (value, after) = after.split_at_checked(end).unwrap_or((after, ""));
                (value.trim().to_owned(), after)
            }
        };
        let place = names.iter().zip(&mut values).find(|(name, _)| key.trim().eq_ignore_ascii_case(name));
        if place.is_some_and(|(_, place)| place.replace(value).is_some()) {
            return Err(malformed("A parameter of a header of the form is given twice."));
        }
        let after = after.trim_start();
        rest = after
            .strip_prefix(';')
            .map(str::trim_start)
            .or(after.is_empty().then_some(""))
            .ok_or_else(|| malformed(FORM))?;
    }
    Ok(values)
}

/// Returns the text before the closing quote, and the text after it. Only quotes are escaped:
/// browsers send the backslashes of a path unescaped.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        match before.strip_suffix('\\') {
            Some(before) => out.extend([before, "\""]),
            None => {
                out.push_str(before);
                return Some((out, after));
            }
        }
        rest = after;
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
