//! Canonical form of answers, so that two stores can be compared: values that a store makes up are
//! replaced by numbers in the order of their appearance.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};
use jiff::{Timestamp, ToSpan as _};
use md5::{Digest as _, Md5};
use serde_json::{Map, Value, json};

use super::call::Call;

/// Objects up to this size are compared as text, so that a difference can be read. Larger ones are
/// compared by digest.
const SHOWN: usize = 1000;

/// Headers that are compared in every answer. Headers of an object are compared only if it is read.
/// Others are about the connection, the request id and the product.
const HEADERS: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-range",
    "last-modified",
    "x-amz-tagging-count",
];
/// Prefixes of further headers that are compared.
const KINDS: [&str; 2] = ["x-amz-meta-", "x-amz-object-lock-"];

/// Fields of a list that repeat the request. Stores return some of them, in different forms, or
/// none.
const REPEATED: [&str; 11] = [
    "ContinuationToken",
    "Delimiter",
    "KeyMarker",
    "Marker",
    "MaxKeys",
    "MaxParts",
    "MaxUploads",
    "PartNumberMarker",
    "StartAfter",
    "UploadIdMarker",
    "VersionIdMarker",
];

/// Made-up values of one side in a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// Replacement for each version and upload.
    known: BTreeMap<String, String>,
    /// Number of values per object.
    counts: BTreeMap<String, usize>,
}

impl Names {
    /// Returns an answer in its canonical form. `document` is the parsed body, if it is a document.
    pub(super) fn canonical(
        &mut self,
        call: &Call,
        code: u16,
        headers: &HeaderMap,
        document: Option<&Value>,
        bytes: &[u8],
    ) -> Value {
        let of = call.object();
        let body = match document {
            _ if call.method == "HEAD" => Value::Null,
            // Only the code is compared: each server has its own message and further fields for
            // people.
            Some(error) if code >= 400 => error["Error"]["Code"].clone(),
            Some(document) => self.value(document, "", &of),
            None if bytes.len() <= SHOWN => String::from_utf8_lossy(bytes).into(),
            None => format!("{} bytes with MD5 {}", bytes.len(), hex::encode(Md5::digest(bytes))).into(),
        };
        json!({"code": code, "headers": self.headers(call, code, headers, &of), "body": body})
    }

    fn headers(&mut self, call: &Call, code: u16, headers: &HeaderMap, of: &str) -> Value {
        // Headers about an object are not compared for a document about it, or for an error.
        let is_read = call.is_object() && ["GET", "HEAD"].contains(&call.method);
        let is_copy = call.headers.iter().any(|(name, _)| *name == "x-amz-copy-source");
        let mut kept = Map::new();
        for (name, value) in headers {
            let (name, text) = (name.as_str(), String::from_utf8_lossy(value.as_bytes()).into_owned());
            let wanted = match name {
                "x-amz-delete-marker" => call.is_object() && (code < 300 || is_read) && text != "false",
                _ if code >= 300 => false,
                "etag" => call.is_object() && !is_copy,
                "x-amz-version-id" => call.is_object() && text != "null",
                "x-amz-copy-source-version-id" => text != "null",
                "accept-ranges" | "content-type" | "content-length" => is_read,
                _ => HEADERS.contains(&name) || KINDS.iter().any(|kind| name.starts_with(kind)),
            };
            if wanted {
                kept.insert(name.to_owned(), self.header(name, text, of).into());
            }
        }
        Value::Object(kept)
    }

    fn header(&mut self, name: &str, text: String, of: &str) -> String {
        match name {
            "last-modified" => "<time>".to_owned(),
            "x-amz-version-id" | "x-amz-copy-source-version-id" => self.name("version", of, &text),
            "x-amz-object-lock-retain-until-date" => instant(&text),
            _ => text,
        }
    }

    fn value(&mut self, value: &Value, at: &str, of: &str) -> Value {
        match (at, value) {
            ("LastModified" | "CreationDate" | "Initiated", _) => "<time>".into(),
            ("Location", _) => "<URL>".into(),
            ("NextContinuationToken", _) => "<token>".into(),
            (_, Value::Object(fields)) => {
                let of = match fields.get("Key").and_then(Value::as_str) {
                    Some(key) => format!("{}/{key}", of.split('/').next().unwrap_or_default()),
                    None => of.to_owned(),
                };
                let is_list = fields.contains_key("IsTruncated");
                let is_last = fields.get("IsTruncated").is_some_and(|more| more == "false");
                let fields = fields.iter().filter(|(name, field)| {
                    let unread =
                        name.starts_with("Checksum") || ["Owner", "Initiator", "BucketRegion"].contains(&&***name);
                    let repeated = is_list && (REPEATED.contains(&&***name) || name.as_str() == "Prefix");
                    // Marker of a next page, although there is none.
                    let beyond = is_last && name.starts_with("Next");
                    let said = at == "Error" && name.as_str() == "Message";
                    // `DeleteMarker=false` and the version id `null` may be left out.
                    let denied = name.as_str() == "DeleteMarker" && *field == "false";
                    let unnamed = at == "Deleted" && *field == "null";
                    !(unread || repeated || beyond || said || denied || unnamed)
                });
                Value::Object(fields.map(|(name, field)| (name.clone(), self.value(field, name, &of))).collect())
            }
            (_, Value::Array(items)) => {
                let mut items: Vec<Value> = items.iter().map(|item| self.value(item, at, of)).collect();
                if ["Deleted", "Error", "Tag"].contains(&at) {
                    items.sort_by_cached_key(|item| [item["Key"].to_string(), item["VersionId"].to_string()]);
                }
                Value::Array(items)
            }
            (_, Value::String(text)) => self.text(at, text, of).into(),
            (_, other) => other.clone(),
        }
    }

    fn text(&mut self, at: &str, text: &str, of: &str) -> String {
        match at {
            "VersionId" | "DeleteMarkerVersionId" | "NextVersionIdMarker" => self.name("version", of, text),
            "UploadId" | "NextUploadIdMarker" => self.name("upload", of, text),
            "RetainUntilDate" => instant(text),
            _ => text.to_owned(),
        }
    }

    /// Returns the replacement for an id. A known id keeps its replacement.
    fn name(&mut self, what: &str, of: &str, id: &str) -> String {
        if id == "null" {
            return id.to_owned();
        }
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let what = format!("{what} of {of}");
        let count = self.counts.entry(what.clone()).or_default();
        *count += 1;
        let name = format!("<{count}. {what}>");
        self.known.insert(id.to_owned(), name.clone());
        name
    }
}

/// Normalizes a time that an operation has sent. A time that a store calculated from now is
/// replaced.
fn instant(text: &str) -> String {
    let soon = Timestamp::now() + (24 * 366).hours();
    match text.parse::<Timestamp>() {
        Ok(time) if time > Timestamp::now() && time < soon => "<time>".to_owned(),
        Ok(time) => time.to_string(),
        Err(_) => text.to_owned(),
    }
}

/// Returns the text of a header, or an empty one if it is absent.
pub(super) fn header_text(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(names: &mut Names, call: &Call, headers: &[(&str, &str)], document: Option<&Value>) -> Value {
        let headers = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().expect("it is the name of a header");
            (name, value.parse().expect("it is the value of a header"))
        });
        names.canonical(call, 200, &headers.collect(), document, b"")
    }

    #[test]
    fn versions_are_numbered_by_object_in_the_order_of_their_appearance() {
        let mut names = Names::default();
        let put = Call::to_key("PUT", "a", "k");
        let mut written = |version| canonical(&mut names, &put, &[("x-amz-version-id", version)], None);
        assert_eq!(written("9f")["headers"]["x-amz-version-id"], "<1. version of a/k>");
        assert_eq!(written("0c")["headers"]["x-amz-version-id"], "<2. version of a/k>");
        assert_eq!(written("null")["headers"], json!({}));
        let list = json!({"ListVersionsResult": {"IsTruncated": "false", "MaxKeys": "7", "NextKeyMarker": "k",
            "Version": [{"Key": "k", "VersionId": "0c", "Owner": {"ID": "x"}, "LastModified": "2026-01-01T00:00:00Z"}]}});
        let listed = canonical(&mut names, &Call::to_bucket("GET", "a"), &[], Some(&list));
        let version = json!({"Key": "k", "VersionId": "<2. version of a/k>", "LastModified": "<time>"});
        assert_eq!(listed["body"]["ListVersionsResult"], json!({"IsTruncated": "false", "Version": [version]}));
    }

    #[test]
    fn of_an_error_the_code_counts() {
        let error = json!({"Error": {"Code": "NoSuchKey", "Message": "Gone.", "RequestId": "7"}});
        let call = Call::to_key("GET", "a", "k");
        let answer = Names::default().canonical(&call, 404, &HeaderMap::new(), Some(&error), b"");
        assert_eq!(answer, json!({"code": 404, "headers": {}, "body": "NoSuchKey"}));
    }

    #[test]
    fn times_that_were_sent_stay() {
        assert_eq!(instant("2099-01-01T00:00:00.000Z"), "2099-01-01T00:00:00Z");
        let tomorrow = Timestamp::now() + 24.hours();
        assert_eq!(instant(&tomorrow.to_string()), "<time>");
    }
}
