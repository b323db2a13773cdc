//! The doors of S3: every way to get at an object or at a list, one a line, and what it takes to be
//! let through. What the modes allow is written down here once more, from the contract (spec §8).

use stowage_operator::api::AccessMode;

/// What a request does to the bucket that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Present objects are read or listed.
    Reads,
    /// An object is stored.
    Stores,
    /// Anything else that is about objects.
    All,
    /// It is asked whether there is a bucket: no prefix matters.
    Knows,
    /// No tenant may.
    Nobody,
}

impl Need {
    /// Whether a mode is enough.
    pub(super) fn is_met_by(self, mode: AccessMode) -> bool {
        match self {
            Self::Reads | Self::Knows => mode != AccessMode::WriteOnly,
            Self::Stores => mode != AccessMode::ReadOnly,
            Self::All => mode == AccessMode::ReadWrite,
            Self::Nobody => false,
        }
    }
}

/// What goes with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Nothing,
    /// The bytes of an object.
    Data,
    /// A header.
    Header(&'static str, &'static str),
    /// The source of a copy, and what it takes to read that.
    Source(Need, &'static str),
    /// The parts of an upload, which is to end.
    Parts,
    /// Tags of an object.
    Tags,
    /// Keys that are to be deleted.
    Keys(&'static str, &'static str),
    /// The field `key` of a form, and the name of its file.
    Form(&'static str, &'static str),
    /// A document that configures a bucket.
    Document,
}

/// A way in: what it takes, method, target, and what goes with it. In the texts stand `@` for the
/// bucket and `^` for the other one, `#` for the key or prefix that is tried and `$` for a key that
/// the caller may get at, `*` for a past version and `~` for an upload of that key.
#[derive(Debug)]
pub(super) struct Door(pub(super) Need, pub(super) &'static str, pub(super) &'static str, pub(super) With);

use Need::{All, Knows, Nobody, Reads, Stores};
use With::{Data, Document, Form, Header, Keys, Nothing, Parts, Source, Tags};

#[rustfmt::skip]
pub(super) static DOORS: [Door; 45] = [
    // An object is read.
    Door(Reads,  "GET",    "/@/#",                           Nothing),
    Door(Reads,  "HEAD",   "/@/#",                           Nothing),
    Door(Reads,  "GET",    "/@/#?attributes",                Header("x-amz-object-attributes", "ETag")),
    Door(Reads,  "GET",    "/@/#?tagging",                   Nothing),
    // What is past is read.
    Door(All,    "GET",    "/@/#?versionId=*",               Nothing),
    Door(All,    "HEAD",   "/@/#?versionId=*",               Nothing),
    Door(All,    "GET",    "/@/#?attributes&versionId=*",    Header("x-amz-object-attributes", "ETag")),
    Door(All,    "GET",    "/@/#?tagging&versionId=*",       Nothing),
    // Objects are listed.
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
    // One is stored.
    Door(Stores, "PUT",    "/@/#",                           Data),
    Door(Stores, "POST",   "/@",                             Form("#", "file")),
    Door(Stores, "POST",   "/@",                             Form("#${filename}", "file")),
    Door(Stores, "POST",   "/@",                             Form("${filename}", "#")),
    // In parts.
    Door(Stores, "POST",   "/@/#?uploads",                   Nothing),
    Door(Stores, "PUT",    "/@/#?partNumber=1&uploadId=~",   Data),
    Door(Stores, "POST",   "/@/#?uploadId=~",                Parts),
    Door(Stores, "DELETE", "/@/#?uploadId=~",                Nothing),
    Door(All,    "GET",    "/@/#?uploadId=~",                Nothing),
    // As a copy: the target is tried, the source, a source that is past, and one of the other
    // bucket.
    Door(Stores, "PUT",    "/@/#-copy",                      Source(Reads, "/@/$")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(Reads, "/@/#")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(All, "/@/#?versionId=*")),
    Door(Stores, "PUT",    "/@/$-copy",                      Source(Reads, "/^/#")),
    Door(Stores, "PUT",    "/@/#?partNumber=2&uploadId=~",   Source(Reads, "/@/$")),
    Door(Stores, "PUT",    "/@/$?partNumber=2&uploadId=~",   Source(Reads, "/@/#")),
    Door(Stores, "PUT",    "/@/$?partNumber=2&uploadId=~",   Source(Reads, "/^/#")),
    // One is deleted, or tagged.
    Door(All,    "DELETE", "/@/#",                           Nothing),
    Door(All,    "DELETE", "/@/#?versionId=*",               Nothing),
    Door(All,    "POST",   "/@?delete",                      Keys("$-copy", "#")),
    Door(All,    "PUT",    "/@/#?tagging",                   Tags),
    Door(All,    "DELETE", "/@/#?tagging",                   Nothing),
    // The bucket itself.
    Door(Knows,  "HEAD",   "/@",                             Nothing),
    Door(Knows,  "GET",    "/@?location",                    Nothing),
    Door(Nobody, "PUT",    "/@",                             Nothing),
    Door(Nobody, "DELETE", "/@",                             Nothing),
    Door(Nobody, "GET",    "/@?policy",                      Nothing),
    Door(Nobody, "PUT",    "/@?policy",                      Document),
];

/// Keys that are tried, most of which look like one below `shared/` and are none.
pub(super) static KEYS: [&str; 7] =
    ["shared/a", "shared/deep/a", "secret/a", "shared", "sharedly/a", "Shared/a", "/shared/a"];
/// The same of lists.
pub(super) static PREFIXES: [&str; 7] = ["shared/", "shared/deep/", "secret/", "shared", "s", "", "/"];

/// Requests of somebody with `shared/` that could be read as another one: method, target, and the
/// bucket that the host names. Each is refused: for want of rights, or because it makes no sense
/// or is not understood.
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
