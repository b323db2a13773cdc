//! What a store says of a request, against what the gateway took it for.

use http::request::Parts;
use http::{Method, Request, Uri};
use serde::Serialize;
use stowage_gateway::head::{Ask, Domains, Operation, Sent};

use super::generate::Head;

/// A line of versitygw's access log, as far as a request's head decides about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Understood {
    pub(super) bucket: String,
    pub(super) operation: String,
    /// Key, URI and what comes behind them; they are not quoted there, and may hold anything.
    pub(super) rest: String,
}

impl Understood {
    /// Reads `owner bucket [time zone] address requester id operation key…`; `None` where a line is
    /// none of these, as is the second half of one with a line feed in its key.
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
}

/// What the gateway takes a head for, if it takes it at all.
pub(super) fn ask(head: &Head, signed: &http::HeaderMap, word: &str) -> Option<Ask> {
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(head.method.as_bytes()).ok()?;
    *request.uri_mut() = head.target.parse::<Uri>().ok()?;
    *request.headers_mut() = signed.clone();
    let (parts, ()): (Parts, ()) = request.into_parts();
    Sent::read(parts, &Domains::default()).ok()?.ask(false, word).ok()
}

/// Whether the store understood of a request what the gateway did.
///
/// # Errors
/// What it understood.
pub(super) fn judge(ask: Option<&Ask>, understood: &[Understood]) -> Result<(), String> {
    let said = |it: &Understood| format!("{} of bucket {}, {:?}", it.operation, it.bucket, it.rest);
    let (ask, it) = match (ask, understood) {
        (_, []) => return Ok(()),
        (None, [it, ..]) => return Err(format!("what the gateway refuses came to the store: {}", said(it))),
        (Some(ask), [it]) => (ask, it),
        (Some(_), [_, it, ..]) => return Err(format!("the store had a second request: {}", said(it))),
    };
    let bucket = ask.target.bucket().map(stowage_operator::api::BucketName::as_str);
    if bucket != Some(it.bucket.as_str()) || it.operation != name(ask.operation) {
        return Err(format!("{} was understood as {}", ask.operation.name(), said(it)));
    }
    Ok(())
}

/// What versitygw calls an operation.
fn name(operation: Operation) -> String {
    match operation {
        Operation::ListBuckets => "s3_ListAllMyBuckets".to_owned(),
        Operation::PostObject => "s3_PutObject".to_owned(),
        operation => format!("s3_{}", operation.name()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use rstest::rstest;

    use super::*;

    const LINE: &str = "owner photos [27/November/2026:14:57:42 +0000] 127.0.0.1 key VB1G6O86ZYW8POHA \
        s3_GetObject a b?acl /photos/a%20b?x 200 - 378 0";

    fn get() -> Ask {
        let head = Head {
            method: "GET",
            path: b"/photos/a".to_vec(),
            query: Vec::new(),
            target: "/photos/%61".to_owned(),
            headers: HeaderMap::new(),
            body: Vec::new(),
        };
        let mut headers = HeaderMap::new();
        headers.insert("host", "s3.example".parse().unwrap());
        ask(&head, &headers, "UNSIGNED-PAYLOAD").unwrap()
    }

    #[test]
    fn a_line_tells_bucket_and_operation() {
        let line = Understood::read(LINE).unwrap();
        assert_eq!((line.bucket.as_str(), line.operation.as_str()), ("photos", "s3_GetObject"));
        assert!(Understood::read("b /photos/a 200 - 378 0 0 0 0 0 0").is_none());
    }

    #[rstest]
    #[case::the_same(&[("photos", "s3_GetObject")], None)]
    #[case::no_call(&[], None)]
    #[case::administration(&[("photos", "s3_GetObjectAcl")], Some("GetObject was understood as s3_GetObjectAcl"))]
    #[case::elsewhere(&[("other", "s3_GetObject")], Some("GetObject was understood as s3_GetObject of bucket other"))]
    #[case::twice(&[("photos", "s3_GetObject"), ("photos", "s3_PutObject")], Some("the store had a second request"))]
    fn a_store_understands_what_the_gateway_did(#[case] lines: &[(&str, &str)], #[case] why: Option<&str>) {
        let line = |(bucket, operation): &(&str, &str)| Understood {
            bucket: (*bucket).to_owned(),
            operation: (*operation).to_owned(),
            rest: "a".to_owned(),
        };
        let lines: Vec<Understood> = lines.iter().map(line).collect();
        let judged = judge(Some(&get()), &lines).err();
        assert!(judged.as_deref().unwrap_or_default().starts_with(why.unwrap_or_default()), "{judged:?}");
        assert_eq!(judged.is_some(), why.is_some());
        assert!(judge(None, &lines).is_err() || lines.is_empty());
    }
}
