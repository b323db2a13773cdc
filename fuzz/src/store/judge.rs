//! Checks of the client's conclusions: they must follow from the store's responses.

use std::collections::BTreeMap;

use quick_xml::Reader;
use quick_xml::events::Event;
use stowage_operator::api::Versioning;
use stowage_operator::plan::{BucketSeen, CreateAnswer, DeleteAnswer, OwnerSeen, VersioningSeen};
use stowage_operator::upstream::{Class, UpstreamError};

use super::client::{bucket, client};
use super::script::{Exchange, Operation, Reply, Script, Store};

/// Maximum number of objects deleted in one slice of emptying a bucket.
const SLICE: u32 = 3000;
/// Above the number of calls of any operation on a store that repeats its responses.
const MOST_CALLS: usize = 2000;

/// Maximum length of an error: a code has at most 64 characters, and the rest is fixed text.
const LONGEST_ERROR: usize = 200;

/// Plays the script once.
pub(super) async fn judge(script: &Script) {
    let store = Store::of(script);
    let upstream = client(&store);
    let bucket = &bucket();
    let told = match script.operation {
        Operation::Look => upstream.look(bucket).await.map(|seen| looked(&seen, &store.exchanges())),
        Operation::Owner => upstream.owner(bucket).await.map(|seen| owned(seen, &store.exchanges())),
        Operation::IsEmpty => upstream.is_empty(bucket).await.map(|empty| emptied(empty, &store.exchanges())),
        Operation::Create => upstream.create(bucket).await.map(|answer| created(answer, &store.exchanges())),
        Operation::Delete => upstream.delete(bucket).await.map(|answer| deleted(answer, &store.exchanges())),
        Operation::Tag => {
            let tags = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
            upstream.tag(bucket, &tags).await.map(|()| silent_success(&store.exchanges()))
        }
        Operation::Versioning => upstream.versioning(bucket).await.map(|seen| versioned(seen, &store.exchanges())),
        Operation::Probe => upstream.probe().await.map(|()| answered(&store.exchanges(), "ListAllMyBucketsResult")),
        Operation::Purge => {
            let slice = upstream.purge(bucket, SLICE).await;
            purged(slice.complete, slice.deleted, &store.exchanges());
            slice.failed.map_or(Ok(()), Err)
        }
    };
    let exchanges = store.exchanges();
    assert!(!exchanges.is_empty() && exchanges.len() <= MOST_CALLS, "{} calls", exchanges.len());
    if let Err(error) = told {
        short(&error);
    }
}

/// Checks that a truncated response shows neither tags nor an empty bucket.
pub(super) async fn cut(script: &Script) {
    let Some(first) = script.replies.first().filter(|reply| reply.is_success()) else { return };
    let body = first.body.trim_ascii();
    let Some(root) = root(body) else { return };
    // Only one document, because the end of another root element would be a valid end too.
    let ends = String::from_utf8_lossy(body).matches(&format!("</{root}")).count();
    if ends != 1 || !body.ends_with(format!("</{root}>").as_bytes()) {
        return;
    }
    for part in 1..4 {
        let body = body[..body.len() * part / 4].to_vec();
        let reply = Reply { body, ..first.clone() };
        let mut script = script.clone();
        script.replies[0] = reply;
        let store = Store::of(&script);
        let upstream = client(&store);
        match script.operation {
            Operation::Look => {
                let seen = upstream.look(&bucket()).await;
                assert!(!matches!(&seen, Ok(BucketSeen::Present(Some(_)))), "{seen:?} of {script:?}");
            }
            Operation::IsEmpty => {
                let seen = upstream.is_empty(&bucket()).await;
                assert!(seen != Ok(true), "{seen:?} of {script:?}");
            }
            _ => {}
        }
    }
}

/// Checks that an error, which is shown in statuses and logs, is one short line.
fn short(error: &UpstreamError) {
    let text = error.to_string();
    assert!(text.len() <= LONGEST_ERROR && text.chars().all(|c| !c.is_control()), "{text:?}");
    if let Class::Denied { code } | Class::Failed { code } = &error.class {
        assert!(code.is_ascii() && code.len() <= 64, "{code:?}");
    }
}

fn last(exchanges: &[Exchange]) -> &Exchange {
    exchanges.last().expect("something was asked")
}

/// True if a response contains the text. Also true if the response can't be judged, because it is
/// written as by no store: with comments, CDATA or processing instructions between its texts, or
/// with invalid entities.
fn says(reply: &Reply, text: &str) -> bool {
    let body = String::from_utf8_lossy(&reply.body);
    let is_odd = body.contains("<!") || body.matches("<?").count() > 1;
    is_odd || quick_xml::escape::unescape(&body).map_or(true, |plain| plain.contains(text))
}

/// True if a response is an S3 error with this code.
fn refuses(reply: &Reply, code: &str) -> bool {
    !reply.is_success() && says(reply, code)
}

/// Returns the name of the root element.
fn root(body: &[u8]) -> Option<String> {
    let mut reader = Reader::from_reader(body);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) => {
                return String::from_utf8(start.name().as_ref().to_vec()).ok();
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// True if the store redirects to another region, as that of the bucket.
fn is_elsewhere(reply: &Reply) -> bool {
    matches!(reply.status, 301 | 400) && reply.region.as_deref().is_some_and(|region| region != "us-east-1")
}

/// Checks that absence and denial follow from an error of the store, and presence from a success.
fn looked(seen: &BucketSeen, exchanges: &[Exchange]) {
    let said = &last(exchanges).said;
    match seen {
        BucketSeen::Absent => assert!(refuses(said, "NoSuchBucket"), "absent by {exchanges:?}"),
        BucketSeen::Forbidden => {
            let denied = said.status == 403 && says(said, "Code");
            assert!(denied || is_elsewhere(said), "forbidden by {exchanges:?}");
        }
        BucketSeen::Present(tags) => {
            assert!(said.is_success(), "present by {exchanges:?}");
            let Some(tags) = tags else { return };
            let tagging = &exchanges[0].said;
            let untagged = refuses(tagging, "NoSuchTagSet");
            assert!(tagging.is_success() || (untagged && tags.is_empty()), "{tags:?} by {exchanges:?}");
            if tagging.is_success() {
                is_root(tagging, "Tagging");
                assert!(tags.iter().all(|(key, value)| says(tagging, key) && says(tagging, value)), "{tags:?}");
            }
        }
    }
}

/// Checks that the response is a document with this root element.
fn is_root(reply: &Reply, expected: &str) {
    let root = root(&reply.body);
    assert!(root.as_deref().is_some_and(|root| root.ends_with(expected)), "{root:?}, and not {expected}, in {reply:?}");
}

fn owned(seen: OwnerSeen, exchanges: &[Exchange]) {
    match seen {
        OwnerSeen::Ours => {
            assert!(exchanges.len() == 2 && exchanges.iter().all(|it| it.said.is_success()), "{exchanges:?}");
            assert!(exchanges.iter().all(|it| says(&it.said, "Owner") && says(&it.said, "ID")), "{exchanges:?}");
        }
        OwnerSeen::Other | OwnerSeen::Untold => {}
    }
}

/// Checks that a bucket counts as empty only after two complete lists without an entry.
fn emptied(empty: bool, exchanges: &[Exchange]) {
    if !empty {
        return;
    }
    for Exchange { asked, said } in exchanges {
        if !said.is_success() {
            assert!(
                said.status == 501 || says(said, "NotImplemented") || says(said, "MethodNotAllowed"),
                "{asked} {said:?}"
            );
            continue;
        }
        let expected = match asked {
            asked if asked.contains("versions") => "ListVersionsResult",
            asked if asked.contains("uploads") => "ListMultipartUploadsResult",
            _ => "ListBucketResult",
        };
        is_root(said, expected);
        let entries = children(said).into_iter().filter(|child| is_entry(expected, child));
        assert_eq!(entries.collect::<Vec<_>>(), [] as [&str; 0], "{said:?}");
    }
}

/// True if an element of a list is an object, a version or an upload in the bucket.
fn is_entry(list: &str, element: &str) -> bool {
    match list {
        "ListVersionsResult" => matches!(element, "Version" | "DeleteMarker"),
        "ListMultipartUploadsResult" => element == "Upload",
        _ => element == "Contents",
    }
}

/// Returns the names of the root's children; none for a malformed document.
fn children(reply: &Reply) -> Vec<String> {
    let mut reader = Reader::from_reader(reply.body.as_slice());
    let (mut depth, mut found) = (0_usize, Vec::new());
    loop {
        let (start, opens) = match reader.read_event() {
            Ok(Event::Start(start)) => (start, true),
            Ok(Event::Empty(start)) => (start, false),
            Ok(Event::End(_)) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return found;
                }
                continue;
            }
            Ok(Event::Eof) | Err(_) => return Vec::new(),
            Ok(_) => continue,
        };
        if depth == 1 {
            found.push(String::from_utf8_lossy(start.name().as_ref()).into_owned());
        }
        depth += usize::from(opens);
    }
}

fn created(answer: CreateAnswer, exchanges: &[Exchange]) {
    let said = &last(exchanges).said;
    match answer {
        CreateAnswer::Created => silent_success(exchanges),
        CreateAnswer::AlreadyOwned => assert!(refuses(said, "BucketAlreadyOwnedByYou"), "{said:?}"),
        CreateAnswer::AlreadyExists => {
            assert!(refuses(said, "BucketAlreadyExists") || is_elsewhere(said), "{said:?}");
        }
    }
}

fn deleted(answer: DeleteAnswer, exchanges: &[Exchange]) {
    let said = &last(exchanges).said;
    match answer {
        DeleteAnswer::Deleted => silent_success(exchanges),
        DeleteAnswer::Absent => assert!(refuses(said, "NoSuchBucket"), "{said:?}"),
        DeleteAnswer::NotEmpty => assert!(refuses(said, "BucketNotEmpty"), "{said:?}"),
    }
}

/// Checks that an operation without a response document succeeded by a response of S3: without a
/// body, or with a document that is neither an error nor a web page.
fn silent_success(exchanges: &[Exchange]) {
    let said = &last(exchanges).said;
    assert!(said.is_success(), "{said:?}");
    let body = said.body.trim_ascii();
    assert!(body.is_empty() || body.starts_with(b"<"), "a success by {said:?}");
    if let Some(root) = root(body) {
        assert!(root != "Error" && !root.eq_ignore_ascii_case("html"), "a success by {said:?}");
    }
}

fn answered(exchanges: &[Exchange], expected: &str) {
    let said = &last(exchanges).said;
    assert!(said.is_success(), "{said:?}");
    is_root(said, expected);
}

fn versioned(seen: VersioningSeen, exchanges: &[Exchange]) {
    answered(exchanges, "VersioningConfiguration");
    let said = &last(exchanges).said;
    match seen {
        VersioningSeen::Set(Versioning::Enabled) => assert!(says(said, "Enabled"), "{said:?}"),
        VersioningSeen::Set(Versioning::Suspended) => assert!(says(said, "Suspended"), "{said:?}"),
        VersioningSeen::Unset => {}
    }
}

/// Checks that no more objects are counted as deleted than were listed, and that an incomplete
/// purge doesn't count as complete.
fn purged(complete: bool, deleted: u64, exchanges: &[Exchange]) {
    let listed = exchanges.iter().filter(|it| it.asked.starts_with("GET"));
    let keys = listed.clone().map(|it| String::from_utf8_lossy(&it.said.body).matches("Key").count()).sum::<usize>();
    assert!(deleted <= keys as u64, "{deleted} of {keys}");
    if complete {
        let told = |reply: &Reply| reply.is_success() || says(reply, "NoSuchBucket") || says(reply, "NotImplemented");
        assert!(
            listed.into_iter().all(|it| told(&it.said) || it.said.status == 501 || it.said.status == 405),
            "{exchanges:?}"
        );
    }
}
