//! Checks of a request's result: the operation that the store understood, and every byte that it
//! received.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri};
use serde::Serialize;
use stowage_gateway::head::{Ask, Domains, Operation, Sent};
use stowage_testbed::request::Signed;

use super::generate::{Body, Request, Who};
use super::read::Read;
use super::recorder::Received;
use super::rules::{self, Rights};
use super::wire::{Answer, PAYLOAD, Written};
use super::xml::{self, Element};

/// A line of versitygw's access log, with the fields that depend on a request's head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Understood {
    pub(super) bucket: String,
    pub(super) operation: String,
    /// Key, URI and the fields after them. They are not quoted in the log, and may contain
    /// anything.
    pub(super) rest: String,
}

impl Understood {
    /// Parses `owner bucket [time zone] address requester id operation key…`. Returns `None` for
    /// other lines, such as the second half of a line with a line feed in its key.
    pub(super) fn read(line: &str) -> Option<Self> {
        let mut words = line.splitn(9, ' ');
        let (_, bucket) = (words.next()?, words.next()?);
        if !words.next()?.starts_with('[') || !words.next()?.ends_with(']') {
            return None;
        }
        let (_, _, _) = (words.next()?, words.next()?, words.next()?);
        let (operation, rest) = (words.next()?, words.next()?);
        Some(Self { bucket: bucket.to_owned(), operation: operation.to_owned(), rest: rest.to_owned() })
    }

    fn is(&self, bucket: &str, operation: &str) -> bool {
        self.bucket == bucket && self.operation == operation
    }
}

/// Result of a request.
pub(super) struct Outcome<'a> {
    pub(super) received: &'a [Received],
    pub(super) understood: &'a [Understood],
    pub(super) answer: &'a Answer,
}

/// Limits for a result.
pub(super) struct Bounds<'a> {
    pub(super) rights: &'a Rights,
    /// Contents that no response may have, because no sender may read them.
    pub(super) secrets: &'a [String],
}

/// Verdict on the result of a request.
pub(super) struct Judged {
    /// Everything that is wrong; empty if the result is in order.
    pub(super) wrong: Vec<String>,
    /// True if the store received it, and not only a lookup that the gateway makes before it.
    pub(super) is_forwarded: bool,
}

/// Checks the result of a request.
pub(super) fn judge(request: &Request, sent: &Written, outcome: &Outcome<'_>, bounds: &Bounds<'_>) -> Judged {
    let mut wrong = Vec::new();
    let expected = Expected::of(request, sent);
    let is_forwarded = !expected.behind_looks(outcome.understood).is_empty();
    wrong.extend(understood_otherwise(&expected, outcome.understood).err());
    for received in outcome.received {
        if let Err(why) = check(received, request, sent, bounds.rights) {
            let line = received.head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            wrong.push(format!("the store received {why}: {}", line.escape_ascii()));
        }
    }
    if bounds.secrets.iter().any(|secret| outcome.answer.holds(secret)) {
        wrong.push("the answer has the content of an object that nobody here may read".to_owned());
    }
    Judged { wrong, is_forwarded }
}

fn check(received: &Received, request: &Request, sent: &Written, rights: &Rights) -> Result<(), String> {
    if !received.is_whole {
        return Err("half a request, or one without a length".to_owned());
    }
    let read = Read::of(received)?;
    rules::check(&read, rights)?;
    same(&read, request, sent)
}

/// Checks that a request's body is the one that the client sent: the same bytes for an object,
/// those of a part for a form, and the same meaning for a document, if the second parser can read
/// the one that was sent.
fn same(read: &Read, request: &Request, sent: &Written) -> Result<(), String> {
    match (read.operation, &request.body) {
        (Operation::PutObject, Body::Form(form)) => {
            let key = read.key.clone().unwrap_or_default();
            let is_part = read.body.is_empty() || sent.body.windows(read.body.len()).any(|part| part == read.body);
            match (key.starts_with(form.starts.as_bytes()), is_part) {
                (true, true) => Ok(()),
                (false, _) => Err(format!("a key that the policy doesn't allow: {:?}", String::from_utf8_lossy(&key))),
                (true, false) => Err("other bytes than a form's file".to_owned()),
            }
        }
        // A lookup before the upload, without a body.
        (Operation::GetBucketVersioning, _) => Ok(()),
        (operation, Body::Form(_)) => Err(format!("{} for a form", operation.name())),
        (Operation::PutObject | Operation::UploadPart, _) if read.body != sent.body => {
            Err("other bytes than were sent".to_owned())
        }
        (Operation::DeleteObjects, _) => some_of(&xml::read(&read.body)?, xml::read(&sent.body).ok()),
        (Operation::CompleteMultipartUpload | Operation::PutObjectTagging, _) => {
            let (sent, received) = (xml::read(&sent.body), xml::read(&read.body)?.meaning());
            match sent.map(|sent| sent.meaning()) {
                Ok(sent) if sent != received => Err(format!("{received} for {sent}")),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Checks that the objects of a DeleteObjects request are among those that were sent, in order. The
/// gateway leaves out objects that are deleted already, and duplicates.
fn some_of(received: &Element, sent: Option<Element>) -> Result<(), String> {
    let Some(sent) = sent else { return Ok(()) };
    let mut objects = sent.all("Object").map(Element::meaning);
    let are_there = received.all("Object").map(Element::meaning).all(|object| objects.any(|it| it == object));
    let is_quiet = |root: &Element| root.all("Quiet").any(|it| it.meaning().contains("true"));
    if are_there && is_quiet(received) == is_quiet(&sent) {
        return Ok(());
    }
    Err(format!("{} for {}", received.meaning(), sent.meaning()))
}

/// The request that the store may understand.
pub(super) enum Expected {
    /// The request as the gateway parses its head.
    Ask(Box<Ask>, Who),
    /// An upload by a form, to this bucket.
    Upload(String),
    /// No request, because the gateway refuses it.
    Nothing,
}

impl Expected {
    fn of(request: &Request, sent: &Written) -> Self {
        match &request.body {
            Body::Form(_) => Self::Upload(String::from_utf8_lossy(request.path.trim_ascii()).replace('/', "")),
            Body::Bytes(_) => ask(request, sent).map_or(Self::Nothing, |ask| Self::Ask(Box::new(ask), request.who)),
        }
    }

    /// Returns the lookups that the gateway may make first, by bucket and operation: the source of
    /// a guest's copy, objects that are to be deleted, and the versioning state of a bucket.
    fn looks(&self) -> Vec<(String, &'static str)> {
        use Operation as O;
        const HEAD: &str = "s3_HeadObject";
        const VERSIONING: &str = "s3_GetBucketVersioning";
        let (ask, who) = match self {
            Self::Ask(ask, who) => (ask, *who),
            Self::Upload(bucket) => return vec![(bucket.clone(), VERSIONING)],
            Self::Nothing => return Vec::new(),
        };
        let bucket = ask.target.bucket().map(ToString::to_string).unwrap_or_default();
        let source = ask.copy.as_ref().map(|source| source.bucket.to_string()).filter(|_| who == Who::Guest);
        match ask.operation {
            O::DeleteObject | O::DeleteObjects => vec![(bucket.clone(), HEAD), (bucket, VERSIONING)],
            O::CopyObject | O::UploadPartCopy => {
                source.map(|source| (source, HEAD)).into_iter().chain([(bucket, VERSIONING)]).collect()
            }
            O::CompleteMultipartUpload | O::CreateMultipartUpload | O::PutObject => vec![(bucket, VERSIONING)],
            _ => Vec::new(),
        }
    }

    /// Returns the requests that the store received after these lookups.
    fn behind_looks<'a>(&self, understood: &'a [Understood]) -> &'a [Understood] {
        let looks = self.looks();
        let is_look = |it: &Understood| looks.iter().any(|(bucket, operation)| it.is(bucket, operation));
        let first = understood.iter().position(|it| !is_look(it)).unwrap_or(understood.len());
        understood.get(first..).unwrap_or_default()
    }
}

/// Parses the head with the gateway's code; `None` if it rejects it.
fn ask(request: &Request, sent: &Written) -> Option<Ask> {
    let mut made = http::Request::new(());
    *made.method_mut() = Method::from_bytes(sent.method.as_bytes()).ok()?;
    *made.uri_mut() = sent.target.parse::<Uri>().ok()?;
    *made.headers_mut() = without_blanks(&sent.headers);
    let (parts, ()): (Parts, ()) = made.into_parts();
    Sent::read(parts, &Domains::default()).ok()?.ask(request.signed == Signed::Query, PAYLOAD).ok()
}

/// Returns headers without blanks around their values, which a recipient ignores (RFC 9110, section
/// 5.5).
fn without_blanks(headers: &HeaderMap) -> HeaderMap {
    let mut read = headers.clone();
    for value in read.values_mut() {
        if let Ok(trimmed) = HeaderValue::from_bytes(value.as_bytes().trim_ascii()) {
            *value = trimmed;
        }
    }
    read
}

/// Checks that the store understood the request like the gateway.
///
/// # Errors
/// Names what the store understood instead.
fn understood_otherwise(expected: &Expected, understood: &[Understood]) -> Result<(), String> {
    let said = |it: &Understood| format!("{} of bucket {}, {:?}", it.operation, it.bucket, it.rest);
    let rest = expected.behind_looks(understood);
    let it = match (expected, rest) {
        (_, []) => return Ok(()),
        (Expected::Nothing, [it, ..]) => {
            return Err(format!("what the gateway refuses came to the store: {}", said(it)));
        }
        (_, [it]) => it,
        (_, [_, it, ..]) => return Err(format!("the store had a second request: {}", said(it))),
    };
    let (bucket, operation) = match expected {
        Expected::Ask(ask, _) => (ask.target.bucket().map(ToString::to_string).unwrap_or_default(), ask.operation),
        Expected::Upload(bucket) => (bucket.clone(), Operation::PostObject),
        Expected::Nothing => return Ok(()),
    };
    if it.is(&bucket, &name(operation)) {
        return Ok(());
    }
    Err(format!("{} was understood as {}", operation.name(), said(it)))
}

/// Returns versitygw's name of an operation.
fn name(operation: Operation) -> String {
    match operation {
        Operation::ListBuckets => "s3_ListAllMyBuckets".to_owned(),
        Operation::PostObject => "s3_PutObject".to_owned(),
        operation => format!("s3_{}", operation.name()),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
