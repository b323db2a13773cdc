//! The S3 requests that read or change an object or a list, one per line, each with the right that
//! it requires. The meaning of the modes is repeated here from the contract (spec §8),
//! independently of the gateway's code.

use stowage_operator::api::AccessMode;

/// Right that a request requires on the bucket it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Reads or lists current objects.
    Reads,
    /// Stores an object.
    Stores,
    /// Any other operation on objects.
    All,
    /// Checks that the bucket exists: every prefix is enough.
    Knows,
    /// Denied to all tenants.
    Nobody,
}

impl Need {
    /// True if an access of this mode has the right.
    pub(super) fn is_met_by(self, mode: AccessMode) -> bool {
        match self {
            Self::Reads | Self::Knows => mode != AccessMode::WriteOnly,
            Self::Stores => mode != AccessMode::ReadOnly,
            Self::All => mode == AccessMode::ReadWrite,
            Self::Nobody => false,
        }
    }
}

/// Headers and body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Nothing,
    /// The data of an object.
    Data,
    /// A header.
    Header(&'static str, &'static str),
    /// The source of a copy, and the right required to read it.
    Source(Need, &'static str),
    /// The list of parts that completes an upload.
    Parts,
    /// Tags of an object.
    Tags,
    /// Keys to delete.
    Keys(&'static str, &'static str),
    /// The field `key` of a form, and the name of its file.
    Form(&'static str, &'static str),
    /// A document with a bucket's configuration.
    Document,
}

/// A request: required right, method, target, and headers or body. Placeholders: `@` is the bucket
/// and `^` the other one, `#` the key or prefix that is tried and `$` a key that the caller has
/// access to, `*` a noncurrent version and `~` an upload of that key.
#[derive(Debug)]
pub(super) struct Door(pub(super) Need, pub(super) &'static str, pub(super) &'static str, pub(super) With);

use Need::{All, Knows, Nobody, Reads, Stores};
use With::{Data, Document, Form, Header, Keys, Nothing, Parts, Source, Tags};

#[rustfmt::skip]
pub(super) static DOORS: [Door; 45] = [
    // Reads an object.
    Door(Reads,  "GET",    "/@/#",                           Nothing),
    Door(Reads,  "HEAD",   "/@/#",                           Nothing),
    Door(Reads,  "GET",    "/@/#?attributes",                Header("x-amz-object-attributes", "ETag")),
    Door(Reads,  "GET",    "/@/#?tagging",                   Nothing),
    // Reads a noncurrent version.
    Door(All,    "GET",    "/@/#?versionId=*",               Nothing),
    Door(All,    "HEAD",   "/@/#?versionId=*",               Nothing),
    Door(All,    "GET",    "/@/#?attributes&versionId=*",    Header("x-amz-object-attributes", "ETag")),
    Door(All,    "GET",    "/@/#?tagging&versionId=*",       Nothing),
    // Lists objects.
    Door(Reads,  "GET",    "/@?prefix=#",                    Nothing),
    Door(Reads,  "GET",    "/@?list-type=2&prefix=#",        Nothing),
    Door(All,    "GET",    "/@?versions&prefix=#",           Nothing),
    Door(All,    "GET",    "/@?uploads&prefix=#",            Nothing),
    Door(Reads,  "GET",    "/@",                             Nothing),
    Door(Reads,  "GET",    "/@?delimiter=/",                 Nothing),
    Door(Reads,  "GET",    "/@?list-type=2",                 Nothing),
    Door(Reads,  "GET",    "/@?list-type=2&start-after=$",   Nothing),
    Door(All,    "GET",    "/@?versions",                    Nothing),
    Door(All,    "GET",    "/@?uploads",                     Nothing),
    // Stores an object.
    Door(Stores, "PUT",    "/@/#",                           Data),
    Door(Stores, "POST",   "/@",                             Form("#", "file")),
    Door(Stores, "POST",   "/@",                             Form("#${filename}", "file")),
    Door(Stores, "POST",   "/@",                             Form("${filename}", "#")),
    // Stores an object in parts.
    Door(Stores, "POST",   "/@/#?uploads",                   Nothing),
    Door(Stores, "PUT",    "/@/#?partNumber=1&uploadId=~",   Data),
    Door(Stores, "POST",   "/@/#?uploadId=~",                Parts),
    Door(Stores, "DELETE", "/@/#?uploadId=~",                Nothing),
    Door(All,    "GET",    "/@/#?uploadId=~",                Nothing),
    // Copies an object. The key that is tried is the target, the source, a noncurrent source, or a
    // source in the other bucket.
    Door(Stores, "PUT",    "/@/#-copy",                      Source(Reads, "/@/$")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(Reads, "/@/#")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(All, "/@/#?versionId=*")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(Reads, "/^/#")),
    Door(Stores, "PUT",    "/@/#?partNumber=2&uploadId=~",   Source(Reads, "/@/$")),
    Door(Stores, "PUT",    "/@/$?partNumber=2&uploadId=~",   Source(Reads, "/@/#")),
    Door(Stores, "PUT",    "/@/$?partNumber=2&uploadId=~",   Source(Reads, "/^/#")),
    // Deletes or tags an object.
    Door(All,    "DELETE", "/@/#",                           Nothing),
    Door(All,    "DELETE", "/@/#?versionId=*",               Nothing),
    Door(All,    "POST",   "/@?delete",                      Keys("$-copy", "#")),
    Door(All,    "PUT",    "/@/#?tagging",                   Tags),
    Door(All,    "DELETE", "/@/#?tagging",                   Nothing),
    // Requests about the bucket itself.
    Door(Knows,  "HEAD",   "/@",                             Nothing),
    Door(Knows,  "GET",    "/@?location",                    Nothing),
    Door(Nobody, "PUT",    "/@",                             Nothing),
    Door(Nobody, "DELETE", "/@",                             Nothing),
    Door(Nobody, "GET",    "/@?policy",                      Nothing),
    Door(Nobody, "PUT",    "/@?policy",                      Document),
];

/// Keys to try. Most look like a key below `shared/` and are not.
pub(super) static KEYS: [&str; 7] =
    ["shared/a", "shared/deep/a", "secret/a", "shared", "sharedly/a", "Shared/a", "/shared/a"];
/// Prefixes of lists to try.
pub(super) static PREFIXES: [&str; 7] = ["shared/", "shared/deep/", "secret/", "shared", "s", "", "/"];

/// Requests of a caller with the prefix `shared/` that a server might parse as another request:
/// method, target, and the bucket in the host name. Each must be rejected: denied, invalid, or not
/// implemented.
pub(super) static TRICKS: [(&str, &str, Option<&str>); 24] = [
    ("GET", "/@/shared/../secret/a", None),
    ("PUT", "/@/shared/../secret/a", None),
    ("DELETE", "/@/shared/../secret/a", None),
    ("GET", "/@/shared/%2e%2e/secret/a", None),
    ("PUT", "/@/shared/%2E%2E/secret/a", None),
    ("GET", "/@/shared%2f..%2fsecret%2fa", None),
    ("DELETE", "/@/shared%2f..%2fsecret%2fa", None),
    ("GET", "/@/shared/..%2fsecret/a", None),
    ("GET", "/@/shared/./../secret/a", None),
    ("GET", "/@/shared//../secret/a", None),
    ("GET", "/@/shared/../../^/shared/a", None),
    ("GET", "/@/../^/shared/a", None),
    ("GET", "/@//shared/../secret/a", None),
    ("GET", "/@//secret/a", None),
    ("GET", "//@/secret/a", None),
    ("GET", "/@/%73ecret/a", None),
    ("GET", "/@%2fsecret%2fa", None),
    ("GET", "/@/secret/a?prefix=shared/", None),
    ("GET", "/@?prefix=shared/&prefix=secret/", None),
    ("GET", "/@?list-type=2&prefix=shared/&prefix=", None),
    ("GET", "/@?Prefix=shared/", None),
    ("PUT", "/@/shared/b?x-amz-copy-source=/@/secret/a", None),
    ("GET", "/secret/a", Some("@")),
    ("GET", "/shared/a", Some("^")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_doors_are_the_same() {
        let mut doors: Vec<String> = DOORS.iter().map(|door| format!("{door:?}")).collect();
        doors.sort();
        doors.dedup();
        assert_eq!(doors.len(), DOORS.len());
    }

    #[test]
    fn each_door_says_which_key_it_is_about() {
        for Door(need, _, target, with) in &DOORS {
            let of_with = match with {
                With::Source(_, text) | With::Form(text, _) | With::Keys(_, text) => *text,
                _ => "",
            };
            let is_of_bucket = !target.contains("/@/") && !target.contains("prefix=") && of_with.is_empty();
            let names = target.contains('#') || of_with.contains('#') || of_with.contains("${filename}");
            assert!(names != is_of_bucket, "{need:?} {target} {with:?}");
        }
    }
}
