//! XML documents of requests, and the few names and texts in them. They are few, so that operations
//! hit the same objects.

use fastrand::Rng;

use super::call::tag_of;

/// Contents of objects.
pub(super) const TEXTS: [&str; 4] = ["one", "two two", "", "0123456789abcdef"];
/// Keys with each kind of character that has to be escaped somewhere.
pub(super) const KEYS: [&str; 8] = ["k", "l", "dir/x", "dir/y", "dir/sub/z", "e f+%", "ü/ö", "a&<b>"];

pub(super) fn one<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[rng.usize(..all.len())]
}

pub(super) fn chance(rng: &mut Rng, percent: u8) -> bool {
    rng.u8(..100) < percent
}

pub(super) fn maybe<T>(rng: &mut Rng, percent: u8, value: impl FnOnce(&mut Rng) -> T) -> Option<T> {
    chance(rng, percent).then(|| value(rng))
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the document of a set of tags.
pub(super) fn tagging(tags: &[(String, String)]) -> String {
    let tag = |(key, value): &(String, String)| {
        format!("<Tag><Key>{}</Key><Value>{}</Value></Tag>", escaped(key), escaped(value))
    };
    format!("<Tagging><TagSet>{}</TagSet></Tagging>", tags.iter().map(tag).collect::<String>())
}

/// Returns tags as the operator and tenants set them, and sometimes tags that are not allowed.
pub(super) fn tags(rng: &mut Rng) -> Vec<(String, String)> {
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    match rng.u8(..20) {
        ..6 => vec![
            pair("broker.stowage.io/installation", "6f6e63e5-5f6e-4c3f-9f0e-000000000000"),
            pair("broker.stowage.io/claim", "team-a/photos"),
            pair("broker.stowage.io/claim-uid", "0d4b5f0e-0000-4000-8000-00000000000a"),
        ],
        6..11 => vec![pair("team", one(rng, &["a", "b", ""]))],
        11..14 => vec![pair("b", "2"), pair("a", "1"), pair("c d", "x+y=z:/@-._")],
        14 => vec![],
        15 => vec![pair("a", "1"), pair("a", "2")],
        16 => vec![pair("", "empty")],
        17 => vec![pair(&"k".repeat(129), "long")],
        18 => vec![pair("long", &"v".repeat(257))],
        _ => (0..one(rng, &[10, 11, 50, 51])).map(|number| pair(&format!("t{number}"), "v")).collect(),
    }
}

/// Returns the document of a bucket's versioning state.
pub(super) fn versioning(status: &str) -> String {
    format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>")
}

/// Returns the document of keys to delete, each with or without a version.
pub(super) fn delete(objects: &[(String, Option<String>)], quiet: bool) -> String {
    let object = |(key, version): &(String, Option<String>)| {
        let version = version.iter().map(|id| format!("<VersionId>{id}</VersionId>")).collect::<String>();
        format!("<Object><Key>{}</Key>{version}</Object>", escaped(key))
    };
    let quiet = if quiet { "<Quiet>true</Quiet>" } else { "" };
    format!("<Delete>{}{quiet}</Delete>", objects.iter().map(object).collect::<String>())
}

/// Returns the document that completes an upload, with part numbers and entity tags.
pub(super) fn complete(parts: &[(u32, String)]) -> String {
    let part =
        |(number, tag): &(u32, String)| format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
    let parts = parts.iter().map(part).collect::<String>();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>")
}

/// Returns the entity tag of one of the texts, or one that no text has.
pub(super) fn some_tag(rng: &mut Rng) -> String {
    if chance(rng, 80) { tag_of(one(rng, &TEXTS)) } else { tag_of("none of them") }
}
